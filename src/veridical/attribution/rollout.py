from __future__ import annotations

from collections.abc import Sequence

import torch

from veridical.attribution import method
from veridical.core.records import Batch
from veridical.model.classifier import Classifier
from veridical.model.pooling import read_row
from veridical.model.target import Target


@method("rollout", needs=("attention",), signed=False, differentiable=True, of_target=False)
def rollout(clf: Classifier, batch: Batch, target: Target) -> torch.Tensor:
    """Attention rollout: head-mean attention mixed half and half with the identity (the residual), multiplied
    through the layers, read at the token the head reads. (Abnar and Zuidema 2020).
    """
    out = clf.forward(batch, attentions=True)
    target(out.logits)
    return read_row(clf, roll([layer.mean(1) for layer in out.attentions]), batch)


def roll(layers: Sequence[torch.Tensor]) -> torch.Tensor:
    """Row-normalised (A + I) of each layer, upper layers multiplied on the left. L x [B, T, T] -> [B, T, T]"""
    identity = torch.eye(layers[0].shape[-1], dtype=layers[0].dtype, device=layers[0].device)
    product = None
    for attention in layers:
        mixed = attention + identity
        mixed = mixed / mixed.sum(-1, keepdim=True)
        product = mixed if product is None else mixed @ product
    assert product is not None
    return product
