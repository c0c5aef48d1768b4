"""Metrics without a model: questions are answered by a function of the altered input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from veridical.core.records import Answers, Encoded, Example, Explained, Score, Variant
from veridical.core.seed import seed_of

Reply = Callable[[Variant], float]  # the explained class's probability


def seen(
    scores: Sequence[float],
    p: float = 0.9,
    *,
    ids: Sequence[int] | None = None,
    free: Sequence[bool] | None = None,
    words: Sequence[int] | None = None,
    context: str | None = None,
    **more: Any,
) -> Explained:
    """A text of these scores, explained for class 0 of two; every token is free unless said otherwise."""
    n = len(scores)
    ids = range(100, 100 + n) if ids is None else ids
    encoded = Encoded(
        Example("x", "x", context=context),
        tuple(ids),
        (0,) * n,
        ((0, 0),) * n,
        tuple(range(n) if words is None else words),
        tuple([True] * n if free is None else free),
    )
    full = answers([p])
    both, logits = full.probabilities[0], full.logits[0]
    return Explained(encoded, 0, both, logits, np.array(scores, dtype=np.float32), mask_id=103, **more)


def answers(p: Sequence[float]) -> Answers:
    both = np.stack([np.asarray(p, dtype=float), 1 - np.asarray(p, dtype=float)], -1)
    with np.errstate(divide="ignore"):
        return Answers(np.log(both), both)


def drive(asker: Any, reply: Reply) -> tuple[Score, list[Variant]]:
    """The metric's score, and all it asked."""
    asked: list[Variant] = []
    questions = next(asker)
    while True:
        asked += questions
        try:
            questions = asker.send(answers([reply(v) for v in questions]))
        except StopIteration as end:
            return end.value, asked


def scored(asker: Any, reply: Reply) -> Score:
    return drive(asker, reply)[0]


def arbitrary(variant: Variant) -> float:
    """Some probability that depends on everything in the question."""
    return (seed_of(variant) % 9973) / 9973
