"""The course of an audit on one corpus: ask, look, let methods go, ask the others more.

Texts are worked on in parts, in an order fixed beforehand. What a part has on file is not asked again, so an audit that
was interrupted walks through its looks once more and finds them as they were. Parts of a look are independent: with
workers they are jobs of a grid (parts.py), and a look waits for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from veridical.audits import sequential
from veridical.audits.corpora import Corpus
from veridical.audits.diagnosticity import Better
from veridical.audits.plan import ORDERS, Plan
from veridical.audits.record import Ending, LookFacts, MetricFacts
from veridical.audits.sequential import State
from veridical.audits.sheet import Sheet, gather
from veridical.audits.wins import by_unit, net_wins, over_chance
from veridical.core.records import Attribution, Cell

PART = 4  # texts of a part: few, so that several workers share even the first look

Key = tuple[int, str]  # a part and a method
Ask = Callable[[Mapping[int, Sequence[str]]], "Asked"]  # methods by part -> what they say


@dataclass(frozen=True)
class Asked:
    """Scores and explanations, by part and method."""

    cells: Mapping[Key, Sequence[Cell]]
    attributions: Mapping[Key, Sequence[Attribution]]


@dataclass(frozen=True)
class Course:
    """How an audit went on one corpus."""

    corpus: str
    plan: Plan
    state: State
    looks: tuple[LookFacts, ...]
    planned: float  # passes, of all that was asked
    asked: Asked
    units: Mapping[str, str]  # by text: texts of one document are one unit
    stopped: Ending = ""  # why there is no further look, where not the last one says so
    further: tuple[int, float] | None = None  # texts that the next look would have had, and the passes until then

    @property
    def without(self) -> tuple[str, ...]:
        """Methods that were to enter late, and never did."""
        asked = {name for _, name in self.asked.cells}
        return tuple(name for name in self.plan.methods if name in self.plan.costly and name not in asked)

    def explained(self, method: str) -> int:
        """How many texts a method explained."""
        return sum(len(rows) for (_, name), rows in self.asked.attributions.items() if name == method)

    @property
    def texts(self) -> int:
        return self.looks[-1].texts if self.looks else 0

    @property
    def ended(self) -> Ending:
        return self.stopped or (self.looks[-1].ended if self.looks else "")


def follow(
    corpus: Corpus,
    plan: Plan,
    metrics: Mapping[str, MetricFacts],
    ask: Ask,
    *,
    most: int | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Course:
    """From look to look until nothing is open, the texts are used up, or the budget is; `ask` raises OutOfTimeError
    when time is. `most` looks are taken where an earlier run of the same audit had no time for more."""
    units = {example.id: example.document or example.text for example in corpus.examples}
    state = sequential.begin(plan.methods, plan.costly)
    course = Course(corpus.name, plan, state, (), 0.0, Asked({}, {}), units)
    while not course.ended:
        if most is not None and len(course.looks) >= most:
            return _stopped(course, "time")
        course = _afforded(course)
        wanted = sequential.due(plan.rule, course.state)
        cost = _cost(course, wanted)
        if plan.budget is not None and course.planned + cost > plan.budget:
            course = replace(course, further=(max(wanted.values()), course.planned + cost))
            say(f"{corpus.name}: the budget does not reach a look at {max(wanted.values())} texts.")
            return _stopped(course, "budget")
        try:
            asked = ask(_by_part(course, wanted))
        except OutOfTimeError:
            say(f"{corpus.name}: the time was over before the look at {max(wanted.values())} texts.")
            return _stopped(course, "time")
        course = replace(course, planned=course.planned + cost, asked=_joined(course.asked, asked))
        course = _looked(course, metrics, tuple(wanted))
        say(_said(course))
    return course


class OutOfTimeError(Exception):
    """The time that an audit was given is over."""


def _afforded(course: Course) -> Course:
    """Before the second look: as many of the costly methods as the budget takes in, cheapest first."""
    plan = course.plan
    if plan.budget is None or len(course.looks) != 1:
        return course
    names = sorted(plan.costly, key=lambda name: (plan.costs[name], name))
    for count in range(len(names), 0, -1):
        tried = _keeping_out(course, names[count:])
        if course.planned + _cost(tried, sequential.due(plan.rule, tried.state)) <= plan.budget:
            return tried
    return _keeping_out(course, names)


def _keeping_out(course: Course, names: Sequence[str]) -> Course:
    """The course without some methods; levels are as if they had entered."""
    state = course.state
    alive = tuple(name for name in state.alive if name not in names)
    return replace(course, state=replace(state, alive=alive, kept_out=tuple(names)))


def _cost(course: Course, wanted: Mapping[str, int]) -> float:
    """Planned passes of what is wanted and not there."""
    plan = course.plan
    shared = plan.shared(max(wanted.values(), default=0)) - plan.shared(course.texts)
    new = {name: count - course.explained(name) for name, count in wanted.items()}
    return shared + sum(count * (plan.costs[name] + plan.scoring) for name, count in new.items())


def _by_part(course: Course, wanted: Mapping[str, int]) -> dict[int, list[str]]:
    """The methods that every part needs, the random orders last."""
    most = max(wanted.values())
    parts: dict[int, list[str]] = {}
    for number in range(math.ceil(most / PART)):
        names = [name for name, texts in wanted.items() if number * PART < texts]
        beside = (*course.plan.references, *ORDERS)
        new = [name for name in (*beside, *names) if (number, name) not in course.asked.cells]
        if new:
            parts[number] = [*names, *beside]
    return parts


def _joined(a: Asked, b: Asked) -> Asked:
    return Asked({**a.cells, **b.cells}, {**a.attributions, **b.attributions})


def _looked(course: Course, metrics: Mapping[str, MetricFacts], asked: tuple[str, ...]) -> Course:
    panel = [name for name, metric in metrics.items() if metric.votes]
    if panel:
        wins, chance = wins_of(sheet_of(course, panel), course.state.methods, metrics, course.units)
    else:  # nothing is judged, and nobody leaves
        chance = np.zeros((len(course.state.methods), course.plan.rule.looks[-1]))
        wins = np.zeros((len(chance), *chance.shape))
    state = sequential.look(course.plan.rule, course.state, wins, chance)
    last = state.looks[-1]
    facts = LookFacts(
        corpus=course.corpus,
        number=last.number,
        texts=last.texts,
        alive=last.alive,
        dropped=last.dropped,
        shown=last.shown,
        ended=last.ended,
        passes=course.planned,
        asked=asked,
    )
    return replace(course, state=state, looks=(*course.looks, facts))


def _stopped(course: Course, why: Ending) -> Course:
    """The same course, over before its time."""
    looks = course.looks
    if looks:
        looks = (*looks[:-1], replace(looks[-1], ended=why))
    return replace(course, stopped=why, looks=looks)


def sheet_of(course: Course, names: Sequence[str]) -> Sheet:
    """The scores of some metrics, of all methods, on the texts in their order."""
    cells = [cell for of_key in course.asked.cells.values() for cell in of_key if cell.metric in names]
    return gather(cells, course.corpus, names, list(course.units))


def wins_of(
    sheet: Sheet, methods: Sequence[str], metrics: Mapping[str, MetricFacts], units: Mapping[str, str]
) -> tuple[np.ndarray, np.ndarray]:
    """Net wins by the metrics of a sheet, all of equal weight: of every two of the methods, and over chance, which is
    NaN where no random orders were scored."""
    values, there = _rows(sheet, "", methods)
    better: list[Better] = [metrics[name].better for name in sheet.metrics]
    weights = np.ones(len(sheet.metrics))
    numbers = numbered([units[example] for example in sheet.examples])
    wins = net_wins(values, there, better, weights)
    orders, scored = _rows(sheet, "", ORDERS)
    if not scored.any():
        return by_unit(wins, numbers), by_unit(np.full(there.shape, np.nan), numbers)
    shaped = [name for name in sheet.metrics if not metrics[name].order]
    shuffled = None
    if shaped and "permutation" in sheet.controls:
        shuffled, _ = _rows(sheet, "permutation", methods)
        shuffled[:, [name not in shaped for name in sheet.metrics]] = np.nan
    chance = over_chance(values, there, orders, shuffled, better, weights)
    return by_unit(wins, numbers), by_unit(chance, numbers)


def _rows(sheet: Sheet, control: str, methods: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The scores of some methods [M, K, N], and on which texts they were scored at all [M, N]."""
    row = {name: m for m, name in enumerate(sheet.methods)}
    values = np.full((len(methods), len(sheet.metrics), len(sheet.examples)), np.nan)
    there = np.zeros((len(methods), len(sheet.examples)), dtype=bool)
    for m, name in enumerate(methods):
        if name in row:
            values[m] = sheet.values[control][row[name]]
            there[m] = sheet.scored[control][row[name]].any(0)
    return values, there


def numbered(names: Sequence[str]) -> np.ndarray:
    """The number of each name, in order of first appearance."""
    numbers = {name: k for k, name in enumerate(dict.fromkeys(names))}
    return np.array([numbers[name] for name in names], dtype=int)


def _said(course: Course) -> str:
    """One look in a line."""
    look = course.looks[-1]
    left = [drop.method for drop in look.dropped]
    gone = f"{', '.join(left)} {'is' if len(left) == 1 else 'are'} behind" if left else "nobody is shown to be behind"
    on = len(course.state.alive)
    then = {
        "": f"{on} {'goes' if on == 1 else 'go'} on",
        "settled": "no later look could tell more",
        "last": "no more texts",
        "futile": "more texts would not settle it",
    }
    return f"{course.corpus}, {look.texts} texts: {gone}; {then.get(look.ended, look.ended)}."
