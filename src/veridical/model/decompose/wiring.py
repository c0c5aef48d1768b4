"""Where each family of encoders keeps its parts: one row of module names per `config.model_type`.

`wire(model)` resolves the row to weights and functions, `Wired`; `rebuild.check` proves that they are the model's.
Attention probabilities always come from the model, so queries, keys, rotations and relative positions need no names
here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.activations import ACT2FN

from veridical.core.errors import InputError

WAY_OUT = "methods that decompose the network cannot be used on it, the others can."


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


def wire(model: PreTrainedModel, row: Wiring | None = None) -> Wired:
    """The parts that the model's row (or the one given) names, unchecked."""
    family = model.config.model_type
    if row is None:
        if family not in ROWS:
            raise InputError(
                f"There is no wiring for models of type {family!r}, so {WAY_OUT} Wired: {', '.join(sorted(ROWS))}."
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
            f"{model.config.conv_kernel_size}), which mixes tokens outside attention; {WAY_OUT}"
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
                    f"The wiring of {self.family!r} does not fit this model: {self.where} has no {path!r}, so {WAY_OUT}"
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
