"""Explanation regularisation: how far a model's own attributions are from a human's rationale."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch

from veridical.attribution import Method, methods
from veridical.core.errors import InputError
from veridical.core.records import Batch, Encoded, Output
from veridical.core.registry import Choice
from veridical.core.spec import INSIDE, Spec
from veridical.core.text import marked
from veridical.model.classifier import Classifier, leaf
from veridical.model.target import Target
from veridical.training.prior import Prior, Salience, fit_prior, normalised
from veridical.training.term import Figures, term
from veridical.training.term.saloss import over

TINY = 1e-12  # a row that is 0 everywhere stays so, with a gradient that is 0
TRIED = 8  # train texts on which a guide is tried before training starts


@dataclass(frozen=True)
class Guide:
    """The attribution method that is guided, and where it is to look."""

    method: Choice[Method]
    source: Salience  # of each text: sums to 1, or 0 everywhere where there is nothing to guide by

    @property
    def spread(self) -> bool:
        """Whether its scores are shares of a whole, as attention's are, rather than shares of a logit."""
        return not (self.method.entry.signed or self.method.entry.of_target)

    def scores(self, clf: Classifier, batch: Batch, labels: torch.Tensor) -> torch.Tensor:
        """Of every position, for the gold class. [B, T]"""
        target = Target(labels if self.method.entry.of_target else None)
        # A decomposition rebuilds the network from its parts, and dropout is in none of them.
        with clf.still() if "layers" in self.method.entry.needs else nullcontext():
            return self.method.entry.run(clf, batch, target, **self.method.options)


def prepare(
    clf: Classifier,
    encoded: Sequence[Encoded],
    labels: torch.Tensor,
    *,
    method: str = "attention",
    source: str = "rationale",
) -> Guide:
    """The guide, tried on a few texts: what it refuses or warns of is said before training starts."""
    chosen = methods.choose(Spec.read(method, INSIDE))
    if not chosen.entry.differentiable:
        allowed = ", ".join(one.name for one in methods if one.differentiable)
        raise InputError(f"Method {chosen.entry.name!r} cannot be differentiated, so it cannot guide; take {allowed}.")
    if clf.kind == "multi" and chosen.entry.of_target:
        raise InputError(
            f"Method {chosen.entry.name!r} explains one class, and a multi-label text may have several; guide by a "
            "method that explains none, like method=attention or method=rollout."
        )
    if source == "rationale":
        salience = Salience(Choice(Prior("rationale", _rationale)))
    else:
        salience = fit_prior(Spec.read(source, INSIDE), clf, encoded, labels)
    guide = Guide(chosen, salience)
    if not any(salience.of(one).any() for one in encoded):
        raise InputError(
            f"None of the {len(encoded)} train texts has anything to guide by (source={source}); use data with "
            "rationales, or a prior like source=lexicon."
        )
    with clf.at_rest(), clf.eager():
        guide.scores(clf, clf.collate(encoded[:TRIED]), labels[:TRIED].to(clf.device))
    return guide


def _rationale(encoded: Encoded, fitted: Any) -> np.ndarray:
    return normalised(encoded, marked(encoded).astype(np.float32))


def size(
    encoded: Sequence[Encoded],
    labels: torch.Tensor,
    prepared: Guide,
    *,
    specials: bool = False,
    instance_macro: bool = False,
    released: bool = False,
) -> float:
    """The tokens of the texts that count, or with `instance_macro` these texts."""
    everyone = released and not prepared.spread
    counted = [one for one in encoded if everyone or prepared.source.of(one).any()]
    if instance_macro:
        return len(counted)
    return sum(len(one.ids) if specials or released else sum(one.free) for one in counted)


@term("explanation", needs=("attention",), second_order=True, prepare=prepare, size=size)
def explanation(
    clf: Classifier,
    batch: Batch,
    output: Output,
    labels: torch.Tensor,
    prepared: Guide,
    *,
    method: str = "attention",
    source: str = "rationale",
    specials: bool = False,
    instance_macro: bool = False,
    released: bool = False,
) -> tuple[torch.Tensor, Figures]:
    """Mean absolute error of a differentiable method's scores for the gold class against rationales, over the free
    tokens of the texts that have one (Ferreira et al., section 3; ER-Test).

    Scores that are shares of a whole (attention, rollout, ALTI) are renormalised over the free tokens and compared with
    the rationale divided by its sum; all others by their absolute value, at L2 norm 1, with 0 and 1. Instead of
    rationales, `source` takes any prior (`lexicon`). Every token weighs the same, or with `instance_macro` every text.
    `specials` counts all positions, special tokens and the context with target 0. `released` is the authors' code:
    `specials`, attention x 100 through another softmax, nothing renormalised, and for the others texts without a
    rationale count, as if it were empty.
    """
    seen = cast(Classifier, Seen(clf, batch, output))
    wanted = prepared.source.of_batch(batch)  # [B, T]
    guided = wanted.sum(-1) > 0  # [B]
    figures = {"guided": guided.sum()}
    counted = torch.ones_like(guided) if released and not prepared.spread else guided
    if not prepared.spread and not counted.any():
        return output.logits.sum() * 0, figures
    scores = prepared.scores(seen, batch, labels)
    kept = batch.mask if specials or released else batch.free
    if prepared.spread:
        figures["specials"] = (over(scores, batch.mask) * ~batch.free).sum().detach()
        if not released:
            scores = over(scores, kept)
        elif prepared.method.entry.name == "attention":
            scores = sharpened(scores, kept)
    else:
        scores, wanted = unit(scores, kept), wanted / wanted.amax(-1, keepdim=True).clamp_min(TINY)
    errors = absolute_error(scores, wanted, kept)
    if instance_macro:
        errors = errors / kept.sum(-1).clamp_min(1)
    return errors[counted].sum(), figures


def absolute_error(scores: torch.Tensor, wanted: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """Summed over the kept positions of each row. [B, T] -> [B]"""
    return torch.where(kept, (scores - wanted).abs(), 0.0).sum(-1)


def sharpened(scores: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """The released code's attention: times 100, through a softmax."""
    return (100 * scores).masked_fill(~kept, -torch.inf).softmax(-1)


def unit(scores: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """Absolute scores at L2 norm 1 over the kept positions."""
    scores = torch.where(kept, scores, 0.0)
    return scores.abs() / scores.square().sum(-1, keepdim=True).clamp_min(TINY**2).sqrt()


class Seen:
    """A classifier that has already run: a method that asks for that very pass gets it, and pays nothing.

    A pass with hidden states is never lent: who asks for them may be listening to the layers while it runs.
    """

    def __init__(self, clf: Classifier, batch: Batch, output: Output):
        self.clf, self.batch, self.output = clf, batch, output

    def __getattr__(self, name: str) -> Any:
        return getattr(self.clf, name)

    def forward(self, batch: Batch, **asked: Any) -> Output:
        edit, embeddings = asked.get("edit"), self.output.embeddings
        # `leaf` leaves embeddings as they are while something before them trains; frozen ones it has to set free.
        as_is = edit is None or (edit is leaf and embeddings is not None and embeddings.requires_grad)
        same = batch is self.batch and as_is and not asked.get("hidden")
        return self.output if same else self.clf.forward(batch, **asked)
