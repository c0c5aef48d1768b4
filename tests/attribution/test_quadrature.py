"""Rules of integration: what they are exact for, and that levels of the nested one hold each other."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.polynomial import legendre

from veridical.attribution.quadrature import LEVELS, nested, nodes


@pytest.mark.parametrize(("level", "degree"), [(0, 5), (1, 11), (2, 23), (3, 47), (4, 95)])
def test_every_level_is_exact_for_polynomials(level: int, degree: int) -> None:
    points, weights = nested()[level]
    assert len(points) == LEVELS[level]
    assert degree == (3 * LEVELS[level] + 1) // 2
    errors = [abs(weights @ legendre.legval(2 * points - 1, np.eye(n + 1)[n]) - (n == 0)) for n in range(degree + 1)]
    assert max(errors) < 1e-8
    assert (weights > 0).all()
    assert points.min() > 0
    assert points.max() < 1


def test_levels_begin_with_the_nodes_before_them_and_with_gauss() -> None:
    levels = nested()
    assert set(np.round(levels[0][0][:3], 12)) == set(np.round(nodes("gauss", 3)[0], 12))
    for (fewer, _), (more, _) in itertools.pairwise(levels):
        assert (more[: len(fewer)] == fewer).all()
        assert len(set(np.round(more, 9))) == len(more)


def test_a_level_is_not_exact_for_everything() -> None:
    """Of even degree past what it is exact for: odd ones vanish by symmetry."""
    for (points, weights), count in zip(nested()[:4], LEVELS, strict=False):
        degree = (3 * count + 1) // 2 + 1
        assert abs(weights @ legendre.legval(2 * points - 1, np.eye(degree + 1)[degree])) > 1e-6


@pytest.mark.parametrize("rule", ["gauss", "mid", "trapezoid"])
def test_fixed_rules_integrate_a_line(rule: str) -> None:
    points, weights = nodes(rule, 7)
    assert weights.sum() == pytest.approx(1)
    assert weights @ points == pytest.approx(0.5)
