"""The synthetic problem of section 3.3, where the right order of removal is known (eq. 1, after Hooker et al. 2019).

Sixteen numeric features, of which the first four carry the class and repeat each other; the importance measure is the
size of a linear model's weights. `python -m veridical.retraining.roar.synthetic` prints figure 3's curves over many
draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from veridical.core.errors import InputError
from veridical.core.seed import generator

FEATURES, INFORMATIVE = 16, 4


@dataclass(frozen=True)
class Problem:
    """One draw of eq. 1."""

    products: np.ndarray  # [FEATURES + 1, FEATURES + 1], of the training features (and a one) with each other
    moments: np.ndarray  # [FEATURES + 1], of the same with the class, -1 or 1
    test: np.ndarray  # [n, FEATURES]
    test_labels: np.ndarray  # [n], -1 or 1


@dataclass(frozen=True)
class Removal:
    """In which order features went, and the accuracy after none, one, ... all of them had gone."""

    order: tuple[int, ...]
    accuracy: tuple[float, ...]  # FEATURES + 1

    @property
    def right(self) -> bool:
        """Whether the informative features went first, in whatever order."""
        return set(self.order[:INFORMATIVE]) == set(range(INFORMATIVE))


def draw(seed: int, examples: int = 10_000) -> Problem:
    """x = a z / 10 + d eta + epsilon / 10; the class is the sign of z, and a is 0 but for the first four features."""
    rng = generator("roar synthetic", seed)
    a, d = np.zeros(FEATURES), rng.standard_normal(FEATURES)
    a[:INFORMATIVE] = rng.standard_normal(INFORMATIVE)

    def sample() -> tuple[np.ndarray, np.ndarray]:
        z, eta, noise = (rng.standard_normal((examples, size)) for size in (1, 1, FEATURES))
        return z * a / 10 + eta * d + noise / 10, np.where(z[:, 0] > 0, 1.0, -1.0)

    x, y = sample()
    x = np.column_stack([x, np.ones(examples)])
    return Problem(x.T @ x, x.T @ y, *sample())


def roar(problem: Problem) -> Removal:
    """All features in the order of the first model's weights."""
    importance = np.abs(_weights(problem, range(FEATURES))[:-1])
    return _removed(problem, [int(k) for k in np.argsort(-importance, kind="stable")])


def recursive_roar(problem: Problem) -> Removal:
    """One feature at a time, the weights of a model without those gone before deciding which."""
    left, order = list(range(FEATURES)), []
    while left:
        importance = np.abs(_weights(problem, left)[:-1])
        order.append(left.pop(int(importance.argmax())))
    return _removed(problem, order)


def truth(problem: Problem) -> Removal:
    return _removed(problem, list(range(FEATURES)))


def worst(problem: Problem) -> Removal:
    """The informative features last."""
    return _removed(problem, list(range(FEATURES))[::-1])


def synthetic(draws: int = 40, *, examples: int = 10_000) -> dict[str, list[Removal]]:
    """Every way of removing features on each of some draws. One lucky draw (figure 3 shows one) proves nothing."""
    if draws < 1 or examples < 10:
        raise InputError(f"draws is {draws} and examples {examples}; give at least 1 draw of 10 examples.")
    problems = [draw(seed, examples) for seed in range(draws)]
    ways = {"ground truth": truth, "Recursive ROAR": recursive_roar, "ROAR": roar, "worst case": worst}
    return {name: [way(problem) for problem in problems] for name, way in ways.items()}


def _weights(problem: Problem, features: Sequence[int]) -> np.ndarray:
    """Least squares on some features; the last weight is the intercept."""
    some = [*features, FEATURES]
    return np.linalg.solve(problem.products[np.ix_(some, some)], problem.moments[some])


def _removed(problem: Problem, order: list[int]) -> Removal:
    gone = accumulate(([feature] for feature in order), initial=[])
    return Removal(tuple(order), tuple(_accuracy(problem, [k for k in range(FEATURES) if k not in g]) for g in gone))


def _accuracy(problem: Problem, features: Sequence[int]) -> float:
    weights = _weights(problem, features)
    scores = problem.test[:, list(features)] @ weights[:-1] + weights[-1]
    return float(((scores > 0) == (problem.test_labels > 0)).mean())


def _print() -> None:
    for name, removals in synthetic().items():
        right = sum(one.right for one in removals)
        curve = np.mean([one.accuracy for one in removals], axis=0)
        print(f"{name}: informative features first in {right} of {len(removals)} draws")
        print("  mean accuracy by features removed:", " ".join(f"{value:.3f}" for value in curve))


if __name__ == "__main__":
    _print()
