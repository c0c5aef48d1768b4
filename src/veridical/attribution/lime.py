from __future__ import annotations

from typing import Annotated

import numpy as np
from sklearn.linear_model import Ridge

from veridical.attribution import method
from veridical.attribution.occlusion import Of, explained_value, spread
from veridical.core.ranges import Seed, at_least, between
from veridical.core.records import Explained
from veridical.core.seed import generator
from veridical.model.ask import Asker
from veridical.model.erase import Level, Operator, erase, units


@method("lime", needs=("questions",), signed=True, passes="up to 600 forward")
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
) -> Asker[np.ndarray]:
    """Weights of a ridge regression on which tokens are present, fitted to texts near the original
    (Ribeiro et al. 2016): the number of erased tokens is uniform, nearness falls with the cosine distance.
    """
    groups = units(ex, level)
    n = len(groups)
    draw = generator("lime", seed, ex.encoded.example.id, ex.encoded.ids)
    present = np.ones((samples + 1, n), dtype=bool)
    for row in present[1:]:
        row[draw.permutation(n)[: draw.integers(1, n + 1)]] = False
    answers = yield [erase(ex, [p for g in np.flatnonzero(~row) for p in groups[g]], by) for row in present]
    distance = 1 - np.sqrt(present.mean(1))  # cosine to the full text
    nearness = np.exp(-(distance**2) / width**2)
    fit = Ridge(alpha=alpha).fit(present, explained_value(answers, ex.target, of), sample_weight=nearness)
    return spread(ex, groups, fit.coef_)
