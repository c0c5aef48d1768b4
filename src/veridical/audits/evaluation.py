"""`Evaluation`: what `veridical.evaluate` returns. It prints itself as a table and displays in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from veridical.core.errors import unknown
from veridical.core.frames import Columns, Tabular
from veridical.core.records import Attribution, Cell
from veridical.core.spec import base_name
from veridical.core.statistics import Estimate, estimates
from veridical.core.tables import to_text
from veridical.page.render import render
from veridical.page.words import figure, interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEADER = ("method", "mean", "95% interval", "n", "undefined")


@dataclass(frozen=True, repr=False)
class Evaluation(Tabular):
    """What `evaluate` returns: a cell per method, metric and example, and the explanations themselves."""

    # A row per cell, as in scores.parquet.
    COLUMNS: ClassVar[Columns] = {
        **{"corpus": str, "example": str, "method": str, "control": str, "metric": str},
        **{"value": float, "curve": list[float], "error": float, "room": float},
    }

    cells: tuple[Cell, ...]
    attributions: Mapping[str, tuple[Attribution, ...]]  # by method, in the order of the examples

    def mean(self, metric: str, method: str) -> float | None:
        """Mean over the examples on which the metric is defined."""
        values = [value for value in self._values.get((metric, method), ()) if value is not None]
        return float(np.mean(values)) if values else None

    def table(self) -> dict[str, dict[str, float | None]]:
        """method -> metric -> mean over examples."""
        return {method: {name: self.mean(name, method) for name in self._metrics} for method in self.attributions}

    @cached_property
    def estimates(self) -> dict[tuple[str, str], Estimate]:
        """(metric, method) -> mean, 95% interval, on how many texts it is defined and on how many not.

        A pair of methods is written `a ~ b`. Of fewer than five texts there is no interval.
        """
        return dict(zip(self._values, estimates(self._values.values()), strict=True))

    @cached_property
    def _values(self) -> dict[tuple[str, str], list[float | None]]:
        values: dict[tuple[str, str], list[float | None]] = {}
        for cell in self.cells:
            if not cell.control:
                values.setdefault((cell.metric, cell.method), []).append(cell.score.value)
        return values

    @property
    def _metrics(self) -> dict[str, None]:
        return dict.fromkeys(cell.metric for cell in self.cells)

    def __repr__(self) -> str:
        if not self.estimates:
            return f"Evaluation of {', '.join(self.attributions) or 'nothing'}: no scores"
        cells, said = [["metric", *HEADER]], ""
        for (metric, method), found in self.estimates.items():
            cells.append(["" if metric == said else metric, *_line(method, found)])
            said = metric
        return to_text(cells, right=(2, 3, 4, 5))

    def _repr_html_(self) -> str:
        groups = [
            {
                "name": metric,
                "note": _direction(metric),
                "rows": [_line(method, found) for (of, method), found in self.estimates.items() if of == metric],
            }
            for metric in self._metrics
        ]
        return render("audits/evaluation.html", header=HEADER, groups=groups, methods=list(self.attributions))

    def _rows(self) -> Iterator[dict[str, Any]]:
        for cell in self.cells:
            score = cell.score
            yield {
                **{"corpus": cell.corpus, "example": cell.example, "method": cell.method, "control": cell.control},
                **{"metric": cell.metric, "value": score.value, "curve": score.curve},
                **{"error": score.error, "room": score.room},
            }

    def plot(
        self,
        metric: str | None = None,
        *,
        ax: Axes | None = None,
        figsize: tuple[float, float] | None = None,
    ) -> Axes:
        """Every method's mean with its 95% interval, by one metric or by all. Returns the Axes, those of `ax` or new
        ones."""
        from veridical.page.charts import Series, intervals

        if metric is not None and metric not in self._metrics:
            raise unknown("metric in this evaluation", metric, self._metrics)
        series = [
            Series(
                f"{name}, {_direction(name)}" if _direction(name) else name,
                {method: (e.mean, e.low, e.high) for (of, method), e in self.estimates.items() if of == name},
            )
            for name in ([metric] if metric is not None else self._metrics)
        ]
        return intervals(series, "mean and 95% interval", ax, figsize)


def _line(method: str, found: Estimate) -> list[str]:
    bounds = interval(found.low, found.high) if found.low is not None else ""
    return [method, figure(found.mean), bounds, str(found.n), str(found.undefined)]


def _direction(metric: str) -> str:
    """`higher is better`; nothing where neither is, or the metric is not known here."""
    from veridical.metric import metrics

    if base_name(metric) not in metrics:
        return ""
    choice = metrics.choose(metric)
    judges = choice.entry.kind in ("faithfulness", "plausibility", "truth")
    return f"{choice.entry.reading(choice.options)[0]} is better" if judges else ""
