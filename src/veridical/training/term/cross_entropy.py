"""The negative log-likelihood of the gold labels."""

from __future__ import annotations

import torch

from veridical.core.records import Batch, Output
from veridical.model.accuracy import losses
from veridical.model.classifier import Classifier
from veridical.training.term import term


@term("cross_entropy")
def cross_entropy(clf: Classifier, batch: Batch, output: Output, labels: torch.Tensor) -> torch.Tensor:
    """Sum over examples of -log p(gold), from logits."""
    return losses(output.logits, labels, clf.kind).sum()
