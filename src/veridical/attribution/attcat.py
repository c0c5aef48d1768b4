from __future__ import annotations

from typing import Literal

import torch

from veridical.attribution import method
from veridical.core.records import Batch
from veridical.model.classifier import Classifier, leaf
from veridical.model.pooling import read_row
from veridical.model.target import Target


@method("attcat", needs=("attention", "gradient"), signed=True, differentiable=True)
def attcat(clf: Classifier, batch: Batch, target: Target, *, queries: Literal["all", "read"] = "all") -> torch.Tensor:
    """Attentive class activation tokens (Qiang et al. 2022): a token's vector times the gradient of the explained logit
    by it, weighted with the attention it receives, summed over the layers.

    As in the authors' code the vectors are those a layer takes in, and attention is averaged over heads and over all
    tokens that pay it; `queries=read` takes only what the token the head reads pays.
    """
    out = clf.forward(batch, edit=leaf, attentions=True, hidden=True)
    inputs = out.hidden[: len(out.attentions)]
    gradients = clf.gradient(target(out.logits), inputs)
    paying = batch.mask.to(out.logits.dtype)[..., None]  # [B, T, 1]
    scores = torch.zeros_like(paying[..., 0])
    for weights, hidden, gradient in zip(out.attentions, inputs, gradients, strict=True):
        mean = weights.mean(1)  # [B, T, T]
        paid = read_row(clf, mean, batch) if queries == "read" else (mean * paying).sum(1) / paying.sum(1)
        scores = scores + paid * (hidden * gradient).sum(-1)
    return scores
