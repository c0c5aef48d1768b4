from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from veridical.attribution import method
from veridical.core.records import Batch
from veridical.model.classifier import Classifier
from veridical.model.decompose.contributions import (
    attended,
    layer_index,
    lengths,
    normalised,
    parts,
    roll,
)
from veridical.model.decompose.trace import Gigabytes, LayerNumber, trace
from veridical.model.target import Target


@method(
    "globenc",
    needs=("attention", "layers"),
    signed=False,
    differentiable=True,
    of_target=False,
    passes="1 to 2 forward",
)
def globenc(
    clf: Classifier,
    batch: Batch,
    target: Target,
    *,
    normalise: bool = False,
    layer: LayerNumber = None,
    memory: Gigabytes = 2.0,
) -> Tensor:
    """GlobEnc: the lengths of all tokens' parts of a layer's output, multiplied through the layers.
    (Modarressi et al. 2022).

    Parts are taken after the layer's second LayerNorm: through attention, residual and LayerNorm, then through the
    second residual alone, the feed-forward block being left out of the parts and kept in the deviation they are divided
    by. As in the authors' code the matrices of lengths are multiplied as they are, so that a position with longer parts
    counts for more on the way; `normalise` divides their rows by their sums first. The scores of a text are then
    divided by their sum. Where layers normalise first (ModernBERT) no LayerNorm follows a sum, and parts are those of
    the residual stream. `layer` counts from 1: the rollout ends there. `memory` bounds the working chunk, in GB.
    """
    seen = trace(clf, batch)
    target(seen.logits)
    top = layer_index(seen, layer)

    def downwards() -> Iterator[Tensor]:
        for index in range(top, -1, -1):
            place = seen.place if index == top else None
            sizes = attended(lengths(parts(seen, index, "layer"), target=place, memory=memory), seen, place)
            # One factor per matrix goes out with the last division; without it a deep rollout leaves float32.
            yield normalised(sizes) if normalise else sizes / _largest(sizes)

    return normalised(roll(seen.read, downwards())[1][:, -1])


def _largest(matrix: Tensor) -> Tensor:
    """The largest entry per text, 1 where there is none. [B, ., .] -> [B, 1, 1]"""
    largest = matrix.detach().amax((-2, -1), keepdim=True)
    return torch.where(largest > 0, largest, torch.ones_like(largest))
