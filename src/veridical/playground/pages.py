"""The page's own files, and the pages of watched folders: all that is read from disk for a browser.

No part of an address becomes a path that leads out of its folder: links are followed first, and what then lies
elsewhere is not there.
"""

from __future__ import annotations

import os
from pathlib import Path

from fastapi import FastAPI, Request
from starlette.responses import FileResponse, Response

from veridical.playground.house import House
from veridical.playground.problem import ProblemError

STATIC = Path(__file__).parent / "static"
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
WATCHED = {name: KINDS[name] for name in (".html", ".svg", ".png")} | {".csv": "text/csv; charset=utf-8"}


def add(app: FastAPI, house: House) -> None:
    """The routes that are no part of the API."""

    @app.get("/", include_in_schema=False)
    @app.get("/embed", include_in_schema=False)
    async def page(request: Request) -> Response:
        if not getattr(request.state, "waits", False):
            return found(STATIC, "index.html", KINDS)
        text = (STATIC / "index.html").read_text(encoding="utf-8").replace("<html ", "<html data-waits ", 1)
        return Response(text, media_type=KINDS[".html"])

    @app.get("/static/{path:path}", include_in_schema=False)
    async def static(path: str) -> FileResponse:
        return found(STATIC, path, KINDS)

    @app.get("/watched/{key}/{path:path}", include_in_schema=False)
    async def watched(key: str, path: str) -> FileResponse:
        folder = house.folders().get(key)
        if folder is None:
            raise nothing()
        return found(folder, path, WATCHED)


def found(folder: Path, path: str, kinds: dict[str, str]) -> FileResponse:
    """A file of a kind that is shown, inside a folder, wherever links lead."""
    home = os.path.realpath(folder)
    try:
        real = os.path.realpath(os.path.join(home, path))
        inside = os.path.commonpath([home, real]) == home and os.path.isfile(real)
    except (OSError, ValueError):  # a null byte, a name that is too long
        inside, real = False, ""
    kind = kinds.get(os.path.splitext(real)[1].lower())
    inner = os.path.relpath(real, home) if inside else path  # a link may lead to what is hidden
    hidden = any(part.startswith(".") for part in (*Path(path).parts, *Path(inner).parts))
    if not inside or kind is None or hidden:
        raise nothing()
    return FileResponse(real, media_type=kind)


def nothing() -> ProblemError:
    return ProblemError(404, "missing", "There is nothing at this address.")
