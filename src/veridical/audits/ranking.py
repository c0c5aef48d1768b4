"""Methods ranked on every text, and the differences tested; `verdict` says in one plain sentence what that may claim.

On each text every faithfulness metric ranks the methods (1 is best, ties share the mean rank; `random` competes). A
text's ranks are averaged over the metrics, each weighted by how diagnostic it proved; metrics are thereby compared
by order alone, never by size. Two methods are *told apart* by a signed-rank test over the texts, corrected by Holm
within its question (each against `random`; each against its shuffled self; each pair of methods), if p < 0.05 and test
and mean point the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from veridical.audits.diagnosticity import Better, credit, outcomes, settled
from veridical.audits.options import Control
from veridical.core.spec import base_name
from veridical.core.statistics import ALPHA, bca, holm, number, signed_rank

RIVALS: dict[Control, str] = {"permutation": "shuffled ones", "gaussian": "Gaussian draws"}  # by control
CHANCE = "random"  # the method that knows nothing


@dataclass(frozen=True)
class Standing:
    """Where a method stands on the texts of a corpus."""

    corpus: str
    method: str
    place: int
    mean_rank: float
    low: float | None
    high: float | None
    group: int  # 1 is best; its members cannot be told from its first
    better_than_random: bool | None  # None: not asked
    beats_control: bool | None  # better than its own scores shuffled
    p_control: float | None  # corrected
    n: int


@dataclass(frozen=True)
class Comparison:
    """Two methods on the same texts, by one metric or by their ranks (metric ""); the effect is positive where `a` is
    better."""

    corpus: str
    metric: str
    a: str
    b: str
    difference: float  # mean of a minus mean of b
    p: float
    p_holm: float
    effect: float  # matched rank-biserial
    n: int  # texts, zeros included
    zeros: int  # texts without a difference, which the test leaves out
    distinguishable: bool


@dataclass(frozen=True)
class Ranking:
    """Methods in order of rank, every comparison, and what it rests on."""

    methods: tuple[str, ...]  # as given
    standings: tuple[Standing, ...]  # empty if no text could be ranked
    comparisons: tuple[Comparison, ...]
    ranks: np.ndarray  # [methods, texts], rows as the standings
    weights: Mapping[str, float]
    texts: int  # with a rank
    given: int  # asked about
    control: Control = "permutation"  # what the methods were held against
    corpus: str = ""

    def apart(self, a: str, b: str) -> bool:
        return any({c.a, c.b} == {a, b} and c.distinguishable for c in self.comparisons)


def rank(
    values: np.ndarray,
    methods: Sequence[str],
    metrics: Sequence[str],
    better: Sequence[Better],
    weights: Sequence[float] | np.ndarray,
    controls: np.ndarray | None = None,
    *,
    control: Control = "permutation",
    corpus: str = "",
    seed: int = 0,
) -> Ranking:
    """Rank methods from scores [methods, metrics, texts]; `controls` are those of random explanations in their place,
    the method's own scores shuffled unless `control` says otherwise.

    A metric ranks a text only if it is defined there for every method.
    """
    weights = np.asarray(weights, dtype=np.float64)
    by_metric = dict(zip(metrics, map(float, weights), strict=True))
    ranks = text_ranks(values, better, weights)  # [M, N]
    kept = ~np.isnan(ranks[0]) if len(ranks) else np.zeros(0, dtype=bool)
    ranks = ranks[:, kept]
    if not ranks.size:
        return Ranking(tuple(methods), (), (), ranks, by_metric, 0, values.shape[2], control, corpus)
    mean = ranks.mean(1)
    order = np.argsort(mean, kind="stable")
    names, ranks = [methods[int(i)] for i in order], ranks[order]
    compared = compare_all(ranks, names, "lower", split_chance=True, corpus=corpus)
    shuffled = _against_shuffled(values[order], None if controls is None else controls[order], names, better, weights)
    standings = _standings(names, mean[order], bca(ranks, seed=seed), compared, shuffled, corpus, int(kept.sum()))
    return Ranking(
        tuple(methods), standings, compared, ranks, by_metric, int(kept.sum()), values.shape[2], control, corpus
    )


def _standings(
    names: Sequence[str],
    mean: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
    compared: Sequence[Comparison],
    shuffled: Mapping[str, tuple[bool | None, float | None]],
    corpus: str,
    texts: int,
) -> tuple[Standing, ...]:
    """Where each method stands, best first, as `names`, the mean ranks and their bounds are."""
    groups = _groups(names, compared)
    return tuple(
        Standing(
            corpus=corpus,
            method=name,
            place=1 + int((mean < mean[row]).sum()),
            mean_rank=float(mean[row]),
            low=number(bounds[0][row]),
            high=number(bounds[1][row]),
            group=groups[name],
            better_than_random=_better_than_chance(name, names, compared),
            beats_control=shuffled[name][0],
            p_control=shuffled[name][1],
            n=texts,
        )
        for row, name in enumerate(names)
    )


def text_ranks(values: np.ndarray, better: Sequence[Better], weights: np.ndarray) -> np.ndarray:
    """Per text the methods' weighted mean rank over the metrics; NaN where no metric with weight is defined."""
    from scipy.stats import rankdata

    if not values.size:
        return np.full((values.shape[0], values.shape[2]), np.nan)
    sign = np.array([1.0 if b == "higher" else -1.0 for b in better])[None, :, None]
    defined = ~np.isnan(values).any(0)  # [K, N]
    ranks = rankdata(np.where(defined, -sign * settled(values), 0.0), axis=0)
    share = np.where(defined, weights[:, None], 0.0)
    total = share.sum(0)
    return np.where(total > 0, (ranks * share).sum(1) / np.where(total > 0, total, 1.0), np.nan)


def compare_all(
    values: np.ndarray,
    names: Sequence[str],
    better: Better,
    *,
    split_chance: bool = False,
    corpus: str = "",
    metric: str = "",
) -> tuple[Comparison, ...]:
    """Every pair of rows of [methods, texts]; Holm over all pairs, or apart for those with `random`."""
    pairs = list(combinations(range(len(names)), 2))
    if not pairs:
        return ()
    sign = 1 if better == "higher" else -1
    test = signed_rank(np.array([sign * (values[i] - values[j]) for i, j in pairs]))
    corrected = np.full(len(pairs), np.nan)
    chance = np.array([split_chance and CHANCE in (base_name(names[i]), base_name(names[j])) for i, j in pairs])
    for family in (chance, ~chance):
        corrected[family] = holm(test.p[family])
    same_way = test.difference * test.effect > 0
    return tuple(
        Comparison(
            corpus=corpus,
            metric=metric,
            a=names[i],
            b=names[j],
            difference=sign * float(test.difference[row]),
            p=float(test.p[row]),
            p_holm=float(corrected[row]),
            effect=float(test.effect[row]),
            n=int(test.n[row]),
            zeros=int(test.zeros[row]),
            distinguishable=bool(corrected[row] < ALPHA and same_way[row]),
        )
        for row, (i, j) in enumerate(pairs)
        if test.n[row]
    )


def _against_shuffled(
    values: np.ndarray,
    controls: np.ndarray | None,
    names: Sequence[str],
    better: Sequence[Better],
    weights: np.ndarray,
) -> dict[str, tuple[bool | None, float | None]]:
    """Whether each method beats its own shuffled scores, with the corrected p; `random` is not asked."""
    answers: dict[str, tuple[bool | None, float | None]] = dict.fromkeys(names, (None, None))
    asked = [i for i, name in enumerate(names) if base_name(name) != CHANCE]
    if controls is None or not asked:
        return answers
    won = np.stack([credit(outcomes(values[:, k], controls[:, k], b)) for k, b in enumerate(better)], 1)
    there = ~np.isnan(won)
    share = np.where(there, weights[None, :, None], 0.0)
    total = share.sum(1)
    mean = np.where(total > 0, (np.where(there, won, 0.0) * share).sum(1) / np.where(total > 0, total, 1.0), np.nan)
    test = signed_rank(mean[asked] - 0.5)
    for row, p in zip(range(len(asked)), holm(test.p), strict=True):
        if test.n[row]:
            beats = bool(p < ALPHA and test.effect[row] > 0 and test.difference[row] > 0)
            answers[names[asked[row]]] = (beats, float(p))
    return answers


def _groups(names: Sequence[str], compared: Sequence[Comparison]) -> dict[str, int]:
    """The first method and all that cannot be told from it, then the same of those left."""
    apart = {frozenset((c.a, c.b)) for c in compared if c.distinguishable}
    groups: dict[str, int] = {}
    left, number = list(names), 0
    while left:
        number += 1
        first = left[0]
        groups |= {name: number for name in left if frozenset((first, name)) not in apart}
        left = [name for name in left if name not in groups]
    return groups


def _better_than_chance(name: str, names: Sequence[str], compared: Sequence[Comparison]) -> bool | None:
    floors = [other for other in names if base_name(other) == CHANCE]
    if base_name(name) == CHANCE or not floors:
        return None
    won = {(c.a, c.b) if c.effect > 0 else (c.b, c.a) for c in compared if c.distinguishable}
    return all((name, floor) in won for floor in floors)
