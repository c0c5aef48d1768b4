"""What an audit costs before it begins, and who takes part under a budget."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tiny import tiny
from veridical.attribution import methods
from veridical.audits import plan as planning
from veridical.audits.audit import audit
from veridical.audits.options import QUICK_PASSES, AuditOptions, seconds_of
from veridical.audits.plan import Plan
from veridical.audits.selection import tried
from veridical.audits.sequential import Rule
from veridical.core.errors import InputError
from veridical.core.records import Dataset, Example
from veridical.explanations.explain import explained
from veridical.explanations.passes import passes_of
from veridical.metric import metrics
from veridical.model.ask import ask, predict
from veridical.model.classifier import Classifier

COSTS = {"cheap": 1.0, "middling": 3.0, "occlusion": 50.0, "dear": 300.0}


def options(**given):
    return AuditOptions("model", "data", out="out", **given)


def the_plan(budget=None, rule=None, scoring=10.0) -> Plan:
    return planning.plan(rule or Rule(), COSTS, scoring, budget)


@pytest.mark.parametrize(
    ("given", "texts", "looks"),
    [
        ({}, 500, (24, 48, 96)),
        ({}, 60, (24, 48, 60)),
        ({}, 24, (24,)),
        ({}, 7, (7,)),
        ({"limit": 40}, 500, (24, 40)),
        ({"limit": 200}, 500, (24, 48, 96, 200)),
        ({"thorough": True}, 500, (24, 48, 96, 192)),
        ({"thorough": True}, 100, (24, 48, 96, 100)),
        ({"fixed": 200}, 500, (200,)),
        ({"fixed": 200}, 50, (50,)),
    ],
)
def test_looks_are_never_at_more_texts_than_there_are(given, texts, looks):
    rule = planning.rule_of(options(**given), texts)
    assert rule.looks == looks


@pytest.mark.parametrize("texts", [7, 24, 30, 48, 60, 96, 500])
def test_a_rule_within_its_texts_is_that_of_an_audit_of_as_many(texts):
    assert planning.rule_of(options(), texts) == Rule().within(texts)
    assert planning.rule_of(options(thorough=True), texts) == Rule.thorough().within(texts)


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("10m", 600), (" 1.5 h", 5400), ("45", 45)])
def test_times(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "ten", "0m", "-5s", "10 d", "1e3"])
def test_no_times(text):
    with pytest.raises(InputError, match="90s, 10m, 2h"):
        seconds_of(text)


@pytest.mark.parametrize(
    "given",
    [
        {"quick": True, "time": "10m"},
        {"passes": 5, "time": "10m"},
        {"fixed": 5, "thorough": True},
        {"quick": True, "thorough": True},
        {"thorough": True, "limit": 96},
        {"fixed": 5, "passes": 100},
        {"fixed": 5, "limit": 3},
        {"time": "soon"},
    ],
)
def test_designs_that_exclude_each_other_are_refused(given):
    with pytest.raises(InputError):
        options(**given)


def test_a_quick_audit_is_a_budget():
    assert planning.budget_of(options(quick=True)) == QUICK_PASSES
    assert planning.budget_of(options(passes=7)) == 7
    assert planning.budget_of(options()) is None


def test_costly_methods_enter_after_the_first_look_on_few_texts():
    plan = the_plan()
    assert plan.methods == ("cheap", "middling", "occlusion", "dear")
    assert plan.costly == {"dear"}
    every = 1 + 3 * 10.0  # the text itself, and three random orders to score
    assert plan.through(0) == pytest.approx(24 * (every + 11 + 13 + 60))
    assert plan.through(2) == pytest.approx(96 * (every + 11 + 13 + 60) + 48 * 310)
    assert the_plan(rule=Rule.fixed(30)).costly == frozenset()  # there is nothing to enter after


def test_a_budget_takes_the_cheapest():
    plan = the_plan(budget=2000)
    assert plan.methods == ("cheap", "middling")
    assert plan.left_out == ("occlusion", "dear")
    assert plan.through(0) <= 2000
    assert the_plan(budget=10**6).left_out == ()
    with pytest.raises(InputError, match=r"100 passes is too small: cheap and middling on 24 texts take 1,320"):
        the_plan(budget=100)


def test_the_forecast_says_what_it_costs_and_what_is_not_reached():
    said = planning.forecast([the_plan(budget=2000)], 0.5, 130)
    assert said.startswith("2 methods, looked at after 24, 48 and 96 texts: 1,320 to 2,000 passes of 130 tokens")
    assert "2,000 passes: enough for 24 texts of every method, and for more" in said
    assert said.endswith("It does not reach occlusion, dear.")
    everything = planning.forecast([the_plan(budget=100_000)], 0.5, 130)
    assert everything.endswith("The budget is 100,000 passes: enough for 96 texts of every method.")


def test_the_forecast_counts_what_stability_asks():
    plain = the_plan()
    whole = replace(plain, elsewhere=5.0)
    assert whole.most == pytest.approx(plain.most + 24 * 4 * 5.0)
    assert f"{whole.most:,.0f} passes" in planning.forecast([whole], 0.5, 130)
    assert replace(whole, budget=3000).most == 3000
    fixed = replace(whole, rule=Rule.fixed(200))
    assert fixed.stability(2) == whole.stability(2)  # on the first texts, not on all


def test_the_forecast_says_what_a_budget_leaves_for_other_corpora():
    home = the_plan(budget=6000)
    away = planning.scaled(home, Rule(), 1.0)
    assert home.through(0) == pytest.approx(2760)
    assert "enough for 24 texts of every method in the own domain and 24 of the other" in planning.forecast(
        [home, away], 0.5, 130
    )
    said = planning.forecast([home, away, away], 0.5, 130)
    assert "24 of every method" not in said
    assert "in the own domain and 24, none of the others, and for more if some leave early." in said


def test_the_forecast_says_when_there_are_too_few_texts():
    said = planning.forecast([the_plan(rule=Rule.fixed(7))], 0.5, 130)
    assert said.endswith("with 4 methods no difference can be significant on fewer than 11 texts.")
    assert "no verdict" not in planning.forecast([the_plan(rule=Rule.fixed(11))], 0.5, 130)


def test_pieces_are_short_and_lines_are_straight():
    clf = Classifier(*tiny("bert"))
    long = clf.encode([Example("a", " ".join(["good film"] * 30))])[0]
    short = planning.pieces(clf, long)
    assert [sum(piece.free) for piece in short] == list(planning.PIECES)
    assert planning.pieces(clf, short[0]) == [short[0]]
    line = planning.line([10, 20], [11.0, 21.0])
    assert (line(10), line(20), line(100)) == (11, 21, 101)
    assert planning.line([10], [3.0])(50) == 3.0


WORDS = "the film was not good and bad plot acting really very boring unbelievable book story end but this".split()
SPECS = ["sufficiency", "comprehensiveness", "decision_flip"]


def long_text(clf, words):
    draw = np.random.default_rng(0)
    return clf.encode([Example("a", " ".join(draw.choice(WORDS, 12 * words)))])[0]


@pytest.mark.parametrize("words", [1, 4])
def test_scoring_is_bounded_from_above(words):
    """What metrics ask of any explanation is no more than was planned, and not much less of one that never flips."""
    clf = Classifier(*tiny("bert"))
    text = long_text(clf, words)
    planned = planning.scoring_passes(clf, text, SPECS, ("orders",))
    full = predict(clf, [text])
    for seed in range(5):
        scores = np.random.default_rng(seed).random(len(text.ids)).astype(np.float32)
        plain = explained(clf, text, int(full.logits[0].argmax()), full.logits[0], full.probabilities[0])
        before = clf.asked
        ask(clf, [metrics[name].run(replace(plain, scores=scores)) for name in SPECS])
        assert 0 < (clf.asked - before) / len(text.ids) <= planned + 1e-9
    assert planned < 20  # at any length: curves of five points and twenty steps of erasure
    twice = planning.scoring_passes(clf, text, SPECS, ("permutation", "gaussian"))
    assert twice == pytest.approx(3 * planned)
    soft = planning.scoring_passes(clf, text, ["soft_sufficiency"], ("orders",))
    assert soft == pytest.approx(2 * 10 + 2, abs=2.1)  # ten draws, and ten of its shuffled self


@pytest.mark.parametrize("seed", range(3))
def test_searches_that_follow_the_answers_are_counted_as_they_spread(seed):
    """Answers that are all alike would keep a beam together, and its cost half of what it is."""
    clf = Classifier(*tiny("bert", num_labels=2, seed=seed))
    text = long_text(clf, 1)
    costs, _ = tried(clf, text, "best:by=mask")
    assert passes_of(clf, text, methods.choose("best:by=mask"))[1] <= 1.05 * costs["best:by=mask"]
    full = predict(clf, [text])
    plain = explained(clf, text, int(full.logits[0].argmax()), full.logits[0], full.probabilities[0])
    before = clf.asked
    ask(clf, [metrics["naopc"].run(replace(plain, scores=np.arange(len(text.ids), dtype=np.float32)))])
    planned = planning.scoring_passes(clf, text, ["naopc"], ("orders",))
    assert (clf.asked - before) / len(text.ids) <= 1.05 * planned


@pytest.mark.parametrize("spec", ["lime:samples=40", "kernel_shap:samples=40", "occlusion", "smoothgrad:samples=8"])
def test_methods_are_bounded_from_above(spec):
    clf = Classifier(*tiny("bert", max_position_embeddings=128))
    text = long_text(clf, 4)
    costs, left_out = tried(clf, text, spec)
    assert not left_out
    (planned,) = costs.values()
    counted = passes_of(clf, text, methods.choose(spec))[1]
    assert 0.2 * planned < counted <= planned * 1.01 + 0.1


def test_all_costly_methods_begin_where_there_is_nobody_else():
    plan = planning.plan(Rule(), {"dear": 300.0, "dearer": 400.0}, 10.0, None)
    assert plan.costly == frozenset()


def test_another_corpus_has_longer_texts():
    other = planning.scaled(the_plan(), Rule.fixed(10), 2.0)
    assert other.costs["middling"] == 12.0  # each pass is twice as long, and there may be twice as many
    assert other.scoring == 20.0
    assert planning.scaled(the_plan(), Rule.fixed(10), 0.5).costs["middling"] == 1.5


@pytest.mark.filterwarnings("ignore:The data's labels")  # the tiny model has three classes
@pytest.mark.parametrize("metrics", [SPECS, ["sufficiency"]])
@pytest.mark.parametrize("lengths", [(20,), (4, 4, 4, 4, 4, 44)])
def test_an_audit_asks_no_more_than_was_planned(tmp_path, metrics, lengths):
    """However the texts' lengths differ, and whatever votes: what its looks ask, and what is asked after them."""
    clf, draw = Classifier(*tiny("bert")), np.random.default_rng(0)
    texts = [
        Example(f"t{k}", " ".join(draw.choice(WORDS, lengths[k // 2 % len(lengths)])), label=k % 2) for k in range(24)
    ]
    data = Dataset("d", ("negative", "positive"), {"test": tuple(texts)})
    tokens = np.mean([len(text.ids) for text in clf.encode(texts)])
    found = audit(clf, data, out=tmp_path / "a", methods="occlusion,input_x_gradient", metrics=metrics, progress=False)
    # Trying the methods beforehand asks about two short texts, and accuracy takes a pass of each text more.
    assert clf.asked / tokens <= found.summary.spending[0].spent + len(texts) + 20
