"""Which explanation to believe: methods ranked on every text, the differences tested, and one plain sentence.

On each text every faithfulness metric ranks the methods (1 is best, ties share the mean rank; `random` competes). A
text's ranks are averaged over the metrics, each weighted by how diagnostic it proved; metrics are thereby compared
by order alone, never by size. What a verdict may claim:

- *better than chance*: better than `random` on the texts' mean ranks, and than the method's own scores shuffled;
- *told apart*: signed-rank test over the texts, corrected by Holm within its question (each against `random`; each
  against its shuffled self; each pair of methods), p < 0.05, and test and mean point the same way;
- *believed*: the first in rank among those better than chance, if it can be told from any other method at all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from veridical.audits.diagnosticity import credit, outcomes, settled
from veridical.core.spec import base_name
from veridical.core.statistics import ALPHA, bca, fewest, holm, needed, signed_rank

RIVALS = {"permutation": "shuffled ones", "gaussian": "Gaussian draws"}  # by control
CHANCE = "random"  # the method that knows nothing
MOST = 10_000  # texts beyond which two methods count as equal


@dataclass(frozen=True)
class Standing:
    """Where a method stands."""

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
    """Two methods on the same texts; the effect is positive where `a` is better."""

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
    control: str = "permutation"  # what the methods were held against

    def apart(self, a: str, b: str) -> bool:
        return any({c.a, c.b} == {a, b} and c.distinguishable for c in self.comparisons)


@dataclass(frozen=True)
class Verdict:
    """What may be said of the methods on these texts."""

    believe: tuple[str, ...]
    tied: tuple[str, ...]  # better than chance, and not told from the first
    undecided: tuple[str, ...]  # told neither from the first nor from chance
    avoid: tuple[str, ...]  # no better than chance, and told from the first
    texts: int
    enough: bool  # the texts carry a belief
    sentence: str
    notes: tuple[str, ...] = ()


def rank(
    values: np.ndarray,
    methods: Sequence[str],
    metrics: Sequence[str],
    better: Sequence[str],
    weights: Sequence[float] | np.ndarray,
    controls: np.ndarray | None = None,
    *,
    control: str = "permutation",
    seed: int = 0,
) -> Ranking:
    """Rank methods from scores [methods, metrics, texts]; `controls` are those of random explanations in their place,
    the method's own scores shuffled unless `control` says otherwise.

    A metric ranks a text only if it is defined there for every method.
    """
    weights = np.asarray(weights, dtype=np.float64)
    named = dict(zip(metrics, map(float, weights), strict=True))
    ranks = text_ranks(values, better, weights)  # [M, N]
    kept = ~np.isnan(ranks[0]) if len(ranks) else np.zeros(0, dtype=bool)
    ranks = ranks[:, kept]
    if not ranks.size:
        return Ranking(tuple(methods), (), (), ranks, named, 0, values.shape[2], control)
    mean = ranks.mean(1)
    order = np.argsort(mean, kind="stable")
    names = [methods[int(i)] for i in order]
    compared = compare_all(ranks[order], names, "lower", split_chance=True)
    low, high = bca(ranks[order], seed=seed)
    shuffled = _against_shuffled(values[order], None if controls is None else controls[order], names, better, weights)
    groups = _groups(names, compared)
    standings = tuple(
        Standing(
            method=name,
            place=1 + int((mean < mean[index]).sum()),
            mean_rank=float(mean[index]),
            low=None if np.isnan(low[row]) else float(low[row]),
            high=None if np.isnan(high[row]) else float(high[row]),
            group=groups[name],
            better_than_random=_better_than_chance(name, names, compared),
            beats_control=shuffled[name][0],
            p_control=shuffled[name][1],
            n=int(kept.sum()),
        )
        for row, (index, name) in enumerate(zip(order, names, strict=True))
    )
    return Ranking(tuple(methods), standings, compared, ranks[order], named, int(kept.sum()), values.shape[2], control)


def text_ranks(values: np.ndarray, better: Sequence[str], weights: np.ndarray) -> np.ndarray:
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
    values: np.ndarray, names: Sequence[str], better: str, *, split_chance: bool = False
) -> tuple[Comparison, ...]:
    """Every pair of rows of [methods, texts]; Holm over all pairs, or apart for those with `random`."""
    pairs = list(combinations(range(len(names)), 2))
    if not pairs:
        return ()
    sign = 1 if better == "higher" else -1
    test = signed_rank(np.array([sign * (values[i] - values[j]) for i, j in pairs]))
    corrected = np.full(len(pairs), np.nan)
    chance = np.array([split_chance and CHANCE in (_base(names[i]), _base(names[j])) for i, j in pairs])
    for family in (chance, ~chance):
        corrected[family] = holm(test.p[family])
    found = []
    for row, (i, j) in enumerate(pairs):
        if not test.n[row]:
            continue
        same_way = test.difference[row] * test.effect[row] > 0
        found.append(
            Comparison(
                a=names[i],
                b=names[j],
                difference=sign * float(test.difference[row]),
                p=float(test.p[row]),
                p_holm=float(corrected[row]),
                effect=float(test.effect[row]),
                n=int(test.n[row]),
                zeros=int(test.zeros[row]),
                distinguishable=bool(corrected[row] < ALPHA and same_way),
            )
        )
    return tuple(found)


def _against_shuffled(
    values: np.ndarray,
    controls: np.ndarray | None,
    names: Sequence[str],
    better: Sequence[str],
    weights: np.ndarray,
) -> dict[str, tuple[bool | None, float | None]]:
    """Whether each method beats its own shuffled scores, with the corrected p; `random` is not asked."""
    found: dict[str, tuple[bool | None, float | None]] = dict.fromkeys(names, (None, None))
    asked = [i for i, name in enumerate(names) if _base(name) != CHANCE]
    if controls is None or not asked:
        return found
    won = np.stack([credit(outcomes(values[:, k], controls[:, k], b)) for k, b in enumerate(better)], 1)  # type: ignore[arg-type]
    there = ~np.isnan(won)
    share = np.where(there, weights[None, :, None], 0.0)
    total = share.sum(1)
    mean = np.where(total > 0, (np.where(there, won, 0.0) * share).sum(1) / np.where(total > 0, total, 1.0), np.nan)
    test = signed_rank(mean[asked] - 0.5)
    for row, p in zip(range(len(asked)), holm(test.p), strict=True):
        if test.n[row]:
            beats = bool(p < ALPHA and test.effect[row] > 0 and test.difference[row] > 0)
            found[names[asked[row]]] = (beats, float(p))
    return found


def _groups(names: Sequence[str], compared: Sequence[Comparison]) -> dict[str, int]:
    """The first method and all that cannot be told from it, then the same of the rest."""
    apart = {frozenset((c.a, c.b)) for c in compared if c.distinguishable}
    groups: dict[str, int] = {}
    rest, number = list(names), 0
    while rest:
        number += 1
        first = rest[0]
        groups |= {name: number for name in rest if frozenset((first, name)) not in apart}
        rest = [name for name in rest if name not in groups]
    return groups


def _better_than_chance(name: str, names: Sequence[str], compared: Sequence[Comparison]) -> bool | None:
    floors = [other for other in names if _base(other) == CHANCE]
    if _base(name) == CHANCE or not floors:
        return None
    won = {(c.a, c.b) if c.effect > 0 else (c.b, c.a) for c in compared if c.distinguishable}
    return all((name, floor) in won for floor in floors)


def _base(spec: str) -> str:
    return base_name(spec)


# -- the verdict --------------------------------------------------------------------------------------------


def verdict(ranking: Ranking) -> Verdict:
    """What the ranking may claim, as lists and as a sentence."""
    n, given = ranking.texts, ranking.given
    count = sum(_base(name) != CHANCE for name in ranking.methods)
    tests = max(count, math.comb(count, 2))
    if not count or not ranking.weights:
        return _none(given, "No verdict: no method was scored by a metric of faithfulness.")
    if given < fewest(tests):
        return _none(given, _too_few(given, count, tests))
    if not any(ranking.weights.values()):
        return _none(
            given,
            f"No verdict: on these {_texts(given)} no metric was shown to rate explanations above "
            f"{RIVALS[ranking.control]}.",
        )
    if n < fewest(tests):
        return _none(n, _too_few(n, count, tests) + f" On {given - n} of {given} texts no metric was defined.")
    real = [s for s in ranking.standings if _base(s.method) != CHANCE]
    if all(s.better_than_random is None and s.beats_control is None for s in real):
        return _none(
            n,
            "No verdict: no random explanations were scored, so no method can be shown to be "
            "better than chance; add the method random.",
        )
    shown = {s.method: (s.better_than_random, s.beats_control) for s in real}
    good = [name for name, answers in shown.items() if True in answers and False not in answers]
    if not good:
        return _nobody(ranking, real, tests)
    first = good[0]
    others = [s.method for s in real if s.method != first]
    tied = tuple(m for m in good[1:] if not ranking.apart(first, m))
    undecided = tuple(m for m in others if m not in good and not ranking.apart(first, m))
    avoid = tuple(m for m in others if m not in good and m not in undecided)
    notes = ((_how_many(ranking, first, tied[0], tests),) if tied else ()) + _why(avoid, shown, ranking.control)
    if others and len(tied) + len(undecided) == len(others):
        sentence = f"{_texts(n)} {_do(n)} not single out a method: {_list((first, *tied))} "
        sentence += (
            "all do better than random explanations and cannot be told apart"
            if tied
            else "does better than random explanations"
        )
        sentence += f", and {_list(undecided)} can be told neither from it nor from chance" if undecided else ""
        nearest = (tied or undecided)[0]
        sentence += f". {_how_many(ranking, first, nearest, tests)}"
        return Verdict((), (first, *tied), undecided, (), n, False, sentence)
    sentence = f"For this model on this data believe {first}"
    sentence += f"; {_list(tied)} cannot be told apart from it" if tied else ""
    sentence += f"; {_list(undecided)} can be told neither from it nor from chance" if undecided else ""
    sentence += f"; do not use {_list(avoid)}" if avoid else ""
    return Verdict((first,), tied, undecided, avoid, n, True, f"{sentence}.", notes)


def _why(avoid: Sequence[str], shown: Mapping[str, tuple[bool | None, bool | None]], control: str) -> tuple[str, ...]:
    """What the methods to avoid were not shown to beat."""
    notes = []
    own = "their own scores shuffled" if control == "permutation" else RIVALS[control]
    for place, rival in enumerate(("random explanations", own)):
        lost = [name for name in avoid if shown[name][place] is False]
        if lost:
            notes.append(f"Not shown to do better than {rival}: {_list(lost)}.")
    return tuple(notes)


def _none(texts: int, sentence: str) -> Verdict:
    return Verdict((), (), (), (), texts, False, sentence)


def _too_few(n: int, methods: int, tests: int) -> str:
    several = f"{methods} methods" if methods > 1 else "1 method"
    return (
        f"{_texts(n)} {_do(n)} not carry a verdict: with {several} no difference can be significant on fewer "
        f"than {fewest(tests)}."
    )


def _nobody(ranking: Ranking, real: Sequence[Standing], tests: int) -> Verdict:
    """No method is better than chance: those worse than it are to be avoided, of the others nothing is known."""
    floors = [s.method for s in ranking.standings if _base(s.method) == CHANCE]
    lost = {(c.b if c.effect > 0 else c.a) for c in ranking.comparisons if c.distinguishable and {c.a, c.b} & {*floors}}
    avoid = tuple(s.method for s in real if s.method in lost)
    undecided = tuple(s.method for s in real if s.method not in lost)
    sentence = f"On these {_texts(ranking.texts)} no method did better than random explanations: believe none of them"
    sentence += f"; {_list(avoid)} did worse." if avoid else "."
    if undecided and floors:
        sentence += f" {_how_many(ranking, undecided[0], floors[0], tests)}"
    return Verdict((), (), undecided, avoid, ranking.texts, False, sentence)


def _how_many(ranking: Ranking, a: str, b: str, tests: int) -> str:
    """A sentence on how many texts would tell two methods apart, were these texts typical."""
    row = {s.method: i for i, s in enumerate(ranking.standings)}
    count = needed(ranking.ranks[row[a]] - ranking.ranks[row[b]], tests)
    if count > MOST:
        return f"More than {MOST:,} texts would be needed to tell {a} from {b} (estimate): they are as good as equal."
    count = max(int(count), ranking.texts + 1)
    digits = max(0, len(str(count)) - 2)
    return (
        f"About {math.ceil(count / 10**digits) * 10**digits:,} texts would be needed to tell {a} from {b} (estimate)."
    )


def _texts(n: int) -> str:
    return "1 text" if n == 1 else f"{n:,} texts"


def _do(n: int) -> str:
    return "does" if n == 1 else "do"


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
