"""The cells of one corpus as arrays [methods, metrics, texts], NaN where a score is undefined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from veridical.audits.options import Draw
from veridical.core.errors import InputError
from veridical.core.records import Cell


@dataclass(frozen=True)
class Sheet:
    """All scores of one corpus, for the explanations themselves ("") and for each control in their place."""

    corpus: str
    examples: tuple[str, ...]
    methods: tuple[str, ...]
    metrics: tuple[str, ...]
    values: Mapping[str, np.ndarray]  # control -> [methods, metrics, texts]; "" first, then permutation if there
    scored: Mapping[str, np.ndarray]  # control -> [methods, metrics, texts] bool: a cell is there
    curves: Mapping[str, tuple[np.ndarray, ...]]  # control -> per metric [methods, texts, ratios]
    errors: np.ndarray  # [methods, metrics, texts]
    rooms: np.ndarray  # [methods, metrics, texts], what values were divided by; NaN where a metric does not say

    @property
    def controls(self) -> tuple[Draw, ...]:
        """The kinds of random explanations that were scored; the first one decides."""
        return tuple(cast(Draw, name) for name in self.values if name)

    def only(self, metrics: Sequence[str]) -> Sheet:
        """The same of some of the metrics."""
        columns = [self.metrics.index(name) for name in metrics]
        return replace(
            self,
            metrics=tuple(metrics),
            values={control: values[:, columns] for control, values in self.values.items()},
            scored={control: scored[:, columns] for control, scored in self.scored.items()},
            curves={control: tuple(curves[k] for k in columns) for control, curves in self.curves.items()},
            errors=self.errors[:, columns],
            rooms=self.rooms[:, columns],
        )


def gather(cells: Sequence[Cell], corpus: str, metrics: Sequence[str], texts: Sequence[str] = ()) -> Sheet:
    """The cells of one corpus as arrays; methods in order of appearance, and texts, but for those given in theirs."""
    methods = {name: i for i, name in enumerate(dict.fromkeys(c.method for c in cells))}
    scored_texts = {c.example for c in cells}
    order = [*(text for text in texts if text in scored_texts), *(c.example for c in cells)]
    examples = {name: i for i, name in enumerate(dict.fromkeys(order))}
    column = {name: i for i, name in enumerate(metrics)}
    lengths = [0] * len(metrics)
    for cell in cells:
        at, length = column[cell.metric], len(cell.score.curve)
        if length and lengths[at] not in (0, length):
            raise ValueError(f"{cell.metric} gave curves of {lengths[at]} and of {length} ratios")
        lengths[at] = length or lengths[at]
    shape = (len(methods), len(metrics), len(examples))
    controls = sorted({"", *(c.control for c in cells)}, key=lambda name: (name != "", name != "permutation", name))
    values = {c: np.full(shape, np.nan) for c in controls}
    scored = {c: np.zeros(shape, dtype=bool) for c in controls}
    curves = {c: tuple(np.full((shape[0], shape[2], n), np.nan) for n in lengths) for c in controls}
    errors, rooms = np.full(shape, np.nan), np.full(shape, np.nan)
    for cell in cells:
        m, k, i = methods[cell.method], column[cell.metric], examples[cell.example]
        if scored[cell.control][m, k, i]:
            raise InputError(
                f"{cell.corpus} has two scores of {cell.method} by {cell.metric} on text {cell.example!r}; "
                "texts need ids of their own."
            )
        scored[cell.control][m, k, i] = True
        score = cell.score
        if score.value is not None:
            values[cell.control][m, k, i] = score.value
        if score.curve:
            curves[cell.control][k][m, i] = score.curve  # None becomes NaN
        if score.error is not None and not cell.control:
            errors[m, k, i] = score.error
        if score.room is not None and not cell.control:
            rooms[m, k, i] = score.room
    return Sheet(corpus, tuple(examples), tuple(methods), tuple(metrics), values, scored, curves, errors, rooms)
