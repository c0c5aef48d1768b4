"""How far the prediction moves under the worst small shift of the word vectors (REGEX eq. 3, after SMART)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch.nn import functional

from veridical.core.ranges import above, between
from veridical.core.records import Batch, Output
from veridical.core.seed import Draw
from veridical.model.classifier import Classifier, Kind
from veridical.training.term import Figures, term

Preset = Literal["relative", "radius", "mt_dnn"]


@dataclass(frozen=True, slots=True)
class Ball:
    """How large a shift may be, and how far one ascent step goes."""

    preset: Preset
    radius: float
    step: float

    def ascend(self, shift: torch.Tensor, gradient: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        """One step up the gradient and back into the ball. [B, T, D] each; `scale` is the size of a word vector's
        entries, [B, 1, 1]."""
        if self.preset == "radius":
            return (shift + self.step * gradient).clamp(-self.radius, self.radius)
        if self.preset == "mt_dnn":  # the radius only guards a division, so the shift has size 1, not `radius`
            moved = shift + self.step * gradient
            return moved / (moved.abs().amax(-1, keepdim=True) + self.radius)
        largest = gradient.abs().amax(-1, keepdim=True)
        direction = gradient / largest.clamp_min(torch.finfo(gradient.dtype).tiny)
        reach = self.radius * scale
        return (shift + self.step * reach * direction).clamp(-reach, reach)


# (radius, step) of each preset. The paper prints 1e-5 and 1e-3. Relative ones are in units of the word vectors'
# entries and of the radius: a printed step of 1e-3 would end far inside the ball, and the radius would mean nothing.
DEFAULTS: dict[Preset, tuple[float, float]] = {"relative": (0.1, 1.0), "radius": (1e-5, 1e-3), "mt_dnn": (1e-5, 1e-3)}


@term("virtual_adversarial", draws=True)
def virtual_adversarial(
    clf: Classifier,
    batch: Batch,
    output: Output,
    labels: torch.Tensor,
    draw: Draw = Draw(),  # noqa: B008  a frozen record
    *,
    preset: Preset = "relative",
    radius: Annotated[float, above(0)] | None = None,
    step: Annotated[float, above(0)] | None = None,
    steps: Annotated[int, between(1, 1000)] = 2,
    noise: Annotated[float, above(0)] = 1e-5,
) -> tuple[torch.Tensor, Figures]:
    """Symmetric KL between the predictions on the text and on the text whose word vectors are shifted, in a ball around
    them, to where it is largest. Dropout is off, so that only the shift makes a difference.

    `relative` (the default): each entry moves by at most `radius` times the mean absolute entry of the text's word
    vectors; gradients are normalised per token, `step` is in units of the radius. `radius`: the ball as the paper
    prints it (1e-5), where the term is dead. `mt_dnn`: what the released code it follows does, noise of size 1, and
    each half of the symmetric KL trains one of the two predictions, the other being its target.
    """
    usual = DEFAULTS[preset]
    ball = Ball(preset, usual[0] if radius is None else radius, usual[1] if step is None else step)
    clean = output if not clf.model.training or _never_drops(clf) else _still(clf, batch)
    shift = _worst(clf, batch, clean, ball, steps, noise, draw)
    with clf.still():
        moved = clf.forward(batch, edit=lambda embeddings: embeddings + shift).logits
    flipped = (moved.argmax(-1) != clean.logits.argmax(-1)).sum()
    distance = symmetric_kl(moved, clean.logits, clf.kind, targets_held=preset == "mt_dnn")
    return distance.sum(), {"flipped": flipped.to(moved.dtype)}


def symmetric_kl(a: torch.Tensor, b: torch.Tensor, kind: Kind, *, targets_held: bool = False) -> torch.Tensor:
    """KL(p || q) + KL(q || p) of the predictions behind class logits [B, C]: [B]; multi-label: the mean over classes.

    As sum (p - q)(log p - log q), where nothing cancels: predictions that are nearly equal are the usual case. With
    `targets_held` the first of each KL is its target, through which no gradient flows. Of log p and log q their own
    mean gradient is 0, so that is the same as holding p - q.
    """
    if kind == "single":
        p, q = functional.log_softmax(a, -1), functional.log_softmax(b, -1)
        apart = p.exp() - q.exp()
        return ((apart.detach() if targets_held else apart) * (p - q)).sum(-1)
    # Of Bernoulli variables log p/(1-p) is the logit itself. Both columns of a one-logit head say the same.
    apart = a.sigmoid() - b.sigmoid()
    return ((apart.detach() if targets_held else apart) * (a - b)).mean(-1)


def _worst(
    clf: Classifier, batch: Batch, clean: Output, ball: Ball, steps: int, noise: float, draw: Draw
) -> torch.Tensor:
    """The shift of free tokens after the ascent; no parameter's gradient is computed on the way. [B, T, D]"""
    vectors, free = clean.embeddings.detach(), batch.free[..., None]
    entries = free.sum((1, 2), keepdim=True) * vectors.shape[-1]
    scale = (vectors.abs() * free).sum((1, 2), keepdim=True) / entries  # [B, 1, 1]
    shift = noise * _draws(batch, vectors, draw)
    with clf.at_rest(), torch.enable_grad():
        for _ in range(steps):
            point = (vectors + shift).requires_grad_()
            logits = clf.forward(batch, edit=lambda _, point=point: point).logits
            distance = symmetric_kl(logits, clean.logits.detach(), clf.kind)
            (gradient,) = clf.gradient(distance, [point])
            shift = torch.where(free, ball.ascend(shift, gradient, scale), 0.0)
    return shift


def _draws(batch: Batch, like: torch.Tensor, draw: Draw) -> torch.Tensor:
    """Standard normal on free tokens: of a step and a text, whatever stands beside it in the batch. [B, T, D]"""
    drawn = torch.zeros(like.shape)
    for row, (encoded, mask) in enumerate(zip(batch.encoded, batch.mask.cpu(), strict=True)):
        random = torch.Generator().manual_seed(draw.seed_of("virtual adversarial", encoded.example.id))
        drawn[row, mask] = torch.randn(int(mask.sum()), like.shape[-1], generator=random)
    return torch.where(batch.free[..., None], drawn.to(like), 0.0)


def _still(clf: Classifier, batch: Batch) -> Output:
    with clf.still():
        return clf.forward(batch)


def _never_drops(clf: Classifier) -> bool:
    """Whether the model has no dropout, so that the loop's own pass is a clean one."""
    settings = clf.model.config.to_dict().items()
    return not any("drop" in name and isinstance(value, float) and value > 0 for name, value in settings)
