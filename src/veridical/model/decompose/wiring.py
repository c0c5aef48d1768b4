"""From a row of names (`families`) to the weights and functions of a model, `Wired`; `rebuild.check` proves them.

Decoders and encoders are one form: attention, then a feed-forward part, each with a norm before it, behind it or on its
way to the sum, and a head that reads some positions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.activations import ACT2FN
from transformers.pytorch_utils import Conv1D

from veridical.core.errors import InputError
from veridical.model.decompose.families import REFUSED, ROWS, NormKind, Wiring
from veridical.model.pooling import Pool, pool_of

WAY_OUT = "methods that decompose the network cannot be used on it, the others can."

Activation = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Affine:
    """x -> x weight^T + bias."""

    weight: Tensor  # [out, in]
    bias: Tensor | None  # [out]
    module: nn.Module  # whose part it is; `model.trace` listens there
    beside: tuple[nn.Module, ...] = ()  # modules whose rows follow, where it is made of several

    def __call__(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight, self.bias)


@dataclass(frozen=True)
class Norm:
    """LayerNorm: weight * (x - mean) / sqrt(population variance + eps) + bias. RMSNorm: x and its mean square."""

    weight: Tensor  # [D]
    bias: Tensor | None  # [D]
    eps: float
    module: nn.Module
    kind: Literal["layer", "rms"] = "layer"

    def __call__(self, x: Tensor) -> Tensor:
        scaled = self.weight * self.centred(x) / self.deviation(x)
        return scaled if self.bias is None else scaled + self.bias

    def centred(self, x: Tensor) -> Tensor:
        """What it divides; centring is its own transpose."""
        return x - x.mean(-1, keepdim=True) if self.kind == "layer" else x

    def deviation(self, x: Tensor) -> Tensor:
        """What it divides by. [..., D] -> [..., 1]"""
        if self.kind == "layer":
            return (x.var(-1, correction=0, keepdim=True) + self.eps).sqrt()
        return (x.square().mean(-1, keepdim=True) + self.eps).sqrt()


@dataclass(frozen=True)
class Layer:
    """One layer. Norms are None where it has none (the first of ModernBERT; before the parts of OLMo 2)."""

    heads: int
    value: Affine  # [H * d, D], the rows of one head after another; grouped ones repeated
    out: Affine  # [D, H * d]
    norm1: Norm | None
    post1: Norm | None  # of what attention brings, before it is added; without a bias
    inner: Affine  # [F, D]; gated: [2 F, D]
    activation: Activation
    outer: Affine  # [D, F]
    norm2: Norm | None
    post2: Norm | None
    pre_norm: bool
    parallel: bool
    gated: bool


@dataclass(frozen=True)
class Head:
    """The classification head, reading the first or last token, or the mean of all attended ones or of their logits."""

    pool: Pool
    pad: int | None  # by which the last token is found
    inner: Affine | None  # None: what is read goes to the classes as it is
    activation: Activation
    norm: Norm | None
    out: Affine  # [C, D]


@dataclass(frozen=True)
class Wired:
    """A model's parts. The weights are the model's own (fused and grouped ones copied): wire again after training."""

    family: str
    entrance: nn.Module  # the first layer: what enters it is the output of the embedding block
    layers: tuple[Layer, ...]
    final_norm: Norm | None
    projection: Affine | None  # of the last states to the width of the head (OPT 350m); `head.out` has it folded in
    head: Head


def wire(model: PreTrainedModel, row: Wiring | None = None) -> Wired:
    """The parts that the model's row (or the one given) names, unchecked."""
    family = model.config.model_type
    if row is None:
        if family in REFUSED:
            raise InputError(f"{REFUSED[family]}; {WAY_OUT}")
        if family not in ROWS:
            raise InputError(
                f"There is no wiring for models of type {family!r}, so {WAY_OUT} Wired: {', '.join(sorted(ROWS))}."
            )
        row = ROWS[family]
    _refuse_other_mixing(model)
    encoder = _Parts(model.base_model, family, "the encoder", row.norm)
    modules = _layers(encoder, row, model)
    projection = None if row.projection is None or encoder.part(row.projection) is None else row.projection
    projection = None if projection is None else encoder.affine(projection)
    return Wired(
        family=family,
        entrance=modules[0],
        layers=tuple(_layer(_Parts(m, family, f"layer {i}", row.norm), row, model) for i, m in enumerate(modules)),
        final_norm=encoder.norm(row.final_norm),
        projection=projection,
        head=_head(_Parts(model, family, "the classifier", row.norm), row, model, projection),
    )


def _refuse_other_mixing(model: PreTrainedModel) -> None:
    """Some families have variants in which something else than full attention mixes tokens, or that have more parts."""
    config, encoder = cast(Any, model.config), cast(Any, model.base_model)
    family = config.model_type
    if family in ("big_bird", "big_bird_tanh") and encoder.attention_type != "original_full":
        raise InputError(
            f"This BigBird uses {encoder.attention_type} attention, in which no full attention matrix mixes "
            'the tokens; load it with attention_type="original_full".'
        )
    if family == "deberta-v2" and getattr(encoder.encoder, "conv", None) is not None:
        raise InputError(
            f"This DeBERTa has a convolution after its first layer (conv_kernel_size="
            f"{config.conv_kernel_size}), which mixes tokens outside attention; {WAY_OUT}"
        )
    if family == "albert" and config.inner_group_num > 1:
        raise InputError(
            f"This ALBERT has {config.inner_group_num} layers in a group, whose attention and states it does not tell "
            f"apart; {WAY_OUT}"
        )


@dataclass(frozen=True)
class _Parts:
    """Looks up parts by path under one module."""

    root: nn.Module
    family: str
    where: str
    kind: NormKind

    def part(self, path: str) -> Any:
        part: Any = self.root
        for name in path.split("."):
            if not hasattr(part, name):
                raise InputError(
                    f"The wiring of {self.family!r} does not fit this model: {self.where} has no {path!r}, so {WAY_OUT}"
                )
            part = getattr(part, name)
        return part

    def affine(self, *paths: str) -> Affine:
        """The map of one module, or of several whose rows follow each other."""
        modules = [self.part(path) for path in paths]
        weights = [module.weight.T if isinstance(module, Conv1D) else module.weight for module in modules]
        biases = [module.bias for module in modules]
        if len(modules) == 1:
            return Affine(weights[0], biases[0], modules[0])
        bias = None if any(bias is None for bias in biases) else torch.cat(biases)
        return Affine(torch.cat(weights), bias, modules[0], tuple(modules[1:]))

    def norm(self, path: str | None) -> Norm | None:
        module = None if path is None else self.part(path)
        if module is None or isinstance(module, nn.Identity):
            return None
        eps = module.eps if hasattr(module, "eps") else module.variance_epsilon  # the latter in DeBERTa v1 and Llama
        weight = module.weight
        if weight is None:
            like = next(self.root.parameters())
            weight = torch.ones(module.normalized_shape, dtype=like.dtype, device=like.device)
        weight = 1.0 + weight if self.kind == "rms+1" else weight
        kind = "layer" if self.kind == "layer" else "rms"
        return Norm(weight, getattr(module, "bias", None), eps, module, kind)


def _layers(encoder: _Parts, row: Wiring, model: PreTrainedModel) -> list[nn.Module]:
    modules = list(encoder.part(row.layers))
    if row.in_group is None:
        return modules
    count = cast(Any, model.config).num_hidden_layers
    return [getattr(modules[i * len(modules) // count], row.in_group)[0] for i in range(count)]


def _layer(parts: _Parts, row: Wiring, model: PreTrainedModel) -> Layer:
    heads = cast(Any, model.config).num_attention_heads
    out = parts.affine(row.out)
    groups = getattr(model.config, "num_key_value_heads", None) or heads
    size = groups * (out.weight.shape[1] // heads)  # all value vectors of a position

    def values(rows: Tensor) -> Tensor:
        """The rows of the values alone, those of a group once for each of its heads."""
        if row.fused == "qkv":
            rows = rows[-size:]
        elif row.fused == "per head":
            rows = rows.unflatten(0, (heads, 3, -1))[:, 2].flatten(0, 1)
        if groups < heads:
            rows = rows.unflatten(0, (groups, -1)).repeat_interleave(heads // groups, dim=0).flatten(0, 1)
        return rows

    value = parts.affine(row.value)
    bias = None if value.bias is None else values(value.bias)
    if row.value_bias is not None:
        bias = parts.part(row.value_bias)
    return Layer(
        heads=heads,
        value=Affine(values(value.weight), bias, value.module),
        out=out,
        norm1=parts.norm(row.norm1),
        post1=parts.norm(row.post1),
        inner=parts.affine(*row.inner),
        activation=parts.part(row.activation),
        outer=parts.affine(row.outer),
        norm2=parts.norm(row.norm2),
        post2=parts.norm(row.post2),
        pre_norm=_setting(row.pre_norm, model),
        parallel=_setting(row.parallel, model),
        gated=row.gated,
    )


def _setting(said: bool | str, model: PreTrainedModel) -> bool:
    return bool(getattr(model.config, said.removeprefix("config."))) if isinstance(said, str) else said


def _head(parts: _Parts, row: Wiring, model: PreTrainedModel, projection: Affine | None) -> Head:
    name = row.head_activation
    if name.startswith("config."):
        name = getattr(model.config, name.removeprefix("config."))
    pool = pool_of(model.config)
    if pool is None:
        pooling = getattr(model.config, "classifier_pooling", None)
        raise InputError(f"What the head of this {parts.family!r} model reads ({pooling!r}) is not known, so {WAY_OUT}")
    inner = None if row.head_inner is None else parts.affine(row.head_inner)
    out = parts.affine(row.head_out)
    if projection is not None:
        out = Affine(out.weight @ projection.weight, out.bias, out.module)
    return Head(
        pool=pool,
        pad=getattr(model.config, "pad_token_id", None),
        inner=inner,
        activation=same if inner is None else ACT2FN[name] if name in ACT2FN else parts.part(name),
        norm=parts.norm(row.head_norm),
        out=out,
    )


def same(x: Tensor) -> Tensor:
    """What does nothing, in the place of a norm or activation."""
    return x
