"""One forward pass with everything the decompositions need on its way, for any wired family.

Listening at the modules that `wiring` names costs no second pass. Values keep their graph: while parameters train,
whatever is computed from a trace can be differentiated by them.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn

from veridical.core.errors import InputError
from veridical.core.ranges import above, at_least
from veridical.core.records import Batch
from veridical.model.classifier import Classifier
from veridical.model.decompose.rebuild import HeadSteps, check, head_steps
from veridical.model.decompose.wiring import Affine, Head, Layer, Norm

LayerNumber = Annotated[int, at_least(1)] | None  # from 1; None: the last
Gigabytes = Annotated[float, above(0)]


@dataclass(frozen=True)
class LayerTrace:
    """A layer and what went through it, in the notation of the decompositions."""

    layer: Layer
    x: Tensor  # [B, T, D], its input
    attention: Tensor  # [B, H, T, T], probabilities
    pre1: Tensor  # [B, T, D], residual + attention
    u: Tensor  # [B, T, F], before the activation; gated: [B, T, 2 F]
    a: Tensor  # [B, T, F], after it (and after the gate)
    pre2: Tensor  # [B, T, D], residual + feed-forward


@dataclass(frozen=True)
class Trace:
    """A batch's way through a classifier."""

    layers: tuple[LayerTrace, ...]
    final_norm: Norm | None
    last: Tensor  # [B, T, D], what the head reads, after any final norm
    head: Head
    steps: HeadSteps  # of the head
    out: Affine  # [C, D], the head's last map with a row per class, also where one logit speaks for two
    logits: Tensor  # [B, C], per class
    mask: Tensor  # [B, T] bool, attended

    @property
    def read(self) -> Tensor:
        """The weight of each position in what the head reads: the first, or all attended ones alike. [B, T]"""
        if self.head.pool == "first":
            first = torch.zeros_like(self.last[..., 0])
            first[:, 0] = 1
            return first
        attended = self.mask.to(self.last.dtype)
        return attended / attended.sum(-1, keepdim=True)


def trace(clf: Classifier, batch: Batch) -> Trace:
    """Run the batch (inside `clf.eager()`); models whose wiring is unknown or does not check are refused."""
    wired = check(clf.model)
    heard: dict[tuple[int, str], list[Tensor]] = {}

    def listen(key: tuple[int, str], module: nn.Module, *, before: bool) -> None:
        def entering(module: nn.Module, args: tuple) -> None:
            heard.setdefault(key, []).append(args[0])

        def leaving(module: nn.Module, args: tuple, output: Tensor) -> None:
            heard.setdefault(key, []).append(output)

        hook = module.register_forward_pre_hook(entering) if before else module.register_forward_hook(leaving)
        stack.callback(hook.remove)

    with ExitStack() as stack:
        for i, layer in enumerate(wired.layers):
            for name, module, before in _stations(layer):
                listen((i, name), module, before=before)
        if wired.final_norm is not None:
            listen((len(wired.layers), "x"), wired.final_norm.module, before=True)
        out = clf.forward(batch, attentions=True, hidden=True)

    def got(i: int, name: str) -> Tensor:
        parts = heard[i, name]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)  # feed-forward in chunks of positions

    layers = []
    inputs = list(out.hidden)
    if wired.final_norm is not None:  # the last hidden state is the normed one
        inputs[-1] = got(len(wired.layers), "x")
    for i, layer in enumerate(wired.layers):
        pre2 = inputs[i + 1] if layer.pre_norm else got(i, "pre2")
        layers.append(LayerTrace(layer, inputs[i], out.attentions[i], got(i, "pre1"), got(i, "u"), got(i, "a"), pre2))
    last = out.hidden[-1]
    return Trace(
        layers=tuple(layers),
        final_norm=wired.final_norm,
        last=last,
        head=wired.head,
        steps=head_steps(wired.head, last, batch.mask),
        out=_per_class(wired.head.out, clf.kind == "one_logit"),
        logits=out.logits,
        mask=batch.mask,
    )


def _stations(layer: Layer) -> list[tuple[str, nn.Module, bool]]:
    """What is heard where: name, module, whether of its input (True) or its output."""
    feed_forward = [("u", layer.inner.module, False), ("a", layer.outer.module, True)]
    if layer.norm2 is None or (layer.norm1 is None and not layer.pre_norm):
        raise InputError("A layer of this model has no LayerNorm where its sums could be heard; use another method.")
    if layer.pre_norm:
        return [("pre1", layer.norm2.module, True), *feed_forward]
    assert layer.norm1 is not None
    return [("pre1", layer.norm1.module, True), *feed_forward, ("pre2", layer.norm2.module, True)]


def _per_class(out: Affine, one_logit: bool) -> Affine:
    if not one_logit:
        return out
    bias = None if out.bias is None else torch.cat([-out.bias, out.bias])
    return Affine(torch.cat([-out.weight, out.weight]), bias, out.module)


def values(layer: LayerTrace) -> Tensor:
    """The value vectors of each head, bias included. [B, H, T, d]"""
    wired = layer.layer
    x = wired.norm1(layer.x) if wired.pre_norm and wired.norm1 is not None else layer.x
    return wired.value(x).unflatten(-1, (wired.heads, -1)).transpose(1, 2)


def deviation(norm: Norm, x: Tensor) -> Tensor:
    """What a LayerNorm divides its centred input by. [..., D] -> [..., 1]"""
    return (x.var(-1, correction=0, keepdim=True) + norm.eps).sqrt()


def slope(u: Tensor, a: Tensor) -> Tensor:
    """a / u elementwise, 1/2 where both are 0 (the slope of GELU there; any finite value is exact)."""
    still = u == 0
    return torch.where(still, torch.full_like(u, 0.5), a / torch.where(still, torch.ones_like(u), u))
