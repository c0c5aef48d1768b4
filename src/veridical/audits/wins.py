"""Net wins: what one explanation has over another on a text, by all metrics together.

On a text every metric says which of two explanations is better, or that they tie. A method's net win share over another
is the weighted mean of these signs, over the metrics that are defined for both: from -1 to 1, and 0.2 is 60:40. It is a
matter of these two alone, so it does not change when a third method leaves. *Chance* is the mean over random orders.

M methods, K metrics, N texts, R random orders, U units. NaN is a score that does not exist.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from veridical.audits.diagnosticity import Better, settled

BETS = np.array([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 0.95])  # shares of a stake that are put on each text


def net_wins(
    values: np.ndarray, there: np.ndarray, better: Sequence[Better], weights: Sequence[float] | np.ndarray
) -> np.ndarray:
    """Of every method (first axis) over every other (second). [M, M, N]

    `values` is [M, K, N]; `there` [M, N] says on which texts a method was scored at all. NaN where one of the two was
    not; 0 where both were and no metric is defined for both.
    """
    return _between(values, values, there, there, better, weights)


def chance_wins(
    values: np.ndarray,
    there: np.ndarray,
    orders: np.ndarray,
    better: Sequence[Better],
    weights: Sequence[float] | np.ndarray,
) -> np.ndarray:
    """Of every method over random orders [R, K, N], the mean over these. [M, N]; NaN where it was not scored."""
    everywhere = np.ones((len(orders), orders.shape[2]), dtype=bool)
    return _between(values, orders, there, everywhere, better, weights).mean(1)


def over_chance(
    values: np.ndarray,
    there: np.ndarray,
    orders: np.ndarray,
    shuffled: np.ndarray | None,
    better: Sequence[Better],
    weights: Sequence[float] | np.ndarray,
) -> np.ndarray:
    """Of every method over random orders [R, K, N]; by metrics that read more than the order over its own scores in
    random places, `shuffled` [M, K, N], which is NaN for all others. [M, N]

    Against scores of another shape it would be the shapes that are compared.
    """
    if shuffled is None:
        return chance_wins(values, there, orders, better, weights)
    shaped = np.any(~np.isnan(shuffled), axis=(0, 2))[:, None]  # [K, 1]
    rows = [
        chance_wins(values[[m]], there[[m]], np.where(shaped, shuffled[m], orders), better, weights)[0]
        for m in range(len(values))
    ]
    return np.array(rows).reshape(len(values), values.shape[2])


def _between(
    first: np.ndarray,
    second: np.ndarray,
    first_there: np.ndarray,
    second_there: np.ndarray,
    better: Sequence[Better],
    weights: Sequence[float] | np.ndarray,
) -> np.ndarray:
    """Net wins of every row of [A, K, N] over every row of [B, K, N]. [A, B, N]"""
    won = np.zeros((len(first), len(second), first.shape[2]))
    total = np.zeros_like(won)
    for k, (way, weight) in enumerate(zip(better, weights, strict=True)):
        ahead = np.sign(settled(first[:, None, k]) - settled(second[None, :, k])) * (1 if way == "higher" else -1)
        defined = ~np.isnan(ahead)
        won += weight * np.where(defined, ahead, 0.0)
        total += weight * defined
    share = np.where(total > 0, won / np.where(total > 0, total, 1.0), 0.0)
    return np.where(first_there[:, None] & second_there[None, :], share, np.nan)


def by_unit(wins: np.ndarray, units: Sequence[Hashable] | np.ndarray) -> np.ndarray:
    """The mean over the texts of each unit (those of one document), in the order in which units first appear. [..., U]

    Texts that were not scored are left out; NaN where none of a unit was.
    """
    column = {unit: at for at, unit in enumerate(dict.fromkeys(units))}
    member = np.zeros((len(units), len(column)))
    member[np.arange(len(units)), [column[unit] for unit in units]] = 1.0
    there = ~np.isnan(wins)
    count = there @ member
    return np.where(count > 0, np.where(there, wins, 0.0) @ member / np.maximum(count, 1), np.nan)


def p_mean_above(values: np.ndarray, margin: float) -> float:
    """Evidence that the mean of net wins is above a margin: 1 over the most that a stake of 1 has grown to.

    The stake is bet on each text in turn, with several shares of it at once. If the mean is not above the margin, it is
    ever x or more with probability at most 1 / x (Ville): whatever the distribution, and whenever one stops. NaN is no
    text.
    """
    return float(p_means_above(values[None], margin)[0])


def p_means_above(rows: np.ndarray, margin: float = 0.0) -> np.ndarray:
    """The same for rows of net wins. [R, N] -> [R]"""
    gains = np.where(np.isnan(rows), 0.0, (rows - margin) / (1 + abs(margin)))  # at least -1
    grown = np.exp(np.log1p(BETS[:, None, None] * gains).cumsum(2)).mean(0)  # [R, N]
    return 1 / grown.max(1, initial=1.0)


def could_pass(values: np.ndarray, level: float, texts: int) -> bool:
    """Whether the stake on one of the two sides would pass a level after so many texts, if those seen are typical; with
    fewer than two nobody knows."""
    values = values[~np.isnan(values)]
    if len(values) < 2:
        return True
    sides = np.log1p(BETS[:, None, None] * np.stack([values, -values])).mean(2)  # growth a text [bets, 2]
    return bool((np.exp(texts * sides).mean(0) * level >= 1).any())


def fewest_to_pass(level: float) -> int:
    """On how many texts a stake passes a level if every one of them is won."""
    texts = 1
    while ((1 + BETS) ** texts).mean() * level < 1:
        texts += 1
    return texts
