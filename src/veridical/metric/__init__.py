"""Metrics: one file each, found by scanning this folder.

A metric that asks the model is a generator `(ex, *, options)`: it yields altered inputs, receives their answers
and returns a `Score`. One that needs no question is a plain function `(ex, *, options) -> Score`. Both see an
`Explained`: encoding, scores, explained class, probabilities on the full text. A metric of two explanations of
the same text takes both, `(a, b, *, options) -> Score`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from veridical.registry import Registry

Kind = Literal["faithfulness", "plausibility", "agreement", "truth", "shape"]
Need = Literal["questions", "rationale", "pair", "planted"]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Metric:
    """A metric and what is true of it."""

    name: str
    run: Callable[..., Any]
    kind: Kind
    better: Literal["higher", "lower"]
    bounds: tuple[float, float]  # of the value
    needs: frozenset[Need]  # rationale: of the example; pair: two explanations; planted: the truth is known
    version: int

    @property
    def asks(self) -> bool:
        return "questions" in self.needs

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.run) or "").split("\n\n")[0].replace("\n", " ")


metrics: Registry[Metric] = Registry("metric", "veridical.metric")


def metric(
    name: str,
    *,
    kind: Kind,
    better: Literal["higher", "lower"],
    bounds: tuple[float, float],
    needs: tuple[Need, ...] = (),
    version: int = 1,
) -> Callable[[F], F]:
    """Register a function as a metric."""

    def add(run: F) -> F:
        metrics.add(Metric(name, run, kind, better, bounds, frozenset(needs), version))
        return run

    return add
