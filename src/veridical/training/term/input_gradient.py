"""How steeply the loss changes with the word vectors (REGEX eq. 4, after Ross and Doshi-Velez 2018)."""

from __future__ import annotations

import torch
from torch.linalg import vector_norm

from veridical.core.records import Batch, Output
from veridical.model.classifier import Classifier, leaf
from veridical.training.term import term
from veridical.training.term.cross_entropy import losses


@term("input_gradient", second_order=True)
def input_gradient(
    clf: Classifier,
    batch: Batch,
    output: Output,
    labels: torch.Tensor,
    *,
    squared: bool = False,
    parameters: bool = False,
) -> torch.Tensor:
    """L2 norm of the gradient of a text's cross-entropy by its free word vectors (double backpropagation).

    `squared` penalises its square, as the work the paper cites does; `parameters` adds the norm of all parameters, as
    eq. 4 prints it (weight decay does that already).
    """
    if not output.embeddings.requires_grad:  # the word vectors are frozen
        output = clf.forward(batch, edit=leaf)
    loss = losses(output.logits, labels, clf.kind)  # [B]
    with torch.enable_grad():
        (gradient,) = clf.gradient(loss, [output.embeddings])
    # The norm's own rule gives 0, not NaN, for a text without any gradient.
    norm = vector_norm(gradient * batch.free[..., None], dim=(1, 2))  # [B]
    total = (norm.square() if squared else norm).sum()
    if not parameters:
        return total
    sizes = torch.stack([vector_norm(p) for p in clf.model.parameters() if p.requires_grad])
    return total + len(norm) * vector_norm(sizes)
