"""What the page says of a verdict: the lists, what they rest on, the standings, stability and cost. Layout, nothing
computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from markupsafe import Markup

from veridical.audits.caveats import beats_majority
from veridical.audits.finished import LISTS, list_words
from veridical.audits.known_error import KNOWN
from veridical.audits.page_parts import (
    DomainRow,
    Ground,
    ListView,
    PlacesRow,
    RankRow,
    RankTable,
    SpendingView,
    StabilityTable,
    Tag,
)
from veridical.audits.page_view import View, here
from veridical.audits.record import CorpusFacts, Spending, StabilityRow, Standing, Verdict
from veridical.page import plots
from veridical.page.plots import Mark, Point, Scale
from veridical.page.words import net, net_interval

NET = Scale(-1, 1, 3, 97, (-1, -0.5, 0, 0.5, 1))  # of a row that shows net wins
SIGNS = {"believe": "✓", "as_good": "≈", "open": "?", "behind": "↓", "chance": "✗"}
TAGS = {name: Tag(name.replace("_", "-"), SIGNS[name], words) for name, words in LISTS.items()}
ASKED = {  # what a setting changes
    "delete": "tokens deleted",
    "mask": "tokens masked",
    "attention": "tokens not attended to",
    "words": "whole words deleted",
}
NO_LIST = Tag("none", "", "no list")


def odds(margin: float) -> str:
    """A margin as odds: 0.2 is 60:40."""
    won = 50 * (1 + margin)
    return f"{won:.3g}:{100 - won:.3g}"


def net_said(value: float | None, low: float | None, high: float | None) -> str:
    """Net wins with their interval, for those who hear the page."""
    return net(value) if low is None or high is None else f"{net(value)}, 95% interval {net_interval(low, high)}"


# -- the first screen -----------------------------------------------------------------------------------------


def lists(view: View, verdict: Verdict | None) -> tuple[ListView, ...]:
    """The lists that have members."""
    if verdict is None:
        return ()
    settings = view.summary.settings
    first = "it" if verdict.believe else "each other"
    titles = {
        "believe": "Believe",
        "as_good": f"As good (within {odds(settings.margin)})",
        "open": f"Open: not told from {first}",
        "behind": "Worse" if settings.looks else "Worse: do not use",  # before 0.3 that was one list
        "chance": "Do not use: no better than chance",
    }
    return tuple(
        ListView(Tag(TAGS[name].kind, TAGS[name].sign, title), methods)
        for name, title in titles.items()
        if (methods := getattr(verdict, name))
    )


def grounds(view: View, facts: CorpusFacts) -> tuple[Ground, ...]:
    """What the verdict rests on, at a glance."""
    verdict = view.verdicts.get(facts.name)
    parts = (
        _model(facts),
        verdict and _rests(view, facts, verdict),
        _known_error(view, verdict) if verdict and verdict.believe and view.summary.settings.looks else None,
        _stable(view, facts.name),
        _spent(view, facts.name),
    )
    return tuple(part for part in parts if part)


def _rests(view: View, facts: CorpusFacts, verdict: Verdict) -> Ground:
    settings, panel = view.summary.settings, verdict.panel
    methods = len(here(view.summary.ranking, facts.name)) or len(view.shown)
    counts = (_count(verdict.texts, "text"), _count(methods, "method"), _count(len(panel), "metric"))
    sentences = [f"Votes: {', '.join(panel)}."] if panel else ["No metric has a vote."]
    if settings.looks:
        sentences.append(
            f"Each list names a method wrongly in at most {100 * settings.alpha:.3g}% of audits; as good means within "
            f"{odds(settings.margin)}."
        )
    if facts.documents is not None:
        sentences.append(f"The texts come from {_count(facts.documents, 'document')}; those of one count as one.")
    return Ground("What was measured", ", ".join(counts), tuple(sentences))


def _stable(view: View, corpus: str) -> Ground | None:
    """How the first fares under other settings and by fewer metrics."""
    standings = sorted(here(view.summary.ranking, corpus), key=lambda standing: standing.place)
    first = standings[0].method if standings else ""
    rows = [row for row in here(view.summary.stability, corpus) if row.method == first]
    settings, subsets = ([row for row in rows if row.kind == kind] for kind in ("setting", "subset"))
    if not rows:
        return None
    of = rows[0].of
    sentences, lead = [], ""
    if subsets:
        ahead = sum(row.place == 1 for row in subsets)
        lead = f"first by {ahead} of {_count(len(subsets), 'subset')}"
        sentences.append(f"{first} comes first by {ahead} of {_count(len(subsets), 'subset')} of the metrics.")
    if settings:
        among = sum(row.place <= 2 for row in settings)
        lead = f"first two in {among} of {_count(len(settings), 'setting')}"
        ways = ", ".join(ASKED.get(row.name, row.name) for row in settings)
        sentences.insert(
            0,
            f"{first} is among the first two of {of} contenders in {among} of {_count(len(settings), 'setting')} "
            f"({ways}; {_count(settings[0].texts, 'text')}).",
        )
    elif view.summary.settings.budget:
        sentences.append("Other ways to erase were not tried, for want of budget.")
    return Ground("Stability", lead, tuple(sentences))


def _known_error(view: View, verdict: Verdict) -> Ground:
    """How often such a verdict is wrong, as far as anybody knows."""
    if not KNOWN.of(verdict.panel, view.summary.settings):
        sentence = "How often a verdict by such metrics and settings is wrong, nobody has measured."
        return Ground("How sure: known error", "not measured", (sentence,))
    sentences = (
        f"Such a verdict was {KNOWN.share}, {KNOWN.where}.",
        f"Of {KNOWN.good} truly good methods {KNOWN.banned} were told not to be used.",
    )
    return Ground("How sure: known error", f"wrong in {KNOWN.wrong} of {KNOWN.worlds} worlds", sentences)


def _model(facts: CorpusFacts) -> Ground:
    """How well the model predicts, and on how many texts nothing that is erased makes a difference."""
    sentences = []
    if facts.accuracy is None:
        lead = "accuracy not known"
        sentences.append("Not every text has a label.")
    else:
        lead = f"right on {facts.accuracy:.0%}"
        if facts.accuracy_low is not None and facts.accuracy_high is not None:
            bounds = f"{facts.accuracy_low:.0%} to {facts.accuracy_high:.0%}"
            sentences.append(f"95% interval {bounds}, on {_count(facts.texts, 'text')}.")
        if facts.majority is not None:
            known = {True: ": the model knows more", False: ": not shown to know more", None: ""}[beats_majority(facts)]
            sentences.append(f"Always saying the most frequent class is right on {facts.majority:.0%}{known}.")
    if facts.unmoved:
        sentences.append(f"On {_count(facts.unmoved, 'text')} no erasure tells two methods apart.")
    elif facts.unmoved == 0:
        sentences.append("On every text some erasure tells methods apart.")
    return Ground("Is the model any good here", lead, tuple(sentences))


def _spent(view: View, corpus: str) -> Ground | None:
    spending = _spending_of(view, corpus)
    if spending is None:
        return None
    sentences = [f"At most {spending.planned:,.0f} were planned, if no method is let go early."]
    if spending.budget is not None:
        sentences.append(f"The budget was {spending.budget:,}.")
    asked = spending.spent - spending.stability
    saved = spending.fixed and round(spending.fixed) > round(asked)
    fixed = f", where letting nobody go takes {spending.fixed:,.0f}" if saved else ""
    sentences.append(f"The looks took {asked:,.0f}{fixed}.")
    if spending.stability:
        sentences.append(f"Stability took {spending.stability:,.0f}.")
    return Ground("Cost", f"{spending.spent:,.0f} passes at most", tuple(sentences))


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


# -- standings ------------------------------------------------------------------------------------------------


def tag_of(standing: Standing) -> Tag:
    if standing.list is None:
        return NO_LIST
    return replace(TAGS[standing.list], words=list_words(standing))


def ranking(view: View, corpus: str) -> RankTable:
    """Every method's place and list, and its net wins over chance as a dot with its interval."""
    standings = [s for m in view.order(corpus) if (s := view.rankings.get((corpus, view.specs[m])))]
    rows: list[RankRow] = []
    for k, standing in enumerate(standings):
        new_list = k > 0 and standings[k - 1].list != standing.list
        rows.append(RankRow(view.index[standing.method], standing, tag_of(standing), new_list, _net_plot([standing])))
    return RankTable(tuple(rows), net_axis(), any(row.plot for row in rows))


def net_axis() -> Markup:
    return plots.axis(NET, ("−1", "", "0 chance", "", "1"))


def _net_plot(standings: Sequence[Standing | None]) -> Markup | None:
    """Net wins over chance on one or several corpora; None where they were not counted."""
    marks = [
        Mark(s.net_chance, s.net_chance_low, s.net_chance_high, shape=k) if s else Mark(None)
        for k, s in enumerate(standings)
    ]
    if all(mark.value is None for mark in marks):
        return None
    words = "; ".join(
        f"{s.corpus + ' ' if len(marks) > 1 else ''}{net_said(s.net_chance, s.net_chance_low, s.net_chance_high)}"
        for s in standings
        if s
    )
    return plots.row(marks, NET, f"net wins over chance: {words}")


def domains(view: View) -> list[DomainRow]:
    """Net wins over chance of every method on every corpus, a mark for each."""
    rows = []
    for m in view.ranked():
        standings = tuple(view.rankings.get((corpus.name, view.specs[m])) for corpus in view.corpora)
        rows.append(DomainRow(m, standings, _net_plot(standings) or Markup("")))
    return rows


# -- stability and cost ---------------------------------------------------------------------------------------


def stability(view: View, corpus: str) -> StabilityTable | None:
    """The contenders' places under every setting, and by every subset of the metrics."""
    rows = here(view.summary.stability, corpus)
    names = list(dict.fromkeys(row.method for row in rows))
    if not rows:
        return None

    def of_kind(kind: str) -> tuple[PlacesRow, ...]:
        return _places([row for row in rows if row.kind == kind], names)

    return StabilityTable(tuple(view.index[name] for name in names), of_kind("setting"), of_kind("subset"))


def _places(rows: Sequence[StabilityRow], methods: Sequence[str]) -> tuple[PlacesRow, ...]:
    table: list[PlacesRow] = []
    for name in dict.fromkeys(row.name for row in rows):
        same = {row.method: row for row in rows if row.name == name}
        places = tuple(same[method].place if method in same else None for method in methods)
        table.append(PlacesRow(ASKED.get(name, name), places, max(row.texts for row in same.values())))
    return tuple(table)


def _spending_of(view: View, corpus: str) -> Spending | None:
    return next(iter(here(view.summary.spending, corpus)), None)


def spending(view: View, corpus: str) -> SpendingView | None:
    """What was spent, also as a share of what was planned."""
    of_corpus = _spending_of(view, corpus)
    if of_corpus is None:
        return None
    return SpendingView(of_corpus, min(1.0, of_corpus.spent / of_corpus.planned) if of_corpus.planned else 0.0)


def cost(view: View) -> Markup | None:
    """Passes a text against net wins over chance, in the own domain."""
    points, below = [], False
    for m in view.ranked():
        standing = view.rankings.get((view.home, view.specs[m]))
        if standing is None or standing.passes is None or standing.net_chance is None:
            continue
        worth = (standing.net_chance, standing.net_chance_low, standing.net_chance_high)
        words = f"{standing.method}: {standing.passes:.3g} passes a text, net wins over chance {net_said(*worth)}"
        points.append(Point(m, view.names[m], max(standing.passes, 1.0), *worth, words))  # an axis of logs has no zero
        below = below or standing.passes < 1
    if len(points) < 2:
        return None
    ticks = plots.logarithmic([point.x for point in points], 0, 1).ticks
    return plots.scatter(
        points,
        "passes a text, logarithmic →",
        "↑ better: net wins over chance",
        {value: f"{'≤ ' if below and value == 1 else ''}{value:,.0f}" for value in ticks},
        _net_ticks(points),
        "Passes a text against net wins over chance; the numbers are in the table beside",
    )


def _net_ticks(points: Sequence[Point]) -> dict[float, str]:
    """From chance to winning always, or down to losing always where some method or its interval is below chance."""
    if all(point.y >= 0 and (point.low is None or point.low >= 0) for point in points):
        return {1: "1", 0.75: "0.75", 0.5: "0.5", 0.25: "0.25", 0: "0"}
    return {1: "1", 0.5: "0.5", 0: "0", -0.5: "−0.5", -1: "−1"}
