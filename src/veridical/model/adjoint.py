"""The network with attention, LayerNorm deviations and activation slopes held fixed, run backwards by hand.

Held so, a classifier is affine in the outputs of its embedding block: its gradient there tells each token's share of
a logit exactly. Nothing is asked of autograd, so the gradient can itself be differentiated with everything that was
held fixed moving, which is what training on it needs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from veridical.model.trace import LayerTrace, Trace, deviation, slope
from veridical.model.wiring import Norm


@dataclass(frozen=True)
class Adjoint:
    """Gradients of a weighted sum of logits in the frozen network."""

    block: Tensor  # [B, T, D], by the output of the embedding block
    first_values: Tensor  # [B, H, T, d], by the first layer's value vectors


def adjoint(trace: Trace, weights: Tensor) -> Adjoint:
    """Of the sum of logits under `weights` [B, C]: one class is a row with a single 1."""
    head, steps = trace.head, trace.steps
    gradient = weights @ trace.out.weight  # [B, D]
    if head.norm is not None:
        gradient = through_norm(head.norm, head.activation(steps.p), gradient)
        acted = slope(steps.p, head.activation(steps.p))
    else:
        acted = slope(steps.p, steps.t)
    pooled = (gradient * acted) @ head.inner.weight  # [B, D]
    flow = trace.read[..., None] * pooled[:, None]  # [B, T, D]
    if trace.final_norm is not None:
        flow = through_norm(trace.final_norm, trace.layers[-1].pre2, flow)
    to_values = flow
    for layer in reversed(trace.layers):
        flow, to_values = _layer(layer, flow)
    return Adjoint(flow, to_values)


def _layer(trace: LayerTrace, flow: Tensor) -> tuple[Tensor, Tensor]:
    """From the gradient by a layer's output to those by its input and its value vectors."""
    layer = trace.layer
    if not layer.pre_norm:
        flow = through_norm(layer.norm2, trace.pre2, flow)
    inward = _feed_forward(trace, flow)
    flow = flow + (through_norm(layer.norm2, trace.pre1, inward) if layer.pre_norm else inward)
    if not layer.pre_norm:
        flow = through_norm(layer.norm1, trace.pre1, flow)
    mixed = (flow @ layer.out.weight).unflatten(-1, (layer.heads, -1)).transpose(1, 2)  # [B, H, T, d]
    to_values = trace.attention.transpose(-1, -2) @ mixed
    inward = to_values.transpose(1, 2).flatten(2) @ layer.value.weight  # [B, T, D]
    return flow + (through_norm(layer.norm1, trace.x, inward) if layer.pre_norm else inward), to_values


def _feed_forward(trace: LayerTrace, flow: Tensor) -> Tensor:
    layer = trace.layer
    flow = flow @ layer.outer.weight  # [B, T, F]
    if layer.gated:  # activation(first) * second: what is activated is held, as attention is, and weighs the second
        held = layer.activation(trace.u.chunk(2, dim=-1)[0])
        return (flow * held) @ layer.inner.weight.chunk(2)[1]
    return (flow * slope(trace.u, trace.a)) @ layer.inner.weight


def through_norm(norm: Norm | None, x: Tensor, flow: Tensor) -> Tensor:
    """Back through a LayerNorm whose deviation on `x` is held: centring is its own transpose."""
    if norm is None:
        return flow
    scaled = flow * norm.weight / deviation(norm, x)
    return scaled - scaled.mean(-1, keepdim=True)


def one_hot(classes: Tensor, count: int, like: Tensor) -> Tensor:
    """A row with a single 1 per explained class. [B] -> [B, C]"""
    return torch.nn.functional.one_hot(classes, count).to(like.dtype)
