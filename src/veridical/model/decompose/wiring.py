"""Where each family of encoders keeps its parts: one row of module names per `config.model_type`.

`check(model)` resolves the row, rebuilds the embedding block, every layer and the head of a small batch from
the parts it names, and raises if anything differs from what the model itself computed. Methods that decompose
a network (ALTI, DecompX) then read weights and intermediate values from `Wired`, `layer_steps` and
`head_steps`, and hold no modeling code. Attention probabilities always come from the model, so queries, keys,
rotations and relative positions need no names here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, cast
from weakref import WeakSet

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.activations import ACT2FN

from veridical.core.errors import InputError

TOLERANCE = 1e-5  # of the largest value rebuilt; a wrong row is off by 6e-2 or more
_WAY_OUT = "methods that decompose the network cannot be used on it, the others can."


@dataclass(frozen=True)
class Wiring:
    """Names of the parts. Paths start at the encoder, at one of its layers, or (head) at the classifier."""

    # encoder
    embeddings: tuple[str, ...] = ("embeddings",)  # the first that exists gives the first layer's input
    layers: str = "encoder.layer"
    final_norm: str | None = None  # after the last layer
    # layer
    value: str = "attention.self.value"
    value_bias: str | None = None  # where it is not the value module's own
    # `value` may hold queries and keys as well: q, k, v one after another, or so for each head.
    fused: Literal["no", "qkv", "per head"] = "no"
    out: str = "attention.output.dense"
    norm1: str = "attention.output.LayerNorm"
    inner: str = "intermediate.dense"
    activation: str = "intermediate.intermediate_act_fn"
    outer: str = "output.dense"
    norm2: str = "output.LayerNorm"
    pre_norm: bool = False  # x + f(norm(x)) instead of norm(x + f(x))
    gated: bool = False  # `inner` gives two halves: activation(first) * second
    # head; an activation is a path, a name transformers knows, or `config.<option>` holding such a name
    head_inner: str = "classifier.dense"
    head_activation: str = "tanh"
    head_norm: str | None = None
    head_out: str = "classifier.out_proj"


_BERT = Wiring()
_DEBERTA = replace(_BERT, head_inner="pooler.dense", head_activation="config.pooler_hidden_act", head_out="classifier")
ROWS: dict[str, Wiring] = {
    "bert": replace(
        _BERT, head_inner="bert.pooler.dense", head_activation="bert.pooler.activation", head_out="classifier"
    ),
    "roberta": _BERT,
    "xlm-roberta": _BERT,
    "camembert": _BERT,
    "electra": replace(_BERT, embeddings=("embeddings_project", "embeddings"), head_activation="classifier.activation"),
    "big_bird": replace(_BERT, head_activation="config.hidden_act"),
    "big_bird_tanh": _BERT,
    "deberta": replace(_DEBERTA, value="attention.self.in_proj", value_bias="attention.self.v_bias", fused="per head"),
    "deberta-v2": replace(_DEBERTA, value="attention.self.value_proj"),
    "distilbert": Wiring(
        layers="transformer.layer",
        value="attention.v_lin",
        out="attention.out_lin",
        norm1="sa_layer_norm",
        inner="ffn.lin1",
        activation="ffn.activation",
        outer="ffn.lin2",
        norm2="output_layer_norm",
        head_inner="pre_classifier",
        head_activation="relu",
        head_out="classifier",
    ),
    "modernbert": Wiring(
        layers="layers",
        final_norm="final_norm",
        value="attn.Wqkv",
        fused="qkv",
        out="attn.Wo",
        norm1="attn_norm",
        inner="mlp.Wi",
        activation="mlp.act",
        outer="mlp.Wo",
        norm2="mlp_norm",
        pre_norm=True,
        gated=True,
        head_inner="head.dense",
        head_activation="head.act",
        head_norm="head.norm",
        head_out="classifier",
    ),
}

Activation = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Affine:
    """x -> x weight^T + bias."""

    weight: Tensor  # [out, in]
    bias: Tensor | None  # [out]
    module: nn.Module  # whose part it is; `model.trace` listens there

    def __call__(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight, self.bias)


@dataclass(frozen=True)
class Norm:
    """LayerNorm: weight * (x - mean) / sqrt(population variance + eps) + bias."""

    weight: Tensor  # [D]
    bias: Tensor | None  # [D]
    eps: float
    module: nn.Module

    def __call__(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        scaled = self.weight * centred / (centred.square().mean(-1, keepdim=True) + self.eps).sqrt()
        return scaled if self.bias is None else scaled + self.bias


@dataclass(frozen=True)
class Layer:
    """One encoder layer. Norms are None where the layer has none (the first of ModernBERT)."""

    heads: int
    value: Affine  # [H * d, D], the rows of one head after another
    out: Affine  # [D, H * d]
    norm1: Norm | None
    inner: Affine  # [F, D]; gated: [2 F, D]
    activation: Activation
    outer: Affine  # [D, F]
    norm2: Norm | None
    pre_norm: bool
    gated: bool


@dataclass(frozen=True)
class Head:
    """The classification head, reading the first token or the mean of all attended ones."""

    pool: Literal["first", "mean"]
    inner: Affine
    activation: Activation
    norm: Norm | None
    out: Affine  # [C, D]


@dataclass(frozen=True)
class Wired:
    """A model's parts. The weights are the model's own (fused ones copied): wire again after training."""

    family: str
    embeddings: nn.Module  # its output is the first layer's input
    layers: tuple[Layer, ...]
    final_norm: Norm | None
    head: Head


@dataclass(frozen=True)
class LayerSteps:
    """What one layer computes on its way, in the notation of the decompositions; all [B, T, ...]."""

    values: Tensor  # [B, H, T, d]
    pre1: Tensor  # [B, T, D], residual + attention
    y: Tensor  # [B, T, D], what enters the second residual: norm1(pre1); pre1 itself where norms come first
    u: Tensor  # [B, T, F] or [B, T, 2 F], before the activation
    a: Tensor  # [B, T, F], after it (and after the gate)
    pre2: Tensor  # [B, T, D], residual + feed-forward
    output: Tensor  # [B, T, D]


@dataclass(frozen=True)
class HeadSteps:
    """What the head computes on its way."""

    pooled: Tensor  # [B, D]
    p: Tensor  # [B, D], before the activation
    t: Tensor  # [B, D], after it (and after the head's norm)
    logits: Tensor  # [B, C]


def wire(model: PreTrainedModel, row: Wiring | None = None) -> Wired:
    """The parts that the model's row (or the one given) names, unchecked."""
    family = model.config.model_type
    if row is None:
        if family not in ROWS:
            raise InputError(
                f"There is no wiring for models of type {family!r}, so {_WAY_OUT} Wired: {', '.join(sorted(ROWS))}."
            )
        row = ROWS[family]
    _refuse_other_mixing(model)
    encoder = _Parts(model.base_model, family, "the encoder")
    block = next((name for name in row.embeddings if hasattr(model.base_model, name)), row.embeddings[-1])
    layers = enumerate(encoder.part(row.layers))
    return Wired(
        family=family,
        embeddings=encoder.part(block),
        layers=tuple(_layer(_Parts(layer, family, f"layer {i}"), row, model) for i, layer in layers),
        final_norm=encoder.norm(row.final_norm),
        head=_head(_Parts(model, family, "the classifier"), row, model),
    )


def layer_steps(layer: Layer, x: Tensor, attention: Tensor) -> LayerSteps:
    """One layer from its input [B, T, D] and its own attention probabilities [B, H, T, T]."""
    norm1, norm2 = layer.norm1 or _same, layer.norm2 or _same
    values = layer.value(norm1(x) if layer.pre_norm else x).unflatten(-1, (layer.heads, -1)).transpose(1, 2)
    pre1 = x + layer.out((attention @ values).transpose(1, 2).flatten(2))
    y = pre1 if layer.pre_norm else norm1(pre1)
    u = layer.inner(norm2(y) if layer.pre_norm else y)
    if layer.gated:
        first, gate = u.chunk(2, dim=-1)
        a = layer.activation(first) * gate
    else:
        a = layer.activation(u)
    pre2 = y + layer.outer(a)
    return LayerSteps(values, pre1, y, u, a, pre2, pre2 if layer.pre_norm else norm2(pre2))


def head_steps(head: Head, last: Tensor, mask: Tensor) -> HeadSteps:
    """The head from the encoder's last hidden state [B, T, D] (after any final norm) and the mask [B, T]."""
    if head.pool == "first":
        pooled = last[:, 0]
    else:
        attended = mask.to(last.dtype)[..., None]  # [B, T, 1]
        pooled = (last * attended).sum(1) / attended.sum(1)
    p = head.inner(pooled)
    t = (head.norm or _same)(head.activation(p))
    return HeadSteps(pooled, p, t, head.out(t))


_checked: WeakSet[nn.Module] = WeakSet()


def check(model: PreTrainedModel, inputs: Mapping[str, Tensor] | None = None) -> Wired:
    """The model's parts, after rebuilding a batch from them; the rebuilding is done once per model.

    `inputs` are the model's own keyword arguments; without them a small padded batch of random ids is used.
    """
    wired = wire(model)
    if model not in _checked:
        compare(model, wired, _made_up(model) if inputs is None else inputs)
        _checked.add(model)
    return wired


def compare(model: PreTrainedModel, wired: Wired, inputs: Mapping[str, Tensor]) -> float:
    """The largest relative difference between the model and its rebuilding; raises InputError over 1e-5."""
    if model.dtype not in (torch.float32, torch.float64):
        raise InputError(
            f"The weights are {model.dtype}, in which a decomposition of the network cannot be checked; load "
            "the model in float32."
        )
    block: list[Any] = []
    depth = len(wired.layers)
    with _undisturbed(model):
        handle = wired.embeddings.register_forward_hook(lambda module, args, output: block.append(output))
        try:
            out: Any = model(**inputs, output_hidden_states=True, output_attentions=True, return_dict=True)
        finally:
            handle.remove()
        hidden, attentions = list(out.hidden_states or ()), list(out.attentions or ())
        if len(attentions) != depth or len(hidden) != depth + 1:
            raise InputError(
                f"This {wired.family!r} model has {depth} layers, but gave {len(attentions)} attentions and "
                f"{len(hidden)} hidden states even with eager attention; {_WAY_OUT}"
            )
        mask = inputs.get("attention_mask")
        mask = torch.ones_like(inputs["input_ids"]) if mask is None else mask
        errors = [_difference(wired, "the embedding block", block[-1] if block else None, hidden[0])]
        for i, layer in enumerate(wired.layers):
            rebuilt = layer_steps(layer, hidden[i], attentions[i]).output
            if i == depth - 1 and wired.final_norm is not None:
                rebuilt = wired.final_norm(rebuilt)
            errors.append(_difference(wired, f"layer {i}", rebuilt, hidden[i + 1]))
        logits = head_steps(wired.head, hidden[-1], mask).logits
        errors.append(_difference(wired, "the head", logits, out.logits))
    return max(errors)


def _difference(wired: Wired, part: str, rebuilt: Tensor | None, own: Tensor) -> float:
    error = float("inf")
    if rebuilt is not None and rebuilt.shape == own.shape:
        error = float((rebuilt - own).abs().max() / own.abs().max().clamp(min=1e-30))
    if not error <= TOLERANCE:  # NaN is no success
        raise InputError(
            f"The wiring of {wired.family!r} does not fit this model: {part}, rebuilt from its parts, is off "
            f"by {error:.1e} of its size (allowed {TOLERANCE:.0e}), so {_WAY_OUT}"
        )
    return error


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


def _made_up(model: PreTrainedModel) -> dict[str, Tensor]:
    """Two rows of random ids, the second with padding."""
    size, pad = model.config.vocab_size, model.config.pad_token_id
    ids = torch.randint(0, size, (2, 12), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    mask[1, 9:] = 0
    if pad is not None:
        ids = ids.masked_fill(ids == pad, (pad + 1) % size).masked_fill(mask == 0, pad)
    return {"input_ids": ids.to(model.device), "attention_mask": mask.to(model.device)}


def _refuse_other_mixing(model: PreTrainedModel) -> None:
    """Two families have variants in which tokens are mixed by something other than full attention."""
    family, encoder = model.config.model_type, cast(Any, model.base_model)
    if family in ("big_bird", "big_bird_tanh") and encoder.attention_type != "original_full":
        raise InputError(
            f"This BigBird uses {encoder.attention_type} attention, in which no full attention matrix mixes "
            'the tokens; load it with attention_type="original_full".'
        )
    if family == "deberta-v2" and getattr(encoder.encoder, "conv", None) is not None:
        raise InputError(
            f"This DeBERTa has a convolution after its first layer (conv_kernel_size="
            f"{model.config.conv_kernel_size}), which mixes tokens outside attention; {_WAY_OUT}"
        )


@dataclass(frozen=True)
class _Parts:
    """Looks up parts by path under one module."""

    root: nn.Module
    family: str
    where: str

    def part(self, path: str) -> Any:
        part: Any = self.root
        for name in path.split("."):
            if not hasattr(part, name):
                raise InputError(
                    f"The wiring of {self.family!r} does not fit this model: {self.where} has no {path!r}, "
                    f"so {_WAY_OUT}"
                )
            part = getattr(part, name)
        return part

    def affine(self, path: str) -> Affine:
        module = self.part(path)
        return Affine(module.weight, module.bias, module)

    def norm(self, path: str | None) -> Norm | None:
        module = None if path is None else self.part(path)
        if module is None or isinstance(module, nn.Identity):
            return None
        eps = module.eps if hasattr(module, "eps") else module.variance_epsilon  # the latter in DeBERTa v1
        return Norm(module.weight, module.bias, eps, module)


def _layer(parts: _Parts, row: Wiring, model: PreTrainedModel) -> Layer:
    heads = model.config.num_attention_heads

    def values(rows: Tensor) -> Tensor:
        if row.fused == "qkv":
            return rows.chunk(3)[2]
        if row.fused == "per head":
            return rows.unflatten(0, (heads, 3, -1))[:, 2].flatten(0, 1)
        return rows

    value = parts.affine(row.value)
    bias = None if value.bias is None else values(value.bias)
    if row.value_bias is not None:
        bias = parts.part(row.value_bias)
    return Layer(
        heads=heads,
        value=Affine(values(value.weight), bias, value.module),
        out=parts.affine(row.out),
        norm1=parts.norm(row.norm1),
        inner=parts.affine(row.inner),
        activation=parts.part(row.activation),
        outer=parts.affine(row.outer),
        norm2=parts.norm(row.norm2),
        pre_norm=row.pre_norm,
        gated=row.gated,
    )


def _head(parts: _Parts, row: Wiring, model: PreTrainedModel) -> Head:
    name = row.head_activation
    if name.startswith("config."):
        name = getattr(model.config, name.removeprefix("config."))
    return Head(
        pool="mean" if getattr(model.config, "classifier_pooling", "cls") == "mean" else "first",
        inner=parts.affine(row.head_inner),
        activation=ACT2FN[name] if name in ACT2FN else parts.part(name),
        norm=parts.norm(row.head_norm),
        out=parts.affine(row.head_out),
    )


def _same(x: Tensor) -> Tensor:
    return x
