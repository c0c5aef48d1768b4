"""DecompX: every position's vector as a sum of vectors, one per source token, followed through all layers.

`decompose` yields X [t, S, D] after each layer: X[i, k] is what target i owes to source k (Modarressi et al. 2023).
One buffer is worked on in place. Attention acts on each source by itself, everything else of a layer on each target,
so the one goes over chunks of sources and the other over chunks of targets; results do not depend on their size.

Multiply-adds for N tokens, H heads, width D, feed-forward width F:
    first layer       N N H D             X is diagonal: each source's H value vectors through W_O, weighed
    layers between    N N (2 D D + N D)   W_V, mixing, W_O
    last layer        N N H D + 2 N D D   one target: mixed first, then W_V, W_O (a head that averages: as between)
    feed-forward      N N 2 D F           W_1 and W_2 on every pair, or with a matrix W_2 diag(slopes) W_1 per target
                      N D D (F + N)       which is less where N > D F / (2 F - D), that is N > 4/7 D for F = 4 D;
                                          in the last layer an Nth of it
Norms and the sharing of biases are a few D per pair. Nothing is multiplied twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from veridical.core.errors import InputError
from veridical.model.decompose.layer import attend, attend_first, attend_one, chunks, normalise, norms_and_feed_forward
from veridical.model.decompose.share import How, line, share, shares
from veridical.model.decompose.trace import LayerTrace, Trace

_PER_POSITION = ("x", "brought", "pre1", "u", "a", "fed", "pre2")
ROWS = 1024  # vectors in a chunk: enough for matrix products at full speed, few enough for the cache


@dataclass(frozen=True)
class HeadShares:
    """What each source gives to the head."""

    pooled: Tensor  # [S, D], of the vector the head reads
    acted: Tensor  # [S, D], of that after the head's activation (and norm)
    logits: Tensor  # [S, C]; with bias=late [N, C]


@torch.no_grad()
def decompose(
    seen: Trace, row: int, how: How, *, memory: float = 2.0, until: int | None = None, whole: bool = False
) -> Iterator[Tensor]:
    """X after each layer of one text, up to layer `until`: [N, S, D], after the last of them [1, S, D] where the head
    reads one position only (`whole` asks for all). Sources are what `kept` names and, last, any biases' own.

    What is yielded is the buffer itself: read it before asking for the next. It and its chunks stay within `memory`
    GB, or the text is refused.
    """
    refuse(seen, how)
    layers, keep = seen.layers[:until], kept(seen, row)
    how = _seeing(seen, how, keep)
    everyone = slice(0, len(keep))
    target = None if whole else _place(seen, row, keep)
    first_targets = target if target is not None and len(layers) == 1 else everyone
    count = first_targets.stop - first_targets.start
    twice = 1 + seen.layers[0].layer.parallel  # what a parallel feed-forward part reads is kept beside
    rows = rows_within(memory, seen.layers[0], len(keep), twice * count * (len(keep) + how.columns))
    vectors = seen.last.new_empty(0)
    for i, batched in enumerate(layers):
        trace = _one_text(batched, row, keep)
        targets = target if target is not None and i == len(layers) - 1 else everyone
        beside = _beside(trace, how, vectors, targets, first=i == 0) if trace.layer.parallel else None
        if i == 0:
            vectors = attend_first(trace, how, targets, rows)
        elif targets is target:
            vectors = attend_one(trace, how, vectors, targets, rows)
        else:
            attend(trace, how, vectors, rows)
        for a, b in chunks(len(vectors), rows // vectors.shape[1]):
            some = slice(targets.start + a, targets.start + b)
            entering = None if beside is None else beside[a:b]
            norms_and_feed_forward(trace, how.at(some), vectors[a:b], some, entering)
            if i == len(seen.layers) - 1:
                normalise(seen.final_norm, how.at(some), vectors[a:b], trace.output[some])
        yield vectors


def _seeing(seen: Trace, how: How, keep: Tensor) -> How:
    """The rules with what each target of a decoder sees: itself, and what comes before it."""
    if not seen.causal:
        return how
    return replace(how, seen=torch.ones(len(keep), len(keep), device=keep.device).tril().to(seen.last.dtype))


def _place(seen: Trace, row: int, keep: Tensor) -> slice | None:
    """Where among the kept positions the one is that the head reads; None if it reads several."""
    if seen.place is None:
        return None
    place = int((keep < seen.place[row]).sum())
    return slice(place, place + 1)


def _beside(trace: LayerTrace, how: How, vectors: Tensor, targets: slice, *, first: bool) -> Tensor:
    """The layer's input at some targets, which attention is about to be added to. [t, S, D]"""
    if not first:
        return vectors[targets].clone()
    x, count = trace.x, targets.stop - targets.start
    start = x.new_zeros(count, len(x) + how.columns, x.shape[-1])
    start[:, targets].diagonal(dim1=0, dim2=1).copy_(x[targets].T)
    return start


def kept(seen: Trace, row: int) -> Tensor:
    """The positions of a text that count: those attended to, and the one the head reads. [N]"""
    return (seen.mask[row] | (seen.read[row] > 0)).nonzero().squeeze(-1)


@torch.no_grad()
def read(seen: Trace, row: int, vectors: Tensor) -> Tensor:
    """The decomposed vector the head reads: of one position, or the mean of all. [t, S, D] -> [S, D]"""
    keep = kept(seen, row)
    target = _place(seen, row, keep)
    if target is not None:
        return vectors[0] if len(vectors) == 1 else vectors[target.start]
    weights = seen.read[row, keep]
    return (weights @ vectors.flatten(1)).view(vectors.shape[1:])


def readouts(seen: Trace, row: int, how: How, *, memory: float = 2.0, until: int | None = None) -> Tensor:
    """Norms of the decomposed vector of what the head reads, after each layer, in one run. [L, S]"""
    every = decompose(seen, row, how, memory=memory, until=until)
    return torch.stack([read(seen, row, vectors).norm(dim=-1) for vectors in every])


@torch.no_grad()
def head_shares(seen: Trace, row: int, how: How, vectors: Tensor) -> HeadShares:
    """What the head makes of the vectors after the last layer."""
    head, keep, p = seen.head, kept(seen, row), seen.steps.p[row]
    target = _place(seen, row, keep)
    how = _seeing(seen, how, keep).at(target or slice(None))
    pooled = read(seen, row, vectors)
    each = head.pool == "late"  # every position goes through the head by itself
    acted = (vectors if each else pooled[None]).clone()  # [1 or N, S, D]
    p = p[keep] if each else p[None]
    if head.inner is not None:
        t = head.activation(p)
        acted = acted @ head.inner.weight.T
        share(how, acted, head.inner.bias)
        slopes, intercept = line(how, head.activation, p, t, head=True)
        acted *= slopes[:, None]
        share(how, acted, intercept)
        normalise(head.norm, how, acted, t)
    logits = acted @ seen.out.weight.T
    share(how, logits, seen.out.bias)
    weights = seen.read[row, keep] if each else torch.ones_like(p[:, 0])
    acted, logits = (torch.einsum("t,tsd->sd", weights, part)[None] for part in (acted, logits))
    if how.bias == "late":
        logits = late(logits[:, :-1], logits[:, -1])
    return HeadShares(pooled, acted[0], logits[0])


def late(tokens: Tensor, biases: Tensor) -> Tensor:
    """The biases' own part of the logits, shared among the tokens once. [B, T, C], [B, C] -> [B, T, C]"""
    return tokens + shares(How(bias="absdot"), tokens, biases)[..., None] * biases[:, None]


def refuse(seen: Trace, how: How, free: Tensor | None = None) -> None:
    """Refuse rules that mean nothing for a model, or for texts whose tokens that may be explained are `free` [B, T]."""
    first = seen.layers[0].layer
    if how.bias == "cls" and seen.causal and free is not None and bool(free[:, 0].any()):
        raise InputError(
            "bias=cls gives all biases to the first token, which is a word of the text here: this decoder's tokenizer "
            "puts none before it; leave bias at absdot."
        )
    if first.gated and how.activation != "ratio":
        raise InputError(
            f"activation={how.activation} is a rule for one activation, and the feed-forward part of this model is "
            "gated; leave it at ratio, which holds the activated half as it is."
        )


def rows_within(memory: float, trace: LayerTrace, tokens: int, vectors: int) -> int:
    """How many vectors to work on at a time beside a buffer of so many; what does not fit in `memory` GB is refused."""
    layer, width = trace.layer, trace.x.shape[-1]
    inner, size = trace.a.shape[-1], trace.x.element_size()
    row = size * (inner + 5 * width)  # the widest moment: the hidden layer, its input and result, and shares of them
    fused = size * width * (inner + 2 * width)  # a target's own matrix
    once = size * layer.heads * (tokens + 1) * width  # all heads' mixtures for one target
    least = size * width * vectors + max(row * (tokens + 1) + fused, once)
    spare = memory * 1e9 - least
    if spare < 0:
        need = math.ceil(least / 1e7) / 100
        raise InputError(
            f"Decomposing a text of {tokens} tokens takes {need:.2f} GB with this model, more than memory={memory:g} "
            f"allows; pass memory={need:g}, shorten the text, or use frozen_gradient or decompx_classifier:bias=late, "
            "which keep no decomposed vectors."
        )
    return tokens + 1 + max(0, min(ROWS - tokens - 1, int(spare / row)))


def _one_text(batched: LayerTrace, row: int, keep: Tensor) -> LayerTrace:
    """A layer's trace of one text, without padding and without the batch."""
    parts = {name: getattr(batched, name)[row] for name in _PER_POSITION}
    attention = batched.attention[row]
    if len(keep) < len(batched.x[row]):
        parts = {name: part[keep] for name, part in parts.items()}
        attention = attention[:, keep][:, :, keep]
    return replace(batched, attention=attention, **parts)
