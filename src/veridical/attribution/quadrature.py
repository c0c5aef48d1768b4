"""Nodes in [0, 1] and weights that sum to 1: how integrated gradients average along a path."""

from __future__ import annotations

import functools
from typing import Literal

import numpy as np
from numpy.polynomial import legendre

Fixed = Literal["gauss", "right", "mid", "left", "trapezoid", "released"]
LEVELS = (3, 7, 15, 31, 63)  # nodes of the nested rule, each holding those before it


def nodes(rule: Fixed, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Of a rule with so many nodes; the trapezoid has steps + 1 of them.

    The weights of `released` do not sum to 1: its gradient is taken before the word vectors are scaled by i/k.
    """
    if rule == "gauss":
        points, weights = legendre.leggauss(steps)
        return (points + 1) / 2, weights / 2
    if rule == "trapezoid":
        weights = np.full(steps + 1, 1 / steps)
        weights[[0, -1]] /= 2
        return np.linspace(0, 1, steps + 1), weights
    if rule == "released":
        points, weights = nodes("right", steps)
        return points, weights * points
    shift = {"right": 1.0, "mid": 0.5, "left": 0.0}[rule]
    return (np.arange(steps) + shift) / steps, np.full(steps, 1 / steps)


@functools.cache
def nested() -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """The rules of Gauss and Patterson (1968) with 3, 7, 15, 31 and 63 nodes: nodes in the order in which they come in,
    so that a level's begin with those of the level before it, and the weights of that level.

    They are exact for polynomials of degree 5, 11, 23, 47 and 95. The first is Gauss's.
    """
    points = legendre.leggauss(LEVELS[0])[0]
    levels = []
    while True:
        # Interpolating weights: every Legendre polynomial but the first integrates to 0.
        every = legendre.legvander(points, len(points) - 1)
        levels.append(((points + 1) / 2, np.linalg.solve(every.T, np.eye(len(points))[0])))
        if len(points) == LEVELS[-1]:
            return tuple(levels)
        points = np.concatenate([points, _between(points)])


def _between(points: np.ndarray) -> np.ndarray:
    """The n + 1 nodes to add to n: zeros of the polynomial whose product with that of the old nodes is orthogonal to
    every polynomial of degree n."""
    count = len(points)
    at, weights = legendre.leggauss(2 * count + 2)
    old = np.prod(at[:, None] - points, axis=1)
    every = legendre.legvander(at, count + 1)
    products = (every[:, : count + 1] * (weights * old / np.abs(old).max())[:, None]).T @ every
    zeros = legendre.legroots(np.linalg.svd(products)[2][-1]).real
    return (zeros - zeros[::-1]) / 2  # they lie about 0 alike, and rounding makes them differ
