"""Metrics: one file each, or one for those that share their arithmetic, found by scanning this folder.

A metric that asks the model is a generator `(ex, *, options)`: it yields altered inputs, receives their answers
and returns a `Score`. One that needs no question is a plain function `(ex, *, options) -> Score`. Both see an
`Explained`: encoding, scores, explained class, probabilities on the full text. A metric of two explanations of
the same text takes both, `(a, b, *, options) -> Score`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from veridical.core.registry import Registry

Kind = Literal["faithfulness", "plausibility", "agreement", "truth", "shape"]
Direction = Literal["higher", "lower"]
Need = Literal["questions", "rationale", "pair", "planted"]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Metric:
    """A metric and what is true of it."""

    name: str
    run: Callable[..., Any]
    kind: Kind
    better: Direction
    bounds: tuple[float, float]  # of the value
    needs: frozenset[Need]  # rationale: of the example; pair: two explanations; planted: the truth is known
    repeats: frozenset[str]  # methods that ask the model the same: it cannot judge them
    when: Mapping[str, tuple[Direction, tuple[float, float]]]  # an option that is on -> direction and bounds under it
    order: bool  # nothing of the scores matters but the order they put the tokens in, ties going to the earlier
    version: int

    def of_order(self, options: Mapping[str, Any]) -> bool:
        """Is that so under these options? It is of scores replaced by their ranks, and not of words, which are sums."""
        by_rank = self.order or options.get("scale") == "rank"
        return by_rank and options.get("level", "token") == "token"

    def reading(self, options: Mapping[str, Any]) -> tuple[Direction, tuple[float, float]]:
        """Direction and bounds under these options."""
        for option, reading in self.when.items():
            if options.get(option):
                return reading
        return self.better, self.bounds

    @property
    def asks(self) -> bool:
        return "questions" in self.needs

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.run) or "").split("\n\n")[0].replace("\n", " ")


metrics: Registry[Metric] = Registry("metric", "veridical.metric", "metric")


def metric(
    name: str,
    *,
    kind: Kind,
    better: Direction,
    bounds: tuple[float, float],
    needs: tuple[Need, ...] = (),
    repeats: tuple[str, ...] = (),
    when: Mapping[str, tuple[Direction, tuple[float, float]]] | None = None,
    order: bool = False,
    version: int = 1,
) -> Callable[[F], F]:
    """Register a function as a metric."""

    def add(run: F) -> F:
        facts = (kind, better, bounds, frozenset(needs), frozenset(repeats), dict(when or {}), order, version)
        metrics.add(Metric(name, run, *facts))
        return run

    return add
