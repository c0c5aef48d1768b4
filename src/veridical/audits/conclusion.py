"""What an audit may say of each method when it ends: five lists, each method on exactly one.

| list | who is on it |
|---|---|
| believe | the first, if it was shown to be better than chance and some method was shown to be behind |
| as_good | not behind, and shown to lose to the first by less than the margin |
| open | not behind, and not shown to be as good |
| behind | shown that another method is better; *clearly* if by more than the margin |
| chance | shown to beat random orders by less than the margin at most, and not shown to beat them at all |

The first is, of those that are not behind, the one with the most net wins over these. The others follow by list, and on
a list by their net wins over the first.

Each list is right at once with probability 1 - alpha. Behind and better than chance are tested look by look
(`sequential`). The three claims about the margin are about means and rest on E-values (`wins.p_mean_above`). Their
levels are alpha over the M (M - 1) ordered pairs, or over the M methods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from veridical.audits.sequential import Rule, State, leading, within
from veridical.audits.wins import p_mean_above
from veridical.core.statistics import Estimate, estimates

List = Literal["believe", "as_good", "open", "behind", "chance"]
LISTS: tuple[List, ...] = get_args(List)  # in the order of standing


@dataclass(frozen=True)
class Standing:
    """Where a method stands. A p is None where the question was not asked."""

    method: str
    place: int  # 1 is the first
    list: List
    clearly: bool  # behind by more than the margin
    cheaper: bool  # as good as the first, and cheaper
    net_first: Estimate  # net wins over the first
    net_chance: Estimate  # net wins over random orders
    by: str  # the method that showed it to be behind; "" if none did
    p_behind: float | None
    level: float | None  # of p_behind
    p_clearly: float | None
    p_as_good: float | None
    p_chance: float | None  # that it is better than chance
    level_chance: float | None
    p_no_better: float | None  # that it is not better than chance by the margin

    @property
    def n(self) -> int:
        """Texts shared with the first."""
        return self.net_first.n

    @property
    def n_chance(self) -> int:
        return self.net_chance.n


@dataclass(frozen=True)
class Conclusion:
    """The five lists; names in order of standing."""

    first: str  # of those not behind; believed only if it is on the list
    believe: tuple[str, ...]
    as_good: tuple[str, ...]
    open: tuple[str, ...]
    behind: tuple[str, ...]
    chance: tuple[str, ...]
    level_pairs: float  # of p_as_good and p_clearly
    level_no_better: float  # of p_no_better
    standings: tuple[Standing, ...]  # in order


def conclude(
    rule: Rule,
    state: State,
    wins: np.ndarray,
    chance: np.ndarray,
    costs: Sequence[float] | np.ndarray,
    *,
    seed: int = 0,
) -> Conclusion:
    """What the looks so far allow to say. `costs` are the methods' prices for a text, as `state.methods`.

    Net wins have 95% intervals that a bootstrap draws from the seed; they describe, the tests decide.
    """
    wins, chance = within(held(rule, state), wins, chance)
    judged = judge(rule, state, wins, chance, costs)
    rows = [state.methods.index(standing.method) for standing in judged]
    nets = estimates([*(wins[row, rows[0]] for row in rows), *(chance[row] for row in rows)], seed=seed)
    standings = tuple(
        replace(standing, net_first=nets[at], net_chance=nets[len(rows) + at]) for at, standing in enumerate(judged)
    )

    def of(name: List) -> tuple[str, ...]:
        return tuple(standing.method for standing in standings if standing.list == name)

    return Conclusion(
        first=standings[0].method,
        believe=of("believe"),
        as_good=of("as_good"),
        open=of("open"),
        behind=of("behind"),
        chance=of("chance"),
        level_pairs=_level_of_pairs(rule, state),
        level_no_better=rule.alpha / len(state.methods),
        standings=standings,
    )


def judge(
    rule: Rule, state: State, wins: np.ndarray, chance: np.ndarray, costs: Sequence[float] | np.ndarray
) -> list[Standing]:
    """Where every method stands, the first first, without intervals. Net wins beyond what `held` says are NaN."""
    names = state.methods
    below = {name: p_mean_above(-chance[row], -rule.margin) for row, name in enumerate(names)}
    no_better = {name for name, p in below.items() if p <= rule.alpha / len(names) and name not in state.shown}
    # A costly method that a budget kept out was never scored: nothing is said of it.
    scored = np.any(~np.isnan(chance), axis=1)
    order = [row for row in leading(state, wins, list(costs)) if scored[row]]
    top = next((row for row in order if names[row] in state.alive and names[row] not in no_better), order[0])
    order = [top, *(row for row in order if row != top)]
    dropped = {drop.method: drop for look in state.looks for drop in look.dropped}
    shown = {claim.method: claim for look in state.looks for claim in look.shown}
    levels = _levels_of_chance(rule, state)
    level = _level_of_pairs(rule, state)
    standings: list[Standing] = []
    for row in order:
        name = names[row]
        drop = dropped.get(name)
        p_clearly = None if drop is None else p_mean_above(wins[names.index(drop.by), row], rule.margin)
        p_as_good = None if drop is not None or row == top else p_mean_above(wins[row, top], -rule.margin)
        as_good = p_as_good is not None and p_as_good <= level
        believed = row == top and name in state.shown and bool(dropped)
        on = _list(believed=believed, no_better=name in no_better, behind=drop is not None, as_good=as_good)
        asked, claim = name in levels, shown.get(name)
        standings.append(
            Standing(
                method=name,
                place=1 + len(standings),
                list=on,
                clearly=p_clearly is not None and p_clearly <= level,
                cheaper=on == "as_good" and bool(costs[row] < costs[top]),
                net_first=_plain(wins[row, top]),
                net_chance=_plain(chance[row]),
                by="" if drop is None else drop.by,
                p_behind=None if drop is None else drop.p,
                level=None if drop is None else drop.level,
                p_clearly=p_clearly,
                p_as_good=p_as_good,
                # Of a claim its own p: later texts may be less kind, and do not take it back.
                p_chance=claim.p if claim else p_mean_above(chance[row], 0.0) if asked else None,
                level_chance=claim.level if claim else levels.get(name),
                p_no_better=below[name] if asked else None,
            )
        )
    return _placed(standings, dict(zip(names, costs, strict=True)))


def _placed(standings: Sequence[Standing], costs: Mapping[str, float]) -> list[Standing]:
    """The first as it is; the others by list, on a list by their net wins over the first, then the cheaper."""

    def key(standing: Standing) -> tuple[int, float, float, str]:
        mean = standing.net_first.mean
        return LISTS.index(standing.list), np.inf if mean is None else -mean, costs[standing.method], standing.method

    order = [*standings[:1], *sorted(standings[1:], key=key)]
    return [replace(standing, place=place) for place, standing in enumerate(order, 1)]


def held(rule: Rule, state: State) -> list[int]:
    """On how many texts each method was scored by the last look, or by that at which it was dropped."""
    left_at = {drop.method: look.number - 1 for look in state.looks for drop in look.dropped}
    last = len(state.looks) - 1
    if last < 0:
        return [0] * len(state.methods)
    return [rule.texts(left_at.get(name, last), costly=name in state.costly) for name in state.methods]


def _list(*, believed: bool, no_better: bool, behind: bool, as_good: bool) -> List:
    if believed:
        return "believe"
    if no_better:
        return "chance"
    if behind:
        return "behind"
    return "as_good" if as_good else "open"


def _level_of_pairs(rule: Rule, state: State) -> float:
    count = len(state.methods)
    return rule.alpha / max(1, count * (count - 1))


def _levels_of_chance(rule: Rule, state: State) -> dict[str, float]:
    """The level at which each method was last held against chance; methods that never were are absent."""
    levels: dict[str, float] = {}
    at_start, shown = state.methods, 0
    for number, look in enumerate(state.looks):
        shown += len(look.shown)
        asked = [name for name in at_start if rule.texts(number, costly=name in state.costly)]
        levels |= dict.fromkeys(asked, rule.alpha / max(1, len(state.methods) - shown))
        at_start = look.alive
    return levels


def _plain(values: np.ndarray) -> Estimate:
    """A mean without an interval."""
    there = ~np.isnan(values)
    n = int(there.sum())
    return Estimate(float(values[there].mean()) if n else None, None, None, n, len(values) - n)
