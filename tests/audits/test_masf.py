"""MaSF against worked cases, and that its p is what it says for texts like the reference."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from goldens import MEASURABLE
from tiny import tiny
from veridical.audits.masf import familiar, fisher, hidden_peaks, mid_rank, simes, two_sided
from veridical.core.records import Variant
from veridical.core.seed import generator
from veridical.model.classifier import Classifier


def layers(rows: list) -> list[np.ndarray]:
    values = np.array(rows)  # [N, L, D]
    return [values[:, k] for k in range(values.shape[1])]


def test_the_worked_case_to_the_last_step() -> None:
    case = MEASURABLE["masf_tiny"]
    reference, texts = layers(case["input"]["reference"]), layers(case["input"]["test"])
    ours, released = case["expect"]["ours"], case["expect"]["released"]
    held = familiar(reference)
    for k, layer in enumerate(texts):
        p = two_sided(mid_rank(held.first[k], layer))
        assert p == pytest.approx(np.array(ours["level1_p"])[:, k], abs=1e-7)
        assert simes(p) == pytest.approx(np.array(ours["simes_by_layer"])[:, k], abs=1e-7)
    assert held.joined == pytest.approx(np.array(ours["simes_by_layer_of_fit_half"]), abs=1e-7)
    assert held.statistic(texts) == pytest.approx(ours["fisher"], abs=1e-7)
    assert held.calibrated == pytest.approx(sorted(ours["fisher_of_calibration_half"]), abs=1e-7)
    p = held.p(texts)
    assert p == pytest.approx(ours["p"], abs=1e-7)
    assert simes(p) == pytest.approx(ours["simes_over_texts"])
    assert (p <= 0.05).mean() == ours["share_at_most_0.05"]
    assert released["p"][0] == released["p"][3]  # a copy of a reference text and one far outside: saturated
    assert p[0] > p[3]


def test_places_among_ties() -> None:
    case = MEASURABLE["ecdf_ties"]
    reference, points = (np.array(case["input"][name], dtype=float)[:, None] for name in ("reference", "points"))
    ranks = mid_rank(reference, points)[:, 0]
    assert ranks == pytest.approx(case["expect"]["mid_rank"])
    assert two_sided(ranks) == pytest.approx(case["expect"]["ours_two_sided"])
    assert min(two_sided(ranks)) > min(case["expect"]["released_two_sided"]) == 0  # never 0


def test_joining() -> None:
    case = MEASURABLE["simes_fisher"]
    p, expect = np.array(case["input"]["p"]), case["expect"]
    assert simes(p) == pytest.approx(expect["simes"])
    assert fisher(p) == pytest.approx(expect["fisher_statistic"])
    assert chi2.sf(fisher(p), 8) == pytest.approx(expect["fisher_p"])  # the upper tail
    assert chi2.cdf(expect["fisher_statistic_released"], 8) == pytest.approx(expect["released_fisher_p"])
    zero = MEASURABLE["simes_zero"]
    assert simes(np.array(zero["input"]["p"])) == zero["expect"]["simes"]
    assert simes(np.array([0.9, 0.95])) == pytest.approx(0.95)


def test_no_p_of_ours_is_zero() -> None:
    case = MEASURABLE["null_rate_of_zero_p"]
    for n, m, rate in zip(
        case["input"]["reference"], case["input"]["test"], case["expect"]["at_least_one"], strict=True
    ):
        assert m / (m + n) == pytest.approx(rate)  # as released, by chance alone
    draws = generator("far").normal(size=(40, 3))
    assert familiar([draws]).p([np.full((1, 3), 99.0)])[0] >= 1 / 21
    wide = generator("far").normal(size=(400, 3))
    assert familiar([wide]).p([np.full((1, 3), 99.0)])[0] < 0.1


def test_texts_like_the_reference_are_rejected_as_often_as_said() -> None:
    draws = generator("null")
    rejected, count = 0, 0
    for _ in range(12):
        held = familiar([draws.normal(size=(160, 24)) for _ in range(3)])
        p = held.p([draws.normal(size=(100, 24)) for _ in range(3)])
        rejected, count = rejected + int((p <= 0.05).sum()), count + len(p)
    assert 0.02 < rejected / count < 0.085
    shifted = held.p([draws.normal(size=(100, 24)) + 2.0 for _ in range(3)])
    assert (shifted <= 0.05).mean() > 0.9


def test_peaks_are_over_attended_tokens_whatever_the_batch() -> None:
    clf = Classifier(*tiny("bert"))
    short, long = Variant((1, 7, 8, 2), (0,) * 4), Variant((1, 7, 8, 9, 10, 11, 2), (0,) * 7)
    hidden = Variant(long.ids, long.types, (True, True, True, False, True, True, True))
    together = hidden_peaks(clf, [short, long, hidden])
    assert len(together) == clf.model.config.num_hidden_layers + 1
    for k, variant in enumerate((short, long, hidden)):
        alone = hidden_peaks(clf, [variant])
        for one, all_of in zip(alone, together, strict=True):
            assert one[0] == pytest.approx(all_of[k], abs=1e-5)
    assert not np.allclose(together[0][1], together[0][2])
