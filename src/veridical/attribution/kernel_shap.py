from __future__ import annotations

from itertools import product
from math import comb
from typing import Annotated

import numpy as np

from veridical.attribution import Sampled, method
from veridical.attribution.occlusion import Of, explained_value, spread
from veridical.attribution.sampling import BLOCKS, ENOUGH, Enough, fits_without, jackknife, looks, small
from veridical.core.ranges import Seed, between
from veridical.core.records import Explained
from veridical.core.seed import generator
from veridical.model.ask import Asker
from veridical.model.erase import Level, Operator, erase, units
from veridical.model.interruption import go_on


@method("kernel_shap", needs=("questions",), signed=True, complete=True, version=2, passes="up to 1,024 forward")
def kernel_shap(
    ex: Explained,
    *,
    samples: Annotated[int, between(2, 1_000_000)] = 1024,
    by: Operator = "delete",
    of: Of = "logit",
    level: Level = "token",
    seed: Seed = 0,
    error: Enough = ENOUGH,
) -> Asker[Sampled]:
    """Shapley values of the tokens by weighted least squares (Lundberg and Lee 2017): exact when every subset
    fits into `samples`, else from subsets drawn in complementary pairs; the sum is exact either way.

    It draws until the sampling error is `error` of the scores' spread, at most `samples`; with 0, all of them.
    """
    groups = units(ex, level)
    n = len(groups)
    draw = generator("kernel_shap", seed, ex.encoded.example.id, ex.encoded.ids)
    inner, weights = _subsets(n, samples, draw)
    pairs, exact = len(inner) // 2, 2**n - 2 <= samples
    gains, scores, off = np.zeros(len(inner)), np.zeros(n), 0.0 if exact else None
    ends, start, empty, total = [np.ones(n, bool), np.zeros(n, bool)], 0, 0.0, 0.0
    for count in [pairs] if exact else looks(pairs, error):
        new = np.r_[start:count, pairs + start : pairs + count]
        asked = [*ends, *inner[new]]
        answers = yield [erase(ex, [p for g in np.flatnonzero(~row) for p in groups[g]], by) for row in asked]
        values = explained_value(answers, ex, of)
        if ends:
            empty, total, values, ends = values[1], values[0] - values[1], values[2:], []
        gains[new], start = values - empty, count
        used = np.r_[0:count, pairs : pairs + count]
        scores = _shapley(inner[used], weights[used], gains[used], total)
        if not exact and small(off := _error(inner[used], gains[used], total, scores), error):
            break
    return Sampled(spread(ex, groups, scores), off)


def _subsets(n: int, samples: int, draw: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Subsets other than none and all [m, n], and their weights under the Shapley kernel."""
    if n == 1:
        return np.zeros((0, 1), bool), np.zeros(0)
    if 2**n - 2 <= samples:
        every = np.array([row for row in product((False, True), repeat=n) if 0 < sum(row) < n])
        sizes = every.sum(1)
        return every, np.array([(n - 1) / (comb(n, int(s)) * s * (n - s)) for s in sizes])
    # A size s is drawn in proportion to its total kernel weight, (n - 1) / (s (n - s)); then each draw counts 1.
    sizes = np.arange(1, n)
    share = 1 / (sizes * (n - sizes))
    rows = np.zeros((samples // 2, n), dtype=bool)
    for row, size in zip(rows, draw.choice(sizes, len(rows), p=share / share.sum()), strict=True):
        go_on()
        row[draw.permutation(n)[:size]] = True
    return np.vstack([rows, ~rows]), np.ones(2 * len(rows))


def _shapley(inner: np.ndarray, weights: np.ndarray, gains: np.ndarray, total: float) -> np.ndarray:
    """Least squares under the constraint that the values sum to `total`: the last one is eliminated."""
    n = inner.shape[1]
    if n == 1:
        return np.array([total])
    root = np.sqrt(weights)[:, None]
    others, due = _without_the_last(inner, gains, total)
    first, *_ = np.linalg.lstsq(root * others, root[:, 0] * due, rcond=None)
    return np.append(first, total - first.sum())


def _without_the_last(inner: np.ndarray, gains: np.ndarray, total: float) -> tuple[np.ndarray, np.ndarray]:
    """The regression without its constraint: the last token's value is what the others leave of `total`."""
    return inner[:, :-1].astype(float) - inner[:, -1:], gains - total * inner[:, -1]


def _error(inner: np.ndarray, gains: np.ndarray, total: float, scores: np.ndarray) -> float | None:
    others, due = _without_the_last(inner, gains, total)
    block = np.tile(np.arange(len(inner) // 2) % BLOCKS, 2)  # pairs stay together
    first = fits_without(others, due, np.ones(len(inner)), block, np.zeros(others.shape[1]))
    return jackknife(np.column_stack([first, total - first.sum(1)]), scores)
