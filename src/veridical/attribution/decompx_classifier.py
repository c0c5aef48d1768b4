from __future__ import annotations

from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from veridical.attribution import method
from veridical.core.records import Batch
from veridical.model.classifier import Classifier
from veridical.model.decompose.adjoint import adjoint, one_hot
from veridical.model.decompose.decompose import decompose, head_shares, kept, late, refuse
from veridical.model.decompose.share import Activation, Bias, How, line
from veridical.model.decompose.trace import Gigabytes, LayerTrace, Trace, trace
from veridical.model.target import Target


@method(
    "decompx_classifier",
    needs=("attention", "layers"),
    signed=True,
    passes="1 forward, and 0.7 for every token, or 1 backward",
)
def decompx_classifier(
    clf: Classifier,
    batch: Batch,
    target: Target,
    *,
    bias: Bias = "absdot",
    rules: Literal["released", "paper"] = "released",
    ffn: bool = True,
    activation: Activation = "ratio",
    memory: Gigabytes = 2.0,
) -> Tensor:
    """The token's part of the explained logit, the network taken apart through all layers and the head (DecompX:
    Modarressi et al. 2023).

    `bias` says which tokens bear the biases, and the scores of all positions sum to the logit; not with none, which
    leaves biases out, nor with token, which makes them a source of their own that is no token and has no score here.
    Rules other than absdot, norm and abssim take one pass each way (late: one back per class) instead of decomposed
    vectors. `rules=released` is the authors' code, `paper` their equations; `memory` is in GB.
    """
    how = How(bias, rules, ffn, activation)
    with torch.no_grad():
        seen = trace(clf, batch)
        refuse(seen, how, batch.free)
        target(seen.logits)
        weights = target.weights(seen.last)  # [B, C]
        if how.linear and not (seen.causal and bias == "equal" and activation == "tangent"):
            clf.backwards += len(batch.ids) * (seen.logits.shape[-1] if bias == "late" else 1)
            scores = by_gradients(seen, how, weights)
        else:
            scores = torch.zeros_like(seen.last[..., 0])  # [B, T]
            for row in range(len(weights)):
                keep = kept(seen, row)
                *_, last = decompose(seen, row, how, memory=memory)
                scores[row, keep] = head_shares(seen, row, how, last).logits[: len(keep)] @ weights[row]
    return torch.where(batch.mask, scores, 0.0)


def by_gradients(seen: Trace, how: How, weights: Tensor) -> Tensor:
    """The scores where sharing does not depend on the decomposed vectors: tokens and biases each give the product of
    their vectors with the gradient of the frozen network. Of the sum of logits under `weights`: [B, C] -> [B, T]"""
    held, count = _held(seen, how), seen.logits.shape[-1]
    if how.bias == "late":
        every = torch.eye(count, dtype=weights.dtype, device=weights.device)[:, None].expand(-1, len(weights), -1)
        parts = [_parts(held, how, label) for label in every]
        tokens, biases = (torch.stack(part, -1) for part in zip(*parts, strict=True))  # [B, T, C] each
        return torch.einsum("btc,bc->bt", late(tokens, biases.sum(1)), weights)
    tokens, biases = _parts(held, how, weights)
    if how.bias in ("none", "token"):
        return tokens
    bearers = (seen.mask | (seen.read > 0)).to(tokens.dtype)  # as `kept` has them
    if how.bias == "cls":
        return tokens + one_hot(bearers.argmax(-1), bearers.shape[-1], tokens) * biases.sum(-1, keepdim=True)
    if not seen.causal:
        return tokens + biases.sum(-1, keepdim=True) * bearers / bearers.sum(-1, keepdim=True)
    # Tokens up to a position bear what is added there; those to come are not seen from it.
    each = biases / bearers.cumsum(-1).clamp(min=1)
    return tokens + bearers * each.flip(-1).cumsum(-1).flip(-1)


def _parts(held: Trace, how: How, weights: Tensor) -> tuple[Tensor, Tensor]:
    """What tokens, and biases at each position, give to a sum of logits under `weights` [B, C]. [B, T] each"""
    gradients, first = adjoint(held, weights), held.layers[0]
    tokens, biases = (gradients.block * first.x).sum(-1), gradients.biases_at
    value = first.layer.value.bias
    if how.rules == "released" and value is not None:  # the first layer's goes with the attended token
        value_biases = torch.einsum("bhtd,hd->bt", gradients.first_values, value.unflatten(0, (first.layer.heads, -1)))
        tokens, biases = tokens + value_biases, biases - gradients.first_value_biases_at
    if how.activation == "tangent":  # intercepts are biases too, and where they are added is not known here
        missing = (weights * held.logits).sum(-1) - tokens.sum(-1)
        biases = torch.cat([missing[:, None], torch.zeros_like(biases[:, 1:])], dim=1)
    return tokens, biases


def _held(seen: Trace, how: How) -> Trace:
    """The trace with every activation on the line it is held to be, and a feed-forward part that is left out giving
    nothing."""
    layers, steps = seen.layers, seen.steps
    if not how.ffn:
        layers = tuple(_without_feed_forward(trace) for trace in layers)
    elif how.activation != "ratio":
        slopes = [line(how, trace.layer.activation, trace.u, trace.a)[0] for trace in layers]
        layers = tuple(replace(trace, a=slope * trace.u) for trace, slope in zip(layers, slopes, strict=True))
    if how.activation == "tangent":
        steps = replace(steps, t=line(how, seen.head.activation, steps.p, steps.t, head=True)[0] * steps.p)
    return replace(seen, layers=layers, steps=steps)


def _without_feed_forward(trace: LayerTrace) -> LayerTrace:
    outer = trace.layer.outer
    nothing = replace(outer, weight=torch.zeros_like(outer.weight), bias=None)
    return replace(trace, layer=replace(trace.layer, outer=nothing))
