from __future__ import annotations

from typing import Annotated

import numpy as np

from veridical.attribution import method
from veridical.attribution.occlusion import Of, spread
from veridical.core.ranges import at_least
from veridical.core.records import Explained
from veridical.model.ask import Asker
from veridical.model.best_order import best_order
from veridical.model.erase import Level, Operator, units


@method(
    "best", needs=("questions",), signed=False, reference=True, passes="up to beam x tokens^2 / 2, or 2^tokens of 10"
)
def best(
    ex: Explained,
    *,
    beam: Annotated[int, at_least(1)] = 10,
    by: Operator = "delete",
    of: Of = "logit",
    level: Level = "token",
) -> Asker[np.ndarray]:
    """The order of tokens whose removal makes the explained class fall most, by beam search (Madsen et al. 2024): the
    first to go scores n, the last 1. Up to ten tokens it is exact.

    It is made from what erasure metrics measure, so it is a reference beside which methods are shown, as the oracle is,
    and never ranked.
    """
    groups = units(ex, level)
    found = yield from best_order(ex, beam=beam, by=by, level=level, of=of)
    values = np.zeros(len(groups))
    values[list(found.order)] = np.arange(len(groups), 0, -1)
    return spread(ex, groups, values)
