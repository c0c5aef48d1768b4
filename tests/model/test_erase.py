from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldens import GOLDEN
from veridical.core.errors import InputError
from veridical.core.records import Encoded, Example, Explained
from veridical.model.erase import budget, erase, erase_all, ranking


def seen(ids: list[int], free: list[bool], **more) -> Explained:
    blank = [(0, 0)] * len(ids)
    encoded = Encoded(Example("x", "x"), tuple(ids), (0,) * len(ids), tuple(blank), tuple(range(len(ids))), tuple(free))
    return Explained(encoded, 0, np.ones(2) / 2, np.zeros(2), **more)


@pytest.mark.parametrize("row", GOLDEN["token_budget_rounding"]["expected"]["table"])
def test_budgets_are_the_golden_ones(row):
    for rounding in ("ceil_min1", "floor_min1", "half_even_min1", "floor"):
        assert budget(row["n"], row["ratio"], rounding) == row[rounding]


@given(st.integers(1, 2000), st.integers(1, 1000))
def test_a_budget_is_the_least_whole_number_that_reaches_the_share(n, thousandths):
    ratio = thousandths / 1000
    k = budget(n, ratio)
    exact = Fraction(thousandths, 1000) * n
    assert 1 <= k <= n
    assert k >= exact
    assert k == 1 or k - 1 < exact


@given(st.lists(st.tuples(st.sampled_from([-1.5, 0.0, 0.25, 3.0]), st.booleans()), min_size=1, max_size=30))
def test_rankings_fall_and_break_ties_by_position(rows):
    scores, free = np.array([s for s, _ in rows]), [f for _, f in rows]
    order = ranking(scores, free).tolist()
    assert sorted(order) == [i for i, f in enumerate(free) if f]
    for a, b in pairwise(order):
        assert scores[a] > scores[b] or (scores[a] == scores[b] and a < b)


def test_scores_that_are_no_numbers_are_not_ranked():
    with pytest.raises(InputError, match="finite"):
        ranking(np.array([0.1, np.nan]), [True, True])


def test_the_erasure_operators_are_the_golden_ones():
    golden = GOLDEN["erasure_operators"]
    ids = golden["inputs"]["input_ids"][:7]
    ex = seen(ids, [False, *[True] * 5, False], mask_id=golden["inputs"]["mask"])
    scores = np.array([0, *golden["inputs"]["attributions_of_the_five_maskable_tokens"], 0])
    expected = golden["expected"]
    top = ranking(scores, ex.encoded.free)[: budget(5, golden["inputs"]["ratio"])]
    rest = [i for i in np.flatnonzero(ex.encoded.free) if i not in top]
    assert sorted(top.tolist()) == expected["rationale_positions"]

    assert list(erase(ex, rest).ids) == expected["delete"]["sufficiency"]["input_ids"]
    assert list(erase(ex, top).ids) == expected["delete"]["comprehensiveness"]["input_ids"]
    assert list(erase_all(ex).ids) == expected["delete"]["null"]["input_ids"]
    for name, by in (("mask_token", "mask"), ("zero_id_as_released", "zero_id_attended")):
        assert list(erase(ex, rest, by).ids) == expected[name]["sufficiency"][:7]
        assert list(erase(ex, top, by).ids) == expected[name]["comprehensiveness"][:7]
    hidden = expected["attention_mask_only"]
    assert [int(a) for a in erase(ex, rest, "attention").attend] == hidden["sufficiency_attention_mask"][:7]
    assert [int(a) for a in erase(ex, top, "attention").attend] == hidden["comprehensiveness_attention_mask"][:7]
    assert [int(a) for a in erase_all(ex, "attention").attend] == hidden["null_attention_mask"][:7]


def test_masking_without_a_mask_token_names_the_way_out():
    with pytest.raises(InputError, match="by=delete"):
        erase(seen([5, 6], [True, True]), [0], "mask")
