from __future__ import annotations

from veridical.core.records import Explained, Score
from veridical.metric import metric
from veridical.metric.plausibility import Ties, judged, recall
from veridical.model.erase import Level


@metric("recall_at_k", kind="plausibility", better="higher", bounds=(0, 1), needs=("rationale",))
def recall_at_k(
    ex: Explained,
    *,
    level: Level = "token",
    include_specials: bool = False,
    ties: Ties = "stable",
    abs: bool = False,
) -> Score:
    """Share of the marked tokens among the k highest scored, k being how many are marked.

    Undefined where nothing is marked. Ties at the cut go to the earlier token; `ties=expected` averages over them.
    """
    scores, truth = judged(ex, level=level, include_specials=include_specials, abs=abs)
    return Score(recall(scores, truth, ties))
