from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldens import GOLDEN
from tiny import PAIRS, tiny
from veridical.core.errors import InputError
from veridical.core.records import Encoded, Example
from veridical.model.classifier import Classifier
from veridical.retraining.roar.mask import (
    Amount,
    Steps,
    gone,
    masked,
    oracle_order,
    order,
    positions_only,
    random_order,
)


def encoded(n: int, name: str = "a", rationale: tuple[tuple[int, int], ...] = ()) -> Encoded:
    """A special token, n words of two letters, a special token."""
    text = " ".join(["xy"] * n)
    spans = [(0, 0), *((3 * i, 3 * i + 2) for i in range(n)), (0, 0)]
    free = (False, *(True,) * n, False)
    example = Example(name, text, 0, rationale=rationale)
    return Encoded(example, tuple(range(100, 102 + n)), (0,) * (n + 2), tuple(spans), (-1, *range(n), -1), free)


def test_how_many_tokens_a_per_cent_is():
    entry = GOLDEN["roar_mask_counts"]
    for row in entry["expected"]["rows"]:
        assert Amount(row["percent"]).of(row["n"]) == row["k"]
    percents = entry["inputs"]["percents"]
    counts = [Amount(percent).of(18) for percent in percents]
    assert np.diff([0, *counts]).tolist() == entry["expected"]["new_per_step"]
    assert [Amount(percent).of(3) for percent in percents] == entry["expected"]["three_tokens"]


def test_other_roundings_and_units():
    assert [Amount(10).of(n, "ceil") for n in (1, 10, 11, 18)] == [1, 1, 2, 2]
    assert [Amount(k, "token").of(3) for k in (1, 3, 9)] == [1, 3, 3]


def test_masking_recursively_and_not():
    entry = GOLDEN["roar_recursive_masking"]
    given_scores = [
        np.array(entry["inputs"][f"importance_{when}"]) for when in ("on_original", "after_step1", "after_step2")
    ]
    free, positions = [True] * 5, ()
    recursive = []
    for scores, amount in zip(given_scores, Steps(20).amounts, strict=False):
        positions = gone([order(scores, free, positions)], amount, "floor")[0]
        recursive.append(sorted(positions.tolist()))
    assert recursive == entry["expected"]["recursive"]
    first = order(given_scores[0], free)
    plain = [sorted(gone([first], amount, "floor")[0].tolist()) for amount in Steps(20).amounts[:3]]
    assert plain == entry["expected"]["not_recursive"]


@given(
    scores=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30),
    data=st.data(),
)
def test_an_order_holds_every_free_position_once_and_keeps_what_is_gone(scores, data):
    free = data.draw(st.lists(st.booleans(), min_size=len(scores), max_size=len(scores)).filter(any))
    positions = [i for i, is_free in enumerate(free) if is_free]
    before = data.draw(st.lists(st.sampled_from(positions), unique=True))
    found = order(np.array(scores), free, before).tolist()
    assert sorted(found) == positions
    assert found[: len(before)] == before
    rest = found[len(before) :]
    assert all(scores[a] > scores[b] or (scores[a] == scores[b] and a < b) for a, b in itertools.pairwise(rest))


@given(n=st.integers(1, 40), size=st.integers(1, 50))
def test_what_is_masked_grows_and_never_shrinks(n, size):
    steps = Steps(size)
    counts = [amount.of(n) for amount in steps.amounts]
    assert counts == sorted(counts)
    assert all(0 <= count < n + 1 for count in counts)
    assert [amount.value for amount in steps.amounts] == [v for v in range(1, 100) if v % size == 0]


def test_a_masked_text_keeps_its_length_special_tokens_and_context():
    clf = Classifier(*tiny("bert"))
    (pair,) = clf.encode([Example("p", PAIRS[0][0], 0, context=PAIRS[0][1])])
    free = np.flatnonzero(pair.free)
    all_gone = masked(pair, free, clf.tokenizer.mask_token_id)
    assert len(all_gone.ids) == len(pair.ids)
    assert all(all_gone.ids[i] == clf.tokenizer.mask_token_id for i in free)
    kept = [i for i in range(len(pair.ids)) if i not in free]
    assert [all_gone.ids[i] for i in kept] == [pair.ids[i] for i in kept]
    assert any(pair.types[i] == 1 for i in kept), "the context is among what is kept"


def test_positions_alone_say_nothing_of_the_words():
    one, other = encoded(5), encoded(5)
    other = masked(other, [1, 2, 3, 4, 5], 7)  # other words altogether
    blank, same = positions_only(one, [2, 4], 1, 3), positions_only(other, [2, 4], 1, 3)
    assert blank.ids == same.ids == (100, 3, 1, 3, 1, 3, 106)


def test_the_baseline_depends_on_seed_and_text_alone():
    text = encoded(30)
    assert random_order(text, 0).tolist() == random_order(text, 0).tolist()
    assert random_order(text, 0).tolist() != random_order(text, 1).tolist()
    assert random_order(encoded(30, "a"), 0).tolist() != random_order(encoded(30, "b"), 0).tolist()


def test_the_oracle_masks_the_rationale_first_and_then_at_random():
    text = encoded(20, rationale=((9, 11), (30, 32)))  # the fourth and the eleventh word
    found = oracle_order(text, 3).tolist()
    assert set(found[:2]) == {4, 11}
    rest = [position for position in random_order(text, 3).tolist() if position not in (4, 11)]
    assert found[2:] == rest


@pytest.mark.parametrize(
    ("given_steps", "said"), [((0,), "step is 0"), ((51,), "step is 51"), ((1, "token", 0), "tokens is 0")]
)
def test_steps_that_cannot_be_are_refused(given_steps, said):
    with pytest.raises(InputError, match=said):
        Steps(*given_steps)
