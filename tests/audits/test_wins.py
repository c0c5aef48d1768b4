"""Net wins of one explanation over another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veridical.audits.wins import by_unit, chance_wins, net_wins
from veridical.core.seed import generator

NAN = np.nan
THREE = ("higher", "lower", "higher")


def scores(seed: int, methods: int = 4, texts: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """Scores with ties and gaps, and which methods were scored at all."""
    draw = generator("wins", seed)
    values = draw.integers(0, 3, (methods, 3, texts)) / 2
    values[draw.random(values.shape) < 0.2] = NAN
    return values, draw.random((methods, texts)) < 0.8


def test_net_wins_of_two_methods_by_hand():
    values = np.array(
        [  # metrics x texts
            [[0.9, 0.5, NAN, NAN, 0.1], [0.1, 0.2, 0.3, NAN, 0.1], [0.5, 0.5, 0.5, NAN, 0.1]],
            [[0.1, 0.5, 0.3, 0.4, 0.2], [0.2, 0.1, 0.2, 0.4, 0.2], [0.4, 0.5, 0.6, NAN, 0.2]],
        ]
    )
    there = np.array([[True, True, True, True, True], [True, True, True, True, False]])
    wins = net_wins(values, there, THREE, (1, 1, 1))
    # Wins all three; ties two and loses the second, where lower is better; loses both that are defined for both.
    np.testing.assert_allclose(wins[0, 1], [1, -1 / 3, -1, 0, NAN])
    np.testing.assert_allclose(wins[1, 0], [-1, 1 / 3, 1, 0, NAN])
    np.testing.assert_array_equal(wins[0, 0], [0] * 5)
    np.testing.assert_array_equal(wins[1, 1], [0, 0, 0, 0, NAN])
    weighted = net_wins(values, there, THREE, (2, 1, 1))
    np.testing.assert_allclose(weighted[0, 1], [1, -1 / 4, -1, 0, NAN])


def test_what_differs_by_less_than_noise_ties():
    values = np.array([[[0.5, 0.5]], [[0.5 + 1e-8, 0.5 + 1e-5]]])
    np.testing.assert_array_equal(net_wins(values, np.ones((2, 2), bool), ("higher",), (1,))[1, 0], [0, 1])


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6))
def test_net_wins_are_of_two_alone_and_opposite(seed):
    values, there = scores(seed)
    wins = net_wins(values, there, THREE, (1, 1, 1))
    np.testing.assert_array_equal(wins, -wins.swapaxes(0, 1))
    assert np.nanmax(np.abs(wins), initial=0) <= 1
    kept = [2, 0, 3]  # one leaves, and the others stand in another order
    fewer = net_wins(values[kept], there[kept], THREE, (1, 1, 1))
    np.testing.assert_array_equal(fewer, wins[np.ix_(kept, kept)])


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6))
def test_chance_is_the_mean_over_random_orders(seed):
    values, there = scores(seed)
    orders = scores(seed + 1, methods=3)[0]
    both = net_wins(np.concatenate([values, orders]), np.concatenate([there, np.ones((3, 7), bool)]), THREE, (1, 1, 1))
    chance = chance_wins(values, there, orders, THREE, (1, 1, 1))
    np.testing.assert_allclose(chance, both[:4, 4:].mean(1))
    np.testing.assert_array_equal(np.isnan(chance), ~there)
    np.testing.assert_allclose(chance_wins(values, there, orders[[2, 0, 1]], THREE, (1, 1, 1)), chance, atol=1e-12)


def test_a_unit_is_the_mean_of_its_texts_in_order_of_first_appearance():
    wins = np.array([[1.0, 0.0, 0.5, -1.0, NAN], [NAN, 0.25, NAN, 0.75, 1.0]])
    by = by_unit(wins, ["b", "a", "b", "a", "c"])
    np.testing.assert_allclose(by, [[0.75, -0.5, NAN], [NAN, 0.5, 1.0]])


def test_texts_that_are_their_own_units_stay_as_they_are():
    values, there = scores(5)
    wins = net_wins(values, there, THREE, (1, 1, 1))
    np.testing.assert_array_equal(by_unit(wins, range(7)), wins)


def test_every_metric_needs_a_weight():
    values, there = scores(1)
    with pytest.raises(ValueError, match="zip"):
        net_wins(values, there, THREE, (1, 1))
