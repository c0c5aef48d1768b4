from __future__ import annotations

import numpy as np

from veridical.core.records import Explained, Score
from veridical.metric import metric
from veridical.metric.erasure import of_target
from veridical.model.ask import Asker
from veridical.model.erase import Level, Operator, erase, ranked_units

NOISE = 1e-6  # of a probability; a smaller fall may be the batch it was computed in


@metric("monotonicity", kind="faithfulness", better="higher", bounds=(0, 1), needs=("questions",), order=True)
def monotonicity(ex: Explained, *, by: Operator = "delete", level: Level = "token") -> Asker[Score]:
    """The share of steps at which the explained class does not lose probability while tokens are added to the null
    input, lowest score first (Arya et al. 2019).

    Where a model's class scores are sums over tokens it says nothing about the explanation: a token then helps or
    harms alike whenever it is added.
    """
    groups = ranked_units(ex, level)
    answers = yield [erase(ex, [p for group in groups[:k] for p in group], by) for k in range(len(groups), -1, -1)]
    steps = np.diff(of_target(ex, answers))
    return Score(float(np.mean(steps >= -NOISE)) if len(steps) else None)
