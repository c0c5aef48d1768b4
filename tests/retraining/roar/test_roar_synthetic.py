from __future__ import annotations

import numpy as np
import pytest

from veridical.core.errors import InputError
from veridical.retraining.roar.synthetic import FEATURES, INFORMATIVE, draw, recursive_roar, synthetic


@pytest.fixture(scope="module")
def found():
    return synthetic(20, examples=2_000)


def test_recursion_removes_the_informative_features_first_where_roar_does_not(found):
    """Section 3.3 over twenty draws: one of them, as in figure 3, could be luck."""
    right = {name: sum(one.right for one in removals) for name, removals in found.items()}
    assert right == {"ground truth": 20, "Recursive ROAR": 20, "ROAR": 10, "worst case": 0}


def test_accuracy_after_four_removals_is_that_of_the_released_problem(found):
    after = {name: np.mean([one.accuracy[INFORMATIVE] for one in removals]) for name, removals in found.items()}
    assert after["Recursive ROAR"] == pytest.approx(0.499, abs=0.01)
    assert after["ROAR"] == pytest.approx(0.745, abs=0.01)


def test_an_examples_noise_is_one_value_for_all_its_features():
    """Of three values per example, sixteen features span three dimensions; noise of their own would span sixteen."""
    assert np.linalg.matrix_rank(draw(0, 100).train) == 3


def test_every_feature_goes_once_and_what_is_left_without_the_informative_ones_is_a_coin(found):
    for removals in found.values():
        for one in removals:
            assert sorted(one.order) == list(range(FEATURES))
            assert one.accuracy[-1] == pytest.approx(0.5, abs=0.05)
    for one in found["ground truth"]:
        assert one.accuracy[INFORMATIVE] == pytest.approx(0.5, abs=0.05)


def test_the_curve_of_recursion_lies_at_or_below_roars(found):
    curves = {name: np.mean([one.accuracy for one in removals], axis=0) for name, removals in found.items()}
    assert (curves["Recursive ROAR"] <= curves["ROAR"] + 0.005).all()
    assert (curves["worst case"][INFORMATIVE:-1] > curves["Recursive ROAR"][INFORMATIVE:-1]).all()


def test_a_draw_is_its_seeds():
    assert recursive_roar(draw(1, 200)) == recursive_roar(draw(1, 200))
    assert recursive_roar(draw(1, 200)).accuracy != recursive_roar(draw(2, 200)).accuracy


def test_no_draws_are_a_mistake():
    with pytest.raises(InputError, match="draws is 0"):
        synthetic(0)
