from __future__ import annotations

import numpy as np
import pytest

from veridical.core.errors import InputError
from veridical.retraining.roar.synthetic import FEATURES, INFORMATIVE, draw, recursive_roar, synthetic


@pytest.fixture(scope="module")
def found():
    return synthetic(40)


def test_recursion_removes_the_informative_features_first_where_roar_does_not(found):
    """Section 3.3 over forty draws: one of them, as in figure 3, could be luck."""
    right = {name: sum(one.right for one in removals) for name, removals in found.items()}
    assert right["Recursive ROAR"] >= 30
    assert right["Recursive ROAR"] > right["ROAR"]
    assert right["ground truth"] == 40
    assert right["worst case"] == 0


def test_every_feature_goes_once_and_what_is_left_without_the_informative_ones_is_a_coin(found):
    for removals in found.values():
        for one in removals:
            assert sorted(one.order) == list(range(FEATURES))
            assert one.accuracy[-1] == pytest.approx(0.5, abs=0.03)
    for one in found["ground truth"]:
        assert one.accuracy[INFORMATIVE] == pytest.approx(0.5, abs=0.03)


def test_the_curve_of_recursion_lies_at_or_below_roars(found):
    curves = {name: np.mean([one.accuracy for one in removals], axis=0) for name, removals in found.items()}
    assert (curves["Recursive ROAR"] <= curves["ROAR"] + 0.005).all()
    assert (curves["worst case"][1:-1] > curves["Recursive ROAR"][1:-1]).all()


def test_a_draw_is_its_seeds():
    assert recursive_roar(draw(1, 200)) == recursive_roar(draw(1, 200))
    assert recursive_roar(draw(1, 200)).accuracy != recursive_roar(draw(2, 200)).accuracy


def test_no_draws_are_a_mistake():
    with pytest.raises(InputError, match="draws is 0"):
        synthetic(0)
