from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import goldens
import veridical
from tiny import PAIRS, tiny
from veridical.core.errors import InputError
from veridical.core.records import Encoded, Example
from veridical.training.prior import normalised, priors
from veridical.training.prior.textrank import ranks

GOLDEN = goldens.GOLDEN["textrank_six_distinct_tokens"]["expected"]

texts = st.lists(st.integers(0, 9), min_size=1, max_size=25)


def encoded(ids, specials=True) -> Encoded:
    """A text of these pieces between [CLS] and [SEP]."""
    around = [(101, False)] if specials else []
    tokens = [*around, *((i, True) for i in ids), *((102, False) for _ in around)]
    n = len(tokens)
    return Encoded(
        Example("x", "x"),
        tuple(i for i, _ in tokens),
        (0,) * n,
        ((0, 0),) * n,
        (0,) * n,
        tuple(free for _, free in tokens),
    )


def textrank(one: Encoded, spec: str = "textrank") -> np.ndarray:
    choice = priors.choose(spec)
    return choice.entry.run(one, None, **choice.options)


@pytest.mark.parametrize("window", [2, 4])
def test_golden(window):
    expected = GOLDEN[f"window_{window}"]
    close = {"rtol": 0, "atol": 1e-9}
    np.testing.assert_allclose(ranks(range(6), window=window), expected["after_10_steps"], **close)
    np.testing.assert_allclose(ranks(range(6), window=window, steps=2), expected["after_2_steps"], **close)
    fixed = ranks(range(6), window=window, steps=1000, tolerance=0)
    np.testing.assert_allclose(fixed, expected["fixed_point"], **close)
    assert fixed.sum() == pytest.approx(expected["sum"], abs=1e-9)
    one = encoded(range(6))
    for how, key in (("sum", "normalised_by_sum"), ("softmax", "softmax")):
        found = normalised(one, np.array([0, *fixed, 0]), how)
        np.testing.assert_allclose(found[1:-1], expected[key], rtol=0, atol=1e-7)  # float32
        assert not found[[0, -1]].any()


def naive(pieces, window, steps, damping=0.85):
    """Equation 1 written out with sets of neighbours."""
    near: dict[int, set[int]] = {piece: set() for piece in pieces}
    for i, a in enumerate(pieces):
        for j, b in enumerate(pieces):
            if 1 <= abs(i - j) < window and a != b:
                near[a].add(b)
    scores = dict.fromkeys(near, 1.0)
    for _ in range(steps):
        scores = {a: (1 - damping) + damping * sum(scores[b] / len(near[b]) for b in near[a]) for a in near}
    return [scores[piece] for piece in pieces]


@given(texts, st.integers(2, 8), st.integers(1, 12))
def test_it_is_equation_1(pieces, window, steps):
    found = ranks(pieces, window=window, steps=steps, tolerance=0)
    np.testing.assert_allclose(found, naive(pieces, window, steps), rtol=1e-12)


@given(texts)
def test_the_sum_over_types_never_changes_while_scores_move(pieces):
    """Why the released code stops after two updates: it watches the sum."""
    if len(set(pieces)) < 2:
        return
    kinds = {piece: place for place, piece in enumerate(pieces)}
    for steps in (1, 2, 10):
        found = ranks(pieces, steps=steps, tolerance=0)
        assert sum(found[place] for place in kinds.values()) == pytest.approx(len(kinds))


def test_it_stops_by_the_largest_change():
    loose, exact = ranks(range(6), steps=1000, tolerance=0.1), ranks(range(6), steps=1000, tolerance=0)
    assert 0 < np.abs(loose - exact).max() < 0.1
    np.testing.assert_array_equal(ranks([0, 1], steps=1000), [1, 1])  # the start is the fixed point


def test_a_lone_type_scores_what_damping_leaves():
    np.testing.assert_allclose(ranks([7]), [0.15])
    np.testing.assert_allclose(ranks([7, 7, 7]), [0.15] * 3)  # a loop is no link
    np.testing.assert_allclose(textrank(encoded([7, 7])), [0, 0.5, 0.5, 0])


def test_positions_as_nodes_tell_occurrences_apart():
    pieces = [1, 2, 1, 3, 4]
    by_type, by_position = ranks(pieces), ranks(pieces, nodes="positions")
    assert by_type[0] == by_type[2]
    assert by_position[0] != by_position[2]
    np.testing.assert_array_equal(by_position, ranks(range(5)))


def test_weighted_edges_count_both_orders_and_loops():
    # a b a: a-b in both orders (2), a near itself (1): degrees a 3, b 2.
    found = ranks([0, 1, 0], weighted=True, steps=1)
    a = 0.15 + 0.85 * (1 / 3 + 2 / 2)
    b = 0.15 + 0.85 * (2 / 3)
    np.testing.assert_allclose(found, [a, b, a])


def test_the_released_preset():
    pieces = [5, 6, 7, 5, 8, 9, 6, 10, 11, 12]
    scores = np.array([0, *ranks(pieces, window=8, weighted=True, steps=2), 0])
    shares = np.exp(scores) / np.exp(scores).sum()  # [CLS] and [SEP] enter at 0 and have a share
    np.testing.assert_allclose(textrank(encoded(pieces), "textrank:preset=released"), shares, rtol=1e-6)


def test_the_released_preset_reads_the_context_of_a_pair_and_the_default_does_not():
    clf = veridical.load(*tiny("bert", pair=True))
    (one,) = clf.encode([Example("p", PAIRS[0][0], 0, context=PAIRS[0][1])])
    free = np.array(one.free)
    default, released = textrank(one), textrank(one, "textrank:preset=released")
    assert not default[~free].any()
    own = ranks([i for i, f in zip(one.ids, free, strict=True) if f])
    np.testing.assert_allclose(default[free], own / own.sum(), rtol=1e-6)
    assert released.sum() == pytest.approx(1, abs=1e-6)
    inner = released[1:-1]
    assert len(set(inner[~free[1:-1]].tolist())) > 1  # the context's own scores, not one share for all


@pytest.mark.parametrize(
    ("spec", "said"),
    [("window=1", "at least 2"), ("damping=1", "at least 0 and below 1"), ("steps=0", "from 1 to 100,000")],
)
def test_options_that_cannot_be(spec, said):
    with pytest.raises(InputError, match=said):
        textrank(encoded([1, 2]), f"textrank:{spec}")
