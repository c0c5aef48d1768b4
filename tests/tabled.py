"""A model that is a table: the explained class's value for every set of masked tokens, as worked cases give it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from veridical.core.records import Answers, Encoded, Example, Explained, Variant
from veridical.model.ask import Asker

R = TypeVar("R")
MASK = 99


def tabled(values: Sequence[float], scores: Sequence[float] | None = None, label: int = 1) -> Explained:
    """A text of as many tokens as the table has bits."""
    n = len(values).bit_length() - 1
    encoded = Encoded(
        example=Example("tabled", " ".join("abcdefghijklmnop"[:n]), label),
        ids=tuple(range(n)),
        types=(0,) * n,
        spans=tuple((2 * i, 2 * i + 1) for i in range(n)),
        words=tuple(range(n)),
        free=(True,) * n,
    )
    whole = np.array([1 - values[0], values[0]])
    return Explained(encoded, 1, whole, whole, None if scores is None else np.array(scores), MASK)


def run(asker: Asker[R], values: Sequence[float]) -> tuple[R, int]:
    """Answer an asker from the table; its result, and how many distinct questions it asked."""
    asked: set[Variant] = set()
    try:
        variants = next(asker)
        while True:
            asked.update(variants)
            found = np.array([values[sum(1 << i for i, id in enumerate(v.ids) if id == MASK)] for v in variants])
            both = np.stack([1 - found, found], 1)
            variants = asker.send(Answers(both, both))
    except StopIteration as end:
        return end.value, len(asked)
