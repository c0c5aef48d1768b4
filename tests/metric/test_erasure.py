from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from driven import arbitrary, drive, scored, seen
from hypothesis import given
from hypothesis import strategies as st

from goldens import GOLDEN
from veridical.core.errors import InputError
from veridical.metric import metrics
from veridical.metric.erasure import Setting, aopc, comprehensiveness, erasure_score, setting, sufficiency
from veridical.model.erase import erase

BOTH = [("sufficiency", sufficiency), ("comprehensiveness", comprehensiveness)]
RULE = GOLDEN["norm_suff_comp_per_ratio"]["inputs"]["classifier"]


def planted(variant) -> float:
    """The golden classifier: token i is written as id 100 + i."""
    kept = {i - 100 for i in variant.ids}
    bonus = RULE["pair_bonus"]
    p = RULE["bias"] + sum(RULE["token_values"][i] for i in kept)
    return p + bonus["value"] * ({bonus["i"], bonus["j"]} <= kept)


def golden_text():
    inputs = GOLDEN["norm_suff_comp_per_ratio"]["inputs"]
    return seen(inputs["attributions"], p=GOLDEN["norm_suff_comp_per_ratio"]["expected"]["p_full"])


@pytest.mark.parametrize(
    ("metric", "normal", "signed"),
    [
        (sufficiency, "norm_suff", "eraser_suff_signed"),
        (comprehensiveness, "norm_comp", "eraser_comp_signed"),
    ],
)
def test_every_ratio_of_the_golden_classifier(metric, normal, signed):
    rows = GOLDEN["norm_suff_comp_per_ratio"]["expected"]["rows"]
    ex = golden_text()
    found, asked = drive(metric(ex), planted)
    np.testing.assert_allclose(found.curve, [row[normal] for row in rows], atol=1e-9)
    raw = scored(metric(ex, raw=True), planted)
    np.testing.assert_allclose(raw.curve, [row[signed] for row in rows], atol=1e-9)
    for row, question in zip(rows, asked[1:], strict=True):
        kept = {100 + i for i in row["kept"]}
        assert set(question.ids) == (kept if metric is sufficiency else set(ex.encoded.ids) - kept)
    assert len(set(asked)) == 4  # nothing, and three distinct budgets of the five


def test_the_two_divisors():
    expected = GOLDEN["aopc_conventions"]["expected"]
    for name, (metric, raw) in {
        "norm_suff": (sufficiency, False),
        "norm_comp": (comprehensiveness, False),
        "eraser_suff": (sufficiency, True),
        "eraser_comp": (comprehensiveness, True),
    }.items():
        for divisor, key in (("mean", "mean_over_bins"), ("plus_one", "sum_over_bins_plus_one")):
            found = scored(metric(golden_text(), raw=raw, divisor=divisor), planted)
            assert found.value == pytest.approx(expected[key][name], abs=1e-9)


def test_equal_budgets_can_be_counted_once():
    found = scored(sufficiency(golden_text(), dedup=True), planted)
    assert found.value == pytest.approx((4 / 9 + 7 / 9 + 1) / 3, abs=1e-9)
    assert len(found.curve) == 5
    assert aopc([0.2, 0.2, 0.5], [1, 1, 2], "plus_one", dedup=True) == pytest.approx(0.7 / 3)


def test_the_shift_against_division_by_zero():
    golden = GOLDEN["norm_suff_comp_epsilon_shift"]
    options = {"by": "delete", "level": "token", "rounding": "ceil_min1", "raw": False, "divisor": "mean"}
    how = setting(Setting(ratios=(0.2,), dedup=False, undefined="exclude", **options))
    for side, key in (("sufficiency", "norm_suff"), ("comprehensiveness", "norm_comp")):
        for times, expected in ((1, golden["expected"]), (56, golden["expected"]["accumulated_after_56_subtractions"])):
            shifted = replace(how, shift=times * golden["inputs"]["epsilon"])
            found = scored(erasure_score(golden_text(), side, shifted), planted)
            assert found.value == pytest.approx(expected[key], abs=1e-9)


@pytest.mark.parametrize(("name", "metric"), BOTH)
def test_what_was_evaluated_before_changes_nothing(name, metric):
    alone = scored(metric(golden_text(), preset="ood_faith"), planted_or_blank)
    for _ in range(5):
        for _, other in BOTH:
            scored(other(golden_text(), preset="ood_faith"), planted_or_blank)
    assert scored(metric(golden_text(), preset="ood_faith"), planted_or_blank) == alone


def planted_or_blank(variant) -> float:
    return planted(replace(variant, ids=tuple(i for i in variant.ids if i)))


@pytest.mark.parametrize(("name", "metric"), BOTH)
def test_the_preset_asks_what_the_released_code_asks(name, metric):
    golden = GOLDEN["erasure_operators"]
    scores = [0, *golden["inputs"]["attributions_of_the_five_maskable_tokens"], 0]
    ex = seen(scores, ids=golden["inputs"]["input_ids"][:7], free=[False, *[True] * 5, False])
    # ceil(0.3 (5 + 1)) = 2 tokens, as ceil(0.4 x 5)
    found, (null, one) = drive(metric(ex, ratios=(0.3,), preset="ood_faith"), arbitrary)
    expected = golden["expected"]["zero_id_as_released"]
    assert list(null.ids) == expected["null"][:7]
    assert list(one.ids) == expected[name][:7]
    assert null.attend is None
    assert one.attend is None
    assert found.value is not None


def test_the_preset_counts_one_token_more_and_never_more_than_there_are():
    ex = seen([5, 4, 3, 2, 1])
    _, asked = drive(comprehensiveness(ex, ratios=(0.01, 0.2, 0.4, 1.0), preset="ood_faith"), arbitrary)
    assert [v.ids.count(0) for v in asked] == [5, 1, 2, 3, 5]


def test_the_preset_keeps_the_context_in_its_null_input():
    ex = seen([0, 2, 1, 0, 0, 0], ids=[101, 7, 8, 102, 9, 102], free=[False, True, True, False, False, False])
    paired = seen(
        [0, 2, 1, 0, 0, 0], ids=[101, 7, 8, 102, 9, 102], free=[False, True, True, False, False, False], context="why?"
    )
    assert drive(sufficiency(ex, preset="ood_faith"), arbitrary)[1][0].ids == (0,) * 6
    assert drive(sufficiency(paired, preset="ood_faith"), arbitrary)[1][0].ids == (0, 0, 0, 102, 9, 102)


@pytest.mark.parametrize("by", ["delete", "mask", "attention", "zero_id_attended"])
@pytest.mark.parametrize(("name", "metric"), BOTH)
def test_one_operator_for_every_question(name, metric, by):
    golden = GOLDEN["erasure_operators"]
    scores = [0, *golden["inputs"]["attributions_of_the_five_maskable_tokens"], 0]
    ex = seen(scores, ids=golden["inputs"]["input_ids"][:7], free=[False, *[True] * 5, False])
    _, (null, one) = drive(metric(ex, ratios=(golden["inputs"]["ratio"],), by=by), arbitrary)
    expected = golden["expected"]
    if by == "delete":
        assert list(null.ids) == expected["delete"]["null"]["input_ids"]
        assert list(one.ids) == expected["delete"][name]["input_ids"]
    elif by == "mask":
        assert list(null.ids) == expected["mask_token"]["null"][:7]
        assert list(one.ids) == expected["mask_token"][name][:7]
    elif by == "attention":
        assert list(map(int, null.attend)) == expected["attention_mask_only"]["null_attention_mask"][:7]
        assert list(map(int, one.attend)) == expected["attention_mask_only"][f"{name}_attention_mask"][:7]
    else:
        assert list(one.ids) == expected["zero_id_as_released"][name][:7]
        assert list(null.ids) == [101, 0, 0, 0, 0, 0, 102]  # special tokens stay: one operator, one kind of null


@given(
    st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), min_size=1, max_size=25),
    st.sampled_from(["delete", "mask", "attention", "zero_id_attended"]),
)
def test_keeping_nothing_and_everything_are_the_ends_of_the_scale(scores, by):
    """At 0% and 100% of the tokens NS is 0 and 1, and so is NC, whatever the model and the scores."""
    ex = seen(scores, p=1.0)
    full = erase(ex, [], by)
    reply = lambda v: 1.0 if v == full else 0.9 * arbitrary(v)  # noqa: E731
    for _, metric in BOTH:
        found = scored(metric(ex, ratios=(0.0, 1.0), rounding="floor", by=by), reply)
        assert found.curve == (0.0, 1.0)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_the_formulas_are_those_printed(p, p_null, p_one):
    ex = seen([1.0, 0.0], p=p)
    sufficient = 1 - max(0.0, p - p_one)
    null = 1 - max(0.0, p - p_null)
    reply = lambda v: p_one if v.ids else p_null  # noqa: E731
    ns, nc = (scored(metric(ex, ratios=(0.5,)), reply) for _, metric in BOTH)
    if p - p_null < 1e-5:
        assert ns.value is None
        assert nc.curve == (None,)
    else:
        assert ns.value == pytest.approx(np.clip((sufficient - null) / (1 - null), 0, 1), abs=1e-6)
        assert nc.value == pytest.approx(np.clip(max(0.0, p - p_one) / (1 - null), 0, 1), abs=1e-6)


@pytest.mark.parametrize(("name", "metric"), BOTH)
def test_a_prediction_that_rests_on_nothing_in_the_text_is_undefined(name, metric):
    ex = seen([1.0, 0.5, 0.2], p=0.7)
    assert scored(metric(ex), lambda v: 0.7).value is None
    assert scored(metric(ex), lambda v: 0.8).curve == (None,) * 5
    zero = scored(metric(ex, undefined="zero"), lambda v: 0.7)
    assert zero.value == 0
    assert zero.curve == (0.0,) * 5
    assert scored(metric(ex, raw=True), lambda v: 0.6).value == pytest.approx(0.1)
    assert scored(metric(ex, preset="ood_faith"), lambda v: 0.7).value is not None


def test_words_are_erased_whole():
    ex = seen([0.1, 0.3, 0.2, 0.25], words=[0, 0, 0, 1])
    _, (_, one) = drive(comprehensiveness(ex, ratios=(0.5,), level="word"), arbitrary)
    assert one.ids == (103,)  # the sum of three pieces beats the highest single piece
    _, (_, one) = drive(comprehensiveness(ex, ratios=(0.25,)), arbitrary)
    assert one.ids == (100, 102, 103)


def test_settings_that_cannot_be_meant():
    ex = seen([1.0, 0.5])
    for options, message in (
        ({"preset": "ood_faith", "by": "mask"}, "preset=ood_faith sets by itself"),
        ({"preset": "ood_faith", "rounding": "floor"}, "sets rounding itself"),
    ):
        with pytest.raises(InputError, match=message):
            next(sufficiency(ex, **options))


def test_options_are_read_from_a_spec():
    choice = metrics.choose("sufficiency:ratios=0.1+0.2:by=attention:raw=true")
    assert choice.options["ratios"] == (0.1, 0.2)
    assert choice.options["raw"] is True
    assert choice.label == "sufficiency:ratios=0.1+0.2:by=attention:raw=true"
