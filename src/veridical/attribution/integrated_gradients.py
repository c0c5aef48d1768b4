from __future__ import annotations

import warnings
from bisect import bisect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
from scipy.interpolate import PchipInterpolator

from veridical.attribution import method
from veridical.attribution.copies import in_copies, some_rows
from veridical.attribution.input_x_gradient import Aggregate, aggregated
from veridical.core.errors import Caution, InputError
from veridical.core.ranges import between
from veridical.core.records import Batch
from veridical.model.classifier import Classifier, leaf
from veridical.model.target import Target

Rule = Literal["gauss", "right", "mid", "left", "trapezoid", "adaptive", "released"]
Baseline = Literal["zero", "mask", "pad"]
MOST_STEPS = 5000  # the nodes of Gauss come from a matrix of so many rows and columns: 200 MB


@method("integrated_gradients", needs=("gradient",), signed=True, complete=True, passes="about 50 of each")
def integrated_gradients(
    clf: Classifier,
    batch: Batch,
    target: Target,
    *,
    steps: Annotated[int, between(1, MOST_STEPS)] = 50,
    rule: Rule = "gauss",
    baseline: Baseline = "zero",
    aggregate: Aggregate = "sum",
    tolerance: Annotated[float, between(0, 1)] = 0.05,
) -> torch.Tensor:
    """Gradient averaged along the straight path from a baseline to the word vectors, times their difference
    (Sundararajan et al. 2017; Recursive ROAR eq. 2; REGEX eq. 5).

    Free tokens move; special tokens, context and positions stay. `rule=adaptive` chooses the nodes per text, at
    most `steps`: it refines the path where the gradients explain the change of the logit worst, until what they
    miss is `tolerance` of the scores' total size, and then makes the scores sum to the change exactly.
    `rule=released` is what the code released with Recursive ROAR computes: `right`, with every gradient times its
    place on the path once more. It is here to compare with; its scores do not sum to the change.
    """
    line = _Line(clf, batch, target, _baseline(clf, baseline), aggregate)
    every = torch.arange(len(batch.ids), device=batch.ids.device)
    with torch.no_grad():  # the clean pass fixes the explained class before anything is altered
        whole = target(clf.forward(batch).logits)
    if rule == "adaptive":
        return aggregated(_adaptive(line.products, every, steps, tolerance), aggregate)
    total = line.summed(*nodes(rule, steps))
    if aggregate == "sum" and rule != "released":
        with torch.no_grad():
            null = target(clf.forward(batch, edit=lambda e: line.at(0.0, e, every)).logits)
        _warn_if_incomplete(total.sum((1, 2)), whole - null, steps)
    return aggregated(total, aggregate)


@dataclass(frozen=True)
class _Line:
    """The straight path from a baseline to the word vectors of a batch."""

    clf: Classifier
    batch: Batch
    target: Target
    start: torch.Tensor  # [D], the baseline
    aggregate: Aggregate

    def at(self, weight: torch.Tensor | float, embeddings: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """The point of the path `weight` of the way from the baseline to the text."""
        moving = self.batch.free[..., None][rows, : embeddings.shape[1]]  # [rows, T, 1]
        return torch.where(moving, self.start + weight * (embeddings - self.start), embeddings).detach()

    def products(
        self, weight: torch.Tensor | float, rows: torch.Tensor, width: int | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(text - baseline) times the gradient there, summed over D where that suffices, and the logit there."""
        text: list[torch.Tensor] = []

        def edit(embeddings: torch.Tensor) -> torch.Tensor:
            text.append(embeddings.detach())
            return leaf(self.at(weight, embeddings, rows))

        out = self.clf.forward(some_rows(self.batch, rows, width), edit=edit)
        logit = self.target.rows(rows)(out.logits)
        (gradient,) = self.clf.gradient(logit, [out.embeddings])
        product = gradient * (text[0] - self.at(0.0, text[0], rows))
        return product if self.aggregate == "l2" else product.sum(-1, keepdim=True), logit.detach()

    def summed(self, places: np.ndarray, weights: np.ndarray) -> torch.Tensor:
        """The products at these places of the path under these weights, a copy of the text at each. [B, T, D or 1]"""
        device, depth = self.batch.ids.device, len(self.start) if self.aggregate == "l2" else 1
        points, shares = (torch.as_tensor(x, dtype=torch.float32, device=device) for x in (places, weights))
        total = torch.zeros(*self.batch.ids.shape, depth, device=device)
        for rows, width, which in in_copies(self.batch, len(points)):
            some = slice(which.start, which.stop)
            weight = points[some].repeat_interleave(len(rows)).reshape(-1, 1, 1)
            product = self.products(weight, rows.repeat(len(which)), width)[0]  # [nodes * rows, width, D or 1]
            by_node = product.unflatten(0, (len(which), len(rows)))
            total[rows, :width] += torch.einsum("n,nbtd->btd", shares[some], by_node)
        return total


def _warn_if_incomplete(total: torch.Tensor, due: torch.Tensor, steps: int) -> None:
    gap = (total - due).abs()
    worst = int(gap.argmax())
    if float(gap[worst]) > 0.05 + 0.05 * float(due[worst].abs()):
        warnings.warn(
            f"Integrated gradients with {steps} steps do not add up: a text's scores sum to {float(total[worst]):.3f} "
            f"where its logit changed by {float(due[worst]):.3f}. The gradient jumps on the path (it does near 0 "
            "where word vectors enter a LayerNorm with nothing added); use rule=adaptive.",
            Caution,
            stacklevel=2,
        )


def nodes(rule: Rule, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes in [0, 1] and weights summing to 1 of a quadrature rule; the trapezoid has steps + 1 of them.

    The weights of `released` do not sum to 1: its gradient is taken before the word vectors are scaled by i/k.
    """
    if rule == "gauss":
        points, weights = np.polynomial.legendre.leggauss(steps)
        return (points + 1) / 2, weights / 2
    if rule == "trapezoid":
        weights = np.full(steps + 1, 1 / steps)
        weights[[0, -1]] /= 2
        return np.linspace(0, 1, steps + 1), weights
    if rule == "released":
        points, weights = nodes("right", steps)
        return points, weights * points
    shift = {"right": 1.0, "mid": 0.5, "left": 0.0}[rule]
    return (np.arange(steps) + shift) / steps, np.full(steps, 1 / steps)


def _adaptive(
    products: Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]],
    rows: torch.Tensor,
    steps: int,
    tolerance: float,
) -> torch.Tensor:
    """Halve, per text, the part of its path where the gradients explain the change of the logit worst.

    A gradient pass also gives the logit, so the error of every part is known exactly, not estimated. Between its
    nodes a token's gradient is a monotone cubic; what a part still lacks is given to the tokens in proportion to
    what they have in it, so that the scores sum to the change of the logit.
    """
    paths = [_Path() for _ in rows]
    waiting, places = list(range(len(paths))), [np.full(len(paths), x) for x in np.linspace(0, 1, 5)]
    while waiting:
        index = rows[waiting]
        for place in places:
            weight = torch.as_tensor(place, dtype=torch.float32, device=rows.device).reshape(-1, 1, 1)
            values, logits = products(weight, index)
            for i, x, value, logit in zip(waiting, place, values, logits, strict=True):
                paths[i].add(float(x), value.cpu().double().numpy(), float(logit))
        waiting = [i for i in waiting if len(paths[i].x) < steps and not paths[i].settled(tolerance)]
        places = [np.array([paths[i].worst() for i in waiting])]
    return torch.from_numpy(np.stack([path.scores() for path in paths])).float().to(rows.device)


class _Path:
    """What is known of one text's path: nodes, their products and logits, kept in order."""

    def __init__(self) -> None:
        self.x: list[float] = []
        self.products: list[np.ndarray] = []  # [T, D or 1]
        self.logits: list[float] = []

    def add(self, x: float, products: np.ndarray, logit: float) -> None:
        place = bisect(self.x, x)
        self.x.insert(place, x)
        self.products.insert(place, products)
        self.logits.insert(place, logit)

    def parts(self) -> np.ndarray:
        """The integral of every token over every part, by monotone cubics. [nodes - 1, T, D or 1]"""
        whole = PchipInterpolator(self.x, np.stack(self.products)).antiderivative()(self.x)
        return np.diff(whole, axis=0)

    def errors(self, parts: np.ndarray) -> np.ndarray:
        return np.diff(self.logits) - parts.sum((1, 2))

    def worst(self) -> float:
        k = int(np.abs(self.errors(self.parts())).argmax())
        return (self.x[k] + self.x[k + 1]) / 2

    def settled(self, tolerance: float) -> bool:
        parts = self.parts()
        return np.abs(self.errors(parts)).sum() <= tolerance * np.abs(parts.sum(0)).sum()

    def scores(self) -> np.ndarray:
        parts = self.parts()
        size = np.abs(parts) + 1e-12
        lacking = self.errors(parts)[:, None, None] * size / size.sum((1, 2), keepdims=True)
        return (parts + lacking).sum(0)


def _baseline(clf: Classifier, name: Baseline) -> torch.Tensor:
    table = clf.model.get_input_embeddings().weight.detach()
    if name == "zero":
        return torch.zeros_like(table[0])
    token = clf.model.config.pad_token_id if name == "pad" else getattr(clf.tokenizer, "mask_token_id", None)
    if token is None:
        raise InputError(f"This model has no {name} token; take baseline=zero.")
    return table[token]
