"""An audit from look to look: who is asked what, who leaves, and when it ends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from audit_facts import a_corpus, a_course, a_metric

from veridical.audits import plan as planning
from veridical.audits.corpora import Corpus
from veridical.audits.judge import judge
from veridical.audits.looks import PART, follow, numbered, sheet_of, wins_of
from veridical.audits.plan import ORDERS
from veridical.audits.sequential import Rule
from veridical.core.records import Cell, Example, Score
from veridical.core.seed import generator

METRICS = [a_metric("up"), a_metric("also up")]
RULE = Rule(looks=(24, 48))


def cells_of(strengths, texts=48, name="looks"):
    draw = generator("looks", name)
    methods = {**strengths, **dict.fromkeys(ORDERS, 0.0)}
    return [
        Cell("home", f"t{text}", method, metric.name, Score(strength + draw.normal()))
        for text in range(texts)
        for method, strength in methods.items()
        for metric in METRICS
    ]


def asked_of(course, method):
    return sum(
        len({cell.example for cell in cells}) for (_, name), cells in course.asked.cells.items() if name == method
    )


def test_who_is_behind_is_asked_no_more():
    course = a_course("home", cells_of({"good": 3.0, "as good": 3.0, "poor": -3.0}), METRICS, rule=RULE)
    assert [look.texts for look in course.looks] == [24, 48]
    assert [drop.method for drop in course.looks[0].dropped] == ["poor"]
    assert (asked_of(course, "poor"), asked_of(course, "good"), asked_of(course, ORDERS[2])) == (24, 48, 48)
    assert course.looks[0].passes < course.looks[1].passes
    per_text = 1 + 3 * 1.0
    assert course.looks[0].passes == pytest.approx(24 * (per_text + 3 * 2))
    assert course.planned == pytest.approx(48 * per_text + (24 + 48 + 48) * 2)


def test_what_a_budget_does_not_reach_is_said():
    said = []
    course = a_course("home", cells_of({"good": 3.0, "as good": 3.0}), METRICS, rule=RULE, budget=300, say=said.append)
    assert course.ended == "budget"
    assert said[-2:] == [
        "home, 24 texts: nobody is shown to be behind; 2 go on.",
        "home: the budget does not reach a look at 48 texts.",
    ]


def test_an_end_that_leaves_a_costly_method_open_is_explained():
    cells = cells_of({"good": 3.0, "poor": -3.0, "dear": 3.0}, texts=96)
    rule = Rule(looks=(24, 48, 96))
    costs = {"good": 1.0, "poor": 1.0, "dear": 100.0}
    said = []
    course = a_course("home", cells, METRICS, rule=rule, costs=costs, say=said.append)
    assert (course.ended, course.texts) == ("settled", 48)
    assert said[-1].endswith("no later look could tell more.")
    sheet = sheet_of(course, [metric.name for metric in METRICS])
    judged = judge(sheet, {metric.name: metric for metric in METRICS}, course, a_corpus("home"), 0)
    assert set(judged.verdict.believe) | set(judged.verdict.open) == {"good", "dear"}
    assert "No later look could tell more: costly methods are compared on 48 texts at most." in judged.verdict.notes


def test_it_ends_as_soon_as_nothing_is_open():
    course = a_course("home", cells_of({"good": 5.0, "poor": -5.0}), METRICS, rule=RULE)
    assert [look.ended for look in course.looks] == ["settled"]
    assert course.texts == 24


def test_costly_methods_enter_after_the_first_look():
    costs = {"good": 1.0, "poor": 1.0, "dear": 100.0}
    cells = cells_of({"good": 3.0, "poor": -3.0, "dear": 3.0})
    rule = replace(RULE, costly_texts=32)
    course = a_course("home", cells, METRICS, rule=rule, costs=costs)
    assert course.looks[0].texts == 24
    assert asked_of(course, "dear") == 32
    tight = 1 + int(course.looks[0].passes + 24 * (1 + 3) + 24 * 2)  # the texts and orders, and `good`
    without = a_course("home", cells, METRICS, rule=rule, costs=costs, budget=tight)
    assert without.without == without.state.kept_out == ("dear",)
    assert asked_of(without, "dear") == 0
    assert [look.texts for look in without.looks] == [24, 48]


def test_a_first_that_entered_late_is_not_said_to_beat_those_gone_before():
    costs = {"good": 1.0, "poor": 1.0, "dear": 100.0}
    facts = {metric.name: metric for metric in METRICS}
    notes = {}
    for strength in (6.0, -3.0):
        cells = cells_of({"good": 3.0, "poor": -3.0, "dear": strength})
        course = a_course("home", cells, METRICS, rule=RULE, costs=costs)
        said = judge(sheet_of(course, list(facts)), facts, course, a_corpus("home", texts=48), 0).verdict
        notes[said.believe] = [note for note in said.notes if "entered" in note]
    assert notes == {
        ("dear",): ["Shown to be worse than others before dear entered, and not tested with it: poor."],
        ("good",): [],
    }


def test_a_budget_ends_it_and_is_kept():
    cells = cells_of({"good": 1.0, "as good": 1.0})
    whole = a_course("home", cells, METRICS, rule=RULE)
    assert [look.texts for look in whole.looks] == [24, 48]
    short = a_course("home", cells, METRICS, rule=RULE, budget=int(whole.planned) - 1)
    assert [look.texts for look in short.looks] == [24]
    assert short.ended == "budget"
    assert short.planned <= int(whole.planned) - 1
    same = a_course("home", cells, METRICS, rule=RULE, budget=int(whole.planned) + 1)
    assert same.looks == whole.looks


def test_methods_that_never_entered_are_named_and_what_more_would_take():
    costs = {"good": 1.0, "as good": 1.0, "dear": 100.0}
    cells = cells_of({"good": 1.0, "as good": 1.0, "dear": 1.0})
    first = a_course("home", cells, METRICS, rule=RULE, costs=costs).looks[0].passes
    short = a_course("home", cells, METRICS, rule=RULE, costs=costs, budget=int(first) + 1)
    assert (short.ended, short.without) == ("budget", ("dear",))
    texts, passes = short.further
    assert texts == 48
    assert passes == pytest.approx(first + 24 * (1 + 3) + 24 * 2 * 2)


def test_without_a_vote_nobody_leaves():
    mute = [replace(metric, votes=False) for metric in METRICS]
    course = a_course("home", cells_of({"good": 3.0, "poor": -3.0}, texts=24), mute)
    assert not course.looks[0].dropped
    assert asked_of(course, "poor") == 24


def test_a_metric_of_shapes_is_held_against_the_methods_own_scores_shuffled():
    """By a metric that reads more than the order, chance is the same scores in other places."""
    draw = generator("shapes")
    cells = []
    for text in range(24):
        for method in ("good", *ORDERS):
            value = 2.0 if method == "good" else 0.0  # as high as its shuffled self: it is the shape that is rated
            cells.append(Cell("home", f"t{text}", method, "up", Score(value + 0.1 * draw.normal())))
            cells.append(Cell("home", f"t{text}", method, "up", Score(value + 0.1 * draw.normal()), "permutation"))
    shaped, ordered = a_metric("up"), a_metric("up", order=True)
    units = {f"t{text}": f"t{text}" for text in range(24)}
    by_shape = a_course("home", cells, [shaped])
    _, chance = wins_of(sheet_of(by_shape, ["up"]), ("good",), {"up": shaped}, units)
    assert abs(chance.mean()) < 0.5
    _, chance = wins_of(sheet_of(by_shape, ["up"]), ("good",), {"up": ordered}, units)
    assert chance.mean() == 1.0


def test_texts_of_one_document_are_one_unit():
    course = a_course("home", cells_of({"good": 1.0, "fair": 0.5}, texts=24), METRICS)
    sheet = sheet_of(course, ["up", "also up"])
    facts = {metric.name: metric for metric in METRICS}
    alone, _ = wins_of(sheet, ("good", "fair"), facts, {text: text for text in sheet.examples})
    pairs = {text: f"document {k // 2}" for k, text in enumerate(sheet.examples)}
    wins, chance = wins_of(sheet, ("good", "fair"), facts, pairs)
    assert wins.shape == (2, 2, 12)
    assert chance.shape == (2, 12)
    np.testing.assert_allclose(wins[0, 1], alone[0, 1].reshape(12, 2).mean(1))
    assert numbered(["b", "a", "b"]).tolist() == [0, 1, 0]


def test_an_audit_that_had_no_time_before_has_none_when_it_is_repeated():
    """And units are what the data says: a document, or else a text."""
    examples = (
        Example("1", "one text", document="d"),
        Example("2", "another", document="d"),
        Example("3", "the same", context="a question"),
        Example("4", "the same", context="another question"),
    )

    def never(parts):
        raise AssertionError("nothing is asked")

    plan = planning.plan(Rule.fixed(4), {"a": 1.0, "b": 1.0}, 1.0, None)
    course = follow(Corpus("home", "in", examples, 0), plan, {}, never, most=0)
    assert (course.ended, course.looks) == ("time", ())
    assert course.units == {"1": "d", "2": "d", "3": "the same", "4": "the same"}


def test_parts_divide_the_looks():
    assert all(look % PART == 0 for look in (24, 48, 96, 192))
