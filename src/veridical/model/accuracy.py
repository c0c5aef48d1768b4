"""How good a classifier's predictions are: macro-F1, accuracy, AUROC, cross-entropy, calibration error.

Gold labels and decisions are 0/1 matrices [n, C], so single-label and multi-label heads share every formula.
An undefined score is None, never 0 or 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch.nn import functional

from veridical.core.records import Answers, Example
from veridical.model.classifier import Kind

Scores = dict[str, float | None]

BINS = 15  # equal-width bins of the calibration error
BETTER: dict[str, Literal["higher", "lower"]] = {
    "macro_f1": "higher",
    "accuracy": "higher",
    "auroc": "higher",
    "loss": "lower",
    "calibration_error": "lower",
}


def score(answers: Answers, gold: torch.Tensor, kind: Kind) -> Scores:
    """Every score of some predictions against their gold labels (see `targets`)."""
    probabilities = answers.probabilities  # [n, C]
    if not len(probabilities):
        return dict.fromkeys(BETTER)
    known = gold.numpy()
    truth = known.astype(bool) if kind == "multi" else np.eye(probabilities.shape[1], dtype=bool)[known]
    decided = decisions(probabilities, kind)
    if kind == "multi":  # every label of every example is a decision of its own
        confidence, correct = np.maximum(probabilities, 1 - probabilities), decided == truth
    else:
        confidence, correct = probabilities.max(1), (decided & truth).any(1)
    return {
        "macro_f1": macro_f1(truth, decided),
        "accuracy": float((decided == truth).all(1).mean()),
        "auroc": auroc(truth, probabilities),
        "loss": float(losses(torch.from_numpy(answers.logits).double(), gold, kind).mean()),
        "calibration_error": calibration_error(np.ravel(confidence), np.ravel(correct)),
    }


def losses(logits: torch.Tensor, labels: torch.Tensor, kind: Kind) -> torch.Tensor:
    """-log p(gold) of each example [B], from class logits [B, C]; multi-label: the mean over its classes."""
    if kind == "single":
        return functional.cross_entropy(logits, labels, reduction="none")
    gold = labels.to(logits.dtype)
    if kind == "multi":
        return functional.binary_cross_entropy_with_logits(logits, gold, reduction="none").mean(-1)
    # A one-logit head z has class logits (-z, z): p(class 1) = sigmoid(z).
    return functional.binary_cross_entropy_with_logits(logits[:, 1], gold, reduction="none")


def decisions(probabilities: np.ndarray, kind: Kind) -> np.ndarray:
    """0/1 [n, C]: the likeliest class, or for multi-label heads every label with probability 0.5 or more."""
    if kind == "multi":
        return probabilities >= 0.5
    return np.eye(probabilities.shape[1], dtype=bool)[probabilities.argmax(1)]


def macro_f1(truth: np.ndarray, decided: np.ndarray) -> float | None:
    """Mean F1 over the classes that occur among the gold labels or the predictions."""
    both, either = (truth & decided).sum(0), truth.sum(0) + decided.sum(0)  # [C]
    present = either > 0
    return float((2 * both[present] / either[present]).mean()) if present.any() else None


def auroc(truth: np.ndarray, probabilities: np.ndarray) -> float | None:
    """One class against the rest, averaged over the classes that some examples have and some lack."""
    from scipy.stats import rankdata

    areas = []
    for positive, column in zip(truth.T, probabilities.T, strict=True):
        hits, misses = int(positive.sum()), int((~positive).sum())
        if hits and misses:  # the Mann-Whitney statistic; ties count half
            areas.append((rankdata(column)[positive].sum() - hits * (hits + 1) / 2) / (hits * misses))
    return float(np.mean(areas)) if areas else None


def calibration_error(confidence: np.ndarray, correct: np.ndarray, bins: int = BINS) -> float:
    """Expected calibration error: |accuracy - confidence| per equal-width bin, weighted by the bin's size."""
    if not np.isfinite(confidence).all():
        return math.nan
    place = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)  # bins are (lower, upper]
    gaps = np.bincount(place, weights=correct - confidence.astype(np.float64), minlength=bins)
    return float(np.abs(gaps).sum() / len(confidence))


def targets(examples: Sequence[Example], labels: Sequence[str], multilabel: bool) -> torch.Tensor:
    """Gold labels as the loss reads them: class indices [n], or 0/1 [n, C] for multi-label data."""
    if not multilabel:
        return torch.tensor([e.label for e in examples], dtype=torch.long)
    gold = torch.zeros(len(examples), len(labels))
    for row, example in enumerate(examples):
        gold[row, list(example.label)] = 1.0  # type: ignore[arg-type]
    return gold
