from __future__ import annotations

from typing import Literal

import torch

from veridical.attribution import method
from veridical.core.device import has_float64
from veridical.core.errors import InputError
from veridical.core.records import Batch
from veridical.model.classifier import Classifier, leaf
from veridical.model.target import Target


def embedding_gradient(clf: Classifier, batch: Batch, target: Target, edit=leaf) -> tuple[torch.Tensor, torch.Tensor]:
    """Word embeddings (after `edit`) and the gradient of the explained logit by them. [B, T, D] each"""
    out = clf.forward(batch, edit=edit)
    (gradient,) = clf.gradient(target(out.logits), [out.embeddings])
    return out.embeddings, gradient * batch.mask[..., None]


@method("gradient", needs=("gradient",), signed=False, differentiable=True)
def gradient(
    clf: Classifier,
    batch: Batch,
    target: Target,
    *,
    over: Literal["embedding", "vocabulary"] = "embedding",
    aggregate: Literal["l2", "mean"] = "l2",
) -> torch.Tensor:
    """L2 norm of the gradient of the explained logit by a token's word vector.

    `over=vocabulary` takes the norm over the one-hot vocabulary instead, |E g| (Recursive ROAR, eq. 1).
    `aggregate=mean` is the size of the mean entry instead of the norm (REGEX, table 10).
    """
    if over == "vocabulary" and aggregate == "mean":
        raise InputError("aggregate=mean is of the word vector's entries; leave over=vocabulary out beside it.")
    _, gradient = embedding_gradient(clf, batch, target)
    if over == "vocabulary":
        # |E g|^2 = g' (E'E) g: a D x D matrix instead of V numbers for every token.
        home = gradient.device if has_float64(gradient.device) else torch.device("cpu")
        table = clf.model.get_input_embeddings().weight.detach().to(home).double()
        gram = table.T @ table
        exact = gradient.to(home).double()
        squared = torch.einsum("btd,de,bte->bt", exact, gram, exact)
        some = squared > 0  # the root has no slope at 0, where padding is: a guide is differentiated again
        return torch.where(some, torch.where(some, squared, 1.0).sqrt(), 0.0).to(gradient)
    return gradient.mean(-1).abs() if aggregate == "mean" else gradient.norm(dim=-1)
