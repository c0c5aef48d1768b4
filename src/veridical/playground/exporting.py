"""Explanations as a file to keep: a page of its own, or rows of the exchange schema."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from starlette.responses import Response

from veridical.core.records import Level
from veridical.explanations.exchange import write_explanations
from veridical.explanations.explanation import Explanation
from veridical.explanations.page import explain_page

Format = Literal["html", "json", "parquet"]
KINDS: dict[Format, tuple[str, str]] = {  # its type, and the ending of its name
    "html": ("text/html", ".html"),
    "json": ("application/x-ndjson", ".jsonl"),
    "parquet": ("application/vnd.apache.parquet", ".parquet"),
}
FILES: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind, _ in KINDS.values()},
        "description": "The file.",
    }
}


def written(kind: Format, found: Sequence[Explanation], model: str, target: str, level: Level) -> bytes:
    """The bytes of the file."""
    if kind == "html":
        page = explain_page({each.method: [each] for each in found}, model=model, data="", target=target, level=level)
        return page.encode()
    with tempfile.TemporaryDirectory() as folder:
        return write_explanations(Path(folder) / f"explanations{KINDS[kind][1]}", found).read_bytes()


def attachment(kind: Format, body: bytes) -> Response:
    media, ending = KINDS[kind]
    headers = {"content-disposition": f'attachment; filename="explanations{ending}"'}
    return Response(body, media_type=media, headers=headers)
