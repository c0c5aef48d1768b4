"""`veridical.attribute`: the tensor-level seam, for those who hold a transformers model and input ids."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

from veridical.attribution import insist_on_scores, methods, scores_of, warn_of_no_class
from veridical.core.device import computing
from veridical.core.errors import InputError
from veridical.core.readable import shown
from veridical.core.records import Batch, Encoded, Example
from veridical.explanations.explain import explained
from veridical.explanations.sink import first_shares, warn_of_sink
from veridical.model.ask import ask, predict
from veridical.model.classifier import Classifier
from veridical.model.load import classifier_of
from veridical.model.lora import with_folded_adapters
from veridical.model.memory import run_all
from veridical.model.padding import insist_on_right_padding
from veridical.model.sound import attending_fully, in_float32, insist_on_answers
from veridical.model.target import SECOND, Wanted


def attribute(
    model: Any,
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor | None = None,
    method: str = "integrated_gradients",
    target: int | torch.Tensor | None = None,
    token_type_ids: torch.Tensor | None = None,
    special_tokens_mask: torch.Tensor | None = None,
    *,
    contrast: int | str | torch.Tensor | None = None,
    device: str | None = None,
    **options: Any,
) -> torch.Tensor:
    """Scores of every attended position of a batch, for those who hold a transformers model and input ids.

    Args:
        model: A transformers sequence classifier, or what `load` returns.
        input_ids: Token ids of the texts, padded to one length. [B, T]
        attention_mask: 1 where there is a token, 0 on padding. Default: tokens everywhere. [B, T]
        method: A name, options behind colons: `"alti:layer=3"`.
        target: The class to explain, or a tensor of one for each row. Default: the predicted one.
        token_type_ids: Segments of pairs. Default: 0 everywhere. [B, T]
        special_tokens_mask: 1 on special tokens, as tokenizers return it: methods that alter the input leave these as
            they are. Default: every attended position is altered. [B, T]
        contrast: Explain the class against this one, as the difference of their logits: a class, a tensor of one for
            each row, or `second`, the likeliest of the others.
        device: Where the model runs. Default: where it is. The ids may be anywhere.
        **options: The method's options as keywords.

    Returns:
        Scores, special tokens included; padding is 0. [B, T] float

    Example:
        >>> batch = tokenizer(["Not bad at all.", "A dull film."], padding=True, return_tensors="pt")
        >>> scores = veridical.attribute(model, batch["input_ids"], batch["attention_mask"], "alti")
    """
    with computing(device):
        _insist_on_tensors(input_ids, attention_mask, token_type_ids, special_tokens_mask)
        choice = methods.choose(method, **options)
        if not isinstance(model, Classifier):
            model = Classifier(attending_fully(in_float32(with_folded_adapters(model))))
        clf = classifier_of(model)
    batch = _batch(clf, input_ids, attention_mask, token_type_ids, special_tokens_mask)
    classes = _classes("target", target, len(batch.ids), len(clf.labels))
    second = isinstance(contrast, str) and contrast == SECOND
    against = SECOND if second else _classes("contrast", contrast, len(batch.ids), len(clf.labels))
    warn_of_no_class([choice], contrast)
    wanted = Wanted(classes, against)
    if choice.entry.asks:
        return _finite(_asked(clf, batch, choice, wanted).to(clf.device), choice)
    return _finite(_looked(clf, batch, choice, wanted), choice)


def _insist_on_tensors(ids: Any, *others: Any) -> None:
    for tensor in (ids, *(other for other in others if other is not None)):
        if not isinstance(tensor, torch.Tensor):
            raise InputError(f"attribute takes tensors, but got a {type(tensor).__name__}; make it torch.tensor(...).")
        if tensor.layout != torch.strided or tensor.is_nested or tensor.is_meta:
            raise InputError("attribute takes dense tensors with numbers in them; pad rows to one length: to_dense().")
    if ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
        raise InputError(f"input_ids has the type {ids.dtype}; ids are whole numbers: make it input_ids.long().")


def _finite(scores: torch.Tensor, choice: Any) -> torch.Tensor:
    if not bool(torch.isfinite(scores).all()):
        raise InputError(
            f"{choice.label} gave a score that is not a finite number; check the model's weights, or choose another "
            "method."
        )
    return scores


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
    if not ids.numel():
        raise InputError(f"input_ids has shape {tuple(ids.shape)}; it must hold at least one token.")
    if ids.shape[1] > clf.limit:
        raise InputError(f"input_ids has {ids.shape[1]} tokens, but {clf.name} reads {clf.limit} at most; cut them.")
    clf.insist_on_rows(int(ids.min()), int(ids.max()))
    for name in ("attention_mask", "special_tokens_mask"):
        tensor = given[name]
        if tensor is not None and not bool(((tensor == 0) | (tensor == 1)).all()):
            raise InputError(f"{name} holds more than 0 and 1; give 1 where it holds, and 0 elsewhere.")
    segments = getattr(clf.model.config, "type_vocab_size", None)  # a model without segments passes over them
    if types is not None and segments and not bool(((types >= 0) & (types < segments) & (types == types.long())).all()):
        raise InputError(f"token_type_ids must be whole numbers from 0 to {segments - 1} for {clf.name}; mend them.")
    if mask is not None and not bool(mask.bool().any(-1).all()):
        raise InputError("attention_mask leaves a row without any token to read; leave that row out.")
    ids = ids.long().to(clf.device)
    attended = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask.to(clf.device).bool()
    insist_on_right_padding(clf.model.config, ids, attended)
    free = attended if special is None else attended & ~special.to(clf.device).bool()
    types = torch.zeros_like(ids) if types is None else types.long().to(clf.device)
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


def _classes(what: str, given: Any, rows: int, classes: int) -> list[int] | None:
    """A class for each row."""
    if given is None:
        return None
    try:
        chosen = torch.as_tensor(given).cpu()
        whole = not chosen.is_floating_point() and not chosen.is_complex()
        chosen = chosen.long().expand(rows) if whole else chosen
    except (RuntimeError, TypeError, ValueError, OverflowError) as problem:
        allowed = f"allowed: a class from 0 to {classes - 1}, or a tensor of {rows} of them"
        raise InputError(f"The {what} {shown(given)} is not a class of this model; {allowed}.") from problem
    if not whole:
        raise InputError(f"The {what} {shown(given)} is not a class of this model; classes are whole numbers.")
    if bool((chosen < 0).any()) or bool((chosen >= classes).any()):
        raise InputError(f"The {what} {shown(given)} is not a class of this model; allowed: 0 to {classes - 1}.")
    return chosen.tolist()


def _looked(clf: Classifier, batch: Batch, choice: Any, wanted: Wanted) -> torch.Tensor:
    """In passes that fit into memory, as wide as the rows were given; in the precision of the method's scores."""
    by_row: dict[int, torch.Tensor] = {}
    sunk: list[float] = []
    needs = choice.entry.needs

    def run(rows: list[int]) -> None:
        index = torch.tensor(rows, device=clf.device)
        tensors = (tensor[index] for tensor in (batch.ids, batch.types, batch.mask, batch.free))
        part = Batch(tuple(batch.encoded[row] for row in rows), *tensors)
        target = wanted.target(rows, clf.device)
        scores = scores_of(choice.entry.run(clf, part, target, **choice.options))
        insist_on_scores(scores, tuple(part.ids.shape), choice.label)
        if target.logits is not None:  # else the method never looked
            insist_on_answers(target.logits, clf.name)
        scores = torch.as_tensor(scores, device=clf.device).detach()
        scores = torch.where(part.mask, scores, torch.zeros_like(scores))
        sunk.extend(first_shares(clf, scores, part.mask))
        by_row.update(zip(rows, scores, strict=True))

    attention = clf.eager() if "attention" in needs else nullcontext()
    with clf.at_rest(), attention, torch.set_grad_enabled("gradient" in needs):
        run_all(clf, [batch.ids.shape[1]] * len(batch.ids), run, work=choice.label)
    warn_of_sink(clf, choice.label, sunk)
    return torch.stack([by_row[row] for row in range(len(batch.ids))])


def _asked(clf: Classifier, batch: Batch, choice: Any, wanted: Wanted) -> torch.Tensor:
    if not all(bool(batch.mask[row, : len(e.ids)].all()) for row, e in enumerate(batch.encoded)):
        raise InputError(f"{choice.label} takes rows padded at the right only; move the padding behind the text.")
    full = predict(clf, batch.encoded)
    asked = []
    for row, e in enumerate(batch.encoded):
        target, against = wanted.settled(row, full.logits[row])
        asked.append(explained(clf, e, target, full.logits[row], full.probabilities[row], against))
    scores = torch.zeros(batch.ids.shape, dtype=torch.float32)
    for row, (returned, _) in enumerate(ask(clf, [choice.entry.run(ex, **choice.options) for ex in asked])):
        reply = scores_of(returned)
        insist_on_scores(reply, (len(batch.encoded[row].ids),), choice.label)
        scores[row, : len(reply)] = torch.from_numpy(np.asarray(reply, dtype=np.float32))
    return scores
