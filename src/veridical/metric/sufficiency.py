from __future__ import annotations

from veridical.core.records import Explained, Score
from veridical.metric import metric
from veridical.metric.normalised import RATIOS, Divisor, Preset, Undefined, erasure_score, setting
from veridical.model.ask import Asker
from veridical.model.erase import Level, Operator, Rounding


@metric(
    "sufficiency",
    kind="faithfulness",
    better="higher",
    bounds=(0, 1),
    needs=("questions",),
    when={"raw": ("lower", (-1, 1))},
)
def sufficiency(
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
    """How much of the prediction the top tokens alone carry, as a share of what all tokens carry, averaged over
    ratios (REGEX eq. 9-10, Zhao and Aletras 2023 eq. 1).

    `raw` gives the signed fall p - p_R of ERASER instead: unclipped, in [-1, 1], and **lower** is better. `divisor`
    plus_one is the AOPC ERASER prints; `dedup` counts ratios that buy the same number of tokens once.
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
    return (yield from erasure_score(ex, "sufficiency", how))
