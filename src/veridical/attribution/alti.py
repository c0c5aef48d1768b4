from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Literal

import torch
from torch import Tensor

from veridical.attribution import method
from veridical.core.errors import Caution
from veridical.core.records import Batch
from veridical.model.classifier import Classifier
from veridical.model.decompose.contributions import (
    at,
    attended,
    layer_index,
    lengths,
    normalised,
    parts,
    roll,
)
from veridical.model.decompose.trace import Gigabytes, LayerNumber, Trace, trace
from veridical.model.target import Target

Distance = Literal["l1", "l2"]
After = Literal["attention", "layer"]
_SHIFT = 1e-6  # what torch's pairwise_distance adds to every component of a difference


@method(
    "alti",
    needs=("attention", "layers"),
    signed=False,
    differentiable=True,
    of_target=False,
    passes="2 to 5 forward",
)
def alti(
    clf: Classifier,
    batch: Batch,
    target: Target,
    *,
    norm: Distance = "l1",
    after: After = "attention",
    layer: LayerNumber = None,
    rollout: bool = True,
    released: bool = False,
    memory: Gigabytes = 2.0,
) -> Tensor:
    """How much of what the head reads comes from each token: in every layer by how near the token's part of the
    attention block's output is to the whole of it, multiplied through the layers. (ALTI, Ferrando et al. 2022).

    With parts T_ij and wholes y_i after the LayerNorm that follows attention, contributions are
    max(0, |y_i| - |T_ij - y_i|) divided by their sum over j. They hold the residual; feed-forward blocks are passed
    over. Scores of a text, special tokens included, sum to 1. A target none of whose parts is nearer to y_i than 0 is
    has nothing to divide (0/0): its row stays 0 and what is read through it goes to no token, so that the scores sum to
    less than 1 by that much; a warning counts the texts it befell.

    `layer` counts from 1: the rollout ends there, or with `rollout=false` that layer speaks alone. `after=layer` takes
    parts and whole after the second LayerNorm. Where layers normalise first (ModernBERT, decoders) no norm follows
    attention: parts and whole are then those of the residual stream. `released` copies two numerical quirks of the
    authors' code: 1e-6 added to each component of T_ij - y_i, and LayerNorm without its eps. `memory` bounds the
    working chunk, in GB; it does not change the scores.
    """
    seen = trace(clf, batch)
    target(seen.logits)
    top = layer_index(seen, layer)
    options = {"norm": norm, "after": after, "released": released, "memory": memory}
    if not rollout:
        scores = roll(seen.read, [alti_matrix(seen, top, target=seen.place, **options)])[1][:, 0]
    else:
        scores = alti_layers(seen, last=top, **options)[1][:, -1]
    _count_lost(scores.detach())
    return scores


def _count_lost(scores: Tensor) -> None:
    lost = int((scores.sum(-1) < 0.999).sum())
    if lost:
        warnings.warn(
            f"In {lost} of {len(scores)} texts some position has no token near its vector, so that ALTI cannot say "
            "what it is made of; the scores there sum to less than 1.",
            Caution,
            stacklevel=2,
        )


def alti_layers(
    seen: Trace,
    *,
    last: int | None = None,
    norm: Distance = "l1",
    after: After = "attention",
    released: bool = False,
    memory: float = 2.0,
) -> tuple[Tensor, Tensor]:
    """What the head would read at each layer: its own contributions, and the rollout up to it. Both [B, L, T].

    `last` (from 0) is the highest layer taken, None for all.
    """
    top = len(seen.layers) - 1 if last is None else last

    def downwards() -> Iterator[Tensor]:
        for index in range(top, -1, -1):
            target = seen.place if index == top else None
            yield alti_matrix(seen, index, target=target, norm=norm, after=after, released=released, memory=memory)

    return roll(seen.read, downwards())


def alti_matrix(
    seen: Trace,
    index: int,
    *,
    target: Tensor | None = None,
    norm: Distance = "l1",
    after: After = "attention",
    released: bool = False,
    memory: float = 2.0,
) -> Tensor:
    """Contributions in layer `index` (from 0) of every source to one `target` of each text [B], or to all,
    rows divided by their sum. [B, T or 1, T]"""
    size, distance = sizes_and_distances(
        seen, index, target=target, norm=norm, after=after, released=released, memory=memory
    )
    return normalised(attended((size[..., None] - distance).clamp(min=0), seen, target))


def sizes_and_distances(
    seen: Trace,
    index: int,
    *,
    target: Tensor | None = None,
    norm: Distance = "l1",
    after: After = "attention",
    released: bool = False,
    memory: float = 2.0,
) -> tuple[Tensor, Tensor]:
    """|y_i| [B, T or 1] and |T_ij - y_i| [B, T or 1, T] of layer `index`; 0 behind a text's end."""
    of = parts(seen, index, "norm" if after == "attention" else "layer", exact_norms=not released)
    order = 1 if norm == "l1" else 2
    away = of.whole - _SHIFT if released else of.whole
    distance = lengths(of, order=order, away=away, target=target, memory=memory)
    size = torch.linalg.vector_norm(at(of.whole, target), ord=order, dim=-1)
    return torch.where(at(seen.mask, target), size, torch.zeros_like(size)), distance
