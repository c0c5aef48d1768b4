"""Explanations as a file to keep: a page of its own, or rows of the exchange schema."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from starlette.responses import Response

from veridical.explanations.exchange import write_explanations
from veridical.explanations.explanation import Explanation
from veridical.explanations.page import explain_page
from veridical.playground.requests import ExportAsked

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


def written(asked: ExportAsked, found: Sequence[Explanation], model: str) -> bytes:
    """The bytes of the file."""
    if asked.format == "html":
        said = {"target": asked.target, "contrast": asked.contrast, "level": asked.level}
        return explain_page({each.method: [each] for each in found}, model=model, data="", **said).encode()
    with tempfile.TemporaryDirectory() as folder:
        return write_explanations(Path(folder) / f"explanations{KINDS[asked.format][1]}", found).read_bytes()


def attachment(kind: Format, body: bytes) -> Response:
    media, ending = KINDS[kind]
    headers = {"content-disposition": f'attachment; filename="explanations{ending}"'}
    return Response(body, media_type=media, headers=headers)
