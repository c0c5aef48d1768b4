from __future__ import annotations

import numpy as np

from veridical.core.records import Explained, Score
from veridical.metric import metric
from veridical.metric.erasure import Ratios
from veridical.metric.plausibility import scored
from veridical.model.erase import Level, budget

TENTHS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@metric("sparsity", kind="shape", better="higher", bounds=(0, 1))
def sparsity(ex: Explained, *, ratios: Ratios = TENTHS, level: Level = "token") -> Score:
    """Share of all importance (absolute scores) that the top tokens hold, averaged over shares of tokens.

    The curve is figure 6 of the ROAR paper (appendix E). Undefined where every score is 0. High is sparse, which
    is easier to read; it says nothing about being faithful.
    """
    scores, _ = scored(ex, level=level, abs=True)
    total = scores.sum()
    if total <= 0:
        return Score(None, (None,) * len(ratios))
    held = np.cumsum(-np.sort(-scores)) / total
    curve = tuple(float(min(1.0, held[budget(len(scores), ratio) - 1])) for ratio in ratios)
    return Score(float(np.mean(curve)), curve)
