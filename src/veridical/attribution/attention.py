from __future__ import annotations

import torch

from veridical.attribution import method
from veridical.core.records import Batch
from veridical.model.classifier import Classifier
from veridical.model.pooling import read_row
from veridical.model.target import Target


@method("attention", needs=("attention",), signed=False, differentiable=True, of_target=False)
def attention(clf: Classifier, batch: Batch, target: Target) -> torch.Tensor:
    """Attention of the last layer from the token the head reads (the first), averaged over heads.

    The same for every class. For the BiLSTM these are its attention weights.
    """
    out = clf.forward(batch, attentions=True)
    target(out.logits)
    return read_row(clf, out.attentions[-1].mean(1), batch)  # [B, H, T, T] -> [B, T]
