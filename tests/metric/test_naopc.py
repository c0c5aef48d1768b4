"""NAOPC against worked cases, and its limits: one search for all methods, widened by whoever passes them."""

from __future__ import annotations

import numpy as np
import pytest

from goldens import MEASURABLE
from tabled import run, tabled
from tiny import tiny
from veridical.core.records import Example
from veridical.core.seed import generator
from veridical.explanations.explain import explained
from veridical.metric.naopc import naopc, naopc_sufficiency
from veridical.model import best_order as searching
from veridical.model.ask import ask, predict
from veridical.model.classifier import Classifier

CASES = ["naopc_four_features", "naopc_additive", "naopc_constant", "naopc_one_feature", "naopc_masking_helps"]


@pytest.mark.parametrize("name", CASES)
def test_worked_cases(name: str) -> None:
    given, expect = MEASURABLE[name]["input"], MEASURABLE[name]["expect"]["of_scores"]
    ex = tabled(given["values"], given["scores"])
    for metric, side in ((naopc, "naopc_comprehensiveness"), (naopc_sufficiency, "naopc_sufficiency")):
        score, _ = run(metric(ex, by="mask"), given["values"])
        assert score.value == (None if expect[side] is None else pytest.approx(expect[side], abs=1e-9))


def test_an_order_beyond_a_beams_limit_widens_it_and_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "EXACT", 0)
    case = MEASURABLE["naopc_four_features"]
    values, expect = case["input"]["values"], case["expect"]
    narrow = expect["of_scores_under_beam_1_limits"]["naopc_comprehensiveness"]
    score, _ = run(naopc(tabled(values, case["input"]["scores"]), by="mask", beam=1), values)
    assert narrow < 0 <= score.value  # this order is worse than the worst that a beam of 1 finds
    assert score.curve == (1.0,)
    wide, _ = run(naopc(tabled(values, case["input"]["scores"]), by="mask", beam=5), values)
    assert wide.value == pytest.approx(expect["of_scores"]["naopc_comprehensiveness"])
    assert wide.curve == (0.0,)


def test_the_limits_are_searched_once_for_all_explanations_of_a_text() -> None:
    clf = Classifier(*tiny("bert"))
    encoded = clf.encode([Example("a", "the film was good and the story was bad but the plot", 0)])
    answers = predict(clf, encoded)

    def asked(count: int) -> int:
        before = clf.forwards
        askers = []
        for seed in range(count):
            ex = explained(clf, encoded[0], 0, answers.logits[0], answers.probabilities[0])
            scores = generator("once", seed).random(len(encoded[0].ids))
            from dataclasses import replace

            askers.append(naopc(replace(ex, scores=scores), by="mask"))
        values = [score.value for score, _ in ask(clf, askers)]
        assert all(value is not None and 0 <= value <= 1 for value in values)
        return clf.forwards - before

    n, single = sum(encoded[0].free), asked(1)
    assert n > searching.EXACT
    assert asked(4) - single <= 3 * 2 * n  # each further explanation asks about its own two orders alone


def test_the_best_order_has_one_and_its_reverse_nothing() -> None:
    values = 1 - np.array([sum((1, 2, 4, 8)[i] for i in range(4) if s >> i & 1) for s in range(16)]) / 20
    score, _ = run(naopc(tabled(values, [1, 2, 4, 8]), by="mask"), values)
    assert score.value == pytest.approx(1.0)
    assert (score.room or 0.0) > 0
    score, _ = run(naopc(tabled(values, [8, 4, 2, 1]), by="mask"), values)
    assert score.value == pytest.approx(0.0)
