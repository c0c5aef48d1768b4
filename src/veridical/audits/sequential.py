"""Methods leave an audit once they are shown to be behind: tests at a few looks, valid together.

Texts stand in one order that is fixed beforehand, and look l is at the first n_l of them. Of each of the M methods it
is asked whether any other is better, and whether it is better than chance. Both claims are about a mean of net wins
and rest on E-values (`wins.p_mean_above`), which hold at all looks together, so that no look spends anything:

- *behind*: the pair (b, a) is tested at alpha / ((M - 1) x methods not yet dropped). When a method that nothing beats
  is first dropped, all before it were rightly dropped, so as many as there are such methods are left, and the sum over
  rivals and these methods is at most alpha, however the tests depend on each other (Holm's argument).
- *better than chance* is Holm over all M, at alpha / (methods not yet shown).

Signed ranks will not do. They want net wins to be symmetric about 0 where neither of two is better. Those of a random
order over the mean of three are not: where nine in ten orders score as high as can be, signed ranks call one of nine
random orders better than chance in a third of the audits. Nor are those of two methods of which one wins often by
little and loses rarely by much: such equals were called unequal in a quarter of them.

The table of texts by methods is there whether or not it is looked at, so asking only for what is still open costs
nothing. Costly methods enter at the second look, against those that are left, on at most `costly_texts` texts. M counts
all methods that may ever enter. A drop claims that some method is better; `by` is the one whose test passed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, Self

import numpy as np

from veridical.audits.wins import could_pass, p_mean_above, p_means_above
from veridical.core.errors import InputError
from veridical.core.statistics import ALPHA

Ended = Literal["", "settled", "futile", "last"]  # nothing is open; what is open cannot be settled; no look is left


@dataclass(frozen=True)
class Rule:
    """When an audit looks and what it may claim then; all of it fixed before the first text is scored."""

    looks: tuple[int, ...] = (24, 48, 96)  # texts
    alpha: float = ALPHA  # of each list of claims
    margin: float = 0.2  # net wins below which two methods are as good as each other: 60:40
    costly_texts: int = 48
    futile_from: int = 48  # texts

    def __post_init__(self) -> None:
        looks = self.looks
        if not looks or looks[0] < 1 or any(b <= a for a, b in pairwise(looks)):
            raise InputError(f"Looks at {looks} texts are not possible: give rising numbers from 1 on.")
        for name, value in (("alpha", self.alpha), ("margin", self.margin)):
            if not 0 < value < 1:
                raise InputError(f"{name} is {value}: give a number between 0 and 1.")

    @classmethod
    def thorough(cls) -> Self:
        return cls(looks=(24, 48, 96, 192))

    @classmethod
    def fixed(cls, texts: int) -> Self:
        """One look, at which all methods have all texts."""
        return cls(looks=(texts,), costly_texts=texts)

    def within(self, texts: int) -> Self:
        """The same rule where there are only so many texts: the last look is at all of them."""
        if texts >= self.looks[-1]:
            return self
        return replace(self, looks=(*(look for look in self.looks if look < texts), texts))

    def texts(self, number: int, *, costly: bool) -> int:
        """How many texts a method that was not dropped has at a look (0 is the first)."""
        if not costly:
            return self.looks[number]
        entered = number > 0 or len(self.looks) == 1
        return min(self.looks[number], self.costly_texts) if entered else 0


@dataclass(frozen=True)
class Drop:
    """A method that was shown to be behind, and the method that showed it."""

    method: str
    by: str
    texts: int  # that both have
    mean: float  # net wins of `by` over the method
    p: float
    level: float


@dataclass(frozen=True)
class Shown:
    """A method that was shown to be better than chance."""

    method: str
    texts: int
    mean: float  # net wins over random orders
    p: float
    level: float


@dataclass(frozen=True)
class Look:
    """What one look decided."""

    number: int  # 1 is the first
    texts: int
    alive: tuple[str, ...]  # after it
    dropped: tuple[Drop, ...]  # in the order in which they went
    shown: tuple[Shown, ...]
    ended: Ended


@dataclass(frozen=True)
class State:
    """An audit between two looks."""

    methods: tuple[str, ...]  # all that may ever enter; the random orders are none of them
    costly: tuple[str, ...]
    alive: tuple[str, ...]
    shown: tuple[str, ...]  # better than chance
    looks: tuple[Look, ...]
    kept_out: tuple[str, ...] = ()  # might have entered late, and did not for want of budget; they count in the levels

    @property
    def ended(self) -> Ended:
        return self.looks[-1].ended if self.looks else ""


def begin(methods: Sequence[str], costly: Collection[str] = ()) -> State:
    """Before the first look."""
    if len(set(methods)) < len(methods) or not methods:
        raise InputError(f"An audit cannot begin with the methods {', '.join(methods) or '(none)'}: name each once.")
    if strangers := sorted(set(costly) - set(methods)):
        raise InputError(f"{', '.join(strangers)} cannot enter later: not among the methods {', '.join(methods)}.")
    late = tuple(name for name in methods if name in costly)
    return State(tuple(methods), late, tuple(methods), (), ())


def due(rule: Rule, state: State) -> dict[str, int]:
    """On the first how many texts a method must be scored before the next look; who needs none is absent."""
    if state.ended:
        return {}
    number = len(state.looks)
    counts = {name: rule.texts(number, costly=name in state.costly) for name in state.alive}
    return {name: texts for name, texts in counts.items() if texts}


# -- a look -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pairs:
    """What one look sees of two methods each: rows b, columns a. [M, M]"""

    p: np.ndarray  # that b is better than a
    mean: np.ndarray  # net wins of b over a
    texts: np.ndarray


def look(rule: Rule, state: State, wins: np.ndarray, chance: np.ndarray) -> State:
    """The state after the next look.

    `wins` is [M, M, N] and `chance` [M, N], rows in the order of `state.methods`, NaN where a method was not scored.
    Texts that the rule does not give a method at this look count as not scored.
    """
    number, names = len(state.looks), state.methods
    needed = due(rule, state)
    if not needed:
        raise ValueError(f"the audit has ended ({state.ended})")
    wins, chance = within([needed.get(name, 0) for name in names], wins, chance)
    if missing := [name for name in needed if np.isnan(chance[names.index(name)]).all()]:
        raise ValueError(f"{', '.join(missing)} not scored on any text of look {number + 1}")
    at_start = [names.index(name) for name in state.alive]
    dropped, alive = _drop(rule, state, _pairs(wins, at_start), at_start)
    shown = _show(rule, state, chance, at_start)
    after = replace(
        state,
        alive=tuple(names[row] for row in alive),
        shown=(*state.shown, *(claim.method for claim in shown)),
    )
    ended = _ended(rule, after, number, wins, chance)
    return replace(
        after, looks=(*state.looks, Look(number + 1, rule.looks[number], after.alive, dropped, shown, ended))
    )


def within(texts: Sequence[int], wins: np.ndarray, chance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Net wins on the first so many texts of each method; NaN beyond."""
    held = np.arange(chance.shape[1]) < np.array(texts)[:, None]  # [M, N]
    return np.where(held[:, None] & held[None, :], wins, np.nan), np.where(held, chance, np.nan)


def _pairs(wins: np.ndarray, rows: Sequence[int]) -> Pairs:
    """The tests of this look between the methods at `rows`."""
    count, there = len(wins), ~np.isnan(wins)
    texts = there.sum(2)
    p, mean = np.ones((count, count)), np.zeros((count, count))
    asked = [(b, a) for b in rows for a in rows if b != a and texts[b, a]]
    if asked:
        b, a = np.array(asked).T
        p[b, a] = p_means_above(wins[b, a])
        mean[b, a] = np.where(there[b, a], wins[b, a], 0.0).sum(1) / texts[b, a]
    return Pairs(p, mean, texts)


def _drop(rule: Rule, state: State, pairs: Pairs, rows: Sequence[int]) -> tuple[tuple[Drop, ...], list[int]]:
    """One method after the other is dropped, the clearest case first, until no test passes; and who is left."""
    alive, dropped, names = list(rows), [], state.methods
    ahead = np.where(pairs.mean > 0, pairs.p, np.inf)  # the stake may have grown once and be lost by now
    while len(alive) > 1:
        among = ahead[np.ix_(alive, alive)]
        smallest = among.min()
        level = rule.alpha / ((len(names) - 1) * (len(alive) + len(state.kept_out)))
        if not smallest <= level:
            break
        # Of equal cases that of the larger mean, then the name decides: never the order in which methods are given.
        cases = [(alive[i], alive[j]) for i, j in np.argwhere(among == smallest)]
        b, a = min(cases, key=lambda pair: (-pairs.mean[pair], names[pair[1]], names[pair[0]]))
        mean, p = (float(table[b, a]) for table in (pairs.mean, pairs.p))
        dropped.append(Drop(names[a], names[b], int(pairs.texts[b, a]), mean, p, level))
        alive.remove(a)
    return tuple(dropped), alive


def _show(rule: Rule, state: State, chance: np.ndarray, rows: Sequence[int]) -> tuple[Shown, ...]:
    """The methods that this look shows to be better than chance; those it drops are asked too, for the last time."""
    number, names = len(state.looks), state.methods
    heard = [row for row in rows if rule.texts(number, costly=names[row] in state.costly)]
    asked = [row for row in heard if names[row] not in state.shown]
    tested = sorted((p_mean_above(chance[row], 0.0), names[row], row) for row in asked)
    shown: list[Shown] = []
    for p, name, row in tested:
        level = rule.alpha / (len(names) - len(state.shown) - len(shown))
        if p > level:
            break
        mean, texts = float(np.nanmean(chance[row])), int((~np.isnan(chance[row])).sum())
        if mean > 0:
            shown.append(Shown(name, texts, mean, p, level))
    return tuple(shown)


# -- whether to go on ---------------------------------------------------------------------------------------


def leading(state: State, wins: np.ndarray, costs: Sequence[float] | None = None) -> list[int]:
    """All methods, best first: those alive before those dropped, by the sum of their mean net wins over the alive.

    Of equals the cheaper, then the name. Methods without a text come last of those alive.
    """
    names = state.methods
    rivals = [row for row, name in enumerate(names) if name in state.alive]
    there = ~np.isnan(wins)
    means = np.where(there, wins, 0.0).sum(2) / np.maximum(there.sum(2), 1)
    total = np.round(means[:, rivals].sum(1), 9)
    scored = there.diagonal().sum(0) > 0
    price = [0.0] * len(names) if costs is None else costs
    return sorted(
        range(len(names)),
        key=lambda row: (names[row] not in state.alive, not scored[row], -total[row], price[row], names[row]),
    )


def _ended(rule: Rule, state: State, number: int, wins: np.ndarray, chance: np.ndarray) -> Ended:
    """Why the audit ends after a look, if it does; `state` is that after it, its looks those before."""
    questions = _open(rule, state, number, wins, chance)
    if not questions:
        return "settled"
    if number + 1 == len(rule.looks):
        return "last"
    futile = rule.looks[number] >= rule.futile_from and not any(could_pass(*question) for question in questions)
    return "futile" if futile else ""


def _open(
    rule: Rule, state: State, number: int, wins: np.ndarray, chance: np.ndarray
) -> list[tuple[np.ndarray, float, int]]:
    """The net wins of every question that a later look could settle, its level, and the texts that it may yet have.

    They are the first against each rival, and each method alive against chance; after the last look, all unanswered.
    """
    names, alive = state.methods, state.alive
    last = len(rule.looks) - 1

    def texts(*members: str) -> int:
        """How many a question about these will have at the last look; 0 if no later look has more than this one."""
        costly = any(name in state.costly for name in members)
        most = rule.texts(last, costly=costly)
        return most if number == last or most > rule.texts(number, costly=costly) else 0

    first = names[leading(state, wins)[0]]
    level = rule.alpha / max(1, (len(names) - 1) * (len(alive) + len(state.kept_out)))
    rivals = [
        (wins[names.index(first), names.index(name)], level, count)
        for name in alive
        if name != first and (count := texts(first, name))
    ]
    level = rule.alpha / max(1, len(names) - len(state.shown))
    unknown = [
        (chance[names.index(name)], level, count)
        for name in alive
        if name not in state.shown and (count := texts(name))
    ]
    return rivals + unknown
