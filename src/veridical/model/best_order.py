"""The best and the worst order in which a text's tokens can go, searched by asking the model.

The value of an order is the mean fall of the explained class over its steps: the area over the perturbation curve,
1/n sum_k [v(x) - v(x without the first k)]. A text of few units is searched in full, by the best order of every subset
(n 2^n sums instead of n! orders); a longer one by a beam in which orders of equal sets are one, the better kept. A
beam's order is the best that was seen and no bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from veridical.core.records import Answers, Explained
from veridical.model.ask import Asker
from veridical.model.erase import Level, Operator, erase, intact, units

Of = Literal["logit", "probability"]
EXACT = 10  # units up to which every subset is asked about: 1,024 questions


@dataclass(frozen=True, slots=True)
class Found:
    """An order and what it is worth."""

    order: tuple[int, ...]  # of the units, the first to go first
    value: float  # mean fall over the steps
    exact: bool  # no order is better


def explained_value(answers: Answers, ex: Explained, of: Of) -> np.ndarray:
    """The explained class's logit or probability in every answer, less that of its contrast. [n]"""
    values = (answers.logits if of == "logit" else answers.probabilities).astype(np.float64)
    return values[:, ex.target] if ex.contrast is None else values[:, ex.target] - values[:, ex.contrast]


def best_order(
    ex: Explained,
    *,
    beam: int = 10,
    by: Operator = "delete",
    level: Level = "token",
    of: Of = "probability",
    sign: Literal[1, -1] = 1,
) -> Asker[Found]:
    """The order with the largest mean fall, or with `sign` -1 the smallest."""
    groups = units(ex, level)
    if len(groups) <= EXACT:
        falls = yield from _all_falls(ex, groups, by, of)
        return exact_order(falls, sign)
    return (yield from _beam(ex, groups, beam, by, of, sign))


def both_orders(
    ex: Explained, *, beam: int = 5, by: Operator = "delete", level: Level = "token", of: Of = "probability"
) -> Asker[tuple[Found, Found]]:
    """The largest and the smallest; few units are asked about once for both."""
    groups = units(ex, level)
    if len(groups) <= EXACT:
        falls = yield from _all_falls(ex, groups, by, of)
        return exact_order(falls, 1), exact_order(falls, -1)
    best = yield from _beam(ex, groups, beam, by, of, 1)
    worst = yield from _beam(ex, groups, beam, by, of, -1)
    return best, worst


def aopc_of(ex: Explained, ordered: Sequence[Sequence[int]], by: Operator, of: Of = "probability") -> Asker[float]:
    """The mean fall over the steps of one order of units."""
    gone, asked = [], [intact(ex)]
    for group in ordered:
        gone += list(group)
        asked.append(erase(ex, gone, by))
    values = explained_value((yield asked), ex, of)
    return float((values[0] - values[1:]).mean()) if len(values) > 1 else 0.0


# -- every subset -------------------------------------------------------------------------------------------


def _all_falls(ex: Explained, groups: list[list[int]], by: Operator, of: Of) -> Asker[np.ndarray]:
    """How far the explained class falls without every subset of the units; bit i of the index is unit i. [2^n]"""
    asked = [
        erase(ex, [p for i, group in enumerate(groups) if subset >> i & 1 for p in group], by)
        for subset in range(1 << len(groups))
    ]
    values = explained_value((yield asked), ex, of)
    return values[0] - values


def exact_order(falls: np.ndarray, sign: Literal[1, -1] = 1) -> Found:
    """The best order by the best way to every subset; of equal ones that whose last unit has the lower number."""
    n = len(falls).bit_length() - 1
    best, last = np.zeros(len(falls)), np.zeros(len(falls), dtype=int)
    for subset in range(1, len(falls)):  # every subset comes after those it holds
        inside = [i for i in range(n) if subset >> i & 1]
        reached = [sign * best[subset ^ 1 << i] for i in inside]
        last[subset] = inside[int(np.argmax(reached))]
        best[subset] = best[subset ^ 1 << last[subset]] + falls[subset]
    order, left = [], len(falls) - 1
    while left:
        order.append(int(last[left]))
        left ^= 1 << order[-1]
    return Found(tuple(reversed(order)), float(best[-1]) / max(1, n), True)


# -- a beam -------------------------------------------------------------------------------------------------


def _beam(ex: Explained, groups: list[list[int]], beam: int, by: Operator, of: Of, sign: int) -> Asker[Found]:
    """Unit by unit, the best `beam` sets kept. Parents in the beam's order, units ascending, a stable sort: of equal
    values the earlier stays."""
    whole = float(explained_value((yield [intact(ex)]), ex, of)[0])
    held: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    for _ in groups:
        reached: dict[frozenset[int], tuple[tuple[int, ...], float]] = {}  # the better parent of every set
        for order, total in held:
            for unit in range(len(groups)):
                if unit not in order:
                    key = frozenset((*order, unit))
                    if key not in reached or sign * total > sign * reached[key][1]:
                        reached[key] = ((*order, unit), total)
        answers = yield [erase(ex, [p for i in order for p in groups[i]], by) for order, _ in reached.values()]
        values = explained_value(answers, ex, of)
        grown = [
            (order, total + whole - float(value))
            for (order, total), value in zip(reached.values(), values, strict=True)
        ]
        held = sorted(grown, key=lambda item: -sign * item[1])[:beam]
    order, total = held[0]
    return Found(order, total / max(1, len(groups)), False)
