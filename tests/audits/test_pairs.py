from __future__ import annotations

import numpy as np
import pytest

from veridical.audits.pairs import compare_all


def test_a_metric_is_compared_in_its_own_direction():
    values = np.stack([np.linspace(0, 0.5, 20), np.linspace(0.2, 0.9, 20)])
    values[:, 0] = 0.1
    [pair] = compare_all(values, ["a", "b"], "lower")
    assert (pair.n, pair.zeros) == (20, 1)
    assert pair.difference == pytest.approx(values[0].mean() - values[1].mean())
    assert pair.effect == 1.0
    assert pair.distinguishable


def test_two_methods_are_compared_on_the_texts_that_both_have():
    values = np.full((3, 40), np.nan)
    values[0], values[1, :24] = np.linspace(0.5, 0.9, 40), np.linspace(0.1, 0.3, 24)
    [pair] = compare_all(values, ["a", "left early", "never asked"], "higher")
    assert (pair.a, pair.b, pair.n) == ("a", "left early", 24)
    assert pair.difference == pytest.approx((values[0, :24] - values[1, :24]).mean())
