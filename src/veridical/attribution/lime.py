from __future__ import annotations

from typing import Annotated

import numpy as np
from sklearn.linear_model import Ridge

from veridical.attribution import Sampled, method
from veridical.attribution.occlusion import Of, explained_value, spread
from veridical.attribution.sampling import BLOCKS, ENOUGH, Enough, fits_without, jackknife, looks, small
from veridical.core.ranges import Seed, at_least, between
from veridical.core.records import Explained
from veridical.core.seed import generator
from veridical.model.ask import Asker
from veridical.model.erase import Level, Operator, erase, units
from veridical.model.interruption import go_on


@method("lime", needs=("questions",), signed=True, version=2, passes="up to 600 forward")
def lime(
    ex: Explained,
    *,
    samples: Annotated[int, between(1, 1_000_000)] = 600,
    width: Annotated[float, between(0.01, 100)] = 0.25,
    alpha: Annotated[float, at_least(0)] = 1e-2,
    by: Operator = "delete",
    of: Of = "logit",
    level: Level = "token",
    seed: Seed = 0,
    error: Enough = ENOUGH,
) -> Asker[Sampled]:
    """Weights of a ridge regression on which tokens are present, fitted to texts near the original
    (Ribeiro et al. 2016): the number of erased tokens is uniform, nearness falls with the cosine distance.

    It draws until the sampling error is `error` of the scores' spread, at most `samples`; with 0, all of them.
    """
    groups = units(ex, level)
    n = len(groups)
    draw = generator("lime", seed, ex.encoded.example.id, ex.encoded.ids)
    present = np.ones((samples + 1, n), dtype=bool)
    for row in present[1:]:
        go_on()
        row[draw.permutation(n)[: draw.integers(1, n + 1)]] = False
    nearness = np.exp(-((1 - np.sqrt(present.mean(1))) ** 2) / width**2)  # by the cosine to the full text
    values, weights, off = np.empty(0), np.zeros(n), None
    for count in looks(samples, error):
        asked = present[len(values) : count + 1]
        answers = yield [erase(ex, [p for g in np.flatnonzero(~row) for p in groups[g]], by) for row in asked]
        values = np.append(values, explained_value(answers, ex, of))
        weights = Ridge(alpha=alpha).fit(present[: count + 1], values, sample_weight=nearness[: count + 1]).coef_
        off = _error(present[: count + 1], values, nearness[: count + 1], alpha, weights)
        if small(off, error):
            break
    return Sampled(spread(ex, groups, weights), off)


def _error(
    present: np.ndarray, values: np.ndarray, nearness: np.ndarray, alpha: float, weights: np.ndarray
) -> float | None:
    count, n = len(present) - 1, len(weights)
    block = np.append(-1, np.arange(count) % BLOCKS)  # the text itself is not drawn
    design = np.column_stack([present, np.ones(count + 1)])
    without = fits_without(design, values, nearness, block, np.append(np.full(n, alpha), 0.0))
    return jackknife(without[:, :n], weights)
