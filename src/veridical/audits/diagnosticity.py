"""How far a metric can be trusted: how often it prefers an explanation to a random one in its place.

Diagnosticity (Chan et al. 2022; Zhao and Aletras 2023, eq. 6) is the share of pairs, a method's explanation of a text
and a random one, in which the metric rates the method's higher. 0.5 is a metric that cannot tell them apart. A tie
counts half here, because a metric that only ever ties knows nothing; eq. 6 counts it as a loss, some code as a win.

Arrays are [..., methods, metrics, texts]; NaN is a score that does not exist, and a pair needs both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np

from veridical.audits.options import Control
from veridical.core.statistics import ALPHA, bca, holm, mean, rank_sums, signed_rank

Better = Literal["higher", "lower"]
Ties = Literal["half", "strict", "win"]

DECIMALS = 6  # of a score that count: what is beyond is float32 noise, which changes with the batch


@dataclass(frozen=True)
class Diagnosticity:
    """One metric on the explanations of one method, or of all together (method ""), against one control."""

    corpus: str
    control: Control
    metric: str
    method: str
    value: float  # a tie counts half
    low: float | None
    high: float | None
    strict: float  # a tie counts as lost
    ties_win: float
    tie_rate: float
    n: int  # texts
    pairs: int
    p: float
    p_holm: float
    diagnostic: bool  # shown to be above one half
    weight: float  # in the ranking
    curve: tuple[float | None, ...]  # the value per ratio


@dataclass(frozen=True)
class MetricTest:
    """Whether metric `a` is more diagnostic than `b`, for one method or for all together (method ""): effect and
    difference are positive where it is."""

    corpus: str
    method: str
    a: str
    b: str
    difference: float
    p: float
    p_holm: float
    p_rank_sum: float  # unpaired, as Zhao and Aletras 2023 print it
    effect: float
    n: int


def outcomes(real: np.ndarray, control: np.ndarray, better: Better = "higher") -> np.ndarray:
    """1 where the metric prefers the explanation, 0 where it ties, -1 where it prefers the random one."""
    sign = np.sign(settled(real) - settled(control))
    return sign if better == "higher" else -sign


def settled(scores: np.ndarray) -> np.ndarray:
    """Scores as they are compared: equal but for noise is equal."""
    return np.round(np.asarray(scores, dtype=np.float64), DECIMALS)


def credit(outcome: np.ndarray, ties: Ties = "half") -> np.ndarray:
    """What a pair counts: 1 for a win, 0 for a loss, a tie as chosen; NaN where there is no pair."""
    tie = {"half": 0.5, "strict": 0.0, "win": 1.0}[ties]
    return np.where(outcome == 0, tie, (outcome + 1) / 2)


def over_methods(values: np.ndarray) -> np.ndarray:
    """Mean over the first axis, leaving out what does not exist; NaN where nothing does."""
    there = ~np.isnan(values)
    count = there.sum(0)
    return np.where(count > 0, np.where(there, values, 0.0).sum(0) / np.maximum(count, 1), np.nan)


def diagnosticity_rows(
    outcome: np.ndarray,
    curves: Sequence[np.ndarray],
    methods: Sequence[str],
    metrics: Sequence[str],
    pooled: Sequence[bool],
    *,
    corpus: str = "",
    control: Control = "permutation",
    seed: int = 0,
) -> list[Diagnosticity]:
    """A row per metric and method, and one per metric over the pooled methods together (method "").

    `outcome` is [methods, metrics, texts]; `curves` has for each metric [methods, texts, ratios]. A method that was
    held against several random explanations is named several times. A metric's value
    over several methods is per text the mean over them, then over texts: texts are what the interval resamples and
    what the test (signed rank against one half, Holm over the metrics) counts.
    """
    rows_of = {name: np.array([i for i, other in enumerate(methods) if other == name]) for name in methods}
    blocks = [("", np.flatnonzero(np.asarray(pooled))), *rows_of.items()]
    rows: list[Diagnosticity] = []
    samples: list[np.ndarray] = []  # of each row, what its interval resamples
    for method, members in blocks:
        along = [curve[members] for curve in curves]
        for row, sample in _block(outcome[members], along, metrics, (corpus, control, method)):
            rows.append(row)
            samples.append(sample)
    if not rows:
        return []
    bounds = zip(*bca(np.array(samples), seed=seed), strict=True)
    return [
        row if np.isnan(low) else replace(row, low=float(low), high=float(high))
        for row, (low, high) in zip(rows, bounds, strict=True)
    ]


def _block(
    outcome: np.ndarray, curves: Sequence[np.ndarray], metrics: Sequence[str], of: tuple[str, Control, str]
) -> Iterator[tuple[Diagnosticity, np.ndarray]]:
    """Rows of some methods together, still without interval, each with its value per text; `of` names corpus, control
    and method."""
    corpus, control, method = of
    half, strict, win = (over_methods(credit(outcome, way)) for way in ("half", "strict", "win"))  # [K, N]
    tied = over_methods(np.where(np.isnan(outcome), np.nan, outcome == 0))
    test = signed_rank(half - 0.5)
    corrected = holm(test.p)
    for k, metric in enumerate(metrics):
        pairs = int((~np.isnan(outcome[:, k])).sum())
        if not pairs:
            continue
        value = float(np.nanmean(half[k]))
        # A few large gains may raise the mean while most texts, and so the test, point the other way.
        proven = bool(corrected[k] < ALPHA and value > 0.5 and test.effect[k] > 0)
        row = Diagnosticity(
            corpus=corpus,
            control=control,
            metric=metric,
            method=method,
            value=value,
            low=None,
            high=None,
            strict=float(np.nanmean(strict[k])),
            ties_win=float(np.nanmean(win[k])),
            tie_rate=float(np.nanmean(tied[k])),
            n=int(test.n[k]),
            pairs=pairs,
            p=float(test.p[k]),
            p_holm=float(corrected[k]),
            diagnostic=proven,
            weight=max(0.0, 2 * (value - 0.5)) if proven else 0.0,
            curve=tuple(mean(over_methods(credit(curves[k][..., r]))) for r in range(curves[k].shape[-1])),
        )
        yield row, half[k]


def metric_tests(
    credits: np.ndarray, metrics: Sequence[str], *, corpus: str = "", method: str = ""
) -> list[MetricTest]:
    """Whether one metric is more diagnostic than another, for every pair of them; `credits` is [metrics, texts].

    Signed rank on the texts both have scored, Holm over all pairs; beside it the rank sum that Zhao and Aletras 2023
    print, which takes the texts of the two as unrelated.
    """
    pairs = list(combinations(range(len(metrics)), 2))
    if not pairs:
        return []
    test = signed_rank(np.array([credits[i] - credits[j] for i, j in pairs]))
    corrected = holm(test.p)
    unpaired, _ = rank_sums(credits[[i for i, _ in pairs]], credits[[j for _, j in pairs]])
    return [
        MetricTest(
            corpus=corpus,
            method=method,
            a=metrics[i],
            b=metrics[j],
            difference=float(test.difference[row]),
            p=float(test.p[row]),
            p_holm=float(corrected[row]),
            p_rank_sum=float(unpaired[row]),
            effect=float(test.effect[row]),
            n=int(test.n[row]),
        )
        for row, (i, j) in enumerate(pairs)
        if test.n[row]
    ]
