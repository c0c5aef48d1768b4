"""A head that was trained under other names, when it is to be trained on: it is brought into the order of the new
names, or, if these are other classes, drawn anew. Kept as it is, one class's row would start as another's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def fit_head(model: Any, before: Sequence[str], labels: Sequence[str], seed: int) -> bool:
    """Whether the head still knows these classes: as it is, or with its rows in another order. Classes without names
    (LABEL_0, ... or 0, 1, ...) are taken by their places."""
    if list(before) == list(labels) or _unnamed(before) or _unnamed(labels):
        return True
    places = {name.casefold(): place for place, name in enumerate(before)}
    order = [places.get(name.casefold(), -1) for name in labels]
    if sorted(order) == list(range(len(before))):
        _reorder(model, order)
        return True
    _redraw(model, seed)
    return False


def _unnamed(names: Sequence[str]) -> bool:
    return list(names) in ([f"LABEL_{i}" for i in range(len(names))], [str(i) for i in range(len(names))])


def _above(model: Any) -> list[torch.nn.Module]:
    """The modules that stand on the encoder and hold weights themselves."""
    inside = {id(module) for module in model.base_model.modules()} if model.base_model is not model else set()
    return [m for m in model.modules() if id(m) not in inside and m is not model and [*m.parameters(recurse=False)]]


@torch.no_grad()
def _reorder(model: Any, order: Sequence[int]) -> None:
    last = [m for m in _above(model) if isinstance(m, torch.nn.Linear) and m.out_features == len(order)][-1]
    for weights in (last.weight, last.bias):
        if weights is not None:
            weights.copy_(weights[list(order)])


def _redraw(model: Any, seed: int) -> None:
    """As transformers draws a head that is missing; it passes over what it takes for initialised."""
    heads = _above(model)
    if model.base_model is model:  # no encoder of its own: of such a model only the last layer is the classes'
        heads = heads[-1:]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for module in heads:
            for held in (module, *module.parameters(recurse=False)):
                vars(held).pop("_is_hf_initialized", None)
            model._init_weights(module)
