from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

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
    "attention_norm",
    needs=("attention", "layers"),
    signed=False,
    differentiable=True,
    of_target=False,
    passes="1 forward",
)
def attention_norm(
    clf: Classifier,
    batch: Batch,
    target: Target,
    *,
    scope: Literal["attention", "residual", "norm"] = "attention",
    layer: LayerNumber = None,
    rollout: bool = False,
    memory: Gigabytes = 2.0,
) -> Tensor:
    """Norm-based attention: the length of the vector that attention fetches from each token, summed over heads, to the
    position the head reads, in the last layer. (Kobayashi et al. 2020).

    A high weight on a short value vector fetches little; this is attention with that put right, and the default
    compares with `attention` like for like. `scope` follows the vectors on: `residual` adds the position's own vector
    to its own part, `norm` takes them after the LayerNorm that follows (Kobayashi et al. 2021), which layers that
    normalise first do not have: there `norm` is `residual`. Rows are divided by their sum over tokens. `layer` counts
    from 1. `rollout` multiplies the rows through the layers up to that one; without the residual in them that leaves
    out most of what is passed upward, so choose `residual` or `norm` with it. `memory` bounds the working chunk, in GB.
    """
    seen = trace(clf, batch)
    target(seen.logits)
    top = layer_index(seen, layer)

    def downwards() -> Iterator[Tensor]:
        for index in range(top, -1 if rollout else top - 1, -1):
            place = seen.place if index == top else None
            sizes = lengths(parts(seen, index, scope), target=place, memory=memory)
            yield normalised(attended(sizes, seen, place))

    return roll(seen.read, downwards())[1][:, -1]
