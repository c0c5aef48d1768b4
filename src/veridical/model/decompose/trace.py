"""One forward pass with everything the decompositions need on its way, for any wired family.

Listening at the modules that `wiring` names costs no second pass. Values keep their graph: while parameters train,
whatever is computed from a trace can be differentiated by them.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn

from veridical.core.ranges import above, at_least
from veridical.core.records import Batch
from veridical.model.classifier import Classifier
from veridical.model.decompose.rebuild import HeadSteps, check, head_steps
from veridical.model.decompose.wiring import Affine, Head, Layer, Norm, same

LayerNumber = Annotated[int, at_least(1)] | None  # from 1; None: the last
Gigabytes = Annotated[float, above(0)]


@dataclass(frozen=True)
class LayerTrace:
    """A layer and what went through it, in the notation of the decompositions."""

    layer: Layer
    x: Tensor  # [B, T, D], its input
    attention: Tensor  # [B, H, T, T], probabilities
    brought: Tensor  # [B, T, D], what attention gives, before any norm of it
    pre1: Tensor  # [B, T, D], residual + attention
    u: Tensor  # [B, T, F], before the activation; gated: [B, T, 2 F]
    a: Tensor  # [B, T, F], after it (and after the gate)
    fed: Tensor  # [B, T, D], what the feed-forward part gives, before any norm of it
    pre2: Tensor  # [B, T, D], residual + feed-forward

    @property
    def output(self) -> Tensor:
        """What the layer gives, before any norm that follows the last. [B, T, D]"""
        return self.pre2 if self.layer.pre_norm else (self.layer.norm2 or same)(self.pre2)


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
        """The weight of each position in what the head reads: one, or all attended ones alike. [B, T]"""
        return self.steps.read

    @property
    def place(self) -> Tensor | None:
        """The position that the head reads of each text, where it reads one. [B]"""
        return self.read.argmax(-1) if self.head.pool in ("first", "last") else None

    @property
    def causal(self) -> bool:
        """Whether a position sees only those before it: in decoders, whose head reads the last."""
        return self.head.pool == "last"


def trace(clf: Classifier, batch: Batch) -> Trace:
    """Run the batch (inside `clf.eager()`); models whose wiring is unknown or does not check are refused."""
    wired = check(clf.model)
    with ExitStack() as stack:
        heard = _Heard(stack)
        for layer in wired.layers:
            heard.listen(layer)
        out = clf.forward(batch, attentions=True, hidden=True)
    layers: list[LayerTrace] = []
    for i, layer in enumerate(wired.layers):
        layers.append(_layer(layer, out.hidden[i], out.attentions[i], heard))
    last = out.hidden[-1]
    if wired.projection is not None:  # the last hidden state is the projected one, and the head has that folded in
        last = (wired.final_norm or same)(layers[-1].output)
    return Trace(
        layers=tuple(layers),
        final_norm=wired.final_norm,
        last=last,
        head=wired.head,
        steps=head_steps(wired.head, last, batch.mask, batch.ids),
        out=_per_class(wired.head.out, clf.kind == "one_logit"),
        logits=out.logits,
        mask=batch.mask,
    )


class _Heard:
    """What modules of the layers take in or give out during a pass, in the order in which layers use them."""

    def __init__(self, stack: ExitStack):
        self.stack = stack
        self.calls: dict[tuple[nn.Module, str], list[Tensor]] = {}
        self.users: Counter[tuple[nn.Module, str]] = Counter()  # layers that share a module (ALBERT)
        self.served: Counter[tuple[nn.Module, str]] = Counter()

    def listen(self, layer: Layer) -> None:
        giving = (layer.out.module, layer.inner.module, *layer.inner.beside, layer.outer.module)
        for station in (*((module, "output") for module in giving), (layer.outer.module, "input")):
            self.users[station] += 1
            if self.users[station] == 1:
                self._hook(station)

    def _hook(self, station: tuple[nn.Module, str]) -> None:
        calls, (module, side) = self.calls.setdefault(station, []), station

        def entering(module: nn.Module, args: tuple) -> None:
            calls.append(args[0])

        def leaving(module: nn.Module, args: tuple, output: Tensor) -> None:
            calls.append(output)

        hook = module.register_forward_pre_hook(entering) if side == "input" else module.register_forward_hook(leaving)
        self.stack.callback(hook.remove)

    def next(self, module: nn.Module, side: str, like: Tensor) -> Tensor:
        """Of the next layer that uses it, [B, T, ...] as `like`; a layer may have called it for chunks of positions."""
        station = (module, side)
        count = len(self.calls[station]) // self.users[station]
        turn = self.served[station]
        self.served[station] += 1
        parts = self.calls[station][turn * count : (turn + 1) * count]
        whole = parts[0] if count == 1 else torch.cat(parts, dim=1)
        return whole.reshape(*like.shape[:2], -1)  # OPT feeds forward all positions of all texts in one row


def _layer(layer: Layer, x: Tensor, attention: Tensor, heard: _Heard) -> LayerTrace:
    brought = heard.next(layer.out.module, "output", x)
    pre1 = x + (layer.post1 or same)(brought)
    y = pre1 if layer.pre_norm else (layer.norm1 or same)(pre1)
    halves = [heard.next(module, "output", x) for module in (layer.inner.module, *layer.inner.beside)]
    fed = heard.next(layer.outer.module, "output", x)
    return LayerTrace(
        layer=layer,
        x=x,
        attention=attention,
        brought=brought,
        pre1=pre1,
        u=halves[0] if len(halves) == 1 else torch.cat(halves, dim=-1),
        a=heard.next(layer.outer.module, "input", x),
        fed=fed,
        pre2=y + (layer.post2 or same)(fed),
    )


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


def slope(u: Tensor, a: Tensor) -> Tensor:
    """a / u elementwise, 1/2 where both are 0 (the slope of GELU there; any finite value is exact)."""
    still = u == 0
    return torch.where(still, torch.full_like(u, 0.5), a / torch.where(still, torch.ones_like(u), u))
