from __future__ import annotations

from veridical.core.records import Explained, Score
from veridical.metric import metric
from veridical.metric.plausibility import judged, step_precision
from veridical.model.erase import Level


@metric("average_precision", kind="plausibility", better="higher", bounds=(0, 1), needs=("rationale",))
def average_precision(
    ex: Explained, *, level: Level = "token", include_specials: bool = False, abs: bool = False
) -> Score:
    """Precision averaged over the recall each threshold adds (a sum of steps, not ERASER's trapezoids).

    Undefined where nothing is marked. Options as for `auc`.
    """
    return Score(step_precision(*judged(ex, level=level, include_specials=include_specials, abs=abs)))
