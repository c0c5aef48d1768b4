from __future__ import annotations

import numpy as np

from veridical.core.records import Explained, Score
from veridical.metric import metric
from veridical.metric.erasure import of_target
from veridical.metric.monotonicity import NOISE
from veridical.model.ask import Asker
from veridical.model.erase import Level, Operator, erase, unit_scores, units


@metric("corr", kind="faithfulness", better="higher", bounds=(-1, 1), needs=("questions",), repeats=("occlusion",))
def corr(ex: Explained, *, by: Operator = "delete", level: Level = "token") -> Asker[Score]:
    """Minus the Pearson correlation between the scores and the explained class's probability after each token alone
    is erased (Arya et al. 2019). Undefined where either is the same for all tokens.
    """
    groups = units(ex, level)
    answers = yield [erase(ex, group, by) for group in groups]
    p = of_target(ex, answers)
    scores = _centred(unit_scores(ex, groups))
    if scores is None or np.ptp(p) < NOISE:
        return Score(None)
    p = p - p.mean()
    return Score(float(np.clip(-(scores @ p) / np.sqrt((scores @ scores) * (p @ p)), -1, 1)))


def _centred(scores: np.ndarray) -> np.ndarray | None:
    """Scores less their mean, the largest 1 (their squares might vanish else); None where they do not differ."""
    if len(scores) == 0:
        return None
    centred = scores - scores.mean()
    largest = np.abs(centred).max()
    return None if largest <= 1e-12 * np.abs(scores).max() else centred / largest
