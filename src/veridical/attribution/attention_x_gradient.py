from __future__ import annotations

import torch

from veridical.attribution import method
from veridical.core.records import Batch
from veridical.model.classifier import Classifier, leaf
from veridical.model.target import Target


@method("attention_x_gradient", needs=("attention", "gradient"), signed=True, differentiable=True)
def attention_x_gradient(clf: Classifier, batch: Batch, target: Target, *, abs: bool = False) -> torch.Tensor:
    """Last-layer attention times the gradient of the explained logit by it, averaged over heads.

    Summed over rows: a head that reads the first token gives every other row the gradient 0, so this is its
    first row; a head that averages positions reads them all.
    """
    out = clf.forward(batch, edit=leaf, attentions=True)
    weights = out.attentions[-1]  # [B, H, T, T]
    (gradient,) = clf.gradient(target(out.logits), [weights])
    scores = (weights * gradient).mean(1).sum(1)  # [B, T]
    return scores.abs() if abs else scores
