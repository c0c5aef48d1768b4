from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bootstrap

from veridical.retraining.roar.curve import OverSeeds, area, over_seeds, verdict

ENTRY = next(
    entry
    for entry in json.loads((Path(__file__).parents[2] / "golden" / "metrics.json").read_text())
    if entry["name"] == "roar_area_between_curves"
)


@pytest.mark.parametrize("name", ENTRY["inputs"])
def test_areas_of_the_golden_file(name):
    curves, expected = ENTRY["inputs"][name], ENTRY["expected"][name]
    mean = area(curves["ratio"], curves["measure"], curves["random"])
    assert mean.between == pytest.approx(expected["area"], abs=1e-9)
    assert mean.largest == pytest.approx(expected["max_area"], abs=1e-9)
    value = expected.get("faithfulness", expected.get("faithfulness_unclipped"))
    assert mean.faithfulness == pytest.approx(value, abs=1e-9)
    clipped = expected.get("faithfulness_clipped_to_minus1_1", value)
    assert mean.clipped == pytest.approx(clipped, abs=1e-9)


@given(st.lists(st.floats(0.5, 1), min_size=3, max_size=9), st.integers(2, 5))
def test_the_area_does_not_depend_on_the_step_size(values, times):
    """Points put in between on straight lines change nothing."""
    x = np.linspace(0, 1, len(values))
    random = np.linspace(1, 0.4, len(values))
    fine = np.linspace(0, 1, (len(values) - 1) * times + 1)
    coarse = area(x, values, random)
    finer = area(fine, np.interp(fine, x, values), np.interp(fine, x, random))
    assert finer.faithfulness == pytest.approx(coarse.faithfulness, abs=1e-9)


def test_the_best_there_can_be_is_one_and_the_baseline_itself_is_zero():
    x, random = [0, 0.0, 0.5, 1], [0.9, 0.9, 0.7, 0.5]
    assert area(x, [0.9, 0.5, 0.5, 0.5], random).faithfulness == pytest.approx(1)
    assert area(x, random, random).faithfulness == 0


def test_a_baseline_that_never_lies_above_its_end_has_no_area():
    mean = area([0, 0.5, 1], [0.4, 0.3, 0.5], [0.4, 0.5, 0.5])
    assert mean.faithfulness is None
    assert mean.clipped is None


def test_intervals_are_scipys_and_take_five_seeds():
    values = [0.61, 0.72, 0.55, 0.66, 0.70]
    few = over_seeds(values[:4])
    assert (few.low, few.high, few.side) == (None, None, None)
    assert few.mean == pytest.approx(np.mean(values[:4]))
    mean = over_seeds(values)
    theirs = bootstrap((values,), np.mean, n_resamples=9_999, method="BCa", rng=np.random.default_rng(0))
    assert mean.low == pytest.approx(theirs.confidence_interval.low, abs=0.01)
    assert mean.high == pytest.approx(theirs.confidence_interval.high, abs=0.01)
    assert mean == over_seeds(values)


def test_a_seed_without_a_value_is_left_out_and_nothing_is_not_zero():
    assert over_seeds([0.2, None, 0.4]) == over_seeds([0.2, 0.4])
    assert over_seeds([None]) == OverSeeds(None, None, None, 0)


@pytest.mark.parametrize(
    ("values", "side", "words"),
    [
        ([0.1, 0.2, 0.1, 0.15, 0.12], "below", "significantly below random"),
        ([-0.1, 0.2, -0.1, 0.15, -0.12], "none", "not distinguishable"),
        ([-0.1, -0.2, -0.1, -0.15, -0.12], "above", "above: possible class leakage"),
        ([0.0] * 5, "none", "not distinguishable"),
    ],
)
def test_verdicts(values, side, words):
    mean = over_seeds(values)
    assert mean.side == side
    assert verdict(mean, True) == words


def test_without_recursion_a_curve_near_random_says_nothing():
    mean = over_seeds([-0.1, 0.2, -0.1, 0.15, -0.12])
    assert "inconclusive" in verdict(mean, False)
    assert verdict(over_seeds([0.1, 0.2]), True).startswith("no verdict from 2 of the 5")
    assert verdict(over_seeds([]), True) == "not run"
