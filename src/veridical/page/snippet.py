"""What a notebook shows of a result that is a sentence and a table."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from veridical.core.tables import Cells
from veridical.page.render import render


def told(
    cells: Cells,
    *,
    right: Collection[int] = (),
    title: str = "",
    lead: str = "",
    link: Path | None = None,
    linked: str = "report",
) -> str:
    """A sentence, a table whose header comes first and whose columns in `right` are of numbers, and a link."""
    header, *rows = cells or [[]]
    return render(
        "page/told.html",
        header=header,
        rows=rows,
        right=list(right),
        title=title,
        lead=lead,
        link="" if link is None else link.as_posix(),
        linked=linked,
    )
