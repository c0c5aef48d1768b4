from __future__ import annotations

import warnings
from typing import Literal

import torch

from veridical.attribution import method
from veridical.attribution.gradient import embedding_gradient
from veridical.core.errors import Caution
from veridical.core.records import Batch
from veridical.model.classifier import Classifier
from veridical.model.target import Target

Aggregate = Literal["sum", "abs", "l2"]


def aggregated(products: torch.Tensor, how: Aggregate) -> torch.Tensor:
    """One score per token from its products with the gradient: their sum, its size, or their norm."""
    if how == "l2":
        return products.norm(dim=-1)
    total = products.sum(-1)
    return total.abs() if how == "abs" else total


@method("input_x_gradient", needs=("gradient",), signed=True, differentiable=True)
def input_x_gradient(clf: Classifier, batch: Batch, target: Target, *, aggregate: Aggregate = "sum") -> torch.Tensor:
    """Word vector times the gradient of the explained logit by it, summed over dimensions."""
    embeddings, gradient = embedding_gradient(clf, batch, target)
    products = embeddings * gradient
    scores = aggregated(products, aggregate)
    if not gradient.requires_grad and aggregate != "l2" and _vanish(scores, products):
        warnings.warn(
            f"Input x gradient is 0 for every token of a {clf.family} model: its word vectors enter a LayerNorm with "
            "nothing added, so their length does not matter and the gradient is at right angles to them. The scores "
            "are rounding noise; use integrated_gradients:rule=adaptive or deeplift.",
            Caution,
            stacklevel=2,
        )
    return scores


def _vanish(scores: torch.Tensor, products: torch.Tensor) -> bool:
    return bool(scores.abs().max() < 1e-4 * products.abs().sum(-1).max())
