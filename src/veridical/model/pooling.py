"""Which position's row of an attention matrix the classification head reads."""

from __future__ import annotations

import torch

from veridical.core.errors import InputError
from veridical.model.classifier import Classifier

# Encoders whose head reads the first token; the BiLSTM has one row, its attention weights.
FIRST = frozenset(
    "bert roberta xlm-roberta camembert distilbert electra deberta deberta-v2 big_bird big_bird_tanh albert mpnet "
    "bilstm-attention".split()
)


def read_row(clf: Classifier, matrix: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The row the head reads, or for a head that averages positions the mean of their rows. [B, T, T] -> [B, T]"""
    pooling = getattr(clf.model.config, "classifier_pooling", "cls" if clf.family in FIRST else None)
    if pooling == "cls":
        return matrix[:, 0]
    if pooling == "mean":
        attended = mask.to(matrix.dtype)[..., None]  # [B, T, 1]
        return (matrix * attended).sum(1) / attended.sum(1)
    raise InputError(
        f"It is not known which position the head of a {clf.family!r} model reads, so its attention has no one "
        "row to show; use a gradient method or attention_x_gradient."
    )
