"""`Roar`: what `veridical.roar` returns. It prints its answer and areas and displays in a notebook."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from veridical.core.errors import InputError
from veridical.core.frames import Columns, Tabular
from veridical.core.tables import to_text
from veridical.page.snippet import told
from veridical.retraining.roar.cells import RANDOM
from veridical.retraining.roar.record import SCORE, RoarSummary
from veridical.retraining.roar.timing import Timing, spell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 100


@dataclass(frozen=True)
class Share:
    """What one measure takes of it."""

    measure: str
    trainings: int
    explanations: int
    seconds: float


@dataclass(frozen=True)
class Estimate:
    """What is asked for, before it starts. Seconds are of one core, at most: training may stop early."""

    cells: int
    trainings: int
    explanations: int  # passes over all texts
    seconds: float
    left: float  # of the cells that are not done
    rows: tuple[Share, ...]  # the same by measure
    timing: Timing

    def sentence(self, workers: int) -> str:
        timing = self.timing
        if not timing.epochs:
            return (
                f"{self.cells} cells, no training; {timing.texts} texts explained {self.explanations} times. About "
                f"{spell(self.seconds)} of one core, of which {spell(self.left)} are left."
            )
        most = "at most " if timing.stops_early else ""
        whole = (
            f"{self.cells} cells: {self.trainings} trainings of {most}{timing.epochs} epochs "
            f"({spell(timing.epoch)} an epoch); {timing.texts} texts explained {self.explanations} times. "
            f"{most.capitalize()}{'about' if most else 'About'} {spell(self.seconds)} of one core"
        )
        if not self.left:
            return f"{whole}, all of it done."
        left = f", of which {spell(self.left)} are left" if self.left < self.seconds else ""
        return f"{whole}{left}; {spell(self.left / workers)} with {workers} worker{'' if workers == 1 else 's'}."


@dataclass(frozen=True, repr=False)
class Roar(Tabular):
    """A benchmark as far as it has come; after a dry run its cost alone."""

    # A row per measure and amount masked, over the seeds; curves.parquet has every seed.
    COLUMNS: ClassVar[Columns] = {
        **{"measure": str, "recursive": bool, "masked": int},
        **{"mean": float, "low": float, "high": float, "n": int},
    }

    folder: Path
    known: RoarSummary | None  # None after a dry run
    cost: Estimate

    @property
    def summary(self) -> RoarSummary:
        """What is known so far."""
        if self.known is None:
            raise InputError("A dry run trains nothing, so it has no summary; run it without dry_run.")
        return self.known

    @property
    def page(self) -> Path:
        """The report."""
        return self.folder / "report.html"

    def __repr__(self) -> str:
        if self.known is None:
            return f"{self.cost.sentence(1)}\n{to_text(cost_cells(self.cost), right=(1, 2, 3))}"
        answer = textwrap.fill(self.known.answer, WIDTH, break_long_words=False, break_on_hyphens=False)
        return f"{answer}\n{to_text(area_cells(self.known), right=(1, 3))}\nreport {self.page}"

    def _repr_html_(self) -> str:
        if self.known is None:
            return told(cost_cells(self.cost), right=(1, 2, 3), title="dry run", lead=self.cost.sentence(1))
        title, cells = self.known.title, area_cells(self.known)
        return told(cells, right=(1, 2, 3), title=title, lead=self.known.answer, link=self.page)

    def _rows(self) -> Iterator[dict[str, Any]]:
        for curve in self.summary.curves:
            for masked, mean, low, high, n in zip(
                curve.masked, curve.mean, curve.low, curve.high, curve.n, strict=True
            ):
                about = {"measure": curve.measure, "recursive": curve.recursive, "masked": masked}
                yield {**about, "mean": mean, "low": low, "high": high, "n": n}

    def plot(
        self,
        recursive: bool = True,
        *,
        ax: Axes | None = None,
        figsize: tuple[float, float] | None = None,
    ) -> Axes:
        """The score by amount masked, of every measure with its 95% interval over seeds and of masking at random
        (dashed). Returns the Axes, those of `ax` or new ones."""
        from veridical.page.charts import Curve, curves

        summary = self.summary
        chosen = [curve for curve in summary.curves if curve.measure == RANDOM or curve.recursive == recursive]
        if all(curve.measure == RANDOM for curve in chosen):
            raise InputError(f"There is no curve with recursive={recursive} here; ask for the other.")
        drawn = [
            Curve(
                "masked at random" if curve.measure == RANDOM else summary.names.get(curve.measure, curve.measure),
                curve.masked,
                curve.mean,
                curve.low,
                curve.high,
                baseline=curve.measure == RANDOM,
            )
            for curve in chosen
        ]
        unit = "tokens masked, %" if summary.settings.unit == "percent" else "tokens masked"
        return curves(drawn, (unit, SCORE[summary.settings.score]), ax, figsize)


def cost_cells(cost: Estimate) -> list[list[str]]:
    """What would be run, by measure."""
    cells = [["", "trainings", "explanations", "of one core"]]
    for row in cost.rows:
        cells.append([row.measure, str(row.trainings), str(row.explanations), spell(row.seconds)])
    return [*cells, ["together", str(cost.trainings), str(cost.explanations), spell(cost.seconds)]]


def area_cells(summary: RoarSummary) -> list[list[str]]:
    """Every measure's area with its interval and what may be said of it."""
    what = f"{summary.areas[0].what}, %"  # a mean gap is in points of the score: also of a hundred
    cells = [["measure", what, "95%", "seeds", "verdict"]]
    for area in summary.areas:
        name = area.measure if area.recursive else f"{area.measure}, not recursive"
        mean = "" if area.mean is None else f"{100 * area.mean:.1f}"
        interval = "" if area.low is None or area.high is None else f"{100 * area.low:.1f} to {100 * area.high:.1f}"
        cells.append([name, mean, interval, str(area.n), area.verdict])
    return cells
