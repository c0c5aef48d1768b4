from __future__ import annotations

from itertools import product
from math import comb
from typing import Annotated

import numpy as np

from veridical.attribution import method
from veridical.attribution.occlusion import Of, explained_value, spread
from veridical.core.ranges import Seed, between
from veridical.core.records import Explained
from veridical.core.seed import generator
from veridical.model.ask import Asker
from veridical.model.erase import Level, Operator, erase, units


@method("kernel_shap", needs=("questions",), signed=True, complete=True, passes="up to 1,024 forward")
def kernel_shap(
    ex: Explained,
    *,
    samples: Annotated[int, between(2, 1_000_000)] = 1024,
    by: Operator = "delete",
    of: Of = "logit",
    level: Level = "token",
    seed: Seed = 0,
) -> Asker[np.ndarray]:
    """Shapley values of the tokens by weighted least squares (Lundberg and Lee 2017): exact when every subset
    fits into `samples`, else from subsets drawn in complementary pairs; the sum is exact either way.
    """
    groups = units(ex, level)
    n = len(groups)
    inner, weights = _subsets(n, samples, generator("kernel_shap", seed, ex.encoded.example.id, ex.encoded.ids))
    present = np.vstack([np.ones((1, n), bool), np.zeros((1, n), bool), inner])
    answers = yield [erase(ex, [p for g in np.flatnonzero(~row) for p in groups[g]], by) for row in present]
    values = explained_value(answers, ex.target, of)
    return spread(ex, groups, _shapley(inner, weights, values[2:] - values[1], values[0] - values[1]))


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
        row[draw.permutation(n)[:size]] = True
    return np.vstack([rows, ~rows]), np.ones(2 * len(rows))


def _shapley(inner: np.ndarray, weights: np.ndarray, gains: np.ndarray, total: float) -> np.ndarray:
    """Least squares under the constraint that the values sum to `total`: the last one is eliminated."""
    n = inner.shape[1]
    if n == 1:
        return np.array([total])
    root = np.sqrt(weights)[:, None]
    others = inner[:, :-1].astype(float) - inner[:, -1:]
    first, *_ = np.linalg.lstsq(root * others, root[:, 0] * (gains - total * inner[:, -1]), rcond=None)
    return np.append(first, total - first.sum())
