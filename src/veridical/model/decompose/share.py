"""How DecompX hands a bias out among the sources of a decomposed vector, and what it holds an activation to be.

Notation: t targets, S sources (the text's tokens and, where biases are a source of their own, one more), D width.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from veridical.model.decompose.trace import slope
from veridical.model.decompose.wiring import Activation as Function

Bias = Literal["absdot", "norm", "equal", "abssim", "cls", "none", "token", "late"]
Activation = Literal["ratio", "relu", "tangent"]


@dataclass(frozen=True)
class How:
    """The rules of a decomposition: the authors' defaults, as their released code applies them."""

    bias: Bias = "absdot"
    # paper: the first layer's value bias is shared like any other instead of staying with the attended token, and
    # the bias of attention is shared by what attention brings, before the residual is added
    rules: Literal["released", "paper"] = "released"
    ffn: bool = True
    activation: Activation = "ratio"
    # of a decoder: which sources each of the targets at hand sees, for shares that do not come from vectors. [t, S]
    seen: Tensor | None = None

    def at(self, targets: slice) -> How:
        """The same for some of the targets at hand."""
        return self if self.seen is None else replace(self, seen=self.seen[targets])

    @property
    def columns(self) -> int:
        """Sources beside the tokens."""
        return int(self.bias in ("token", "late"))

    @property
    def by_vectors(self) -> bool:
        """Whether sharing depends on the decomposed vectors, so that they have to be known."""
        return self.bias in ("absdot", "norm", "abssim")

    @property
    def linear(self) -> bool:
        """Whether gradients of the frozen network tell all parts. The intercepts of tangents are known to them only as
        what is missing of the logit, so that nothing else may be missing."""
        return not self.by_vectors and (self.ffn or self.activation != "tangent")

    @property
    def by_size(self) -> bool:
        """Whether it takes their lengths, and not only their products with given vectors."""
        return self.bias in ("norm", "abssim")


def weigh(how: How, vectors: Tensor, bias: Tensor) -> Tensor:
    """What each source's vector has to do with a bias [D] or [t, D], as the rule sees it. [t, S, D] -> [t, S]"""
    if how.bias == "norm":
        return vectors.norm(dim=-1)
    if not how.by_vectors:
        return vectors.new_ones(vectors.shape[:-1])
    if bias.ndim == 1:
        weights = (vectors.reshape(-1, vectors.shape[-1]) @ bias).view(vectors.shape[:-1]).abs_()
    else:
        weights = torch.bmm(vectors, bias[..., None]).squeeze(-1).abs_()
    if how.bias == "absdot":
        return weights
    # The length of the bias is the same for all. As in torch's cosine, a vector next to nothing has no direction.
    return weights / vectors.norm(dim=-1).clamp(min=1e-8)


def settle(how: How, weights: Tensor) -> Tensor:
    """From what `weigh` saw of all sources to what each of them bears. [t, S]"""
    if how.bias == "equal" and how.seen is not None:
        weights = weights * how.seen  # tokens to come bear nothing
    if how.by_vectors or how.bias == "equal":  # the original leaves 0 vectors, its padding, out of equal shares
        return weights / (weights.sum(-1, keepdim=True) + 1e-12)
    borne = torch.zeros_like(weights)
    if how.bias != "none":
        borne[:, 0 if how.bias == "cls" else -1] = 1
    return borne


def shares(how: How, vectors: Tensor, bias: Tensor) -> Tensor:
    """What each source bears of a bias. [t, S, D] -> [t, S]"""
    return settle(how, weigh(how, vectors, bias))


def give(vectors: Tensor, weights: Tensor, bias: Tensor) -> None:
    """Add to each source its share of a bias [D] or [t, D], in place."""
    vectors.addcmul_(weights[..., None], bias if bias.ndim == 1 else bias[:, None])


def share(how: How, vectors: Tensor, bias: Tensor | None) -> None:
    """Hand a bias out among the sources, in place."""
    if bias is not None and how.bias != "none":
        give(vectors, shares(how, vectors, bias), bias)


def line(how: How, activation: Function, u: Tensor, a: Tensor, *, head: bool = False) -> tuple[Tensor, Tensor | None]:
    """Slope and, for a tangent, intercept of the line an activation is held to be at `u`, where it gives `a`."""
    if how.activation == "relu" and not head:  # the original opens a gate in the feed-forward part only
        return (u > 0).to(u.dtype), None
    if how.activation == "tangent":
        with torch.enable_grad():
            point = u.detach().requires_grad_()
            (tangent,) = torch.autograd.grad(activation(point).sum(), point)
        return tangent, a - tangent * u
    return slope(u, a), None
