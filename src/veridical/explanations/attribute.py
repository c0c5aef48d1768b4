"""`veridical.attribute`: the tensor-level seam, for those who hold a transformers model and input ids."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

from veridical.attribution import methods
from veridical.core.errors import InputError
from veridical.core.records import Batch, Encoded, Example
from veridical.explanations.explain import explained
from veridical.model.ask import ask, predict
from veridical.model.classifier import Classifier
from veridical.model.sound import attending_fully, in_float32
from veridical.model.target import Target


def attribute(
    model: Any,
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor | None = None,
    method: str = "integrated_gradients",
    target: int | torch.Tensor | None = None,
    token_type_ids: torch.Tensor | None = None,
    special_tokens_mask: torch.Tensor | None = None,
    **options: Any,
) -> torch.Tensor:
    """Scores of every attended position, special tokens included; padding is 0. [B, T] float

    `target` is a class, one per row, or None for the predicted one. Methods that alter the input alter every
    attended position, unless `special_tokens_mask` (1 = special, as tokenizers return it) keeps some as they are.
    """
    choice = methods.choose(method, **options)
    clf = model if isinstance(model, Classifier) else Classifier(attending_fully(in_float32(model)))
    batch = _batch(clf, input_ids, attention_mask, token_type_ids, special_tokens_mask)
    classes = _classes(target, len(batch.ids), len(clf.labels), clf.device)
    if choice.entry.asks:
        return _asked(clf, batch, choice, classes).to(clf.device)
    needs = choice.entry.needs
    attention = clf.eager() if "attention" in needs else nullcontext()
    with clf.at_rest(), attention, torch.set_grad_enabled("gradient" in needs):
        scores = choice.entry.run(clf, batch, Target(classes), **choice.options).detach()
    return torch.where(batch.mask, scores, torch.zeros_like(scores))


def _batch(
    clf: Classifier,
    ids: torch.Tensor,
    mask: torch.Tensor | None,
    types: torch.Tensor | None,
    special: torch.Tensor | None,
) -> Batch:
    given = {"attention_mask": mask, "token_type_ids": types, "special_tokens_mask": special}
    for name, tensor in given.items():
        if tensor is not None and tensor.shape != ids.shape:
            raise InputError(f"{name} has shape {tuple(tensor.shape)}, input_ids {tuple(ids.shape)}; make them equal.")
    if ids.ndim != 2:
        raise InputError(f"input_ids has shape {tuple(ids.shape)}; it must be [batch, tokens].")
    if ids.numel():
        clf.insist_on_rows(int(ids.min()), int(ids.max()))
    ids = ids.to(clf.device)
    attended = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask.to(clf.device).bool()
    free = attended if special is None else attended & ~special.to(clf.device).bool()
    types = torch.zeros_like(ids) if types is None else types.to(clf.device)
    return Batch(
        tuple(_encoded(*row) for row in zip(ids, types, attended, free, strict=True)),
        ids,
        types,
        attended,
        free,
    )


def _encoded(ids: torch.Tensor, types: torch.Tensor, attended: torch.Tensor, free: torch.Tensor) -> Encoded:
    length = int(attended.nonzero().max()) + 1 if bool(attended.any()) else 0
    return Encoded(
        example=Example(id="", text=""),
        ids=tuple(ids[:length].tolist()),
        types=tuple(types[:length].tolist()),
        spans=((0, 0),) * length,
        words=tuple(range(length)),
        free=tuple(free[:length].tolist()),
    )


def _classes(target: int | torch.Tensor | None, rows: int, classes: int, device: torch.device) -> torch.Tensor | None:
    if target is None:
        return None
    chosen = torch.as_tensor(target, device=device).long().expand(rows)
    if bool((chosen < 0).any()) or bool((chosen >= classes).any()):
        raise InputError(f"The target {target!r} is not a class of this model; allowed: 0 to {classes - 1}.")
    return chosen


def _asked(clf: Classifier, batch: Batch, choice: Any, classes: torch.Tensor | None) -> torch.Tensor:
    if not all(bool(batch.mask[row, : len(e.ids)].all()) for row, e in enumerate(batch.encoded)):
        raise InputError(f"{choice.label} takes rows padded at the right only; move the padding behind the text.")
    full = predict(clf, batch.encoded)
    targets = full.logits.argmax(-1) if classes is None else classes.cpu().numpy()
    asked = [
        explained(clf, e, int(targets[row]), full.logits[row], full.probabilities[row])
        for row, e in enumerate(batch.encoded)
    ]
    scores = torch.zeros(batch.ids.shape, dtype=torch.float32)
    for row, (reply, _) in enumerate(ask(clf, [choice.entry.run(ex, **choice.options) for ex in asked])):
        scores[row, : len(reply)] = torch.from_numpy(np.asarray(reply, dtype=np.float32))
    return scores
