"""SaLoss: the divergence of attention from a prior word importance (Chrysostomou and Aletras 2021, equation 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch

from veridical.core.errors import InputError
from veridical.core.records import Batch, Encoded, Output
from veridical.core.spec import INSIDE, Spec
from veridical.model.classifier import Classifier
from veridical.model.pooling import read_row
from veridical.training.prior import Salience, fit_prior
from veridical.training.term import term

FLOOR = 1e-8  # under a logarithm: a prior may be 0, and dropout may put attention to exactly 0
Preset = Literal["released"] | None


def prepare(
    clf: Classifier, encoded: Sequence[Encoded], labels: torch.Tensor, *, prior: str = "textrank", preset: Preset = None
) -> Salience:
    """The prior, fitted on the train split, with the salience of its texts: none is worked out twice."""
    spec = Spec.read(prior, INSIDE)
    return fit_prior(as_released(spec) if preset == "released" else spec, clf, encoded, labels)


def as_released(prior: Spec) -> Spec:
    """A prior as the authors' code has it: through a softmax over all tokens, special ones included, for their loss
    counts these too. `textrank` has a preset for the rest; with options of its own it keeps them."""
    if prior == Spec("textrank"):
        return Spec("textrank", {"preset": "released"})
    how = prior.options.get("normalise", "softmax_all")
    if how != "softmax_all":
        raise InputError(
            f"saloss has preset=released and the prior normalise={how}; the authors' code takes a softmax over all "
            "tokens: leave normalise out."
        )
    return Spec(prior.name, {**prior.options, "normalise": how})


@term("saloss", needs=("attention",), prepare=prepare)
def saloss(
    clf: Classifier,
    batch: Batch,
    output: Output,
    labels: torch.Tensor,
    prepared: Salience,
    *,
    prior: str = "textrank",
    reverse: bool = False,
    specials: bool = False,
    preset: Preset = None,
) -> torch.Tensor:
    """Sum over examples of KL(attention || prior), the attention being what the method `attention` shows.

    Dropout lets rows of attention sum to anything, so attention is renormalised over the free tokens, or with
    `specials` over all; the prior's options follow a slash (`prior=textrank/window=8`). A text of which the prior says
    nothing adds nothing. `reverse` is KL(prior || attention). `preset=released` is the authors' code: a second softmax
    over all tokens, of the prior too, and the sum over the batch squared, `textrank` by its own preset; it overrides
    the other two.
    """
    attention = read_row(clf, output.attentions[-1].mean(1), batch)  # [B, H, T, T] -> [B, T]
    salience = prepared.of_batch(batch)  # [B, T]
    if preset == "released":
        # Their loss is of a batch, ours of examples: the loop divides by their number what is multiplied by it here.
        return len(attention) * released(attention, salience, batch.mask) ** 2
    kept = batch.mask if specials else batch.free
    attention, salience = over(attention, kept), over(salience, kept)
    losses = divergence(salience, attention) if reverse else divergence(attention, salience)  # [B]
    return torch.where(salience.sum(-1) > 0, losses, 0.0).sum()


def over(weights: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """Weights [B, T] as a distribution over the kept positions; 0 everywhere where all of them are 0."""
    weights = torch.where(kept, weights, 0.0)
    return weights / weights.sum(-1, keepdim=True).clamp_min(FLOOR)


def divergence(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """KL(p || q) of each row. [B, T] -> [B]"""
    return (p * (p.clamp_min(FLOOR).log() - q.clamp_min(FLOOR).log())).sum(-1)


def released(attention: torch.Tensor, salience: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """What the authors' code squares: attention through a softmax again, the divergence summed over the batch."""
    again = attention.masked_fill(~mask, -torch.inf).softmax(-1)
    losses = (again * ((again + 1e-10).log() - (salience + 1e-10).log())).sum(-1)  # [B]
    return torch.where(salience.sum(-1) > 0, losses, 0.0).sum()
