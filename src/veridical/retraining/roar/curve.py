"""Areas between curves, their intervals over seeds, and what may be said of them: pure functions on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from veridical.core.seed import generator
from veridical.core.statistics import FEWEST, LEVEL, bca
from veridical.retraining.options import Interval

RESAMPLES = 9_999  # as in the released code

# bca, the paper's: bias-corrected and accelerated bootstrap; percentile: plain bootstrap; t: Student's.

# Of a curve beside the baseline. `none`: the seeds do not tell the two apart.
Side = Literal["below", "none", "above"]
SIDES: dict[Side, str] = {
    "below": "significantly below random",
    "none": "not distinguishable",
    "above": "above: possible class leakage",
}


@dataclass(frozen=True, slots=True)
class Area:
    """Eq. 3 of one seed."""

    between: float  # the measure's curve below the baseline's, by the trapezoid rule
    largest: float  # the same if the score of full masking were reached at once

    @property
    def faithfulness(self) -> float | None:
        """None where the baseline never lies above its own end: there is nothing to normalise by."""
        return self.between / self.largest if self.largest > 0 else None

    @property
    def clipped(self) -> float | None:
        """To [-1, 1], as in the released code; the paper does not say so."""
        value = self.faithfulness
        return None if value is None else min(1.0, max(-1.0, value))


def area(ratios: Sequence[float], measure: Sequence[float], random: Sequence[float]) -> Area:
    """Between a measure's curve and the baseline's of the same seed, and the largest there could be (eq. 3). Points may
    come in any order."""
    sorted_by = np.argsort(ratios, kind="stable")
    x, p, b = (np.asarray(values, dtype=np.float64)[sorted_by] for values in (ratios, measure, random))
    return Area(float(np.trapezoid(b - p, x)), float(np.trapezoid(b - b[-1], x)))


@dataclass(frozen=True, slots=True)
class OverSeeds:
    """A mean over seeds; an interval from five on (a bootstrap of two values returns the two)."""

    mean: float | None
    low: float | None
    high: float | None
    n: int

    @property
    def side(self) -> Side | None:
        """Of a quantity that is positive below the baseline; none without an interval."""
        if self.low is None or self.high is None:
            return None
        return "below" if self.low > 0 else "above" if self.high < 0 else "none"


def over_seeds(values: Sequence[float | None], interval: Interval = "bca") -> OverSeeds:
    """Mean and 95% interval over seeds; a seed without a value is left out."""
    known = np.array([value for value in values if value is not None], dtype=np.float64)
    if not len(known):
        return OverSeeds(None, None, None, 0)
    mean, n = float(known.mean()), len(known)
    return OverSeeds(mean, *(_bounds(known, interval) if n >= FEWEST else (None, None)), n)


def _bounds(known: np.ndarray, interval: Interval) -> tuple[float, float]:
    if interval == "bca":
        low, high = bca(known[None, :], resamples=RESAMPLES)
        return float(low[0]), float(high[0])
    if interval == "percentile":
        drawn = generator("roar interval", len(known)).integers(0, len(known), (RESAMPLES, len(known)))
        low, high = np.quantile(known[drawn].mean(1), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        return float(low), float(high)
    half = float(stdtrit(len(known) - 1, (1 + LEVEL) / 2) * known.std(ddof=1) / np.sqrt(len(known)))
    return float(known.mean()) - half, float(known.mean()) + half


def verdict(mean: OverSeeds, recursive: bool, retrained: bool = True) -> str:
    """The verdict in words. Without recursion a curve that is not below the baseline says nothing: what a measure did
    not mark may be a copy of what it did. Where nothing is trained on the masks, no class can leak through them."""
    if mean.side is None:
        return f"no verdict from {mean.n} of the {FEWEST} seeds it takes" if mean.n else "not run"
    if mean.side == "none" and not recursive:
        return f"{SIDES['none']}: inconclusive without recursion"
    if mean.side == "above" and not retrained:
        return "above: worse than random"
    return SIDES[mean.side]
