"""The best and the worst order in which tokens go, against worked cases and against every order there is."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from goldens import MEASURABLE
from tabled import run, tabled
from veridical.attribution.best import best
from veridical.core.seed import generator
from veridical.model import best_order as searching
from veridical.model.best_order import aopc_of, best_order, both_orders, exact_order

LIMITED = ["naopc_four_features", "naopc_additive", "naopc_constant", "naopc_one_feature", "naopc_masking_helps"]


@pytest.fixture
def _by_beam(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "EXACT", 0)


@pytest.mark.parametrize("name", LIMITED)
def test_limits_are_those_of_all_orders(name: str) -> None:
    values, expect = MEASURABLE[name]["input"]["values"], MEASURABLE[name]["expect"]["limits"]
    (upper, lower), questions = run(both_orders(tabled(values), by="mask"), values)
    assert (upper.value, lower.value) == pytest.approx((expect["upper"], expect["lower"]), abs=1e-9)
    assert [upper.exact, lower.exact] == [True, True]
    assert questions == len(values)  # once for both
    if "upper_orders" in expect:
        assert list(upper.order) in expect["upper_orders"]
        assert list(lower.order) in expect["lower_orders"]


def test_masking_that_helps_has_a_negative_upper_limit() -> None:
    case = MEASURABLE["naopc_masking_helps"]
    (upper, _), _ = run(both_orders(tabled(case["input"]["values"]), by="mask"), case["input"]["values"])
    assert upper.value < case["expect"]["released_upper"]  # which starts its maximum at 0


@pytest.mark.usefixtures("_by_beam")
@pytest.mark.parametrize("name", ["naopc_four_features", "naopc_additive"])
@pytest.mark.parametrize(("side", "sign"), [("upper_by_beam", 1), ("lower_by_beam", -1)])
def test_beams_find_what_was_worked_out(name: str, side: str, sign: Any) -> None:
    case = MEASURABLE[name]
    values = case["input"]["values"]
    for width, expect in case["expect"][side].items():
        found, questions = run(best_order(tabled(values), beam=int(width), by="mask", sign=sign), values)
        assert found.value == pytest.approx(expect["aopc"], abs=1e-9)
        assert questions == expect["questions"]
        assert not found.exact
        if name == "naopc_four_features":
            assert list(found.order) == expect["order"]
            without = case["expect"]["upper_by_beam_without_dedup"][width]
            assert sign < 0 or found.value >= without["aopc"] - 1e-9  # permutations of a set fill no beam


def test_the_best_explanation_scores_by_removal() -> None:
    case = MEASURABLE["best_explanation_three_tokens"]
    logits, expect = case["input"]["logits"], case["expect"]
    found, questions = run(best_order(tabled(logits), beam=10, by="mask", of="logit"), logits)
    assert list(found.order) == expect["order"]
    assert found.value * len(found.order) == pytest.approx(expect["sum_of_falls"])
    scores, _ = run(best(tabled(logits), by="mask"), logits)
    assert scores.tolist() == expect["scores"]
    assert questions == expect["questions"]


def test_texts_of_equal_length_do_not_share_scores() -> None:
    case = MEASURABLE["best_explanation_released_ties"]
    expect = case["expect"]
    released_scores = expect["released_scores_in_removal_order"]
    for order, wanted, released in zip(case["input"]["orders"], expect["right"], released_scores, strict=True):
        effects = np.zeros(3)
        effects[order] = [0.3, 0.2, 0.1]
        values = [1 - sum(effects[i] for i in range(3) if subset >> i & 1) for subset in range(8)]
        scores, _ = run(best(tabled(values), by="mask"), values)
        assert [scores[i] for i in order] == wanted != released


def test_a_beam_asks_no_more_than_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    case = MEASURABLE["beam_questions_bound"]
    monkeypatch.setattr(searching, "EXACT", 0)
    for tokens, most in zip(case["input"]["tokens"], case["expect"]["at_most"], strict=True):
        if tokens > 16:
            continue
        values = generator("bound", tokens).random(1 << tokens)
        assert run(best_order(tabled(values), beam=case["input"]["beam"], by="mask"), values)[1] <= most


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_exact_order_is_the_best_of_all(n: int) -> None:
    values = generator("orders", n).random(1 << n)
    falls = values[0] - values
    areas = {}
    for order in permutations(range(n)):
        gone = np.cumsum([1 << i for i in order])
        areas[order] = float(falls[gone].mean())
        area, _ = run(aopc_of(tabled(values), [[i] for i in order], "mask"), values)
        assert area == pytest.approx(areas[order])
    assert exact_order(falls, 1).value == pytest.approx(max(areas.values()))
    assert exact_order(falls, -1).value == pytest.approx(min(areas.values()))
    assert areas[exact_order(falls, 1).order] == pytest.approx(max(areas.values()))
