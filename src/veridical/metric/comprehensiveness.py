from __future__ import annotations

from veridical.core.records import Explained, Score
from veridical.metric import metric
from veridical.metric.normalised import RATIOS, Divisor, Preset, Undefined, erasure_score, setting
from veridical.model.ask import Asker
from veridical.model.erase import Level, Operator, Rounding


@metric(
    "comprehensiveness",
    kind="faithfulness",
    better="higher",
    bounds=(0, 1),
    needs=("questions",),
    when={"raw": ("higher", (-1, 1))},
)
def comprehensiveness(
    ex: Explained,
    *,
    ratios: tuple[float, ...] = RATIOS,
    by: Operator = "delete",
    level: Level = "token",
    rounding: Rounding = "ceil_min1",
    raw: bool = False,
    divisor: Divisor = "mean",
    dedup: bool = False,
    undefined: Undefined = "exclude",
    preset: Preset = "",
) -> Asker[Score]:
    """How much of the prediction goes when the top tokens go, as a share of what goes with all tokens, averaged over
    ratios (REGEX eq. 11-12, Zhao and Aletras 2023 eq. 2).

    `raw` gives the signed fall p - p_rest of ERASER instead: unclipped, in [-1, 1]. `divisor` plus_one is the AOPC
    ERASER prints; `dedup` counts ratios that buy the same number of tokens once.
    """
    how = setting(
        preset,
        ratios=ratios,
        by=by,
        level=level,
        rounding=rounding,
        raw=raw,
        divisor=divisor,
        dedup=dedup,
        undefined=undefined,
    )
    return (yield from erasure_score(ex, "comprehensiveness", how))
