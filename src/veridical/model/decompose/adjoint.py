"""The network with attention, LayerNorm deviations and activation slopes held fixed, run backwards by hand.

Held so, a classifier is affine in the outputs of its embedding block: its gradient there tells each token's share of
a logit exactly. Nothing is asked of autograd, so the gradient can itself be differentiated with everything that was
held fixed moving, which is what training on it needs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from veridical.model.decompose.trace import LayerTrace, Trace, deviation, slope
from veridical.model.decompose.wiring import Norm


@dataclass(frozen=True)
class Adjoint:
    """Gradients of a weighted sum of logits in the frozen network."""

    block: Tensor  # [B, T, D], by the output of the embedding block
    first_values: Tensor  # [B, H, T, d], by the first layer's value vectors
    biases: Tensor  # [B], the share of all biases behind the embedding block: each times the gradient by it


def adjoint(trace: Trace, weights: Tensor) -> Adjoint:
    """Of the sum of logits under `weights` [B, C]: one class is a row with a single 1."""
    head, steps = trace.head, trace.steps
    shares = [_share(trace.out.bias, weights)]
    gradient = weights @ trace.out.weight  # [B, D]
    acted = steps.t
    if head.norm is not None:
        acted = head.activation(steps.p)
        shares.append(_share(head.norm.bias, gradient))
        gradient = through_norm(head.norm, acted, gradient)
    gradient = gradient * slope(steps.p, acted)
    shares.append(_share(head.inner.bias, gradient))
    flow = trace.read[..., None] * (gradient @ head.inner.weight)[:, None]  # [B, T, D]
    if trace.final_norm is not None:
        shares.append(_share(trace.final_norm.bias, flow))
        flow = through_norm(trace.final_norm, trace.layers[-1].pre2, flow)
    to_values = flow
    for layer in reversed(trace.layers):
        flow, to_values, share = _layer(layer, flow)
        shares.append(share)
    return Adjoint(flow, to_values, torch.stack(shares).sum(0))


def _layer(trace: LayerTrace, flow: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """From the gradient by a layer's output to those by its input and its value vectors, and its biases' share."""
    layer = trace.layer
    norm1, norm2 = (None if norm is None else norm.bias for norm in (layer.norm1, layer.norm2))
    share = flow.new_zeros(len(flow))
    if not layer.pre_norm:
        share = share + _share(norm2, flow)
        flow = through_norm(layer.norm2, trace.pre2, flow)
    inward, inner_share = _feed_forward(trace, flow)
    share = share + _share(layer.outer.bias, flow) + inner_share
    if layer.pre_norm:
        share = share + _share(norm2, inward)
        inward = through_norm(layer.norm2, trace.pre1, inward)
    flow = flow + inward
    if not layer.pre_norm:
        share = share + _share(norm1, flow)
        flow = through_norm(layer.norm1, trace.pre1, flow)
    mixed = (flow @ layer.out.weight).unflatten(-1, (layer.heads, -1)).transpose(1, 2)  # [B, H, T, d]
    to_values = trace.attention.transpose(-1, -2) @ mixed
    values = to_values.transpose(1, 2).flatten(2)  # [B, T, H * d]
    share = share + _share(layer.out.bias, flow) + _share(layer.value.bias, values)
    inward = values @ layer.value.weight  # [B, T, D]
    if layer.pre_norm:
        share = share + _share(norm1, inward)
        inward = through_norm(layer.norm1, trace.x, inward)
    return flow + inward, to_values, share


def _feed_forward(trace: LayerTrace, flow: Tensor) -> tuple[Tensor, Tensor]:
    """From the gradient by its output to that by its input, and the share of its inner bias."""
    layer = trace.layer
    flow = flow @ layer.outer.weight  # [B, T, F]
    weight, bias = layer.inner.weight, layer.inner.bias
    if layer.gated:  # activation(first) * second: what is activated is held, as attention is, and weighs the second
        held = layer.activation(trace.u.chunk(2, dim=-1)[0])
        weight, bias = weight.chunk(2)[1], None if bias is None else bias.chunk(2)[1]
    else:
        held = slope(trace.u, trace.a)
    flow = flow * held
    return flow @ weight, _share(bias, flow)


def _share(bias: Tensor | None, gradient: Tensor) -> Tensor:
    """A bias times the gradient by it, over all positions it is added at. [B, ..., D] -> [B]"""
    if bias is None:
        return gradient.new_zeros(len(gradient))
    return (gradient @ bias).reshape(len(gradient), -1).sum(-1)


def through_norm(norm: Norm | None, x: Tensor, flow: Tensor) -> Tensor:
    """Back through a LayerNorm whose deviation on `x` is held: centring is its own transpose."""
    if norm is None:
        return flow
    scaled = flow * norm.weight / deviation(norm, x)
    return scaled - scaled.mean(-1, keepdim=True)


def one_hot(classes: Tensor, count: int, like: Tensor) -> Tensor:
    """A row with a single 1 per explained class. [B] -> [B, C]"""
    return torch.nn.functional.one_hot(classes, count).to(like.dtype)
