from __future__ import annotations

import numpy as np

from veridical.core.records import Explained, Score
from veridical.metric import metric
from veridical.metric.agreement import kendall
from veridical.metric.erasure import of_target
from veridical.metric.monotonicity import NOISE
from veridical.model.ask import Asker
from veridical.model.erase import Level, Operator, erase, unit_scores, units


@metric("loo_tau", kind="faithfulness", better="higher", bounds=(-1, 1), needs=("questions",), repeats=("occlusion",))
def loo_tau(ex: Explained, *, by: Operator = "delete", level: Level = "token") -> Asker[Score]:
    """Kendall's tau-b between the scores and how far the explained class's probability falls when each token alone is
    erased. Undefined where either is the same for all tokens.
    """
    groups = units(ex, level)
    answers = yield [erase(ex, group, by) for group in groups]
    falls = float(ex.probabilities[ex.target]) - of_target(ex, answers)
    return Score(kendall(unit_scores(ex, groups), np.round(falls / NOISE)))  # nearer than noise is a tie
