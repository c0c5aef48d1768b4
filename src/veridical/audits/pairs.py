"""Every two methods on the same texts, metric by metric: signed-rank tests over the texts, corrected by Holm within the
metric. Two methods are *told apart* if p < 0.05 and test and mean point the same way.

These describe; the verdict rests on `sequential`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from veridical.audits.diagnosticity import Better
from veridical.core.statistics import ALPHA, holm, signed_rank

CHANCE = "random"  # the method that knows nothing


@dataclass(frozen=True)
class Comparison:
    """Two methods on the texts that both explained, by one metric; the effect is positive where `a` is better. (Earlier
    audits also have comparisons by mean ranks: metric "".)"""

    corpus: str
    metric: str
    a: str
    b: str
    difference: float  # mean of a minus mean of b
    p: float
    p_holm: float
    effect: float  # matched rank-biserial
    n: int  # texts, zeros included
    zeros: int  # texts without a difference, which the test leaves out
    distinguishable: bool


def compare_all(
    values: np.ndarray,
    names: Sequence[str],
    better: Better,
    *,
    corpus: str = "",
    metric: str = "",
) -> tuple[Comparison, ...]:
    """Every pair of rows of [methods, texts]; Holm over all pairs."""
    pairs = list(combinations(range(len(names)), 2))
    if not pairs:
        return ()
    sign = 1 if better == "higher" else -1
    test = signed_rank(np.array([sign * (values[i] - values[j]) for i, j in pairs]))
    corrected = holm(test.p)
    same_way = test.difference * test.effect > 0
    return tuple(
        Comparison(
            corpus=corpus,
            metric=metric,
            a=names[i],
            b=names[j],
            difference=sign * float(test.difference[row]),
            p=float(test.p[row]),
            p_holm=float(corrected[row]),
            effect=float(test.effect[row]),
            n=int(test.n[row]),
            zeros=int(test.zeros[row]),
            distinguishable=bool(corrected[row] < ALPHA and same_way[row]),
        )
        for row, (i, j) in enumerate(pairs)
        if test.n[row]
    )
