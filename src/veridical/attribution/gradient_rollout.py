from __future__ import annotations

import torch

from veridical.attribution import method
from veridical.core.records import Batch
from veridical.model.classifier import Classifier, leaf
from veridical.model.pooling import read_row
from veridical.model.target import Target


@method("gradient_rollout", needs=("attention", "gradient"), signed=False, differentiable=True)
def gradient_rollout(clf: Classifier, batch: Batch, target: Target) -> torch.Tensor:
    """Attention times the gradient of the explained logit by it, negative products left out, averaged over heads and
    followed through all layers to the token the head reads (Chefer et al. 2021, generic attention explainability).

    From R = 1, every layer adds mean(max(0, attention x gradient)) R to it (their eq. 5 and 6).
    """
    out = clf.forward(batch, edit=leaf, attentions=True)
    gradients = clf.gradient(target(out.logits), out.attentions)
    tokens = batch.ids.shape[1]
    relevance = torch.eye(tokens, dtype=out.logits.dtype, device=out.logits.device).expand(len(batch.ids), -1, -1)
    for weights, gradient in zip(out.attentions, gradients, strict=True):  # from the first layer up, [B, H, T, T] each
        relevance = relevance + (weights * gradient).clamp_min(0).mean(1) @ relevance
    return read_row(clf, relevance, batch) * batch.mask
