"""`Validation`: what `veridical.validate` returns. It prints its answer and displays in a notebook."""

from __future__ import annotations

import dataclasses
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from veridical.core.frames import Columns, Tabular, columns_of
from veridical.core.tables import to_text
from veridical.page.snippet import told
from veridical.probes.validation.page import rate
from veridical.probes.validation.record import ValidationSummary, WorldRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEADER = (
    *("panel", "E1, choosing", "silent", "E1, fresh", "silent", "by need", "by need, fresh"),
    *("E2, choosing", "E2, fresh"),
)
RIGHT = range(1, len(HEADER))  # columns of numbers
WIDTH = 100


@dataclasses.dataclass(frozen=True, repr=False)
class Validation(Tabular):
    """What is known so far, and where it lies."""

    COLUMNS: ClassVar[Columns] = columns_of(WorldRow)  # a row per world

    folder: Path
    summary: ValidationSummary

    @property
    def page(self) -> Path:
        """The report."""
        return self.folder / "report.html"

    def __repr__(self) -> str:
        answer = textwrap.fill(self.summary.answer, WIDTH, break_long_words=False, break_on_hyphens=False)
        return f"{answer}\n{to_text(error_cells(self.summary), right=RIGHT)}\nreport {self.page}"

    def _repr_html_(self) -> str:
        summary = self.summary
        return told(error_cells(summary), right=RIGHT, title=summary.title, lead=summary.answer, link=self.page)

    def _rows(self) -> tuple[WorldRow, ...]:
        return self.summary.worlds

    def plot(self, *, ax: Axes | None = None, figsize: tuple[float, float] | None = None) -> Axes:
        """How often each panel's verdict was wrong, with its 95% interval, in the worlds that chose and in fresh ones.
        Returns the Axes, those of `ax` or new ones."""
        from veridical.page.charts import Series, intervals

        series = [
            Series(name, {row.label: (row.wrong.share, row.wrong.low, row.wrong.high) for row in rows})
            for name, rows in (("worlds that chose", self.summary.first), ("fresh worlds", self.summary.fresh))
            if rows
        ]
        return intervals(series, "share of wrong verdicts, 95% interval", ax, figsize)


def error_cells(summary: ValidationSummary) -> list[list[str]]:
    """The errors of every panel."""
    cells = [list(HEADER)]
    for first, fresh in zip(summary.first, summary.fresh, strict=True):
        name = f"{first.label} (chosen)" if first.label == summary.chosen else first.label
        both = (rate(first.wrong), str(first.silent), rate(fresh.wrong), str(fresh.silent))
        need = (rate(first.wrong_by_need), rate(fresh.wrong_by_need))
        cells.append([name, *both, *need, rate(first.banned), rate(fresh.banned)])
    return cells
