"""The synthetic problem of section 3.3, where the right order of removal is known (eq. 1, after Hooker et al. 2019).

Sixteen numeric features, of which the first four carry the class and repeat each other; the importance measure is the
size of a linear model's weights. As in the released code the noise of an example is one value, shared by its features,
and the model is a logistic regression without a penalty. `python -m veridical.retraining.roar.synthetic` prints figure
3's curves over many draws.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from veridical.core.errors import InputError
from veridical.core.seed import generator

FEATURES, INFORMATIVE = 16, 4


@dataclass(frozen=True)
class Problem:
    """One draw of eq. 1."""

    train: np.ndarray  # [n, FEATURES]
    train_labels: np.ndarray  # [n], whether z > 0
    test: np.ndarray
    test_labels: np.ndarray


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
        z, eta, noise = (rng.standard_normal((examples, 1)) for _ in range(3))  # one of each for all features
        return z * a / 10 + eta * d + noise / 10, z[:, 0] > 0

    return Problem(*sample(), *sample())


def roar(problem: Problem) -> Removal:
    """All features in the order of the first model's weights."""
    importance = _importance(problem, range(FEATURES))
    return _removed(problem, [int(k) for k in np.argsort(-importance, kind="stable")])


def recursive_roar(problem: Problem) -> Removal:
    """One feature at a time, the weights of a model without those gone before deciding which."""
    left, order = list(range(FEATURES)), []
    while left:
        order.append(left.pop(int(_importance(problem, left).argmax())))
    return _removed(problem, order)


def truth(problem: Problem) -> Removal:
    return _removed(problem, list(range(FEATURES)))


def worst(problem: Problem) -> Removal:
    """The informative features last."""
    return _removed(problem, list(range(FEATURES))[::-1])


def synthetic(draws: int = 20, *, examples: int = 10_000) -> dict[str, list[Removal]]:
    """Every way of removing features on each of some draws. One lucky draw (figure 3 shows one) proves nothing."""
    if draws < 1 or examples < 10:
        raise InputError(f"draws is {draws} and examples {examples}; give at least 1 draw of 10 examples.")
    problems = [draw(seed, examples) for seed in range(draws)]
    ways = {"ground truth": truth, "Recursive ROAR": recursive_roar, "ROAR": roar, "worst case": worst}
    return {name: [way(problem) for problem in problems] for name, way in ways.items()}


def _model(problem: Problem, features: Sequence[int]) -> LogisticRegression:
    with warnings.catch_warnings():
        # Four features without noise of their own give the class away: weights grow until the last step allowed.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LogisticRegression(C=np.inf).fit(problem.train[:, list(features)], problem.train_labels)


def _importance(problem: Problem, features: Sequence[int]) -> np.ndarray:
    return np.abs(_model(problem, features).coef_[0])


def _removed(problem: Problem, order: list[int]) -> Removal:
    gone = accumulate(([feature] for feature in order), initial=[])
    return Removal(tuple(order), tuple(_accuracy(problem, [k for k in range(FEATURES) if k not in g]) for g in gone))


def _accuracy(problem: Problem, features: Sequence[int]) -> float:
    if not features:  # nothing to go by: the commoner class
        return float((problem.test_labels == (problem.train_labels.mean() > 0.5)).mean())
    return float(_model(problem, features).score(problem.test[:, list(features)], problem.test_labels))


def _print() -> None:
    for name, removals in synthetic().items():
        right = sum(removal.right for removal in removals)
        curve = np.mean([removal.accuracy for removal in removals], axis=0)
        print(f"{name}: informative features first in {right} of {len(removals)} draws")
        print("  mean accuracy by features removed:", " ".join(f"{value:.3f}" for value in curve))


if __name__ == "__main__":
    _print()
