from __future__ import annotations

from typing import Annotated

import numpy as np

from veridical.core.ranges import between
from veridical.core.records import Explained, Score
from veridical.metric import metric
from veridical.metric.agreement import paired
from veridical.model.erase import Level, Rounding, budget, ranking


@metric("jaccard", kind="agreement", better="higher", bounds=(0, 1), needs=("pair",))
def jaccard(
    a: Explained,
    b: Explained,
    *,
    share: Annotated[float, between(0, 1, without="low")] = 0.25,
    rounding: Rounding = "ceil_min1",
    level: Level = "token",
    abs: bool = False,
) -> Score:
    """Overlap of two explanations' top tokens: both over either, for the top 25% of each (REGEX).

    Ties at the cut go to the earlier token. Two models with different tokenizers are compared at level=word.
    """
    pair = paired(a, b, level=level, abs=abs)
    return Score(overlap(*pair, budget(len(pair[0]), share, rounding)))


def overlap(a: np.ndarray, b: np.ndarray, k: int) -> float | None:
    """Jaccard index of the k highest of each; None if k is 0."""
    if not k:
        return None
    top = [set(ranking(scores, np.ones(len(scores), dtype=bool))[:k].tolist()) for scores in (a, b)]
    return len(top[0] & top[1]) / len(top[0] | top[1])
