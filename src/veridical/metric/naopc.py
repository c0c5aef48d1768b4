"""NAOPC: the area over the perturbation curve between the limits that any order could reach (Edin et al. 2025).

AOPC(order) = 1/n sum_i [p(x) - p(x without the first i)]. Comprehensiveness removes by falling score, sufficiency by
rising. Both are areas of orders, so they share their limits: the largest and the smallest area over all orders of the
text's tokens, under this model and operator. NAOPC = (AOPC - lower) / (upper - lower). The limits of two models differ,
so their plain areas do not compare; these do.
"""

from __future__ import annotations

from typing import Annotated

from veridical.core.ranges import at_least
from veridical.core.records import Explained, Score
from veridical.metric import metric
from veridical.metric.erasure import UNDEFINED_BELOW
from veridical.model.ask import Asker
from veridical.model.best_order import aopc_of, both_orders
from veridical.model.erase import Level, Operator, ranking, unit_scores, units

Beam = Annotated[int, at_least(1)]


@metric("naopc", kind="faithfulness", better="higher", bounds=(0, 1), needs=("questions",), order=True)
def naopc(ex: Explained, *, by: Operator = "delete", level: Level = "token", beam: Beam = 5) -> Asker[Score]:
    """How far the explained class falls as tokens go, highest score first, between the least and the most that any
    order of this text would make it fall (Edin et al. 2025).

    The limits are exact up to ten tokens and by beam search beyond. A beam's limit is no bound: an order that passes it
    widens it, which the curve's one entry counts. Undefined where both limits are equal. `level=word` is the authors'.
    """
    return (yield from _between_limits(ex, by, level, beam, sign=1))


@metric("naopc_sufficiency", kind="faithfulness", better="lower", bounds=(0, 1), needs=("questions",), order=True)
def naopc_sufficiency(
    ex: Explained, *, by: Operator = "delete", level: Level = "token", beam: Beam = 5
) -> Asker[Score]:
    """The same as tokens go from the lowest score on: what a good explanation leaves standing longest, so lower is
    better (Edin et al. 2025). The limits are those of `naopc`."""
    return (yield from _between_limits(ex, by, level, beam, sign=-1))


def _between_limits(ex: Explained, by: Operator, level: Level, beam: int, sign: int) -> Asker[Score]:
    groups = units(ex, level)
    if not groups:
        return Score(None, (None,))
    falling = ranking(unit_scores(ex, groups), [True] * len(groups))
    area = {}
    for side, order in ((1, falling), (-1, falling[::-1])):  # the limits must hold what this explanation shows
        area[side] = yield from aopc_of(ex, [groups[i] for i in order], by)
    best, worst = yield from both_orders(ex, beam=beam, by=by, level=level)
    upper, lower = max(best.value, *area.values()), min(worst.value, *area.values())
    if upper - lower < UNDEFINED_BELOW:
        return Score(None, (None,), room=upper - lower)
    # Sums of the same falls in another order differ in their last bits.
    passed = not best.exact and (upper > best.value + UNDEFINED_BELOW or lower < worst.value - UNDEFINED_BELOW)
    return Score((area[sign] - lower) / (upper - lower), (float(passed),), room=upper - lower)
