from __future__ import annotations

from veridical.core.records import Explained, Score
from veridical.metric import metric
from veridical.metric.plausibility import Ties, hits, judged, precision_recall_f1
from veridical.model.erase import Level


@metric("token_f1", kind="plausibility", better="higher", bounds=(0, 1), needs=("rationale",))
def token_f1(
    ex: Explained,
    *,
    level: Level = "token",
    include_specials: bool = False,
    ties: Ties = "stable",
    abs: bool = False,
) -> Score:
    """F1 of the k highest scored tokens against the k marked ones (equal to recall_at_k, as both sets have k).

    Undefined where nothing is marked. Options as for `recall_at_k`.
    """
    scores, truth = judged(ex, level=level, include_specials=include_specials, abs=abs)
    k = int(truth.sum())
    return Score(sum(p * precision_recall_f1(n, k, k)[2] for n, p in hits(scores, truth, ties)) if k else None)
