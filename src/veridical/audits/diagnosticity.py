"""How far a metric can be trusted: how often it prefers an explanation to a random one in its place.

Diagnosticity (Chan et al. 2022; Zhao and Aletras 2023, eq. 6) is the share of pairs, a method's explanation of a text
and a random one, in which the metric rates the method's higher. 0.5 is a metric that cannot tell them apart. A tie
counts half here, because a metric that only ever ties knows nothing; eq. 6 counts it as a loss, some code as a win.

Arrays are [..., methods, metrics, texts]; NaN is a score that does not exist, and a pair needs both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np

from veridical.core.statistics import ALPHA, bca, holm, rank_sums, signed_rank

Better = Literal["higher", "lower"]
Ties = Literal["half", "strict", "win"]

DECIMALS = 6  # of a score that count: what is beyond is float32 noise, which changes with the batch


@dataclass(frozen=True)
class Diagnosticity:
    """One metric on some pairs, under each way to count ties."""

    value: float | None  # under the chosen one; a tie counts half by default
    strict: float | None
    ties_win: float | None
    tie_rate: float | None
    n: int  # pairs


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


def diagnosticity(
    real: np.ndarray, control: np.ndarray, better: Better = "higher", *, ties: Ties = "half"
) -> Diagnosticity:
    """Of one metric, from its scores of explanations and of the random ones in their places."""
    found = outcomes(real, control, better)
    found = found[~np.isnan(found)]
    if not len(found):
        return Diagnosticity(None, None, None, None, 0)
    mean = {way: float(credit(found, way).mean()) for way in ("half", "strict", "win")}
    return Diagnosticity(mean[ties], mean["strict"], mean["win"], float((found == 0).mean()), len(found))


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
    seed: int = 0,
) -> list[dict[str, Any]]:
    """A row per metric and method, and one per metric over the pooled methods together (method "").

    `outcome` is [methods, metrics, texts]; `curves` has for each metric [methods, texts, ratios]. A metric's value
    over several methods is per text the mean over them, then over texts: texts are what the interval resamples and
    what the test (signed rank against one half, Holm over the metrics) counts.
    """
    chosen = np.flatnonzero(np.asarray(pooled))
    blocks = [("", chosen), *((name, np.array([i])) for i, name in enumerate(methods))]
    rows: list[dict[str, Any]] = []
    stack = []
    for name, members in blocks:
        ways = {way: over_methods(credit(outcome[members], way)) for way in ("half", "strict", "win")}  # [K, N]
        tied = over_methods(np.where(np.isnan(outcome[members]), np.nan, outcome[members] == 0))
        test = signed_rank(ways["half"] - 0.5)
        corrected = holm(test.p)
        for k, metric in enumerate(metrics):
            pairs = int((~np.isnan(outcome[members, k])).sum())
            if not pairs:
                continue
            value = float(np.nanmean(ways["half"][k]))
            # A few large gains may raise the mean while most texts, and so the test, point the other way.
            proven = bool(corrected[k] < ALPHA and value > 0.5 and test.effect[k] > 0)
            along = curves[k][members]  # [methods, N, R]
            rows.append(
                {
                    "metric": metric,
                    "method": name,
                    "value": value,
                    "low": None,
                    "high": None,
                    "strict": float(np.nanmean(ways["strict"][k])),
                    "ties_win": float(np.nanmean(ways["win"][k])),
                    "tie_rate": float(np.nanmean(tied[k])),
                    "n": int(test.n[k]),
                    "pairs": pairs,
                    "p": float(test.p[k]),
                    "p_holm": float(corrected[k]),
                    "diagnostic": proven,
                    "weight": max(0.0, 2 * (value - 0.5)) if proven else 0.0,
                    "curve": [_mean(over_methods(credit(along[..., r]))) for r in range(along.shape[-1])],
                }
            )
            stack.append(ways["half"][k])
    if rows:
        for row, low, high in zip(rows, *bca(np.array(stack), seed=seed), strict=True):
            row["low"], row["high"] = (None, None) if np.isnan(low) else (float(low), float(high))
    return rows


def metric_tests(credits: np.ndarray, metrics: Sequence[str]) -> list[dict[str, Any]]:
    """Whether one metric is more diagnostic than another, for every pair of them; `credits` is [metrics, texts].

    Signed rank on the texts both have scored, Holm over all pairs; beside it the rank sum that Zhao and Aletras 2023
    print, which takes the texts of the two as unrelated. Effect and difference are positive where `a` is more
    diagnostic.
    """
    pairs = list(combinations(range(len(metrics)), 2))
    if not pairs:
        return []
    test = signed_rank(np.array([credits[i] - credits[j] for i, j in pairs]))
    corrected = holm(test.p)
    unpaired, _ = rank_sums(credits[[i for i, _ in pairs]], credits[[j for _, j in pairs]])
    rows = []
    for row, (i, j) in enumerate(pairs):
        if not test.n[row]:
            continue
        rows.append(
            {
                "a": metrics[i],
                "b": metrics[j],
                "difference": float(test.difference[row]),
                "p": float(test.p[row]),
                "p_holm": float(corrected[row]),
                "p_rank_sum": float(unpaired[row]),
                "effect": float(test.effect[row]),
                "n": int(test.n[row]),
            }
        )
    return rows


def _mean(values: np.ndarray) -> float | None:
    return None if np.isnan(values).all() else float(np.nanmean(values))
