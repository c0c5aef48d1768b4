"""Attention that follows an explanation, also when the least important tokens are masked (REGEX eq. 6 and 7)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import torch

from veridical.attribution import Method, methods, scores_of
from veridical.core.errors import InputError
from veridical.core.ranges import at_least, between
from veridical.core.records import Batch, Output
from veridical.core.registry import Choice
from veridical.core.spec import INSIDE, Spec
from veridical.explanations.explain import explained
from veridical.model.ask import ask, predict
from veridical.model.classifier import Classifier
from veridical.model.erase import budget, ranking
from veridical.model.pooling import read_row
from veridical.model.target import Target
from veridical.training.term import Figures, term
from veridical.training.term.virtual_adversarial import symmetric_kl

FLOOR = 1e-8  # of a share inside a logarithm
# The paper integrates over 50 steps: 101 passes. Three steps are 7, and order the tokens almost alike (docs/regex.md).
GUIDE = "integrated_gradients/steps=3/aggregate=l2"


@term("explanation_guided", needs=("attention",))
def explanation_guided(
    clf: Classifier,
    batch: Batch,
    output: Output,
    labels: torch.Tensor,
    *,
    method: str = GUIDE,
    ratio: Annotated[float, between(0, 1, without="low")] = 0.15,
    attention_consistency: Annotated[float, at_least(0)] = 0.0,
    label_consistency: Annotated[float, at_least(0)] = 0.0,
) -> tuple[torch.Tensor, Figures]:
    """KL(attention || guide) on the text and on the text whose lowest-scored tokens are masked.

    The guide is any attribution method (`method=deeplift/aggregate=l2`), for the gold class, not differentiated; its
    scores' sizes, divided by their sum over free tokens. `ratio` of the free tokens, at least one, are masked. The
    consistency terms are what the paper's prose claims and its equation lacks: weights of KL(attention || attention
    when masked) and of the symmetric KL between the two predictions.
    """
    chosen = methods.choose(Spec.read(method, INSIDE))
    guide = importance(clf, batch, gold_classes(output.logits, labels), chosen)  # [B, T]
    altered = mask_lowest(clf, batch, guide, ratio)
    masked = clf.forward(altered, attentions=True)
    shares = [_attention(clf, batch, one) for one in (output, masked)]  # [B, T] each
    total = guide.sum(-1, keepdim=True)
    # A guide without any score says nothing about its text, and the text adds nothing.
    told = total[:, 0] > 0
    target = guide / total.clamp_min(torch.finfo(guide.dtype).tiny)
    clean, after = (_kl(share, target)[told].sum() for share in shares)
    loss = clean + after
    if attention_consistency:
        loss = loss + attention_consistency * _kl(*shares).sum()
    if label_consistency:
        loss = loss + label_consistency * symmetric_kl(output.logits, masked.logits, clf.kind).sum()
    return loss, {"clean": clean.detach(), "masked": after.detach()}


def importance(clf: Classifier, batch: Batch, classes: torch.Tensor, guide: Choice[Method]) -> torch.Tensor:
    """The sizes of the guide's scores, 0 off free tokens; dropout off, nothing to differentiate. [B, T]"""
    entry = guide.entry
    if entry.asks:
        scores = _asked(clf, batch, classes, guide)
    else:
        with clf.at_rest(), torch.set_grad_enabled("gradient" in entry.needs):
            scores = scores_of(entry.run(clf, batch, Target(classes), **guide.options)).detach()
    if not bool(torch.isfinite(scores).all()):
        raise InputError(f"{guide.label} gave a score that is not a finite number; guide with another method.")
    return torch.where(batch.free, scores.abs(), 0.0)


def _asked(clf: Classifier, batch: Batch, classes: torch.Tensor, guide: Choice[Method]) -> torch.Tensor:
    whole = predict(clf, batch.encoded)
    asked = [
        explained(clf, e, int(classes[row]), whole.logits[row], whole.probabilities[row])
        for row, e in enumerate(batch.encoded)
    ]
    found = ask(clf, [guide.entry.run(ex, **guide.options) for ex in asked])
    scores = np.zeros(batch.ids.shape, dtype=np.float32)
    for row, (returned, _) in enumerate(found):
        reply = scores_of(returned)
        scores[row, : len(reply)] = reply
    return torch.from_numpy(scores).to(batch.ids.device)


def mask_lowest(clf: Classifier, batch: Batch, scores: torch.Tensor, ratio: float) -> Batch:
    """The batch with [MASK] in place of each text's lowest-scored free tokens."""
    mask_id = getattr(clf.tokenizer, "mask_token_id", None)
    if mask_id is None:
        raise InputError(
            f"The tokenizer of {clf.name} has no mask token, which explanation_guided puts in place of unimportant "
            "words; give it one, or train with virtual_adversarial and input_gradient alone."
        )
    ids, free = batch.ids.clone(), batch.free.cpu().numpy()
    for row, own in enumerate(scores.cpu().numpy()):
        ids[row, lowest(own, free[row], ratio).tolist()] = mask_id
    return Batch(batch.encoded, ids, batch.types, batch.mask, batch.free)


def lowest(scores: np.ndarray, free: np.ndarray, ratio: float) -> np.ndarray:
    """Positions of the lowest-scored free tokens: ceil(ratio n) of n, at least one."""
    order = ranking(scores, free)
    return order[len(order) - budget(len(order), ratio) :]


def gold_classes(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The gold class of each text; of several the likeliest, of none the likeliest of all. [B]"""
    if labels.dim() == 1:
        return labels
    held = labels.bool() | ~labels.bool().any(-1, keepdim=True)
    return logits.detach().masked_fill(~held, -torch.inf).argmax(-1)


def _attention(clf: Classifier, batch: Batch, output: Output) -> torch.Tensor:
    """Last layer, the row the head reads, mean over heads, as shares of the free tokens. [B, T]"""
    row = read_row(clf, output.attentions[-1].mean(1), batch) * batch.free
    return row / row.sum(-1, keepdim=True).clamp_min(FLOOR)


def _kl(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """KL(p || q) of shares [B, T]: [B]."""
    return (p * (p.clamp_min(FLOOR).log() - q.clamp_min(FLOOR).log())).sum(-1)
