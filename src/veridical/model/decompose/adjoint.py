"""The network with attention, LayerNorm deviations and activation slopes held fixed, run backwards by hand.

Held so, a classifier is affine in the outputs of its embedding block: its gradient there tells each token's share of
a logit exactly. Nothing is asked of autograd, so the gradient can itself be differentiated with everything that was
held fixed moving, which is what training on it needs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from veridical.model.decompose.trace import LayerTrace, Trace, slope
from veridical.model.decompose.wiring import Norm


@dataclass(frozen=True)
class Adjoint:
    """Gradients of a weighted sum of logits in the frozen network."""

    block: Tensor  # [B, T, D], by the output of the embedding block
    first_values: Tensor  # [B, H, T, d], by the first layer's value vectors
    biases_at: Tensor  # [B, T], the share of the biases added at each position; the head's are where it reads
    first_value_biases_at: Tensor  # [B, T], in it that of the first layer's value bias, where attention brings it

    @property
    def biases(self) -> Tensor:
        """The share of all biases behind the embedding block: each times the gradient by it. [B]"""
        return self.biases_at.sum(-1)


def adjoint(trace: Trace, weights: Tensor) -> Adjoint:
    """Of the sum of logits under `weights` [B, C]: one class is a row with a single 1."""
    flow, shares = _head(trace, weights)
    if trace.final_norm is not None:
        shares = shares + _share(trace.final_norm.bias, flow)
        flow = through_norm(trace.final_norm, trace.layers[-1].output, flow)
    to_values, of_values = flow, shares
    for layer in reversed(trace.layers):
        flow, to_values, share, of_values = _layer(layer, flow)
        shares = shares + share + of_values
    return Adjoint(flow, to_values, shares, of_values)


def _head(trace: Trace, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient by what the head is given [B, T, D], and its biases' share where it reads [B, T]."""
    head, steps = trace.head, trace.steps
    late = head.pool == "late"  # every position goes through the head, and has its own slopes there
    share = _share(trace.out.bias, weights)
    gradient = weights @ trace.out.weight  # [B, D]
    if late:
        gradient, share = gradient[:, None].expand_as(steps.p), share[:, None]
    if head.inner is not None:
        acted = steps.t
        if head.norm is not None:
            acted = head.activation(steps.p)
            share = share + _share(head.norm.bias, gradient)
            gradient = through_norm(head.norm, acted, gradient)
        gradient = gradient * slope(steps.p, acted)
        share = share + _share(head.inner.bias, gradient)
        gradient = gradient @ head.inner.weight
    if not late:
        gradient, share = gradient[:, None], share[:, None]
    return steps.read[..., None] * gradient, steps.read * share


def _layer(trace: LayerTrace, flow: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """From the gradient by a layer's output to those by its input and its value vectors, and the shares of its biases,
    the value bias by itself."""
    layer = trace.layer
    norm1, norm2 = (None if norm is None else norm.bias for norm in (layer.norm1, layer.norm2))
    share = flow.new_zeros(flow.shape[:2])
    if not layer.pre_norm:
        share = share + _share(norm2, flow)
        flow = through_norm(layer.norm2, trace.pre2, flow)
    inward, inner_share = _feed_forward(trace, through_norm(layer.post2, trace.fed, flow))
    share = share + inner_share
    if layer.pre_norm:
        share = share + _share(norm2, inward)
        inward = through_norm(layer.norm2, trace.x if layer.parallel else trace.pre1, inward)
    beside = inward if layer.parallel else None  # it reads the layer's input, not what attention made of it
    flow = flow if layer.parallel else flow + inward
    if not layer.pre_norm:
        share = share + _share(norm1, flow)
        flow = through_norm(layer.norm1, trace.pre1, flow)
    outward = through_norm(layer.post1, trace.brought, flow)
    mixed = (outward @ layer.out.weight).unflatten(-1, (layer.heads, -1)).transpose(1, 2)  # [B, H, T, d]
    to_values = trace.attention.transpose(-1, -2) @ mixed
    values = to_values.transpose(1, 2).flatten(2)  # [B, T, H * d]
    share = share + _share(layer.out.bias, outward)
    # Attention of a position sums to 1, so it brings the value bias whole.
    of_values = _share(layer.value.bias, mixed.transpose(1, 2).flatten(2))
    inward = values @ layer.value.weight  # [B, T, D]
    if layer.pre_norm:
        share = share + _share(norm1, inward)
        inward = through_norm(layer.norm1, trace.x, inward)
    flow = flow + inward if beside is None else flow + inward + beside
    return flow, to_values, share, of_values


def _feed_forward(trace: LayerTrace, flow: Tensor) -> tuple[Tensor, Tensor]:
    """From the gradient by its output to that by its input, and the share of its biases."""
    layer = trace.layer
    share = _share(layer.outer.bias, flow)
    flow = flow @ layer.outer.weight  # [B, T, F]
    weight, bias = layer.inner.weight, layer.inner.bias
    if layer.gated:  # activation(first) * second: what is activated is held, as attention is, and weighs the second
        held = layer.activation(trace.u.chunk(2, dim=-1)[0])
        weight, bias = weight.chunk(2)[1], None if bias is None else bias.chunk(2)[1]
    else:
        held = slope(trace.u, trace.a)
    flow = flow * held
    return flow @ weight, share + _share(bias, flow)


def _share(bias: Tensor | None, gradient: Tensor) -> Tensor:
    """A bias times the gradient by it, wherever it is added. [..., D] -> [...]"""
    return gradient.new_zeros(gradient.shape[:-1]) if bias is None else gradient @ bias


def through_norm(norm: Norm | None, x: Tensor, flow: Tensor) -> Tensor:
    """Back through a norm whose deviation on `x` is held: centring is its own transpose."""
    return flow if norm is None else norm.centred(flow * norm.weight / norm.deviation(x))


def one_hot(classes: Tensor, count: int, like: Tensor) -> Tensor:
    """A row with a single 1 per explained class. [B] -> [B, C]"""
    return torch.nn.functional.one_hot(classes, count).to(like.dtype)
