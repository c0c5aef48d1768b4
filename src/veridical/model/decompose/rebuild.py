"""A model rebuilt from the parts that `wiring` names: every layer and the head, step by step.

`check(model)` rebuilds the embedding block, every layer and the head of a small batch, and raises if anything differs
from what the model itself computed. Methods that decompose a network (ALTI, DecompX) then read weights and
intermediate values from `Wired`, `layer_steps` and `head_steps`, and hold no modeling code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast
from weakref import WeakSet

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from veridical.core.errors import InputError
from veridical.model.decompose.wiring import WAY_OUT, Head, Layer, Wired, same, wire
from veridical.model.pooling import read_weights

TOLERANCE = 1e-5  # of the largest value rebuilt; a wrong row is off by 6e-2 or more


@dataclass(frozen=True)
class LayerSteps:
    """What one layer computes on its way, in the notation of the decompositions; all [B, T, ...]."""

    values: Tensor  # [B, H, T, d]
    brought: Tensor  # [B, T, D], what attention gives, before any norm of it
    pre1: Tensor  # [B, T, D], residual + attention
    y: Tensor  # [B, T, D], what enters the second residual: norm1(pre1); pre1 itself where norms come first
    u: Tensor  # [B, T, F] or [B, T, 2 F], before the activation
    a: Tensor  # [B, T, F], after it (and after the gate)
    fed: Tensor  # [B, T, D], what the feed-forward part gives, before any norm of it
    pre2: Tensor  # [B, T, D], residual + feed-forward
    output: Tensor  # [B, T, D]


@dataclass(frozen=True)
class HeadSteps:
    """What the head computes on its way."""

    read: Tensor  # [B, T], the weight of each position in what it reads
    pooled: Tensor  # [B, D]
    p: Tensor  # [B, D], before the activation; late: of every position, [B, T, D]
    t: Tensor  # the same after it (and after the head's norm)
    logits: Tensor  # [B, C]


def layer_steps(layer: Layer, x: Tensor, attention: Tensor) -> LayerSteps:
    """One layer from its input [B, T, D] and its own attention probabilities [B, H, T, T]."""
    norm1, norm2, post1, post2 = (norm or same for norm in (layer.norm1, layer.norm2, layer.post1, layer.post2))
    values = layer.value(norm1(x) if layer.pre_norm else x).unflatten(-1, (layer.heads, -1)).transpose(1, 2)
    brought = layer.out((attention @ values).transpose(1, 2).flatten(2))
    pre1 = x + post1(brought)
    y = pre1 if layer.pre_norm else norm1(pre1)
    entering = x if layer.parallel else y
    u = layer.inner(norm2(entering) if layer.pre_norm else entering)
    if layer.gated:
        first, gate = u.chunk(2, dim=-1)
        a = layer.activation(first) * gate
    else:
        a = layer.activation(u)
    fed = layer.outer(a)
    pre2 = y + post2(fed)
    return LayerSteps(values, brought, pre1, y, u, a, fed, pre2, pre2 if layer.pre_norm else norm2(pre2))


def head_steps(head: Head, last: Tensor, mask: Tensor, ids: Tensor | None = None) -> HeadSteps:
    """The head from the last hidden state [B, T, D] (after any final norm), the mask and, where it looks for the last
    token, the ids [B, T]."""
    read = read_weights(head.pool, mask, ids, head.pad, last.dtype)
    pooled = (read[:, None] @ last)[:, 0]
    entering = last if head.pool == "late" else pooled
    p = entering if head.inner is None else head.inner(entering)
    t = (head.norm or same)(head.activation(p))
    logits = head.out(t)
    return HeadSteps(read, pooled, p, t, (read[:, None] @ logits)[:, 0] if head.pool == "late" else logits)


_checked: WeakSet[nn.Module] = WeakSet()


def check(model: PreTrainedModel, inputs: Mapping[str, Tensor] | None = None) -> Wired:
    """The model's parts, after rebuilding a batch from them; the rebuilding is done once per model.

    `inputs` are the model's own keyword arguments; without them a small padded batch of random ids is used.
    """
    wired = wire(model)
    if model not in _checked:
        compare(model, wired, made_up(model) if inputs is None else inputs)
        _checked.add(model)
    return wired


def compare(model: PreTrainedModel, wired: Wired, inputs: Mapping[str, Tensor]) -> float:
    """The largest relative difference between the model and its rebuilding; raises InputError over 1e-5."""
    if model.dtype not in (torch.float32, torch.float64):
        raise InputError(
            f"The weights are {model.dtype}, in which a decomposition of the network cannot be checked; load "
            "the model in float32."
        )
    block: list[Tensor] = []
    depth = len(wired.layers)
    with _undisturbed(model), entering(wired.entrance, lambda x: block.append(x)):
        out: Any = model(**inputs, output_hidden_states=True, output_attentions=True, return_dict=True)
        hidden, attentions = list(out.hidden_states or ()), list(out.attentions or ())
        if len(attentions) != depth or len(hidden) != depth + 1:
            raise InputError(
                f"This {wired.family!r} model has {depth} layers, but gave {len(attentions)} attentions and "
                f"{len(hidden)} hidden states even with eager attention; {WAY_OUT}"
            )
        mask = inputs.get("attention_mask")
        mask = torch.ones_like(inputs["input_ids"]) if mask is None else mask
        errors = [_difference(wired, "the embedding block", block[0] if block else None, hidden[0])]
        last = hidden[-1]
        for i, layer in enumerate(wired.layers):
            rebuilt = layer_steps(layer, hidden[i], attentions[i]).output
            if i == depth - 1:
                rebuilt = (wired.final_norm or same)(rebuilt)
                if wired.projection is not None:
                    last, rebuilt = rebuilt, wired.projection(rebuilt)
            errors.append(_difference(wired, f"layer {i}", rebuilt, hidden[i + 1]))
        logits = head_steps(wired.head, last, mask, inputs["input_ids"]).logits
        errors.append(_difference(wired, "the head", logits, out.logits))
    return max(errors)


def _difference(wired: Wired, part: str, rebuilt: Tensor | None, computed: Tensor) -> float:
    error = float("inf")
    if rebuilt is not None and rebuilt.shape == computed.shape:
        error = float((rebuilt - computed).abs().max() / computed.abs().max().clamp(min=1e-30))
    if not error <= TOLERANCE:  # NaN is no success
        raise InputError(
            f"The wiring of {wired.family!r} does not fit this model: {part}, rebuilt from its parts, is off "
            f"by {error:.1e} of its size (allowed {TOLERANCE:.0e}), so {WAY_OUT}"
        )
    return error


@contextmanager
def entering(entrance: nn.Module, change: Callable[[Tensor], Tensor | None]) -> Iterator[None]:
    """Inside, what enters the first layer of a pass, the output of the embedding block, goes through `change`; where
    that returns None it stays as it is. A layer that is used again (ALBERT) is heard once."""
    passed: list[bool] = []

    def hook(module: nn.Module, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
        if passed:
            return None
        passed.append(True)
        if not args:
            changed = change(kwargs["hidden_states"])
            return None if changed is None else (args, {**kwargs, "hidden_states": changed})
        changed = change(args[0])
        return None if changed is None else ((changed, *args[1:]), kwargs)

    handle = entrance.register_forward_pre_hook(hook, with_kwargs=True)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def _undisturbed(model: PreTrainedModel) -> Iterator[None]:
    """Eval mode, eager attention and no gradients, and everything as before afterwards."""
    training = {module: module.training for module in model.modules()}
    implementation = model.config._attn_implementation
    switch = implementation not in (None, "eager")
    model.eval()
    if switch:
        model.set_attn_implementation("eager")
    try:
        with torch.no_grad():
            yield
    finally:
        if switch:
            model.set_attn_implementation(cast(str, implementation))
        for module, mode in training.items():
            module.training = mode


def made_up(model: PreTrainedModel) -> dict[str, Tensor]:
    """Two rows of random ids, the second with padding."""
    size, pad = model.config.vocab_size, model.config.pad_token_id
    ids = torch.randint(0, size, (2, 12), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    mask[1, 9:] = 0
    if pad is not None:
        ids = ids.masked_fill(ids == pad, (pad + 1) % size).masked_fill(mask == 0, pad)
    return {"input_ids": ids.to(model.device), "attention_mask": mask.to(model.device)}
