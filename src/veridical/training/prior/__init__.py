"""Priors: word importance that never sees the model. One file each, found by scanning this folder.

A prior is a function `(encoded, fitted, *, options) -> salience [T]`: non-negative, 0 off the free tokens, summing to
1 over them, or 0 everywhere where it has nothing to say of a text. One that needs the statistics of a corpus has a
`fit(clf, encoded, labels)`, which is given the train split alone; what it returns is handed in as `fitted`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np
import torch

from veridical.core.errors import InputError
from veridical.core.records import Batch, Encoded
from veridical.core.registry import Choice, Registry
from veridical.core.spec import Spec
from veridical.model.classifier import Classifier

# sum: scores divided by their sum. softmax: over the free tokens. softmax_all: over every token, special ones and the
# context entering with 0 and keeping their share, as in SaLoss's released code; it alone is not 0 off the free tokens.
Normalise = Literal["sum", "softmax", "softmax_all"]
F = TypeVar("F", bound=Callable[..., np.ndarray])


@dataclass(frozen=True)
class Prior:
    """A named prior. `fit`: what it learns from the train split, if anything."""

    name: str
    run: Callable[..., np.ndarray]
    fit: Callable[[Classifier, Sequence[Encoded], Any], Any] | None = None


priors: Registry[Prior] = Registry("prior", "veridical.training.prior", "prior")


def prior(name: str, *, fit: Callable[[Classifier, Sequence[Encoded], Any], Any] | None = None) -> Callable[[F], F]:
    """Register a function as a prior."""

    def add(run: F) -> F:
        priors.add(Prior(name, run, fit))
        return run

    return add


@dataclass(frozen=True)
class Salience:
    """A prior with what it learned. A text's salience is worked out when it is first seen, and kept."""

    choice: Choice[Prior]
    fitted: Any = None
    known: dict[Encoded, np.ndarray] = field(default_factory=dict, repr=False)

    def of(self, encoded: Encoded) -> np.ndarray:
        """[T] float32."""
        if encoded not in self.known:
            self.known[encoded] = self.choice.entry.run(encoded, self.fitted, **self.choice.options)
        return self.known[encoded]

    def of_batch(self, batch: Batch) -> torch.Tensor:
        """[B, T] on the batch's device, 0 on padding."""
        rows = np.zeros(batch.ids.shape, dtype=np.float32)
        for row, encoded in enumerate(batch.encoded):
            rows[row, : len(encoded.ids)] = self.of(encoded)
        return torch.from_numpy(rows).to(batch.ids.device)


def fit_prior(spec: str | Spec, clf: Classifier, encoded: Sequence[Encoded], labels: Any) -> Salience:
    """A prior fitted on the train split, with the salience of its texts."""
    choice = priors.choose(spec)
    fitted = None if choice.entry.fit is None else choice.entry.fit(clf, encoded, labels)
    salience = Salience(choice, fitted)
    for one in encoded:
        salience.of(one)
    return salience


def normalised(encoded: Encoded, scores: np.ndarray, how: Normalise = "sum", *, floor: float = 0.0) -> np.ndarray:
    """Scores [T] as salience [T]; 0 everywhere where no free token scores above 0.

    `floor` is the least a free token gets before the sum is taken: KL(attention || salience) is infinite where the
    salience is 0.
    """
    free = np.array(encoded.free)
    if not np.isfinite(scores).all() or (scores < 0).any():
        raise InputError(f"The prior of example {encoded.example.id!r} holds a score that is negative or not finite.")
    salience = np.zeros(len(free), dtype=np.float32)
    if not (scores[free] > 0).any():
        return salience
    where = np.ones_like(free) if how == "softmax_all" else free
    kept = scores[where].astype(np.float64)
    weights = np.maximum(kept, floor) if how == "sum" else np.exp(kept - kept.max())
    salience[where] = weights / weights.sum()
    return salience
