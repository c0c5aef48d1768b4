"""How well rules of integrated gradients integrate: against the change of the logit and against a fine rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from benchmarks.subject import Subject
from veridical.attribution import methods
from veridical.core.records import Attribution
from veridical.explanations.explain import attributions
from veridical.model.ask import batches_of

REFERENCE = "integrated_gradients:steps=160"


@dataclass(frozen=True, slots=True)
class Accuracy:
    """What one rule does on the subject's texts."""

    spec: str
    nodes: float  # gradient passes per text, mean
    gap_mean: float  # |sum of scores - change of the logit|
    gap_max: float
    distance_mean: float  # |scores - reference| / |reference|, both summed over tokens
    distance_max: float


class Judge:
    """Holds what rules are compared with, so that it is computed once."""

    def __init__(self, subject: Subject):
        self.subject = subject
        self.reference = scores_of(self.run(REFERENCE))
        self.change = change_of_logit(subject)

    def run(self, spec: str) -> list[Attribution]:
        choice = methods.choose(spec)
        return attributions(self.subject.clf, self.subject.encoded, choice, budget=self.subject.budget)

    def __call__(self, spec: str) -> Accuracy:
        found = self.run(spec)
        scores = scores_of(found)
        gaps = [abs(own.sum() - due) for own, due in zip(scores, self.change, strict=True)]
        distances = [
            np.abs(own - fine).sum() / np.abs(fine).sum() for own, fine in zip(scores, self.reference, strict=True)
        ]
        return Accuracy(
            spec=spec,
            nodes=float(np.mean([a.cost.backward for a in found])),
            gap_mean=float(np.mean(gaps)),
            gap_max=float(np.max(gaps)),
            distance_mean=float(np.mean(distances)),
            distance_max=float(np.max(distances)),
        )


def scores_of(found: Sequence[Attribution]) -> list[np.ndarray]:
    return [a.scores.astype(np.float64) for a in found]


def change_of_logit(subject: Subject) -> np.ndarray:
    """The predicted class's logit less what it is with the word vectors of the text at zero. [texts]"""
    clf, encoded = subject.clf, subject.encoded
    change = np.empty(len(encoded))
    for rows in batches_of([len(e.ids) for e in encoded], subject.budget):
        batch = clf.collate([encoded[i] for i in rows])
        free = batch.free[..., None]
        with clf.at_rest(), torch.no_grad():
            whole = clf.forward(batch).logits.double()
            null = clf.forward(batch, edit=lambda e, free=free: torch.where(free, torch.zeros_like(e), e)).logits
        classes = whole.argmax(-1, keepdim=True)
        change[rows] = (whole - null.double()).gather(-1, classes).squeeze(-1).numpy()
    return change
