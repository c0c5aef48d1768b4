from __future__ import annotations

from typing import Any, Literal

import torch

from veridical.attribution import method
from veridical.attribution.input_x_gradient import Aggregate, aggregated
from veridical.core.records import Batch
from veridical.model.classifier import Classifier
from veridical.model.rules.rescale import RESCALE
from veridical.model.rules.rules import Rules, forward_by
from veridical.model.target import Target


@method("deeplift", needs=("attention", "gradient"), signed=True, complete=True, passes="2 forward, 1 backward")
def deeplift(
    clf: Classifier,
    batch: Batch,
    target: Target,
    *,
    rule: Literal["rescale", "captum"] = "rescale",
    aggregate: Aggregate = "sum",
) -> torch.Tensor:
    """DeepLift's Rescale rule (Shrikumar et al. 2017) against the text with zero word vectors on free tokens,
    through every operation, softmax and LayerNorm included; products are split evenly between their factors.

    Scores sum to the change of the logit. `rule=captum` is Captum's DeepLift, which has no rule for softmax,
    LayerNorm or a functional activation and uses plain gradients there: on transformers it ranks as
    input x gradient does, and its sum is not the change of the logit.
    """
    moves = batch.free[..., None]  # [B, T, 1]
    if rule == "captum":
        return aggregated(_captum(clf, batch, target, moves), aggregate)
    B = len(batch.ids)

    def edit(embeddings: torch.Tensor) -> torch.Tensor:
        """The text in the first half of the rows, its baseline in the second."""
        text = embeddings[:B]
        both = torch.cat([text, torch.where(moves, torch.zeros_like(text), text)])
        return both.detach().requires_grad_()

    out = forward_by(Rules(RESCALE, "deeplift"), clf, _twice(batch), edit)
    logits = target(out.logits[:B])
    (multiplier,) = clf.gradient(logits, [out.embeddings])
    difference = (out.embeddings[:B] - out.embeddings[B:]).detach()
    return aggregated(multiplier[:B] * difference, aggregate)


def _twice(batch: Batch) -> Batch:
    return Batch((), *(torch.cat([t, t]) for t in (batch.ids, batch.types, batch.mask, batch.free)))


def _captum(clf: Classifier, batch: Batch, target: Target, moves: torch.Tensor) -> torch.Tensor:
    from captum.attr import DeepLift

    with torch.no_grad():
        out = clf.forward(batch)
        target(out.logits)
    weights = target.weights(out.logits)  # [B, C]: one class, or one against another

    class FromEmbeddings(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = clf.model  # Captum hooks the modules it finds below

        def forward(self, embeddings: torch.Tensor) -> torch.Tensor:
            rows = batch if len(embeddings) == len(batch.ids) else _twice(batch)
            logits = clf.forward(rows, edit=lambda _: embeddings).logits
            return (logits * weights.repeat(len(logits) // len(weights), 1)).sum(-1, keepdim=True)

    text = out.embeddings.detach()
    baseline = torch.where(moves, torch.zeros_like(text), text)
    clf.backwards += len(text)
    explainer: Any = DeepLift(FromEmbeddings())
    return explainer.attribute(text.requires_grad_(), baseline, target=0).detach()
