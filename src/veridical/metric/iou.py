from __future__ import annotations

from veridical.core.records import Explained, Score
from veridical.metric import metric
from veridical.metric.plausibility import Ties, hits, intersection_over_union, judged
from veridical.model.erase import Level


@metric("iou", kind="plausibility", better="higher", bounds=(0, 1), needs=("rationale",))
def iou(
    ex: Explained,
    *,
    level: Level = "token",
    include_specials: bool = False,
    ties: Ties = "stable",
    abs: bool = False,
) -> Score:
    """Intersection over union of the k highest scored tokens and the k marked ones.

    Undefined where nothing is marked. Options as for `recall_at_k`.
    """
    scores, truth = judged(ex, level=level, include_specials=include_specials, abs=abs)
    k = int(truth.sum())
    return Score(sum(p * intersection_over_union(n, k, k) for n, p in hits(scores, truth, ties)) if k else None)
