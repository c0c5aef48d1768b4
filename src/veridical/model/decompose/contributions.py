"""How a layer's attention block sums each position from all positions, and how long the summands are.

At target i the block adds one part per source j,

    part_ij = linear(sum_h attention_hij value_hj W_O_h + [i = j] x_i) / spread_i,

where `linear` is the centring and gain of the LayerNorms passed and `spread` their deviations. Norm-based attention
and GlobEnc measure the parts, ALTI how far each is from the whole. Centring and gain are folded into W_O, so that a
part costs H x D multiply-adds and nothing of size T x T x D is ever held.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from veridical.core.errors import InputError
from veridical.model.decompose.trace import LayerTrace, Trace, values
from veridical.model.decompose.wiring import Norm

Scope = Literal["attention", "residual", "norm", "layer"]
# On a processor parts are worked out in tiles of so many bytes per thread and at most so many targets: what a core's
# own cache holds is read back at full speed.
CACHE, BLOCK = 2**20, 128


@dataclass(frozen=True)
class Parts:
    """What the parts of one layer are made of."""

    attention: Tensor  # [B, H, T, T]
    values: Tensor  # [B, H, T, d]
    weight: Tensor  # [H, d, D], W_O with `linear` folded in
    residual: Tensor | None  # [B, T, D], linear(x), or None where the residual is left out
    spread: Tensor  # [B, T, 1]
    whole: Tensor  # [B, T, D], what the block gives: the parts' sum and the biases
    mask: Tensor  # [B, T]


def parts(trace: Trace, index: int, scope: Scope, *, exact_norms: bool = True) -> Parts:
    """The parts of layer `index`.

    `scope` says where they are taken: after the output map of attention, with the residual added, after the LayerNorm
    that follows, or after the layer's second LayerNorm, reached through the second residual with the feed-forward
    block left out. In a layer that normalises first (ModernBERT, decoders) no norm follows a sum, and parts stay as
    they are with the residual added; `whole` of "layer" is then the layer's output. `exact_norms=False` leaves the eps
    of LayerNorms behind a sum out.
    """
    seen = trace.layers[index]
    layer = seen.layer
    weight, residual, whole = layer.out.weight, None, seen.pre1 - seen.x  # [D, H d]
    spread = torch.ones_like(seen.x[..., :1])
    if layer.post1 is not None:  # what attention brings is scaled as a whole, and the residual is not
        weight, spread = _folded(layer.post1, weight), layer.post1.deviation(seen.brought)
    if scope != "attention":
        residual, whole = seen.x * spread, seen.pre1
    for norm, before in _norms_behind(seen, scope, exact_norms):
        weight = _folded(norm, weight)
        assert residual is not None
        residual = norm.weight * norm.centred(residual)
        spread = spread * norm.deviation(before)
        whole = norm(before)
    if scope == "layer" and layer.pre_norm:
        whole = seen.pre2
    by_head = weight.unflatten(1, (layer.heads, -1)).permute(1, 2, 0)  # [H, d, D]
    return Parts(seen.attention, values(seen), by_head, residual, spread, whole, trace.mask)


def _folded(norm: Norm, weight: Tensor) -> Tensor:
    """A norm's centring and gain behind a map. [D, ...]"""
    return norm.weight[:, None] * norm.centred(weight.T).T


def _norms_behind(seen: LayerTrace, scope: Scope, exact: bool) -> Iterator[tuple[Norm, Tensor]]:
    """The norms behind a sum that parts pass, each with the vectors it was given."""
    layer = seen.layer
    if layer.pre_norm or scope in ("attention", "residual"):
        return
    passed = [(layer.norm1, seen.pre1)] + ([(layer.norm2, seen.pre2)] if scope == "layer" else [])
    for norm, before in passed:
        if norm is not None:
            yield norm if exact else replace(norm, eps=0.0), before


def lengths(
    of: Parts,
    *,
    order: Literal[1, 2] = 2,
    away: Tensor | None = None,
    target: Tensor | None = None,
    memory: float = 2.0,
) -> Tensor:
    """The L1 or L2 norm of every part, or with `away` [B, T, D] of its difference to a vector of its target.
    [B, T, T]

    With `target` [B] only one position of each text is worked out: [B, 1, T]. A text costs its own length whatever the
    batch is padded to; behind its last attended token the lengths are 0. `memory` bounds, in GB, how much of the parts
    is held at once.
    """
    size = of.mask.shape[1]
    ends = (of.mask * torch.arange(1, size + 1, device=of.mask.device)).amax(-1).clamp(min=1).tolist()
    texts = []
    for row, end in enumerate(ends):
        first = 0 if target is None else int(target[row])
        end = max(end, first + 1)
        behind = 0 if target is not None else size - end
        measured = _text(of, row, end, slice(first, end if target is None else first + 1), order, away, memory)
        texts.append(torch.nn.functional.pad(measured, (0, size - end, 0, behind)))
    return torch.stack(texts)


def _text(of: Parts, row: int, end: int, targets: slice, order: int, away: Tensor | None, memory: float) -> Tensor:
    """One text's lengths. [targets, end]"""
    sent = (of.values[row, :, :end] @ of.weight).transpose(0, 1).contiguous()  # [end, H, D]
    heard = of.attention[row, :, targets, :end].permute(2, 1, 0).contiguous()  # [end, targets, H]
    spread = of.spread[row, targets]  # [targets, 1]
    less = torch.zeros_like(of.whole[row, targets]) if away is None else spread * away[row, targets]  # [targets, D]
    norms = _norms_of(order, heard, sent, less, memory)  # [end, targets]
    if of.residual is not None:
        # The residual is in the parts (i, i) alone: those are measured again rather than written into.
        fetched = (heard[targets].diagonal().t()[:, None] @ sent[targets])[:, 0]  # [targets, D]
        with_residual = _norm(order, fetched + of.residual[row, targets] - less)
        norms = torch.diagonal_scatter(norms, with_residual, offset=-targets.start)
    return norms.t() / spread


def _norms_of(order: int, heard: Tensor, sent: Tensor, less: Tensor, memory: float) -> Tensor:
    """Norms of heard @ sent - less, tile by tile. [S, R, H], [S, H, D], [R, D] -> [S, R]"""
    (sources, targets), width = heard.shape[:2], sent.shape[-1]
    room, block = memory * 1e9, targets
    if sent.device.type == "cpu":
        room, block = min(room, CACHE * torch.get_num_threads()), BLOCK
    vectors = int(min(room / (width * sent.element_size()), sources * targets))
    block = max(1, min(block, targets, vectors))
    chunk = max(1, min(vectors // block, sources))
    learning = torch.is_grad_enabled() and any(t.requires_grad for t in (heard, sent, less))
    space = None if learning else sent.new_empty(chunk * block * width)  # used again by every tile
    columns = []
    for i in range(0, targets, block):
        rows = []
        for j in range(0, sources, chunk):
            tile = heard[j : j + chunk, i : i + block], sent[j : j + chunk], less[i : i + block]
            if space is None:
                # Kept for the backward pass, tiles would add up to what they are there to avoid.
                norms = checkpoint(_tile, order, *tile, use_reentrant=False, preserve_rng_state=False)
            else:
                norms = _tile(order, *tile, space)
            rows.append(norms)
        columns.append(torch.cat(rows))
    return torch.cat(columns, dim=1)


def _tile(order: int, heard: Tensor, sent: Tensor, less: Tensor, space: Tensor | None = None) -> Tensor:
    shape = (*heard.shape[:2], sent.shape[-1])
    out = None if space is None else space[: math.prod(shape)].view(shape)
    return _norm(order, torch.bmm(heard, sent, out=out).sub_(less))


def _norm(order: int, vectors: Tensor) -> Tensor:
    """Over the last dimension; `vectors` are not used afterwards."""
    # vector_norm takes three times as long for L1 as the same in two steps.
    return vectors.abs_().sum(-1) if order == 1 else torch.linalg.vector_norm(vectors, dim=-1)


def at(tensor: Tensor, target: Tensor | None) -> Tensor:
    """Of every position, or of one of each text. [B, T, ...], [B] -> [B, T or 1, ...]"""
    if target is None:
        return tensor
    return tensor[torch.arange(len(tensor), device=tensor.device), target][:, None]


def attended(matrix: Tensor, trace: Trace, target: Tensor | None = None) -> Tensor:
    """The matrix with 0 to and from positions that are not attended, and in decoders from those to come, whose parts
    are 0 and contributions rounding. [B, T or 1, T]"""
    both = at(trace.mask, target)[..., None] & trace.mask[:, None]
    if trace.causal:
        both = both & at(torch.ones_like(both[:, :1]).expand(-1, both.shape[-1], -1).tril(), target)
    return torch.where(both, matrix, torch.zeros_like(matrix))


def normalised(rows: Tensor) -> Tensor:
    """Each row divided by its sum; a row of zeros stays one."""
    total = rows.sum(-1, keepdim=True)
    return rows / torch.where(total > 0, total, torch.ones_like(total))


def roll(read: Tensor, matrices: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
    """What the head reads of each layer alone, and rolled out to the tokens through all layers below it.

    `read` [B, T] weighs the positions; `matrices` come from the last layer down. The last may hold the one target that
    the head reads. Both [B, L, T], first layer first.
    """
    alone: list[Tensor] = []
    rolled = read[:, None][:, :0]  # [B, 0, T]
    for matrix in matrices:
        rows = torch.cat([rolled, read[:, None]], dim=1)
        if matrix.shape[1] < read.shape[1]:
            rows = rows.sum(-1, keepdim=True)
        rolled = rows @ matrix
        alone.append(rolled[:, -1])
    return torch.stack(alone[::-1], dim=1), rolled.flip(1)


def layer_index(trace: Trace, layer: int | None) -> int:
    """From a layer's number, 1 for the first and None for the last, to its place."""
    count = len(trace.layers)
    if layer is None:
        return count - 1
    if not 1 <= layer <= count:
        raise InputError(f"layer={layer} is not a layer of this model; allowed: 1 to {count}, or leave it out.")
    return layer - 1
