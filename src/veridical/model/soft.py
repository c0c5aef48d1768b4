"""Soft erasure: how the model is run on an input of which each position keeps only a share of itself.

With q the share kept and w = 1 - q (Zhao and Aletras 2023, eq. 3 and appendix C):

    bernoulli     x' = x * e,            e ~ Bernoulli(q) for every element of a vector
    gaussian      x' = x + g w x,        g ~ N(0, s2), one for the whole vector (eq. 7)
    gaussian_sd   x' = x + g x,          g ~ N(0, (s w)^2) for every element (eq. 8)
    attention     log q is added to a key's score before the softmax, in every layer

The first three change the word embeddings, or the output of the embedding block. Draws come from a variant's own
seed, so they are the same in every batch, and equal for equal seeds whatever q is. `attention` draws nothing, and
q = 0 is exactly an attention mask of 0. It cannot go through the mask itself, of which transformers reads only
whether it is 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from veridical.core.errors import InputError
from veridical.core.records import Output, Soft, Variant
from veridical.model.classifier import Classifier

Style = tuple[str, str]  # mode and where; both empty: erased wholly or not at all


def style_of(variant: Variant) -> Style:
    """What variants must share to be run in one batch."""
    return ("", "") if variant.soft is None else (variant.soft.mode, variant.soft.where)


@contextmanager
def ready(clf: Classifier, style: Style) -> Iterator[None]:
    """The model set up once for many batches of one style."""
    if style[0] != "attention":
        yield
        return
    with clf.eager():  # fused attention has no softmax to reach
        yield


def forward(clf: Classifier, variants: Sequence[Variant]) -> Output:
    """One pass over variants of one style, inside `ready`."""
    mode, where = style_of(variants[0])
    softs = [variant.soft for variant in variants if variant.soft is not None]
    if not softs:
        return clf.forward(clf.collate_variants(variants))
    if mode == "attention":
        return _attend(clf, variants, softs)
    batch = clf.collate_variants(variants)
    if where == "word":
        return clf.forward(batch, edit=lambda x: perturb(x, softs))

    # Only soft erasure behind the embedding block needs to know a network's parts; ordinary questions load none.
    from veridical.model.decompose.rebuild import entering

    with entering(first_layer(clf), lambda x: perturb(x, softs)):
        return clf.forward(batch)


def perturb(x: Tensor, softs: Sequence[Soft]) -> Tensor:
    """x [B, T, D] with every row perturbed by its own q and draws; padding is left as it is."""
    size, tokens, width = x.shape
    factor = np.ones((size, tokens, width), dtype=np.float32)
    for row, soft in zip(factor, softs, strict=True):
        row[: len(soft.keep)] = _factor(soft, width)
    return x * torch.from_numpy(factor).to(x)


def _factor(soft: Soft, width: int) -> np.ndarray:
    """What the vectors are multiplied by. [T, D], or [T, 1] where one draw serves the whole vector"""
    keep = np.array(soft.keep, dtype=np.float32)[:, None]  # [T, 1]
    draw = np.random.default_rng(soft.seed)
    if soft.mode == "bernoulli":
        return draw.random((len(keep), width), dtype=np.float32) < keep
    noise = draw.standard_normal((len(keep), 1 if soft.mode == "gaussian" else width), dtype=np.float32)
    return 1 + np.float32(soft.variance**0.5) * (1 - keep) * noise


def first_layer(clf: Classifier) -> nn.Module:
    """What the output of the embedding block enters."""
    from veridical.model.decompose.families import ROWS
    from veridical.model.decompose.rebuild import check

    if clf.family not in ROWS:
        raise InputError(
            f"Where a model of type {clf.family!r} keeps its embedding block is not known, so where=post_layernorm "
            "cannot be used on it; take where=word."
        )
    return check(clf.model).entrance


def _attend(clf: Classifier, variants: Sequence[Variant], softs: Sequence[Soft]) -> Output:
    # A key with q = 0 is masked, not given a score of minus infinity: a query whose whole window is erased would
    # else be divided by zero, and a model that averages over tokens would still count it.
    seen = [
        replace(v, attend=tuple(q > 0 and a for q, a in zip(s.keep, v.attend or (True,) * len(v.ids), strict=True)))
        for v, s in zip(variants, softs, strict=True)
    ]
    batch = clf.collate_variants(seen)
    keep = np.ones(tuple(batch.ids.shape), dtype=np.float32)
    for row, soft in zip(keep, softs, strict=True):
        row[: len(soft.keep)] = soft.keep
    keep[keep == 0] = 1
    with _Keys(torch.from_numpy(np.log(keep)).to(clf.device)) as keys:
        out = clf.forward(batch)
    layers = getattr(clf.model.config, "num_hidden_layers", 1)
    if keys.count != layers:
        raise InputError(
            f"{clf.name} ({clf.family}) has {layers} layers, but {keys.count} of its softmaxes run over the keys of "
            "full attention, so mode=attention cannot be used on it; take mode=bernoulli."
        )
    return out


class _Keys(TorchFunctionMode):
    """Adds `bias` [B, T] to the scores of the keys in every softmax over them."""

    def __init__(self, bias: Tensor):
        super().__init__()
        self.bias, self.count = bias, 0

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") == "softmax" and self._over_keys(args[0] if args else kwargs["input"]):
            scores, more = (args[0], args[1:]) if args else (kwargs.pop("input"), ())
            bias = self.bias.to(scores)
            bias = bias if scores.ndim == 2 else bias[:, None, None]
            self.count += 1
            lowest = torch.finfo(scores.dtype).min  # masked keys stand there already
            return func((scores + bias).clamp(min=lowest), *more, **kwargs)
        return func(*args, **kwargs)

    def _over_keys(self, scores: Tensor) -> bool:
        """[B, H, T, T] of a transformer, or [B, T] of the BiLSTM."""
        size, tokens = self.bias.shape
        return tuple(scores.shape) == (size, tokens) or (
            scores.ndim == 4 and scores.shape[0] == size and tuple(scores.shape[2:]) == (tokens, tokens)
        )
