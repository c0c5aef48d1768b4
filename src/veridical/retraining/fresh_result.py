"""What `fresh` found: the table of macro-F1 per corpus, method and objective, and where it lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from veridical.audits.compare_table import Table, figure_cells, to_rows, to_text
from veridical.core.errors import InputError
from veridical.core.frames import Columns, Tabular
from veridical.page.snippet import told
from veridical.retraining.fresh_table import F1

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False)
class Fresh(Tabular):
    """What `fresh` found and where it lies."""

    COLUMNS: ClassVar[Columns] = Table.COLUMNS  # a row per corpus, method and objective

    folder: Path
    table: Table  # corpus x method x objective, as `veridical compare` writes tables
    summary: Mapping[str, Any]

    def __str__(self) -> str:
        return to_text(self.table)

    def __repr__(self) -> str:
        return f"{to_text(self.table)}{self.folder}"

    def _repr_html_(self) -> str:
        lead = " ".join(self.table.notes)
        return told(
            figure_cells(self.table), title="FRESH", lead=lead, link=self.folder / "table.txt", linked="the table"
        )

    def _rows(self) -> list[dict[str, Any]]:
        return to_rows(self.table)

    def plot(
        self, corpus: str | None = None, *, ax: Axes | None = None, figsize: tuple[float, float] | None = None
    ) -> Axes:
        """Macro-F1 of every rationale and of full text, with a colour per objective and 95% intervals over seeds where
        there are five; on the data itself unless a corpus is named. Returns the Axes, those of `ax` or new ones."""
        return self.table.plot(F1, corpus=corpus, ax=ax, figsize=figsize)

    def f1(self, method: str, objective: str | None = None, corpus: str | None = None) -> float | None:
        """Mean macro-F1 over the seeds; of the first objective, on the data itself, unless told otherwise."""
        wanted = (corpus or self.table.entries[0].corpus, method, objective or self.table.models[0])
        for entry in self.table.entries:
            if (entry.corpus, entry.method, entry.model) == wanted:
                return entry.mean
        raise InputError(
            f"There is no figure for {' / '.join(wanted)}; {self.folder / 'table.txt'} shows those there are."
        )
