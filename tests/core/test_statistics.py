"""Intervals, tests and effect sizes, against SciPy and against enumeration."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtri

from goldens import GOLDEN
from veridical.audits import diagnosticity as d
from veridical.core import statistics as s
from veridical.core.seed import generator

# -- intervals ----------------------------------------------------------------------------------------------


def test_bca_equals_scipy_draw_for_draw():
    values = generator("bca").gamma(1.0, size=(3, 40))
    low, high = s.bca(values, seed=3)
    same = stats.bootstrap(
        (values,),
        np.mean,
        axis=-1,
        n_resamples=s.RESAMPLES,
        method="BCa",
        vectorized=True,
        rng=generator("bootstrap", 3, 40),
    )
    np.testing.assert_allclose(low, same.confidence_interval.low, rtol=1e-12)
    np.testing.assert_allclose(high, same.confidence_interval.high, rtol=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(5, 60), st.integers(0, 2**32 - 1))
def test_bca_contains_the_mean_of_continuous_data(n, seed):
    draw = np.random.default_rng(seed)
    values = np.stack([draw.normal(size=n), draw.exponential(size=n), draw.random(n)])
    low, high = s.bca(values, seed=seed, resamples=999)
    assert (low <= values.mean(1)).all()
    assert (values.mean(1) <= high).all()


def test_bca_covers_the_truth_about_as_often_as_it_says():
    values = generator("coverage").exponential(size=(600, 40))
    low, high = s.bca(values, resamples=999)
    covered = ((low <= 1) & (high >= 1)).mean()
    assert 0.89 < covered < 0.98


def test_bca_leaves_out_what_does_not_exist():
    values = generator("missing").normal(size=(2, 12))
    holes = np.insert(values, [0, 5, 12], np.nan, axis=1)
    np.testing.assert_array_equal(s.bca(values), s.bca(holes))


def test_bca_of_degenerate_data():
    rows = np.array([[0.1] * 8, [0, 1, 2, 3, np.nan, np.nan, np.nan, np.nan], [0.0] * 7 + [1.0]])
    low, high = s.bca(rows)
    assert (low[0], high[0]) == (pytest.approx(0.1), pytest.approx(0.1))
    assert np.isnan(low[1])  # four values
    assert np.isnan(high[1])
    assert 0 <= low[2] <= 1 / 8 <= high[2] <= 1


def test_bca_does_not_depend_on_its_neighbours_or_on_when_it_is_drawn():
    values = generator("rows").normal(size=(300, 9))
    low, high = s.bca(values, seed=1)
    again = s.bca(values[280:281], seed=1)
    np.testing.assert_allclose((low[280], high[280]), np.ravel(again), rtol=1e-12)
    assert s.bca(values[:1], seed=2)[0] != s.bca(values[:1], seed=1)[0]


# -- signed rank --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [6, 20, 50, 80])
def test_signed_rank_equals_scipy(n):
    rows = generator("wilcoxon", n).normal(0.3, size=(5, n))
    found = s.signed_rank(rows)
    np.testing.assert_allclose(found.p, stats.wilcoxon(rows, axis=1).pvalue, rtol=1e-9)
    np.testing.assert_allclose(found.difference, rows.mean(1))


def test_signed_rank_with_ties_equals_scipy_for_many_differences():
    rows = generator("ties").integers(-3, 5, size=(4, 120)).astype(float)
    kept = [row[row != 0] for row in rows]
    expected = [stats.wilcoxon(row, method="approx", correction=False).pvalue for row in kept]
    np.testing.assert_allclose(s.signed_rank(rows).p, expected, rtol=1e-9)


@settings(deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9))
def test_signed_rank_is_exact_with_ties_and_zeros(row):
    found = s.signed_rank(np.array(row, dtype=float))
    used = [x for x in row if x]
    assert found.n[0] == len(row)
    assert found.zeros[0] == len(row) - len(used)
    if not used:
        assert found.p[0] == 1
        assert found.effect[0] == 0
        return
    ranks = stats.rankdata(np.abs(used))
    plus = ranks[np.array(used) > 0].sum()
    sums = np.array([ranks[np.array(signs)].sum() for signs in product([False, True], repeat=len(used))])
    expected = min(1, 2 * min((sums <= plus + 1e-9).mean(), (sums >= plus - 1e-9).mean()))
    assert found.p[0] == pytest.approx(expected)
    assert found.effect[0] == pytest.approx((2 * plus - ranks.sum()) / ranks.sum())


def test_signed_rank_does_not_favour_a_side_by_rounding():
    # 0.2 - 0.5 and 0.8 - 0.5 differ in the last bit: they are a tie all the same.
    row = np.array([0.2, 0.8] * 40) - 0.5
    assert abs(row[0]) != abs(row[1])
    found = s.signed_rank(row)
    assert found.p[0] == pytest.approx(1)
    assert found.effect[0] == 0


def test_signed_rank_takes_pairs_that_exist():
    row = np.array([1.0, np.nan, 2.0, -0.5, np.nan, 3.0])
    found, plain = s.signed_rank(row), s.signed_rank(row[~np.isnan(row)])
    assert (found.p[0], found.effect[0], found.n[0]) == (plain.p[0], plain.effect[0], 4)
    nothing = s.signed_rank(np.full((1, 3), np.nan))
    assert np.isnan(nothing.p[0])
    assert nothing.n[0] == 0


def test_signed_rank_holds_its_level():
    noise = generator("level").normal(size=(2000, 24))
    assert 0.03 < (s.signed_rank(noise).p < 0.05).mean() < 0.065


@pytest.mark.parametrize("n", [5, 24, 50])
def test_one_sided_signed_rank_equals_scipy(n):
    rows = generator("sides", n).normal(0.2, size=(4, n))
    above, below = s.signed_rank_sides(rows)
    for p, side in ((above, "greater"), (below, "less")):
        expected = [stats.wilcoxon(row, alternative=side, method="exact").pvalue for row in rows]
        np.testing.assert_allclose(p, expected, rtol=1e-9)


def test_one_sided_signed_rank_without_a_difference_is_1():
    above, below = s.signed_rank_sides(np.array([[0.0, 0.0, np.nan], [np.nan] * 3, [1.0, 0.0, np.nan]]))
    assert above.tolist() == [1.0, 1.0, 0.5]
    assert below.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(("n", "steps"), [(24, 3), (50, 3), (50, 9), (40, 40)])
def test_signed_rank_is_exact_with_many_ties(n, steps):
    """Against whole numbers of sign patterns, one difference after the other."""
    row = generator("lattice", n, steps).integers(-steps + 1, steps + 1, n) / steps
    used = row[row != 0]
    doubled = np.rint(2 * stats.rankdata(np.abs(used))).astype(int)
    patterns = {0: 1}
    for rank in doubled.tolist():
        patterns = {
            total: patterns.get(total, 0) + patterns.get(total - rank, 0)
            for total in {*patterns, *(total + rank for total in patterns)}
        }
    plus = int(doubled[used > 0].sum())
    at_least = sum(count for total, count in patterns.items() if total >= plus)
    at_most = sum(count for total, count in patterns.items() if total <= plus)
    (p,) = s.signed_rank(row).p
    assert p == pytest.approx(min(1, 2 * min(at_least, at_most) / 2 ** len(used)), rel=1e-9)


# -- between samples ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(5, 5), (8, 6), (30, 20)])
def test_rank_sum_and_t_equal_scipy(sizes):
    draw = generator("between", sizes)
    a, b = draw.normal(0.5, size=sizes[0]), draw.normal(0, 2, size=sizes[1])
    found = s.between(a, b)
    assert found is not None
    assert found.p_rank_sum == pytest.approx(stats.mannwhitneyu(a, b).pvalue, rel=1e-9)
    assert found.p_t == pytest.approx(stats.ttest_ind(a, b, equal_var=False).pvalue, rel=1e-9)
    assert found.effect == pytest.approx(np.sign(a[:, None] - b[None, :]).mean())
    assert found.difference == pytest.approx(a.mean() - b.mean())
    assert found.n == sizes


def test_rank_sum_with_ties_equals_scipy():
    draw = generator("tied")
    a, b = draw.integers(0, 4, 40).astype(float), draw.integers(1, 5, 30).astype(float)
    p, delta = s.rank_sums(a, np.append(b, np.nan))
    assert p[0] == pytest.approx(stats.mannwhitneyu(a, b, method="asymptotic").pvalue, rel=1e-9)
    assert delta[0] == pytest.approx(np.sign(a[:, None] - b[None, :]).mean())


def test_samples_that_do_not_vary():
    same = s.between(np.ones(4), np.ones(5))
    assert same is not None
    assert (same.p_rank_sum, same.p_t, same.effect) == (1.0, None, 0.0)
    assert s.between(np.ones(1), np.ones(5)) is None
    assert np.isnan(s.rank_sums(np.array([[np.nan]]), np.array([[1.0]]))[0][0])


# -- Holm and sample sizes ----------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), max_size=20))
def test_holm_never_lowers_and_keeps_the_order(p):
    adjusted = s.holm(p)
    assert (adjusted >= p).all()
    assert (adjusted <= 1).all()
    order = np.argsort(p, kind="stable")
    assert (np.diff(adjusted[order]) >= 0).all()
    if p:
        assert adjusted.min() == pytest.approx(min(1, min(p) * len(p)))


def test_holm_of_a_worked_family():
    np.testing.assert_allclose(s.holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(s.holm([0.01, math.nan, 0.04]), [0.02, math.nan, 0.04])


@pytest.mark.parametrize("tests", [1, 3, 12, 66])
def test_fewest_is_where_the_smallest_p_can_be_significant(tests):
    n = s.fewest(tests)
    agreed = np.arange(1, n + 1, dtype=float)
    assert s.signed_rank(agreed).p[0] * tests < s.ALPHA
    assert s.signed_rank(agreed[:-1]).p[0] * tests >= s.ALPHA


def test_needed_is_about_what_reaches_the_power_asked_for():
    draw = generator("power")
    n = int(s.needed(draw.normal(0.4, size=1500)))
    power = (s.signed_rank(draw.normal(0.4, size=(600, n))).p < 0.05).mean()
    assert 0.72 < power < 0.88
    assert s.needed(draw.normal(0.4, size=1500), tests=20) > n
    assert s.needed(np.array([1.0, -1.0] * 5)) == math.inf
    assert s.needed(np.array([1.0])) == math.inf


# -- diagnosticity ------------------------------------------------------------------------------------------


def diagnosed(real: np.ndarray, control: np.ndarray, better: d.Better = "higher") -> list[d.Diagnosticity]:
    """One metric of one method: a row for it, and one for all methods together, which is the same."""
    outcome = d.outcomes(real, control, better)[None, None]
    return d.diagnosticity_rows(outcome, [np.zeros((1, len(real), 0))], ["method"], ["metric"], [True])


def test_golden_diagnosticity():
    given, expected = (GOLDEN["diagnosticity_with_ties"][key] for key in ("inputs", "expected"))
    real, control = np.array(given["score_of_attribution"]), np.array(given["score_of_random"])
    outcome = d.outcomes(real, control)
    assert [(outcome == x).sum() for x in (1, 0, -1)] == [expected[key] for key in ("wins", "ties", "losses")]
    for row in diagnosed(real, control):
        assert row.value == pytest.approx(expected["ties_count_half"], abs=1e-9)
        assert row.strict == pytest.approx(expected["strict"], abs=1e-9)
        assert row.ties_win == pytest.approx(expected["ties_count_as_win"], abs=1e-9)
        assert row.tie_rate == pytest.approx(expected["tie_rate"], abs=1e-9)
    for row in diagnosed(real, control, "lower"):
        assert row.strict == pytest.approx(expected["lower_is_better"]["strict"], abs=1e-9)
        assert row.value == pytest.approx(expected["lower_is_better"]["ties_count_half"], abs=1e-9)


def test_a_pair_needs_both_scores_and_noise_is_a_tie():
    row, _ = diagnosed(np.array([0.5, np.nan, 0.5, 0.5]), np.array([0.1, 0.1, np.nan, 0.5 + 1e-8]))
    assert (row.n, row.pairs, row.value, row.tie_rate) == (2, 2, 0.75, 0.5)
    assert diagnosed(np.array([np.nan]), np.array([1.0])) == []


def test_rows_per_method_and_over_them():
    draw = generator("diagnosticity")
    real = draw.random((3, 2, 40))
    real[0, 0] += 1  # the first metric always prefers the first method
    real[1, 0] += 0.4
    control = draw.random((3, 2, 40))
    outcome = d.outcomes(real, control)
    curves = [np.stack([outcome[:, 0], -outcome[:, 0]], -1), np.zeros((3, 40, 0))]
    rows = d.diagnosticity_rows(outcome, curves, ["a", "b", "random"], ["good", "blind"], [True, True, False])
    by = {(r.metric, r.method): r for r in rows}
    assert len(by) == len(rows) == 8
    assert by["good", "a"].value == 1.0
    assert by["good", ""].value == pytest.approx((by["good", "a"].value + by["good", "b"].value) / 2)
    assert by["good", ""].pairs == 80
    assert by["good", ""].n == 40
    assert by["good", ""].low <= by["good", ""].value <= by["good", ""].high
    assert by["good", ""].diagnostic
    assert by["good", ""].weight == pytest.approx(2 * (by["good", ""].value - 0.5))
    assert not by["blind", ""].diagnostic
    assert by["blind", ""].weight == 0
    assert by["good", "a"].curve == (1.0, 0.0)
    assert by["blind", "a"].curve == ()


def test_metrics_are_compared_on_the_same_texts():
    draw = generator("metric tests")
    credits = np.stack([draw.choice([0.5, 1.0], 60), draw.choice([0.0, 0.5, 1.0], 60), np.full(60, np.nan)])
    [row] = d.metric_tests(credits, ["sharp", "blunt", "absent"])
    assert (row.a, row.b, row.n) == ("sharp", "blunt", 60)
    assert row.difference == pytest.approx(credits[0].mean() - credits[1].mean())
    assert row.effect > 0
    assert row.p_holm < 0.01
    assert row.p_rank_sum == pytest.approx(stats.mannwhitneyu(credits[0], credits[1]).pvalue)


def test_the_bootstrap_is_the_same_where_its_counts_are_not_held(monkeypatch):
    values = generator("bootstrap blocks").normal(size=(3, 60))
    held = s.bca(values)
    monkeypatch.setattr(s, "HELD", 60 * 7)
    for a, b in zip(held, s.bca(values), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


@given(st.lists(st.integers(-6, 6), min_size=2, max_size=30))
def test_how_many_are_needed_counts_all_pairs(whole):
    d = np.array(whole, dtype=float) / 7
    sums = [a + b for i, a in enumerate(d) for b in d[i + 1 :]]
    share = np.mean([1.0 if x > 1e-9 else 0.5 if abs(x) <= 1e-9 else 0.0 for x in sums])
    z = ndtri(1 - 0.05 / 2) + ndtri(0.8)
    expected = np.inf if share == 0.5 else max(s.fewest(1), math.ceil(z**2 / (3 * (share - 0.5) ** 2)))
    assert s.needed(d) == expected


def test_a_metric_is_not_proven_by_a_few_large_gains():
    """Most texts point down and the test with them, though the mean is above one half."""
    outcome = np.full((10, 1, 100), np.nan)  # [methods, metrics, texts]: credits of 0.45 on 80 texts, 0.95 on 20
    for text in range(100):
        wins = 9.5 if text < 20 else 4.5
        outcome[:, 0, text] = [1.0] * int(wins) + [0.0] + [-1.0] * (9 - int(wins))
    (row, *_) = d.diagnosticity_rows(outcome, [np.empty((10, 100, 0))], [str(i) for i in range(10)], ["m"], [True] * 10)
    assert row.value == pytest.approx(0.55)
    assert row.p_holm < 0.05
    assert (row.diagnostic, row.weight) == (False, 0.0)


# -- means --------------------------------------------------------------------------------------------------


def test_mean_leaves_out_what_does_not_exist():
    assert s.mean([1, None, 4.0, math.nan]) == 2.5
    assert s.mean(value for value in (1.0, 2.0)) == 1.5
    assert s.mean(np.array([[1.0, np.nan], [3.0, 5.0]])) == 3.0
    assert s.mean([]) is s.mean([None, math.nan]) is None


def test_mean_of_the_whole_needs_every_value():
    assert s.mean([1.0, 2.0], whole=True) == 1.5
    assert s.mean([1.0, None], whole=True) is s.mean([1.0, math.nan], whole=True) is s.mean([], whole=True) is None


def test_number_has_no_nan():
    assert s.number(math.nan) is s.number(np.float64("nan")) is s.number(None) is None
    assert type(s.number(np.float32(0.5))) is float
    assert s.number(0) == 0.0


def test_estimate_is_mean_interval_and_counts():
    values = [0.1, 0.2, None, 0.4, 0.8, 0.9]
    (low,), (high,) = s.bca(np.array([0.1, 0.2, 0.4, 0.8, 0.9]), seed=4)
    assert s.estimate(values, seed=4) == s.Estimate(pytest.approx(0.48), low, high, 5, 1)
    assert s.estimate([0.5, None]) == s.Estimate(0.5, None, None, 1, 1)
    assert s.estimate([]) == s.Estimate(None, None, None, 0, 0)


def test_estimates_of_samples_of_different_sizes():
    long, short = generator("estimates").normal(size=9), generator("estimates").normal(size=6)
    samples = [long, short, [1.0, None], []]
    assert s.estimates(samples, seed=2) == [s.estimate(sample, seed=2) for sample in samples]
    assert s.estimates(samples)[0].low is not None
    assert s.estimates([]) == []
