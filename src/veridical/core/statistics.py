"""Means, intervals, tests and effect sizes: pure functions on arrays. NaN is a value that does not exist.

Rows of a matrix are quantities, columns are texts. Everything is deterministic: the bootstrap draws its resamples
from a seed, once for all rows that have the same texts, so a whole corpus costs one matrix product.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from veridical.core.seed import generator

LEVEL = 0.95
ALPHA = 0.05
FEWEST = 5  # values an interval needs: BCa of two values returns the two
RESAMPLES = 4_999
EXACT_UP_TO = 50  # differences: below, the signed-rank test enumerates all signs
CHUNK = 256  # rows whose resampled means are held at once
HELD = 2**24  # numbers that a table of bootstrap counts may have
NOTHING = 5e-10  # sums of two differences below this are 0


# -- means and intervals ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95% interval, which is None of fewer than five values."""

    mean: float | None
    low: float | None
    high: float | None
    n: int  # values
    undefined: int  # that do not exist


def proportion(successes: int, of: int) -> tuple[float, float]:
    """The exact 95% interval of a share (Clopper and Pearson)."""
    from scipy.stats import binomtest

    bounds = binomtest(successes, of).proportion_ci(LEVEL, "exact")
    return float(bounds.low), float(bounds.high)


def number(value: float | None) -> float | None:
    """A figure as records hold it: None, not NaN, where it does not exist."""
    return None if value is None or math.isnan(value) else float(value)


def mean(values: Iterable[float | None], *, whole: bool = False) -> float | None:
    """The mean of the values that exist; None if none does, or with `whole` if one does not."""
    held = _array(values)
    n = int((~np.isnan(held)).sum())
    return None if n == 0 or (whole and n < held.size) else float(np.nansum(held) / n)


def estimate(values: Iterable[float | None], *, seed: int = 0) -> Estimate:
    """Of one sample."""
    return estimates([values], seed=seed)[0]


def estimates(samples: Iterable[Iterable[float | None]], *, seed: int = 0) -> list[Estimate]:
    """Of samples of different sizes, their intervals in one call: the shorter are padded with what does not exist."""
    held = [_array(sample) for sample in samples]
    padded = np.full((len(held), max(map(len, held), default=0)), np.nan)
    for row, sample in zip(padded, held, strict=True):
        row[: len(sample)] = sample
    counts = (~np.isnan(padded)).sum(1)
    return [
        Estimate(mean(sample), number(low), number(high), int(n), len(sample) - int(n))
        for sample, n, low, high in zip(held, counts, *bca(padded, seed=seed), strict=True)
    ]


def _array(values: Iterable[float | None]) -> np.ndarray:
    return np.asarray(values if isinstance(values, np.ndarray) else list(values), dtype=np.float64)  # None becomes NaN


def bca(values: np.ndarray, *, seed: int = 0, resamples: int = RESAMPLES) -> tuple[np.ndarray, np.ndarray]:
    """95% bootstrap interval (bias-corrected and accelerated) of the mean of every row, over its columns.

    `values` is [rows, n]; NaN entries are left out. NaN where a row has fewer than five values; the value itself
    where all are alike. Equal to scipy.stats.bootstrap draw for draw, but for a mean the resamples are a product
    with counts and the acceleration is the skewness, so no resample is ever written out.
    """
    values = np.atleast_2d(np.asarray(values, dtype=np.float64))
    low, high = np.full(len(values), np.nan), np.full(len(values), np.nan)
    there = ~np.isnan(values)
    patterns, member = np.unique(there, axis=0, return_inverse=True)
    member = member.reshape(-1)
    for index, pattern in enumerate(patterns):
        n = int(pattern.sum())
        if n < FEWEST:
            continue
        rows = np.flatnonzero(member == index)
        for start in range(0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            low[chunk], high[chunk] = _bca(values[chunk][:, pattern], resamples, seed)
    return low, high


def _resampled(values: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Means of the rows of `values` [rows, n] in every resample. [rows, resamples]

    Of many texts the counts are made anew, some resamples at a time, and not kept.
    """
    n = values.shape[1]
    if n * resamples <= HELD:
        return values @ _counts(n, resamples, seed)
    draw, means = generator("bootstrap", seed, n), np.empty((len(values), resamples))
    for start in range(0, resamples, max(1, HELD // n)):
        stop = min(resamples, start + max(1, HELD // n))
        means[:, start:stop] = values @ _shares(draw.integers(0, n, (stop - start, n)))
    return means


@lru_cache(maxsize=4)
def _counts(n: int, resamples: int, seed: int) -> np.ndarray:
    """How often each of n texts is drawn in each resample, as shares. [n, resamples]"""
    return _shares(generator("bootstrap", seed, n).integers(0, n, (resamples, n)))


def _shares(drawn: np.ndarray) -> np.ndarray:
    resamples, n = drawn.shape
    flat = (drawn + np.arange(resamples)[:, None] * n).ravel()
    return np.bincount(flat, minlength=resamples * n).reshape(resamples, n).T / n


def _bca(values: np.ndarray, resamples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    from scipy.special import ndtr, ndtri

    mean = values.mean(1, keepdims=True)
    centred = values - mean  # resampled means are of these, so that ties with the estimate are seen as ties
    spread = np.abs(centred).max(1, keepdims=True)
    flat = spread[:, 0] <= 1e-12 * np.maximum(1, np.abs(mean[:, 0]))
    means = np.sort(_resampled(centred, resamples, seed), axis=1)
    edge = 1e-12 * spread
    size = means.shape[1]
    share = ((means < -edge).sum(1) + (means <= edge).sum(1)) / (2 * size)
    bias = ndtri(np.clip(share, 1 / (size + 1), size / (size + 1)))
    power = np.where(flat, 1.0, (centred**2).sum(1)) ** 1.5
    acceleration = (centred**3).sum(1) / (6 * power)
    bounds = []
    for z in (ndtri((1 - LEVEL) / 2), ndtri((1 + LEVEL) / 2)):
        moved = bias + (bias + z) / (1 - acceleration * (bias + z))
        place = ndtr(moved) * (size - 1)  # linear between neighbours, as a percentile is
        below = np.floor(place).astype(int)
        above = np.minimum(below + 1, size - 1)
        row = np.arange(len(means))
        bound = means[row, below] + (place - below) * (means[row, above] - means[row, below])
        bounds.append(np.where(flat, mean[:, 0], mean[:, 0] + bound))
    return bounds[0], bounds[1]


# -- tests --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Paired:
    """One paired test per row: arrays of equal length."""

    p: np.ndarray  # two-sided; NaN without data
    effect: np.ndarray  # in [-1, 1], positive where the first is larger
    difference: np.ndarray  # of the means
    n: np.ndarray  # pairs compared, zeros included
    zeros: np.ndarray  # pairs without a difference, which the test leaves out

    def __len__(self) -> int:
        return len(self.p)


def signed_rank(differences: np.ndarray) -> Paired:
    """Wilcoxon's signed-rank test that differences are symmetric about 0, per row of [rows, n].

    Zeros are left out and counted; if nothing else is there, p = 1. Up to fifty differences p is exact, ties
    included (all signs equally likely, given the ranks); beyond, normal. Effect: matched rank-biserial correlation.
    """
    d = np.atleast_2d(np.asarray(differences, dtype=np.float64))
    there = ~np.isnan(d)
    n = there.sum(1)
    ranks = _signed_ranks(d)
    total = np.abs(ranks).sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        effect = np.where(total > 0, ranks.sum(1) / total, 0.0)
        difference = np.where(n > 0, np.where(there, d, 0.0).sum(1) / n, np.nan)
    p = np.minimum(1.0, 2 * np.minimum(*_sides(ranks)))
    p, effect = np.where(n > 0, p, np.nan), np.where(n > 0, effect, np.nan)
    return Paired(p, effect, difference, n, (there & (ranks == 0)).sum(1))


def signed_rank_sides(differences: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One-sided p of the same test per row of [rows, n]: that values lie above 0, and that they lie below. 1 where no
    value differs from 0, or none is there."""
    return _sides(_signed_ranks(np.atleast_2d(np.asarray(differences, dtype=np.float64))))


def _signed_ranks(d: np.ndarray) -> np.ndarray:
    """The rank of every difference by size in its row, with the difference's sign; 0 where it is 0 or not there."""
    from scipy.stats import rankdata

    there = ~np.isnan(d)
    d = _even(d)
    zeros = (d == 0).sum(1)
    # Zeros take the lowest ranks and missing values the highest: neither touches the order of the rest.
    ranks = rankdata(np.where(there, np.abs(d), np.inf), axis=1) - zeros[:, None] if d.size else np.zeros_like(d)
    return np.where(there & (d != 0), np.copysign(ranks, d), 0.0)


def _sides(ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One-sided p per row of signed ranks, above and below 0; 1 where no rank is left."""
    from scipy.special import ndtr

    used, size = (ranks != 0).sum(1), np.abs(ranks)
    with np.errstate(invalid="ignore", divide="ignore"):
        z = ranks.sum(1) / np.sqrt((size**2).sum(1))
    above, below = np.where(used > 0, ndtr(-z), 1.0), np.where(used > 0, ndtr(z), 1.0)
    plus = np.rint(2 * np.where(ranks > 0, ranks, 0.0).sum(1)).astype(int)
    ordered = np.sort(size, axis=1)
    first = np.diff(ordered, axis=1, prepend=0.0) > 0  # of a group of tied ranks
    for row in np.flatnonzero((used > 0) & (used <= EXACT_UP_TO)):
        starts = [*np.flatnonzero(first[row]).tolist(), size.shape[1]]
        above[row], below[row] = _tails(tuple(b - a for a, b in pairwise(starts)), int(plus[row]))
    return above, below


@lru_cache(maxsize=2**16)  # shares lie on a small lattice, so the same ties come again and again
def _tails(ties: tuple[int, ...], at: int) -> tuple[float, float]:
    """The chance that the sum of the positive ranks, doubled, is at least `at`, and that it is at most `at`.

    `ties` has the size of each group of tied ranks, smallest first: the ranks follow from it. Mean ranks are halves,
    so doubled they are whole. The largest group comes last and by its tails alone, which saves the longest step.
    """
    ranks = 2 * np.cumsum(ties) - np.array(ties) + 1
    common, last = int(np.gcd.reduce(ranks)), int(np.argmax(ties))
    ranks, at = ranks // common, at // common
    sums, chance = np.zeros(1, dtype=np.int64), np.ones(1)  # of the other groups
    for group in (g for g in range(len(ties)) if g != last):
        steps, coins = ranks[group] * np.arange(ties[group] + 1), _coins(ties[group])
        if len(sums) * len(steps) <= sums[-1] + steps[-1]:  # few sums: one by one
            sums, chance = np.add.outer(sums, steps).ravel(), np.multiply.outer(chance, coins).ravel()
        else:  # many: a place for each that can be
            held = np.bincount(sums, chance)
            chance = np.zeros(len(held) + steps[-1])
            for step, coin in zip(steps, coins, strict=True):
                chance[step:][: len(held)] += coin * held
            sums = np.arange(len(chance))
    missing, most = at - sums, ties[last] + 1
    at_least = _coin_tails(ties[last])
    above = at_least[np.minimum(np.maximum(-(-missing // ranks[last]), 0), most)]
    below = at_least[np.minimum(np.maximum(most - 1 - missing // ranks[last], 0), most)]  # as many tails as heads
    return min(1.0, float(chance @ above)), min(1.0, float(chance @ below))


@lru_cache(maxsize=256)
def _coins(count: int) -> np.ndarray:
    """The chance of every number of heads among so many coins. [count + 1]"""
    return np.array([math.comb(count, heads) / 2**count for heads in range(count + 1)])


@lru_cache(maxsize=256)
def _coin_tails(count: int) -> np.ndarray:
    """The chance of at least so many heads among so many coins. [count + 2]"""
    return np.append(_coins(count)[::-1].cumsum()[::-1], 0.0)


def _even(differences: np.ndarray) -> np.ndarray:
    """Rows scaled to at most 1 and rounded, so that what is equal but for rounding is tied.

    Without it 0.2 - 0.5 and 0.8 - 0.5 differ in the last bit, and always in favour of the same side.
    """
    largest = np.where(np.isnan(differences), 0.0, np.abs(differences)).max(1, initial=0.0, keepdims=True)
    return np.round(differences / np.where(largest > 0, largest, 1.0), 10)


def rank_sums(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mann-Whitney's rank-sum test per row of [rows, n] and [rows, m]: two-sided p and Cliff's delta.

    Exact where both sides have at most eight values and none is tied, else normal with the correction for ties and
    for continuity. Delta is positive where the first is larger. NaN where a side is empty.
    """
    from scipy.special import ndtr
    from scipy.stats import mannwhitneyu, rankdata

    a, b = (np.atleast_2d(np.asarray(x, dtype=np.float64)) for x in (a, b))
    both = np.concatenate([a, b], axis=1)
    there = ~np.isnan(both)
    filled = np.where(there, both, np.inf)  # highest ranks: the order of the rest is untouched
    ranks = rankdata(filled, axis=1)
    alike = rankdata(filled, "max", axis=1) - rankdata(filled, "min", axis=1) + 1
    n, m = (~np.isnan(a)).sum(1), (~np.isnan(b)).sum(1)
    wins = np.where(~np.isnan(a), ranks[:, : a.shape[1]], 0).sum(1) - n * (n + 1) / 2  # ties count half
    ties = np.where(there, alike**2 - 1, 0).sum(1)
    total = n + m
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.sqrt(n * m / 12 * (total + 1 - ties / (total * (total - 1))))
        z = np.maximum(0, np.abs(wins - n * m / 2) - 0.5) / spread
        delta = 2 * wins / (n * m) - 1
    p = np.where(spread > 0, np.minimum(1.0, 2 * ndtr(-z)), 1.0)
    for row in np.flatnonzero((np.maximum(n, m) <= 8) & (np.minimum(n, m) > 0) & (ties == 0)):
        p[row] = mannwhitneyu(a[row][~np.isnan(a[row])], b[row][~np.isnan(b[row])], method="exact").pvalue
    empty = np.minimum(n, m) == 0
    return np.where(empty, np.nan, p), np.where(empty, np.nan, delta)


@dataclass(frozen=True)
class Between:
    """Two independent samples compared."""

    difference: float  # of the means
    p_rank_sum: float
    p_t: float | None  # Welch; None where neither sample varies
    effect: float  # Cliff's delta: positive where the first is larger
    n: tuple[int, int]


def between(a: np.ndarray, b: np.ndarray) -> Between | None:
    """Rank sum and Welch's t of two independent samples; None where one has fewer than two values."""
    a, b = (np.asarray(x, dtype=np.float64) for x in (a, b))
    a, b = a[~np.isnan(a)], b[~np.isnan(b)]
    if len(a) < 2 or len(b) < 2:
        return None
    p, delta = rank_sums(a, b)
    return Between(float(a.mean() - b.mean()), float(p[0]), _welch(a, b), float(delta[0]), (len(a), len(b)))


def _welch(a: np.ndarray, b: np.ndarray) -> float | None:
    """Two-sided p of Welch's t."""
    from scipy.special import stdtr

    parts = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    error = sum(parts)
    if error <= (1e-12 * np.abs([*a, *b]).max()) ** 2:
        return None
    freedom = error**2 / (parts[0] ** 2 / (len(a) - 1) + parts[1] ** 2 / (len(b) - 1))
    return float(2 * stdtr(freedom, -abs(a.mean() - b.mean()) / np.sqrt(error)))


def holm(p: Sequence[float] | np.ndarray) -> np.ndarray:
    """Holm's step-down correction of a family of p-values; NaN is no test and stays NaN."""
    p = np.asarray(p, dtype=np.float64)
    adjusted = np.full(p.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return adjusted


# -- how many texts -----------------------------------------------------------------------------------------


def fewest(tests: int, alpha: float = ALPHA) -> int:
    """The fewest texts on which a signed-rank test can be significant among so many: 2^(1-n) is its smallest p."""
    return 1 + math.floor(math.log2(max(1, tests) / alpha)) + 1


def needed(differences: np.ndarray, tests: int = 1, *, alpha: float = ALPHA, power: float = 0.8) -> float:
    """About how many texts a signed-rank test among so many would need, if these differences are typical.

    Noether's formula with the share of positive pairwise averages; infinite where they favour neither side.
    """
    from scipy.special import ndtri

    d = np.asarray(differences, dtype=np.float64)
    d = d[~np.isnan(d)]
    if len(d) < 2:
        return math.inf
    d = np.sort(_even(d[None, :])[0])
    # Of all ordered pairs, those whose sum is over 0 and those where it is 0, by where -d stands among d.
    above = len(d) - np.searchsorted(d, -d + NOTHING)
    zero = np.searchsorted(d, -d + NOTHING) - np.searchsorted(d, -d - NOTHING)
    double = np.sum(above + 0.5 * zero) - np.sum((d > NOTHING / 2) + 0.5 * (np.abs(d) <= NOTHING / 2))
    share = float(double / (len(d) * (len(d) - 1)))
    if share == 0.5:
        return math.inf
    z = ndtri(1 - alpha / (2 * max(1, tests))) + ndtri(power)
    return max(fewest(tests, alpha), math.ceil(z**2 / (3 * (share - 0.5) ** 2)))
