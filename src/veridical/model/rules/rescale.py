"""DeepLift's Rescale rule for the operations of text encoders.

The rows of every tensor are the text's in the first half and the baseline's in the second. Each operation is
differentiated by its *secant*: the multipliers m with (change of output) = sum of m x (change of input), exactly.
They travel as the gradients of the first half; the second half receives none. LayerNorm and LSTM are taken apart
into such operations, softmax has an exact secant of its own, so that nothing is lost on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

Function = Callable[[torch.Tensor], torch.Tensor]
ROOT_OF = "veridical_root_of"  # of a tensor that is an inverse square root: the tensor that it is the root of


# Secants that are known exactly; for the others the quotient is taken.
EXACT: dict[Function, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    torch.square: lambda a, b: a + b,
    torch.reciprocal: lambda a, b: -1 / (a * b),
    torch.sqrt: lambda a, b: 1 / (a.sqrt() + b.sqrt()),
    torch.rsqrt: lambda a, b: -1 / (a.sqrt() * b.sqrt() * (a.sqrt() + b.sqrt())),
}


class Secant(torch.autograd.Function):
    """An elementwise function whose derivative is (change of output) / (change of input)."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, function: Function) -> torch.Tensor:
        y = function(x)
        ctx.function = function
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        (gradient,) = gradients
        x, y = ctx.saved_tensors
        (text, base), (out, null) = x.chunk(2), y.chunk(2)
        exact = EXACT.get(ctx.function)
        multiplier = _quotient(ctx.function, text, base, out - null) if exact is None else exact(text, base)
        of_text = gradient[: len(text)] * multiplier
        return torch.cat([of_text, torch.zeros_like(of_text)]), None


def _quotient(function: Function, text: torch.Tensor, base: torch.Tensor, change: torch.Tensor) -> torch.Tensor:
    step = text - base
    # Where the input hardly moves the quotient is rounding noise; the slope half-way differs from it by the square
    # of the relative step only. A hundredth balances the two in single precision.
    small = step.abs() <= 1e-2 * torch.maximum(text.abs(), base.abs())
    with torch.enable_grad():
        middle = ((text + base) / 2).detach().requires_grad_()
        (slope,) = torch.autograd.grad(function(middle).sum(), middle)
    return torch.where(small, slope, change / torch.where(small, torch.ones_like(step), step))


class Product(torch.autograd.Function):
    """a x b (or a @ b) of two tensors that both move: (change of a) x (mean b) + (mean a) x (change of b).

    `share` is the weight of the text in the mean of b, and of the baseline in the mean of a: exact whatever it
    is, one half unless there is a reason.
    """

    @staticmethod
    def forward(ctx: Any, a: torch.Tensor, b: torch.Tensor, matrix: bool, share: Any = 0.5) -> torch.Tensor:
        ctx.matrix, ctx.share = matrix, share
        ctx.save_for_backward(a, b)
        return a @ b if matrix else a * b

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        (gradient,) = gradients
        (a_text, a_base), (b_text, b_base) = (t.chunk(2) for t in ctx.saved_tensors)
        of_text, share = gradient[: len(gradient) // 2], ctx.share
        a, b = share * a_base + (1 - share) * a_text, share * b_text + (1 - share) * b_base
        if ctx.matrix:
            to_a, to_b = of_text @ b.transpose(-1, -2), a.transpose(-1, -2) @ of_text
        else:
            to_a, to_b = (of_text * b).sum_to_size(a_text.shape), (of_text * a).sum_to_size(b_text.shape)
        return *(torch.cat([t, torch.zeros_like(t)]) for t in (to_a, to_b)), None, None


class SoftmaxSecant(torch.autograd.Function):
    """Softmax over the last dimension. With L_i the logarithmic mean of a probability in text and baseline,

    change of p_i = L_i (change of x_i - sum_j L_j / (sum L) change of x_j),

    which is exact because probabilities sum to 1 on both sides: the softmax Jacobian at the mean L.
    """

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        logs = x.log_softmax(-1)
        ctx.save_for_backward(logs)
        return logs.exp()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        (gradient,) = gradients
        text, base = ctx.saved_tensors[0].chunk(2)
        higher = torch.maximum(text, base).exp()
        apart = torch.where(higher > 0, (text - base).abs(), torch.zeros_like(text))
        near = apart < 1e-3
        ratio = -torch.expm1(-apart) / torch.where(near, torch.ones_like(apart), apart)
        mean = higher * torch.where(near, 1 - apart / 2, ratio)
        of_text = gradient[: len(text)]
        of_text = mean * (of_text - (mean * of_text).sum(-1, keepdim=True) / mean.sum(-1, keepdim=True))
        return torch.cat([of_text, torch.zeros_like(of_text)])


def _elementwise(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def run(x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        kwargs.pop("inplace", None)
        plain = not args and not kwargs
        return Secant.apply(x, function if plain else lambda value: function(value, *args, **kwargs))

    return run


def _moves(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def mul(a: Any, b: Any) -> torch.Tensor:
    if not (_moves(a) and _moves(b)):
        return a * b
    for vector, inverse in ((a, b), (b, a)):
        scale = getattr(inverse, ROOT_OF, None)
        if scale is not None:  # RMSNorm, written out: a vector by its inverse length
            return Product.apply(vector, inverse, False, _share(scale, 0.01))
    return Product.apply(a, b, False)


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return Product.apply(a, b, True) if _moves(a) and _moves(b) else a @ b


def baddbmm(
    bias: torch.Tensor, batch1: torch.Tensor, batch2: torch.Tensor, *, beta: float = 1, alpha: float = 1
) -> torch.Tensor:
    """BLOOM's scores: a product of two batches of matrices, and what is added to it."""
    return beta * bias + alpha * matmul(batch1, batch2)


def div(a: Any, b: Any, *, rounding_mode: None = None) -> torch.Tensor:
    if not (_moves(a) and _moves(b)):
        return a * reciprocal(b) if _moves(b) else a / b
    return Product.apply(a, reciprocal(b), False, _share(b.detach().abs(), 0.1))


def _share(scale: torch.Tensor, tiny: float) -> torch.Tensor:
    """How a vector and its inverse length share the change of their product: evenly, unless one side has no
    length to speak of (a zero word vector that nothing was added to). There the inverse length is an artefact
    of eps, thousands of times the other side's, and the whole change belongs to the vector."""
    text, base = scale.chunk(2)
    return torch.where(base < tiny * text, 1.0, torch.where(text < tiny * base, 0.0, 0.5))


def power(x: torch.Tensor, exponent: float) -> torch.Tensor:
    return square(x) if exponent == 2 else Secant.apply(x, lambda value: value**exponent)


def inverse_root(x: torch.Tensor) -> torch.Tensor:
    """`rsqrt` that carries what it was taken of, by which `mul` knows an inverse length."""
    root = rsqrt(x)
    setattr(root, ROOT_OF, x.detach())
    return root


reciprocal = _elementwise(torch.reciprocal)
square = _elementwise(torch.square)
rsqrt = _elementwise(torch.rsqrt)
sigmoid, tanh = _elementwise(torch.sigmoid), _elementwise(torch.tanh)


def softmax(x: torch.Tensor, dim: int = -1, *_: Any, dtype: torch.dtype | None = None, **__: Any) -> torch.Tensor:
    x = x if dtype is None else x.to(dtype)
    return SoftmaxSecant.apply(x.transpose(dim, -1)).transpose(dim, -1)


def layer_norm(
    x: torch.Tensor,
    normalized_shape: Any,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
    *_: Any,
) -> torch.Tensor:
    """Centre, square, mean, inverse root, product, then the affine part."""
    dims = tuple(range(-len(tuple(normalized_shape)), 0))
    centred = x - x.mean(dims, keepdim=True)
    variance = square(centred).mean(dims, keepdim=True)
    share = _share(variance.detach(), 0.01)
    normed = Product.apply(centred, rsqrt(variance + eps), False, share)
    normed = normed if weight is None else normed * weight
    return normed if bias is None else normed + bias


def lstm(
    x: torch.Tensor,
    state: tuple[torch.Tensor, torch.Tensor],
    weights: list[torch.Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """One layer and direction, unrolled into its gates."""
    if num_layers != 1 or bidirectional or not has_biases or not batch_first:
        raise RuntimeError("the rule covers one batch-first LSTM layer in one direction")
    into, across, into_bias, across_bias = weights
    hidden, cell = (part[0] for part in state)  # [B, D]
    steps = []
    for now in x.unbind(1):
        gates = F.linear(now, into, into_bias) + F.linear(hidden, across, across_bias)
        enter, forget, new, leave = gates.chunk(4, dim=-1)
        cell = mul(sigmoid(forget), cell) + mul(sigmoid(enter), tanh(new))
        hidden = mul(sigmoid(leave), tanh(cell))
        steps.append(hidden)
    return torch.stack(steps, dim=1), hidden[None], cell[None]


RESCALE: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("mul", "multiply"), mul),
    **dict.fromkeys(("matmul", "bmm"), matmul),
    "baddbmm": baddbmm,
    **dict.fromkeys(("div", "truediv", "true_divide", "divide"), div),
    **dict.fromkeys(("pow", "float_power"), power),
    **{
        name: _elementwise(getattr(torch, name))
        for name in (
            "exp",
            "sigmoid",
            "tanh",
            "relu",
            "sqrt",
            "reciprocal",
            "square",
            "erf",
            "log",
            "abs",
        )
    },
    **{name: _elementwise(getattr(F, name)) for name in ("gelu", "silu", "elu", "mish", "softplus", "leaky_relu")},
    "rsqrt": inverse_root,
    "rtruediv": lambda x, numerator: numerator * reciprocal(x),
    "softmax": softmax,
    "layer_norm": layer_norm,
    "lstm": lstm,
}
