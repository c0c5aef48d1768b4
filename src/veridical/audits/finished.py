"""`Audit`: what `veridical.audit` returns. It prints its verdict and ranking and displays in a notebook."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from veridical.audits.caveats import caveats, with_caveats
from veridical.audits.record import AuditSummary, Standing
from veridical.core.errors import unknown
from veridical.core.frames import Columns, Tabular, columns_of
from veridical.core.tables import to_text
from veridical.page.render import render
from veridical.page.words import net, net_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from veridical.audits.filing import Since

COLOURS = {"believe": "#0072B2", "as_good": "#56B4E9", "open": "#626A7A", "behind": "#E69F00", "chance": "#D55E00"}
LISTS = {"believe": "believe", "as_good": "as good", "open": "open", "behind": "worse", "chance": "do not use"}
CLEARLY = "clearly worse"
PLACES = (
    "First is, of the methods that were not shown to be worse, the one with the most net wins over these. The others "
    "follow by list, on a list by net wins over the first."
)
DECIDES = (
    "The lists rest on tests that hold for all looks and methods together. An interval is of one figure alone, so that "
    "of an open method may leave out 0."
)
WIDTH = 100


@dataclass(frozen=True, repr=False)
class Audit(Tabular):
    """What an audit found and where it lies."""

    COLUMNS: ClassVar[Columns] = columns_of(Standing)  # a row per corpus and method, as in tables/ranking.csv

    folder: Path
    summary: AuditSummary
    since: Since | None = None  # what changed since the audit that it was held against

    @property
    def page(self) -> Path:
        """The report."""
        return self.folder / "report.html"

    @property
    def verdict(self) -> str:
        """What may be believed on the data itself, in a sentence, and why to take it with care where that is so."""
        return with_caveats(self.summary, self.summary.verdicts[0].corpus)

    def __repr__(self) -> str:
        table = ranking_table(self.summary)
        notes = [*([f"{PLACES} {DECIDES}"] if table else []), *self.summary.verdicts[0].notes]
        parts = [_wrapped(self.verdict), table, *map(_wrapped, notes)]
        return "\n".join([*filter(None, parts), f"report {self.page}"])

    def _repr_html_(self) -> str:
        summary = self.summary
        return render(
            "audits/finished.html",
            title=summary.title,
            home=summary.verdicts[0],
            caveats=caveats(summary, summary.verdicts[0].corpus),
            elsewhere=[(verdict.corpus, with_caveats(summary, verdict.corpus)) for verdict in summary.verdicts[1:]],
            lists=_lists(summary),
            rows=[_row(standing) for standing in ranking(summary)],
            reading=f"{PLACES} {DECIDES}",
            page=str(self.page),
            link=self.page.as_posix(),
        )

    def _rows(self) -> tuple[Standing, ...]:
        return self.summary.ranking

    def plot(
        self,
        corpus: str | None = None,
        *,
        ax: Axes | None = None,
        figsize: tuple[float, float] | None = None,
    ) -> Axes:
        """The ranking on a corpus, at home unless told otherwise: every method's net wins over chance with their 95%
        interval, the best first. Returns the Axes, those of `ax` or new ones."""
        from veridical.page.charts import SOFT, Series, intervals

        known = [facts.name for facts in self.summary.corpora]
        if corpus is not None and corpus not in known:
            raise unknown("corpus in this audit", corpus, known)
        standings = ranking(self.summary, corpus)
        # All lists make series, so that a method's colour says on which it is; its place is the row.
        rows = [row.method for row in standings]
        series = [
            Series(
                name,
                {
                    row.method: (row.net_chance, row.net_chance_low, row.net_chance_high)
                    for row in standings
                    if row.list == key
                },
                COLOURS.get(key or "", "#626A7A"),
            )
            for key, name in ((None, "no verdict"), *LISTS.items())
            if any(row.list == key for row in standings)
        ]
        ax = intervals(series, "net wins over random orders, 95% interval", ax, figsize, order=rows)
        ax.axvline(0, color=SOFT, linewidth=0.8, zorder=1)
        return ax


def ranking(summary: AuditSummary, corpus: str | None = None) -> list[Standing]:
    """The standings on a corpus, at home unless told otherwise, the first first."""
    name = summary.corpora[0].name if corpus is None else corpus
    return sorted((row for row in summary.ranking if row.corpus == name), key=lambda standing: standing.place)


def ranking_table(summary: AuditSummary) -> str:
    """The ranking at home as aligned lines; nothing where nobody was ranked."""
    cells = [["", "method", "", "net wins over chance", "over the first", "texts", "passes a text"]]
    for row in ranking(summary):
        chance = _net(row.net_chance, row.net_chance_low, row.net_chance_high)
        first = _net(row.net_first, row.net_first_low, row.net_first_high)
        passes = "" if row.passes is None else f"{row.passes:.3g}"
        cells.append([str(row.place), row.method, list_words(row), chance, first, str(row.n), passes])
    return to_text(cells) if len(cells) > 1 else ""


def list_words(row: Standing) -> str:
    """On which list a method is, in the words of every table; "" where there is no verdict."""
    return CLEARLY if row.list == "behind" and row.clearly else LISTS.get(row.list or "", "")


def _net(mean: float | None, low: float | None, high: float | None) -> str:
    interval = "" if low is None or high is None else f" ({_signed(low)} to {_signed(high)})"
    return "" if mean is None else f"{_signed(mean)}{interval}"


def _signed(value: float) -> str:
    """Two decimals, and no negative zero."""
    return f"{round(value, 2) + 0.0:+.2f}"


def _lists(summary: AuditSummary) -> dict[str, tuple[str, ...]]:
    """The lists of the verdict at home that name somebody."""
    held = {name: getattr(summary.verdicts[0], key) for key, name in LISTS.items()}
    return {name: methods for name, methods in held.items() if methods}


def _row(row: Standing) -> dict[str, Any]:
    return {
        "place": row.place,
        "method": row.method,
        "list": list_words(row),
        "net": "" if row.net_chance is None else net(row.net_chance),
        "interval": "" if row.net_chance_low is None else net_interval(row.net_chance_low, row.net_chance_high),
        "first": "" if row.net_first is None else net(row.net_first),
        "first_interval": "" if row.net_first_low is None else net_interval(row.net_first_low, row.net_first_high),
        "texts": row.n,
    }


def _wrapped(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)
