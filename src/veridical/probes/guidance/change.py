"""Did a quantity change from one condition to another? Texts are paired, seeds are not, and both vary.

The interval of the mean difference holds both: the variance over texts of their differences, and over seeds of their
means, on either side, each divided by how many there are; its t quantile has Satterthwaite's degrees of freedom. Seeds
are few, so they decide how wide it is. With one seed on a side nothing can be said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from veridical.core.statistics import ALPHA, FEWEST, LEVEL, holm, number, signed_rank
from veridical.probes.options import MARGIN

State = Literal["raised", "lowered", "unchanged", "unclear"]
K = TypeVar("K")


@dataclass(frozen=True)
class Change:
    """From the baseline to a guided condition."""

    base: float | None  # means over seeds and texts
    guided: float | None
    difference: float | None
    low: float | None  # 95% over texts and seeds; None with one seed on a side, or fewer than five texts
    high: float | None
    p: float | None  # signed rank over texts, each text's mean over seeds
    p_holm: float | None  # corrected over the family
    texts: int  # where both are defined
    seeds: tuple[int, int]
    state: State
    freedom: float | None = None  # degrees of freedom of the interval


class Interval(NamedTuple):
    """A difference of means, its 95% interval, and the degrees of freedom of its t quantile."""

    difference: float | None = None
    low: float | None = None
    high: float | None = None
    freedom: float | None = None


def changes(
    pairs: Mapping[K, tuple[Sequence[Mapping[str, float]], Sequence[Mapping[str, float]]]], *, margin: float = MARGIN
) -> dict[K, Change]:
    """Changes of a family of quantities, each given as every seed's values by text: baseline, guided.

    `unchanged`: the interval lies within the margin. `raised`, `lowered`: it does not, it leaves out 0, and the paired
    test over texts holds after Holm's correction over the family. Else `unclear`.
    """
    tables = {key: _tables(*both) for key, both in pairs.items()}
    p = [float(signed_rank(_mean(guided) - _mean(base)).p[0]) for base, guided in tables.values()]
    changed = {}
    for (key, (base, guided)), single, corrected in zip(tables.items(), p, holm(p), strict=True):
        difference, low, high, freedom = interval(base, guided)
        known = number(single)
        p_holm = None if known is None else float(corrected)
        changed[key] = Change(
            base=_overall(base),
            guided=_overall(guided),
            difference=difference,
            low=low,
            high=high,
            p=known,
            p_holm=p_holm,
            texts=base.shape[1],
            seeds=(len(base), len(guided)),
            state=_state(low, high, 1.0 if p_holm is None else p_holm, margin),
            freedom=freedom,
        )
    return changed


def interval(base: np.ndarray, guided: np.ndarray) -> Interval:
    """The difference of means and its 95% interval over texts and seeds. [seeds, texts] each"""
    texts = base.shape[1]
    if not texts:
        return Interval()
    differences = _mean(guided) - _mean(base)
    difference = float(differences.mean())
    if texts < FEWEST or min(len(base), len(guided)) < 2:
        return Interval(difference)
    parts = [(differences.var(ddof=1) / texts, texts - 1)]
    for side in (base, guided):
        means = np.nanmean(side, axis=1)
        parts.append((np.nanvar(means, ddof=1) / len(means), len(means) - 1))
    return around(difference, parts)


def around(difference: float, parts: Sequence[tuple[float, int]]) -> Interval:
    """The interval of a difference from the parts of its variance, each with its degrees of freedom."""
    from scipy.special import stdtrit

    variance = sum(part for part, _ in parts)
    if variance <= 1e-18:
        return Interval(difference, difference, difference)
    freedom = variance**2 / sum(part**2 / free for part, free in parts)
    half = float(stdtrit(freedom, (1 + LEVEL) / 2) * np.sqrt(variance))
    return Interval(difference, difference - half, difference + half, float(freedom))


def _state(low: float | None, high: float | None, p: float, margin: float) -> State:
    if low is None or high is None:
        return "unclear"
    if -margin <= low and high <= margin:
        return "unchanged"
    if p < ALPHA and (low > 0 or high < 0):
        return "raised" if low > 0 else "lowered"
    return "unclear"


def _tables(
    base: Sequence[Mapping[str, float]], guided: Sequence[Mapping[str, float]]
) -> tuple[np.ndarray, np.ndarray]:
    """[seeds, texts] each, of the texts that have a value on both sides, in some seed of each."""
    sides = (base, guided)
    names = dict.fromkeys(text for side in sides for seed in side for text in seed)
    texts = [t for t in names if all(any(not np.isnan(seed.get(t, np.nan)) for seed in side) for side in sides)]
    tables = []
    for side in sides:
        table = np.array([[seed.get(t, np.nan) for t in texts] for seed in side]).reshape(len(side), len(texts))
        tables.append(table[~np.isnan(table).all(1)])  # a seed that has none of them says nothing
    return tables[0], tables[1]


def _mean(table: np.ndarray) -> np.ndarray:
    """Each text's mean over the seeds that have one. [seeds, texts] -> [texts]"""
    return np.nanmean(table, axis=0) if table.size else np.zeros(0)


def _overall(table: np.ndarray) -> float | None:
    return float(_mean(table).mean()) if table.size else None
