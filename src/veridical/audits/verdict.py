"""Which explanation to believe: what an audit's looks may claim, in one plain sentence.

Five lists, each method on one. *Believe*: the first, if it was shown to be better than chance and something was shown
to be behind. *As good*: shown to be within the margin of the first. *Open*: not told from it. *Behind*: shown to be
worse than another method. *Chance*: shown to be no better than chance, and only these are not to be used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from veridical.audits.conclusion import Conclusion
from veridical.audits.corpora import guessing
from veridical.audits.looks import Course
from veridical.audits.plan import fewest_texts
from veridical.audits.record import CorpusFacts, Standing, Verdict

ENDINGS = {
    # What is open then is open against a costly method: of two others a later look could always tell more.
    "settled": "No later look could tell more: costly methods are compared on {cap} texts at most.",
    "futile": "More of these texts would hardly settle what is open.",
    "last": "The texts that were asked for are used up.",
    "budget": "The budget does not reach the next look.",
    "time": "The time is used up.",
}


def verdict(course: Course, conclusion: Conclusion | None, facts: CorpusFacts, panel: Sequence[str]) -> Verdict:
    """What may be claimed, as lists and as a sentence."""
    reason = _refusal(course, facts, panel)
    if reason or conclusion is None:
        return _verdict(course, panel, f"No verdict: {reason}")
    lists = {name: tuple(getattr(conclusion, name)) for name in ("believe", "as_good", "open", "behind", "chance")}
    sentence = _believed(course, conclusion) if conclusion.believe else _nobody(course, conclusion)
    return _verdict(course, panel, sentence, lists, _notes(course, conclusion))


def _verdict(
    course: Course,
    panel: Sequence[str],
    sentence: str,
    lists: Mapping[str, tuple[str, ...]] | None = None,
    notes: Sequence[str] = (),
) -> Verdict:
    lists = lists or dict.fromkeys(("believe", "as_good", "open", "behind", "chance"), ())
    enough = bool(lists["believe"])
    return Verdict(
        course.corpus,
        **lists,
        texts=course.texts,
        enough=enough,
        sentence=sentence,
        notes=tuple(notes),
        panel=tuple(panel),
    )


def _refusal(course: Course, facts: CorpusFacts, panel: Sequence[str]) -> str:
    """Why nothing at all is said; nothing if something can be."""
    if not panel:
        return "no metric with a vote was asked for; sufficiency, comprehensiveness and decision_flip have one."
    if not course.looks:
        return f"the audit ran out of {course.ended} before its first look."
    needed = fewest_texts(course.plan.rule, len(course.state.methods))
    units = facts.documents or course.texts
    if units < needed:
        what = "texts" if facts.documents is None else "documents"
        return (
            f"{units} {what} cannot carry one: with {_methods(len(course.state.methods))} no difference can be "
            f"significant on fewer than {needed}."
        )
    return guessing(facts)


def _believed(course: Course, conclusion: Conclusion) -> str:
    return f"For this model on this data believe {conclusion.believe[0]}{_others(course, conclusion)}."


def _others(course: Course, conclusion: Conclusion) -> str:
    """What is said of those that are not believed."""
    said = ""
    if conclusion.as_good:
        said += f"; {listed(conclusion.as_good)} {_are(conclusion.as_good)} as good (within {odds(course)})"
    if conclusion.open and conclusion.believe:
        said += f"; {listed(conclusion.open)} could not be told from it"
    if conclusion.behind:
        said += f"; {listed(conclusion.behind)} {_are(conclusion.behind)} worse"
    if conclusion.chance:
        said += f"; do not use {listed(conclusion.chance)}: no better than chance (within {odds(course)})"
    return said


def _nobody(course: Course, conclusion: Conclusion) -> str:
    """No method is singled out: the first is not shown better than chance, or nobody is shown to be behind."""
    better = [standing.method for standing in conclusion.standings if standing.method in course.state.shown]
    n, others = _texts(course.texts), _others(course, conclusion)
    if not better:
        return f"On these {n} no method was shown to do better than random orders: believe none of them{others}."
    shown = f"{listed(better)} {'does' if len(better) == 1 else 'do'} better than random orders"
    if conclusion.first not in course.state.shown:
        return (
            f"{n} do not single out a method: {shown}, but {conclusion.first}, which leads, was not shown to{others}."
        )
    if len(course.state.methods) == 1:
        return f"On these {n} {shown}; there is no other method to compare it with."
    return f"{n} do not single out a method: {shown}, and nothing is shown to be behind{others}."


def _notes(course: Course, conclusion: Conclusion) -> list[str]:
    """What a reader of the sentence should know."""
    notes = []
    by_name = {s.method: s for s in conclusion.standings}
    clearly = [name for name in conclusion.behind if by_name[name].clearly]
    if clearly:
        notes.append(f"Behind by more than {odds(course)}: {listed(clearly)}.")
    early = _before(course, conclusion.first)
    if conclusion.believe and early:
        notes.append(
            f"Shown to be worse than others before {conclusion.first} entered, and not tested with it: {listed(early)}."
        )
    unsettled = [name for name in conclusion.behind if name not in course.state.shown]
    if unsettled:
        notes.append(f"Worse than another, and whether better than chance is not settled: {listed(unsettled)}.")
    first, equals = conclusion.first, (*conclusion.as_good, *conclusion.open)
    costs = course.plan.costs
    cheaper = sorted((name for name in equals if costs[name] < costs[first]), key=lambda name: costs[name])
    if cheaper:
        best = cheaper[0]
        kind = "that are as good" if best in conclusion.as_good else f"that could not be told from {first}"
        notes.append(
            f"The cheapest of the methods {kind}: {best}, {_passes(costs[best])} a text where {first} takes "
            f"{costs[first]:.3g}."
        )
    unanswered = [name for name in conclusion.open if name != first or name not in course.state.shown]
    if unanswered and (why := ENDINGS.get(course.ended, "")):
        more = ""
        if course.further is not None:
            texts, passes = course.further
            more = f" {passes:,.0f} passes would take it to {texts} texts."
        notes.append(f"{why.format(cap=course.plan.rule.costly_texts)}{more}")
    if course.without:
        reason = {"budget": "budget", "time": "time"}.get(course.ended, "")
        why = f", for want of {reason}" if reason else ", since nothing was left to settle"
        notes.append(f"Not asked{why}: {listed(course.without)}.")
    return notes


def _before(course: Course, first: str) -> list[str]:
    """Methods that were let go before the first entered."""
    rule, late = course.plan.rule, first in course.state.costly
    return [
        drop.method
        for look in course.state.looks
        for drop in look.dropped
        if not rule.texts(look.number - 1, costly=late)
    ]


def odds(course: Course) -> str:
    """The margin as odds: 0.2 is 60:40."""
    won = 50 * (1 + course.plan.rule.margin)
    return f"{won:.3g}:{100 - won:.3g}"


def standings(course: Course, conclusion: Conclusion, settled: bool) -> tuple[Standing, ...]:
    """The conclusion's standings as they are stored; without a verdict they are on no list."""
    drops = {drop.method: drop for look in course.state.looks for drop in look.dropped}
    left = {drop.method: look.texts for look in course.state.looks for drop in look.dropped}
    rows = []
    for standing in conclusion.standings:
        drop, is_first = drops.get(standing.method), standing.method == conclusion.first
        rows.append(
            Standing(
                corpus=course.corpus,
                method=standing.method,
                place=standing.place,
                list=standing.list if settled else None,
                clearly=standing.clearly,
                net_first=None if is_first else standing.net_first.mean,
                net_first_low=None if is_first else standing.net_first.low,
                net_first_high=None if is_first else standing.net_first.high,
                net_chance=standing.net_chance.mean,
                net_chance_low=standing.net_chance.low,
                net_chance_high=standing.net_chance.high,
                n=course.explained(standing.method),
                passes=course.plan.costs[standing.method],
                left=left.get(standing.method),
                by=drop.by if drop else "",
                p_behind=drop.p if drop else None,
                level=drop.level if drop else None,
                better_than_chance=standing.method in course.state.shown,
                p_chance=standing.p_chance,
                p_as_good=standing.p_as_good,
                p_clearly=standing.p_clearly,
                p_no_better=standing.p_no_better,
                level_chance=standing.level_chance,
                level_pairs=conclusion.level_pairs,
                level_no_better=conclusion.level_no_better,
            )
        )
    return tuple(rows)


def listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _passes(n: float) -> str:
    return "1 pass" if f"{n:.3g}" == "1" else f"{n:.3g} passes"


def _methods(n: int) -> str:
    return "1 method" if n == 1 else f"{n} methods"


def _texts(n: int) -> str:
    return "1 text" if n == 1 else f"{n:,} texts"
