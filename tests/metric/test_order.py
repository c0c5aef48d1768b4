"""Monotonicity, CORR and leave-one-out tau."""

from __future__ import annotations

import numpy as np
import pytest
from driven import arbitrary, drive, scored, seen
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, pearsonr

from goldens import GOLDEN
from veridical.core.records import Score
from veridical.metric.corr import corr
from veridical.metric.loo_tau import loo_tau
from veridical.metric.monotonicity import monotonicity


def without(values, p: float = 0.9):
    """Erasing token i alone (id 100 + i) lowers the probability by values[i]."""
    whole = set(range(100, 100 + len(values)))
    return lambda variant: p - sum(values[i - 100] for i in whole - set(variant.ids))


def test_tokens_are_added_lowest_score_first():
    ex = seen([0.3, 0.1, 0.2])
    p = {(): 0.5, (101,): 0.4, (101, 102): 0.6, (100, 101, 102): 0.6}
    found, asked = drive(monotonicity(ex), lambda variant: p[variant.ids])
    assert [v.ids for v in asked] == list(p)
    assert found == Score(2 / 3)  # one fall in three steps; standing still is none


def test_a_fall_within_rounding_is_none():
    ex = seen([2.0, 1.0])
    assert scored(monotonicity(ex), lambda v: 0.5 - 1e-8 * len(v.ids)).value == 1.0
    assert scored(monotonicity(ex), lambda v: 0.5 - 1e-4 * len(v.ids)).value == 0.0


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=20))
def test_corr_is_minus_pearson(scores):
    scores = np.array(scores, dtype=np.float32).astype(float)
    ex = seen(scores)
    found = scored(corr(ex), arbitrary).value
    p = [arbitrary(v) for v in drive(corr(ex), arbitrary)[1]]
    if np.ptp(scores) == 0:
        assert found is None
    elif np.ptp(scores) > 1e-6:
        assert found == pytest.approx(-pearsonr(scores, p).statistic, abs=1e-6)


def test_corr_of_a_sum_is_one_and_of_its_opposite_minus_one():
    values = [0.1, 0.05, 0.2, 0.0]
    assert scored(corr(seen(values)), without(values)).value == pytest.approx(1)
    assert scored(corr(seen([-v for v in values])), without(values)).value == pytest.approx(-1)
    assert scored(corr(seen([1e-30 * v for v in values])), without(values)).value == pytest.approx(1)


@pytest.mark.parametrize("metric", [corr, loo_tau])
def test_constant_vectors_are_undefined(metric):
    assert scored(metric(seen([0.4, 0.4, 0.4])), without([0.1, 0.2, 0.3])).value is None
    assert scored(metric(seen([0.1, 0.2, 0.3])), without([0.1, 0.1, 0.1])).value is None
    assert scored(metric(seen([0.1, 0.2, 0.3])), without([1e-9, 2e-9, 3e-9])).value is None  # rounding, not order
    assert scored(metric(seen([0.1])), without([0.1])).value is None


def test_the_golden_tau():
    golden = GOLDEN["kendall_tau"]
    for a, b, expected in (("a", "b", "tau"), ("tied_a", "tied_b", "tau_b_with_ties")):
        falls = [0.01 * v for v in golden["inputs"][b]]
        found = scored(loo_tau(seen(golden["inputs"][a])), without(falls))
        assert found.value == pytest.approx(golden["expected"][expected], abs=1e-9)


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 5)), min_size=2, max_size=20))
def test_tau_is_the_library_function_and_ties_survive_rounding(rows):
    scores, values = [float(a) for a, _ in rows], [0.1 * b for _, b in rows]
    exact = without(values)
    noisy = lambda variant: exact(variant) + 1e-8 * arbitrary(variant)  # noqa: E731
    found = scored(loo_tau(seen(scores)), noisy).value
    expected = kendalltau(scores, values).statistic
    assert (found is None) == bool(np.isnan(expected))
    if found is not None:
        assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("metric", [corr, loo_tau, monotonicity])
def test_a_word_is_one_unit(metric):
    ex = seen([0.1, 0.2, 0.25, 0.9], words=[0, 0, 1, 2])
    _, asked = drive(metric(ex, level="word", by="attention"), arbitrary)
    erased = [tuple(i for i, a in enumerate(v.attend or ()) if not a) for v in asked]
    if metric is monotonicity:
        # the two pieces of the first word come in together, after the second word (0.25 < 0.3)
        assert erased == [(0, 1, 2, 3), (0, 1, 3), (3,), ()]
    else:
        assert erased == [(0, 1), (2,), (3,)]


@pytest.mark.parametrize("metric", [corr, loo_tau, monotonicity])
def test_no_tokens_no_value(metric):
    ex = seen([0.0, 0.0], free=[False, False])
    assert scored(metric(ex), arbitrary).value is None
