from __future__ import annotations

from veridical.core.records import Explained, Score
from veridical.metric import metric
from veridical.metric.plausibility import Ties, judged, recall
from veridical.model.erase import Level


@metric("truth", kind="truth", better="higher", bounds=(0, 1), needs=("rationale", "planted"))
def truth(ex: Explained, *, level: Level = "token", ties: Ties = "stable", abs: bool = False) -> Score:
    """Share of the k highest scored tokens that really decide, k being how many do (planted data).

    Undefined where no token decides. It is the yardstick for the other metrics: it needs no model to answer.
    """
    scores, decisive = judged(ex, level=level, abs=abs)
    return Score(recall(scores, decisive, ties))
