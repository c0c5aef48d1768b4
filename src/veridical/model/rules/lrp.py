"""Backward rules of AttnLRP (Achtibat et al. 2024) for the operations of text encoders, for use with `Rules`.

Relevance is value x gradient once every operation passes back the gradient its rule asks for:

- LayerNorm: its deviation is held, so that it is linear.
- An elementwise activation: a(x) / x instead of its slope, so that all of its output's relevance reaches its input.
- A product of two factors that both carry the input: each passes half.
- Softmax: differentiated as it is.

A gate of an LSTM weighs a signal without being one (and sigmoid(x) / x has no limit at 0), so sigmoids are held and the
signal takes all (Arras et al. 2017). What has no rule here is refused by `Rules`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from veridical.model.decompose.trace import slope
from veridical.model.rules.rules import Rules, operation


def held(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function as a mere weight: nothing passes back through it."""
    return lambda *args, **kwargs: function(*args, **kwargs).detach()


def activation(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """An elementwise function with f(0) = 0, by its secant to 0."""

    def run(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        kwargs.pop("inplace", None)
        fixed = x.detach()
        return x * slope(fixed, function(fixed, *args, **kwargs))

    return run


def power(x: Tensor, exponent: float) -> Tensor:
    return (activation if exponent >= 1 else held)(torch.pow)(x, exponent)  # roots and inverses are deviations


def mul(a: Any, b: Any) -> Tensor:
    if not (_moves(a) and _moves(b)):
        return a * b
    x = _origin(a)
    if x is not _origin(b):
        return _half(a) * _half(b)
    # An activation written out, as x * (1 + tanh(...)), is one elementwise function of x, whatever its parts are.
    return x * slope(x.detach(), (a * b).detach())


def mul_by_gate(a: Any, b: Any) -> Tensor:
    """The product in which a factor that is a function of another tensor, an activated one, only weighs the other."""
    if _moves(a) and _moves(b) and _origin(a) is not _origin(b):
        if _origin(a) is not a:
            return a.detach() * b
        if _origin(b) is not b:
            return a * b.detach()
    return mul(a, b)


def matmul(a: Tensor, b: Tensor) -> Tensor:
    return _half(a) @ _half(b) if _moves(a) and _moves(b) else a @ b


def baddbmm(bias: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """BLOOM's scores: a product of two batches of matrices, and what is added to it."""
    return beta * bias + alpha * matmul(batch1, batch2)


def div(a: Any, b: Any, *, rounding_mode: None = None) -> Tensor:
    return a / (b.detach() if isinstance(b, Tensor) else b)


def layer_norm(
    x: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *_: Any,
) -> Tensor:
    dims = tuple(range(-len(tuple(normalized_shape)), 0))
    deviation = (x.detach().var(dims, correction=0, keepdim=True) + eps).sqrt()
    normed = (x - x.mean(dims, keepdim=True)) / deviation
    normed = normed if weight is None else normed * weight
    return normed if bias is None else normed + bias


def lstm(
    x: Tensor,
    state: tuple[Tensor, Tensor],
    weights: list[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """One layer and direction, unrolled: gates held, tanh by its secant."""
    if num_layers != 1 or bidirectional or not has_biases or not batch_first:
        raise RuntimeError("the rule covers one batch-first LSTM layer in one direction")
    into, across, into_bias, across_bias = weights
    hidden, cell = (part[0] for part in state)  # [B, D]
    tanh, gate = ATTNLRP["tanh"], ATTNLRP["sigmoid"]
    steps = []
    for now in x.unbind(1):
        gates = F.linear(now, into, into_bias) + F.linear(hidden, across, across_bias)
        enter, forget, new, leave = gates.chunk(4, dim=-1)
        cell = gate(forget) * cell + gate(enter) * tanh(new)
        hidden = gate(leave) * tanh(cell)
        steps.append(hidden)
    return torch.stack(steps, dim=1), hidden[None], cell[None]


def _moves(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _half(x: Tensor) -> Tensor:
    """x itself, passing back half of what it is told."""
    return x / 2 + x.detach() / 2


def _origin(x: Any) -> Any:
    """The tensor that `x` is known to be an elementwise function of; itself if nothing is known."""
    return getattr(x, "_elementwise_of", x)


class Relevance(Rules):
    """Rules that know a tensor's origin, where it was made elementwise from one other tensor and numbers."""

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        y = super().__torch_function__(func, types, args, kwargs)
        if _moves(y) and operation(getattr(func, "__name__", "")) in ELEMENTWISE:
            origins = {id(x): x for x in (_origin(part) for part in args if isinstance(part, Tensor))}
            vars(y).pop("_elementwise_of", None)  # of an earlier life, where the operation was in place
            if len(origins) == 1 and id(y) not in origins:
                (y._elementwise_of,) = origins.values()
        return y


ACTIVATIONS: dict[str, Callable[..., Tensor]] = {
    **{name: getattr(torch, name) for name in ("tanh", "relu", "erf", "square")},
    **{name: getattr(F, name) for name in ("gelu", "silu", "elu", "mish", "leaky_relu")},
}
PRODUCTS, QUOTIENTS = ("mul", "multiply"), ("div", "truediv", "true_divide", "divide")
ATTNLRP: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(PRODUCTS, mul),
    **dict.fromkeys(QUOTIENTS, div),
    **dict.fromkeys(("matmul", "bmm"), matmul),
    "baddbmm": baddbmm,
    **{name: activation(function) for name, function in ACTIVATIONS.items()},
    **{name: held(getattr(torch, name)) for name in ("sigmoid", "sqrt", "rsqrt", "reciprocal")},
    "pow": power,
    "softmax": F.softmax,
    "layer_norm": layer_norm,
    "lstm": lstm,
}
# Attention and what is activated in a gated layer held as well: conservative propagation (Ali et al. 2022).
CONSERVATIVE = {**ATTNLRP, **dict.fromkeys(PRODUCTS, mul_by_gate), "softmax": held(F.softmax)}
ELEMENTWISE = frozenset(("add", "sub", "rsub", "neg", "pow", *PRODUCTS, *QUOTIENTS, *ACTIVATIONS))
