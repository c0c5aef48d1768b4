from __future__ import annotations

from typing import Literal

import torch

from veridical.attribution import method
from veridical.core.errors import InputError
from veridical.core.records import Batch
from veridical.model.classifier import Classifier
from veridical.model.decompose.decompose import kept, readouts, refuse
from veridical.model.decompose.share import Activation, Bias, How
from veridical.model.decompose.trace import Gigabytes, LayerNumber, trace
from veridical.model.target import Target


@method(
    "decompx", needs=("attention", "layers"), signed=False, of_target=False, passes="1 forward, and 0.7 for every token"
)
def decompx(
    clf: Classifier,
    batch: Batch,
    target: Target,
    *,
    bias: Bias = "absdot",
    rules: Literal["released", "paper"] = "released",
    ffn: bool = True,
    activation: Activation = "ratio",
    layer: LayerNumber = None,
    memory: Gigabytes = 2.0,
) -> torch.Tensor:
    """Length of the token's part in the vector the head reads, that vector taken apart through all layers or up to
    one of them (DecompX: Modarressi et al. 2023).

    `bias` says which tokens bear the biases; with token and late they are a source of their own, which is no token and
    has no score here. `rules=released` is the authors' code, `paper` their equations. `layer` counts from 1; `memory`
    is in GB.
    """
    with torch.no_grad():
        seen = trace(clf, batch)
        if layer is not None and not 1 <= layer <= len(seen.layers):
            raise InputError(f"layer is {layer}, and this model has layers 1 to {len(seen.layers)}; pass one of them.")
        how = How(bias, rules, ffn, activation)
        refuse(seen, how, batch.free)
        target(seen.logits)
        scores = torch.zeros_like(seen.last[..., 0])  # [B, T]
        for row in range(len(scores)):
            keep = kept(seen, row)
            norms = readouts(seen, row, how, memory=memory, until=layer)
            scores[row, keep] = norms[-1, : len(keep)]
    return torch.where(batch.mask, scores, 0.0)
