"""The negative log-likelihood of the gold labels."""

from __future__ import annotations

import torch
from torch.nn import functional

from veridical.model.classifier import Classifier, Kind
from veridical.records import Batch, Output
from veridical.term import term


@term("cross_entropy")
def cross_entropy(clf: Classifier, batch: Batch, output: Output, labels: torch.Tensor) -> torch.Tensor:
    """Sum over examples of -log p(gold), from logits."""
    return losses(output.logits, labels, clf.kind).sum()


def losses(logits: torch.Tensor, labels: torch.Tensor, kind: Kind) -> torch.Tensor:
    """-log p(gold) of each example [B], from class logits [B, C]; multi-label: the mean over its classes."""
    if kind == "single":
        return functional.cross_entropy(logits, labels, reduction="none")
    gold = labels.to(logits.dtype)
    if kind == "multi":
        return functional.binary_cross_entropy_with_logits(logits, gold, reduction="none").mean(-1)
    # A one-logit head z has class logits (-z, z): p(class 1) = sigmoid(z).
    return functional.binary_cross_entropy_with_logits(logits[:, 1], gold, reduction="none")
