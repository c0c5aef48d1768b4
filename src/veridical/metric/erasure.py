"""Sufficiency and comprehensiveness, normalised, under erasure of whole tokens.

With p on the full text, p_R on the rationale alone, p_rest without it, p_null on nothing, D = max(0, p - p_null):

    NS = clip(1 - max(0, p - p_R) / D)        NC = clip(max(0, p - p_rest) / D)

which are the papers' (S - S_null) / (1 - S_null) and C / (1 - S_null) (REGEX eq. 9-12, Zhao and Aletras
2023 eq. 1-2, Carton et al. 2020), written so that erasing everything gives exactly 0 and 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np

from veridical.core.errors import InputError
from veridical.core.ranges import between
from veridical.core.records import Answers, Explained, Score
from veridical.metric import metric
from veridical.model.ask import Asker
from veridical.model.erase import Level, Operator, Rounding, blank, budget, erase, erase_all, ranked_units

Ratios = Annotated[tuple[float, ...], between(0, 1)]  # shares of the tokens
RATIOS = (0.01, 0.05, 0.1, 0.2, 0.5)
UNDEFINED_BELOW = 1e-5  # of D: a text whose prediction does not rest on its tokens
# Below it D is small for the soft metrics: the scatter of the draws is divided by it, so that ten of them are too few
# for a text's value, and half of the values lie at 0 or 1, where the clip holds them (docs/soft-faithfulness.md).
SMALL = 0.1

Side = Literal["sufficiency", "comprehensiveness"]
Divisor = Literal["mean", "plus_one"]
Undefined = Literal["exclude", "zero"]
Preset = Literal["", "ood_faith"]


@dataclass(frozen=True)
class Setting:
    """The options that both metrics share, and what a preset adds to them."""

    ratios: tuple[float, ...]
    by: Operator
    level: Level
    rounding: Rounding
    raw: bool
    divisor: Divisor
    dedup: bool
    undefined: Undefined
    extra: int = 0  # tokens counted beside the free ones when the budget is worked out
    blank: bool = False  # the null input has no special tokens either
    shift: float = 0.0  # added to D, which is then never undefined


@metric(
    "sufficiency",
    kind="faithfulness",
    better="higher",
    bounds=(0, 1),
    needs=("questions",),
    when={"raw": ("lower", (-1, 1))},
    order=True,
)
def sufficiency(
    ex: Explained,
    *,
    ratios: Ratios = RATIOS,
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

    `raw` gives the signed fall p - p_R of ERASER instead: unclipped, in [-1, 1], and lower is better. `divisor`
    plus_one is the AOPC ERASER prints; `dedup` counts ratios that buy the same number of tokens once.
    """
    how = setting(Setting(ratios, by, level, rounding, raw, divisor, dedup, undefined), preset)
    return (yield from erasure_score(ex, "sufficiency", how))


@metric(
    "comprehensiveness",
    kind="faithfulness",
    better="higher",
    bounds=(0, 1),
    needs=("questions",),
    when={"raw": ("higher", (-1, 1))},
    order=True,
)
def comprehensiveness(
    ex: Explained,
    *,
    ratios: Ratios = RATIOS,
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
    how = setting(Setting(ratios, by, level, rounding, raw, divisor, dedup, undefined), preset)
    return (yield from erasure_score(ex, "comprehensiveness", how))


def setting(given: Setting, preset: Preset = "") -> Setting:
    """The options, checked, under a preset.

    `ood_faith` is the released code behind REGEX and Zhao and Aletras 2023: budgets of pieces + 1, id 0 for what is
    erased, a null input without special tokens, and 1e-4 against division by zero (there at every call on top of the
    last; here once).
    """
    if preset == "":
        return given
    insist_on_defaults(preset, by=(given.by, "delete"), rounding=(given.rounding, "ceil_min1"))
    return replace(given, by="zero_id_attended", extra=1, blank=True, shift=1e-4)


def insist_on_defaults(preset: str, **options: tuple[object, object]) -> None:
    """A preset decides these options (value, default) itself."""
    for name, (value, default) in options.items():
        if value != default:
            raise InputError(
                f"preset={preset} sets {name} itself, but {name}={value} was given; leave one of them out."
            )


def of_target(ex: Explained, answers: Answers) -> np.ndarray:
    """The explained class's probability in every answer. [n]"""
    return answers.probabilities[:, ex.target].astype(np.float64)


def fall(ex: Explained, p: np.ndarray) -> np.ndarray:
    """How far the explained class's probability falls from that on the full text, rises as 0."""
    return np.maximum(0.0, float(ex.probabilities[ex.target]) - p)


def normalised(side: Side, share: Any) -> Any:
    """The unclipped metric from a fall as a share of D."""
    return 1 - share if side == "sufficiency" else share


def aopc(values: Sequence[float], sizes: Sequence[int], divisor: Divisor = "mean", dedup: bool = False) -> float:
    """The area over the perturbation curve: the mean over ratios, or over distinct rationale sizes."""
    if dedup:
        values = list(dict(zip(sizes, values, strict=True)).values())
    return float(sum(values) / (len(values) + (divisor == "plus_one")))


def erasure_score(ex: Explained, side: Side, how: Setting) -> Asker[Score]:
    """Sufficiency or comprehensiveness at every ratio and their AOPC."""
    groups = ranked_units(ex, how.level)
    sizes = [min(len(groups), budget(len(groups) + how.extra, ratio, how.rounding)) for ratio in how.ratios]
    gone = [groups[k:] if side == "sufficiency" else groups[:k] for k in sizes]
    null = blank(ex) if how.blank else erase_all(ex, how.by)
    answers = yield [null, *(erase(ex, [p for group in groups for p in group], how.by) for groups in gone)]
    p_null, *p_erased = of_target(ex, answers)
    if how.raw:
        values = float(ex.probabilities[ex.target]) - np.array(p_erased)
    else:
        room = float(fall(ex, p_null)) + how.shift
        if room < UNDEFINED_BELOW:
            value = 0.0 if how.undefined == "zero" else None
            return Score(value, (value,) * len(sizes))
        values = np.clip(normalised(side, fall(ex, np.array(p_erased)) / room), 0.0, 1.0)
    curve = tuple(values.tolist())
    return Score(aopc(curve, sizes, how.divisor, how.dedup), curve)
