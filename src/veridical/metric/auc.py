from __future__ import annotations

from veridical.core.records import Explained, Score
from veridical.metric import metric
from veridical.metric.plausibility import area, judged
from veridical.model.erase import Level


@metric("auc", kind="plausibility", better="higher", bounds=(0, 1), needs=("rationale",))
def auc(ex: Explained, *, level: Level = "token", include_specials: bool = False, abs: bool = False) -> Score:
    """How often a token people marked scores higher than one they did not (area under the ROC curve).

    Ties count half; undefined where every token is marked, or none. `include_specials` counts all positions that
    are not explained as unmarked, as ER's released code does; `abs` ranks by absolute value, as it does for signed
    methods.
    """
    return Score(area(*judged(ex, level=level, include_specials=include_specials, abs=abs)))
