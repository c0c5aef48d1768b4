from __future__ import annotations

import pytest
from driven import drive, scored, seen
from hypothesis import given
from hypothesis import strategies as st

from veridical.core.records import Score
from veridical.metric.decision_flip import decision_flip


def text(n: int):
    """Token i is the i-th to go."""
    return seen([float(n - i) for i in range(n)], p=0.9)


def flips_at(n: int, k: int):
    """The other class from the moment k tokens are gone."""
    return lambda variant: 0.1 if n - len(variant.ids) >= k else 0.9


@given(st.integers(1, 130), st.data())
def test_the_first_point_of_the_grid_that_flips(n, data):
    k = data.draw(st.integers(1, n))
    step = max(1, int(0.05 * n + 0.5))
    grid = sorted({*range(step, n + 1, step), n})
    first = next(size for size in grid if size >= k)
    assert scored(decision_flip(text(n)), flips_at(n, k)) == Score(first / n, (0.0,))
    assert scored(decision_flip(text(n), exact=True), flips_at(n, k)) == Score(k / n, (0.0,))


@pytest.mark.parametrize(("n", "step"), [(5, 1), (29, 1), (30, 2), (49, 2), (50, 3), (100, 5)])
def test_every_five_percent_rounded_half_up(n, step):
    _, asked = drive(decision_flip(text(n)), lambda variant: 0.9)
    sizes = [n - len(variant.ids) for variant in asked]
    assert sizes == sorted({*range(step, n + 1, step), n})


def test_never_flipped_is_told_from_flipped_with_the_last_token():
    assert scored(decision_flip(text(40)), lambda variant: 0.9) == Score(1.0, (1.0,))
    assert scored(decision_flip(text(40)), flips_at(40, 40)) == Score(1.0, (0.0,))


def test_a_decision_that_flips_and_comes_back_has_flipped():
    back = lambda variant: 0.1 if 40 - len(variant.ids) == 6 else 0.9  # noqa: E731
    assert scored(decision_flip(text(40)), back).value == pytest.approx(6 / 40)


def test_an_early_flip_saves_the_later_questions():
    _, early = drive(decision_flip(text(200), exact=True), flips_at(200, 2))
    _, late = drive(decision_flip(text(200), exact=True), flips_at(200, 199))
    assert len(early) == 4
    assert len(late) == 200
    assert [200 - len(v.ids) for v in late] == list(range(1, 201))


def test_the_decision_is_the_predicted_class_whatever_is_explained():
    ex = seen([3.0, 2.0, 1.0], p=0.2)  # class 1 is predicted, class 0 explained
    assert scored(decision_flip(ex), lambda variant: 0.3).value == 1.0
    assert scored(decision_flip(ex), lambda variant: 0.6).value == pytest.approx(1 / 3)


def test_nothing_to_erase_is_undefined():
    ex = seen([0.0, 0.0], free=[False, False])
    with pytest.raises(StopIteration) as end:
        next(decision_flip(ex))
    assert end.value.value == Score(None, (None,))


def test_words_and_operators():
    ex = seen([1.0, 3.0, 0.5, 0.2], words=[0, 0, 1, 2])
    _, asked = drive(decision_flip(ex, level="word", by="mask"), lambda variant: 0.9)
    assert [v.ids for v in asked] == [(103, 103, 102, 103), (103, 103, 103, 103), (103, 103, 103, 103)]
