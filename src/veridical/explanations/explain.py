"""Explanations of texts: encode, cut into batches by length, run the method, put the results in order."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, overload

import numpy as np
import torch

from veridical.attribution import Method, Sampled, insist_on_scores, methods, scores_of
from veridical.core.device import computing
from veridical.core.errors import Caution, InputError
from veridical.core.kinds import as_annotated
from veridical.core.records import Attribution, Cost, Encoded, Explained, Given
from veridical.core.registry import Choice
from veridical.data.objects import examples_of
from veridical.explanations.explanation import Explanation
from veridical.explanations.long_texts import join_windows, window_means
from veridical.model.ask import ask, predict
from veridical.model.classifier import Classifier
from veridical.model.load import classifier_of
from veridical.model.memory import run_all
from veridical.model.sound import insist_on_answers
from veridical.model.target import Target, Which, classes_of, read_target

Tick = Callable[[int], None]
PART = 64  # examples whose questions are held at once: memory does not grow with the number of texts


@overload
def explain(clf: Any, texts: Given, method: str = ..., **how: Any) -> list[Explanation]: ...
@overload
def explain(
    clf: Any, texts: Given, method: list[str] | tuple[str, ...], **how: Any
) -> dict[str, list[Explanation]]: ...
@as_annotated
def explain(
    clf: Any,
    texts: Given,
    method: str | Sequence[str] = "integrated_gradients",
    *,
    target: str | int = "predicted",
    context: str | Iterable[str | None] | None = None,
    overlap: int | None = None,
    budget: int | None = None,
    device: str | None = None,
    tick: Tick | None = None,
    **options: Any,
) -> list[Explanation] | dict[str, list[Explanation]]:
    """Explain texts with a method (`"integrated_gradients:steps=20"`, or options as keywords), or with several.

    A text is a string, a (text, context) tuple, a dict with the columns of a file or an Example; `texts` is one or
    several of them, a DataFrame, a Series, a datasets.Dataset, or one split of a Dataset. A tuple of two strings is a
    pair, a list of two strings is two texts. `context` (a string for all texts, or a list) is read, not explained.

    Returns one `Explanation` per text in their order; with a list of methods, a dictionary from method to such a
    list. `target` is `predicted`, `gold`, a class name or its index. A text longer than the model takes is cut
    with a warning, or with `overlap=N` explained in windows that share N tokens. `device` is where the model runs (as
    `load` has it; a model that is there already is moved), `budget` how many padded tokens it is given at once.
    """
    with computing(device, budget):
        clf = classifier_of(clf)
        examples = examples_of(texts, "explain", labels=clf.labels, multilabel=clf.kind == "multi", context=context)
        specs = [method] if isinstance(method, str) else list(method)
        if not specs:
            raise InputError("explain was given no method; name at least one, or leave it out.")
        chosen = [methods.choose(spec, **options) for spec in specs]
        which = read_target(target, clf.labels)
        encoded = clf.encode(examples, overlap=overlap)
        warn_of_cuts(clf, encoded)
        by_method = {
            choice.label: [
                Explanation.of(clf, a) for a in attributions(clf, encoded, choice, which, budget=budget, tick=tick)
            ]
            for choice in chosen
        }
        return by_method[chosen[0].label] if isinstance(method, str) else by_method


def attributions(
    clf: Classifier,
    encoded: Sequence[Encoded],
    choice: Choice[Method],
    which: Which = "predicted",
    *,
    budget: int | None = None,
    tick: Tick | None = None,
) -> list[Attribution]:
    """One attribution per example, in their order. Windows of one text stand next to each other in `encoded`."""
    windowed = any(e.start for e in encoded)
    classes = classes_of(which, [e.example for e in encoded], clf.labels)
    means = None
    if windowed:
        # A text in windows is one prediction, the mean of theirs, and one class is explained in all of them.
        means = window_means(encoded, predict(clf, encoded, budget=budget).logits)
        classes = classes or [int(row.argmax()) for row in means]
    run = _ask if choice.entry.asks else _look
    explained_texts = run(clf, encoded, choice, classes, budget, tick or (lambda n: None))
    if means is not None:
        probabilities = clf.probabilities(torch.from_numpy(means)).numpy()
        return join_windows(clf, encoded, explained_texts, probabilities)
    return explained_texts


def _look(
    clf: Classifier,
    encoded: Sequence[Encoded],
    choice: Choice[Method],
    classes: list[int] | None,
    budget: int | None,
    tick: Tick,
) -> list[Attribution]:
    attributed: dict[int, Attribution] = {}
    method = choice.entry

    def run(rows: list[int]) -> None:
        batch = clf.collate([encoded[i] for i in rows])
        target = Target(None if classes is None else torch.tensor([classes[i] for i in rows], device=clf.device))
        began, forwards, backwards = time.perf_counter(), clf.forwards, clf.backwards
        returned = method.run(clf, batch, target, **choice.options)
        scores = scores_of(returned)  # [B, T]
        insist_on_scores(scores, tuple(batch.ids.shape), choice.label)
        scores = torch.as_tensor(scores, device=clf.device)
        if target.logits is None:  # a method that never looked
            with torch.no_grad():
                target(clf.forward(batch).logits)
        seconds = time.perf_counter() - began
        assert target.logits is not None
        insist_on_answers(target.logits, clf.name)
        assert target.classes is not None
        kept = torch.where(batch.free, scores.detach(), torch.zeros_like(scores)).float().cpu().numpy()
        probabilities = clf.probabilities(target.logits.float()).cpu().numpy()
        tokens = sum(len(encoded[i].ids) for i in rows)
        for row, index in enumerate(rows):
            length = len(encoded[index].ids)
            attributed[index] = Attribution(
                encoded=encoded[index],
                target=int(target.classes[row]),
                scores=_finite(kept[row, :length], choice, encoded[index]),
                probabilities=probabilities[row],
                method=choice.label,
                options=choice.options,
                cost=Cost(
                    seconds * length / tokens,
                    (clf.forwards - forwards) / len(rows),
                    (clf.backwards - backwards) / len(rows),
                ),
                sampling_error=returned.error[row] if isinstance(returned, Sampled) else None,
            )
        tick(len(rows))

    attention = clf.eager() if "attention" in method.needs else nullcontext()
    # Gradients are on only where a method differentiates: a graph nobody uses costs time and memory.
    with clf.at_rest(), attention, torch.set_grad_enabled("gradient" in method.needs):
        run_all(clf, [len(e.ids) for e in encoded], run, work=choice.label, budget=budget)
    return [attributed[i] for i in range(len(encoded))]


def _ask(
    clf: Classifier,
    encoded: Sequence[Encoded],
    choice: Choice[Method],
    classes: list[int] | None,
    budget: int | None,
    tick: Tick,
) -> list[Attribution]:
    attributed: list[Attribution] = []
    for part in _parts(range(len(encoded)), PART):
        began = time.perf_counter()
        full = predict(clf, [encoded[i] for i in part], budget=budget)
        asked = [
            explained(
                clf,
                encoded[i],
                int(full.logits[row].argmax()) if classes is None else classes[i],
                full.logits[row],
                full.probabilities[row],
            )
            for row, i in enumerate(part)
        ]
        replies = ask(clf, [choice.entry.run(ex, **choice.options) for ex in asked], budget=budget)
        seconds = time.perf_counter() - began
        weight = [questions * len(ex.encoded.ids) for ex, (_, questions) in zip(asked, replies, strict=True)]
        for ex, (returned, questions), share in zip(asked, replies, weight, strict=True):
            attributed.append(
                Attribution(
                    encoded=ex.encoded,
                    target=ex.target,
                    scores=_finite(scores_of(returned), choice, ex.encoded),
                    probabilities=ex.probabilities,
                    method=choice.label,
                    options=choice.options,
                    cost=Cost(seconds * share / max(1, sum(weight)), questions + 1, 0),
                    sampling_error=returned.error if isinstance(returned, Sampled) else None,
                )
            )
        tick(len(part))
    return attributed


def explained(
    clf: Classifier, encoded: Encoded, target: int, logits: np.ndarray, probabilities: np.ndarray
) -> Explained:
    """What an asker sees of one example."""
    return Explained(
        encoded=encoded,
        target=target,
        probabilities=probabilities,
        logits=logits,
        mask_id=getattr(clf.tokenizer, "mask_token_id", None),
    )


def _finite(scores: np.ndarray, choice: Choice[Method], encoded: Encoded) -> np.ndarray:
    insist_on_scores(scores, (len(encoded.ids),), choice.label)
    if not np.isfinite(scores).all():
        raise InputError(
            f"{choice.label} gave a score that is not a finite number for example {encoded.example.id!r}; "
            "check the model's weights, or choose another method."
        )
    return scores


def _parts(indices: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    for start in range(0, len(indices), size):
        yield indices[start : start + size]


def warn_of_cuts(clf: Classifier, encoded: Sequence[Encoded]) -> None:
    """Truncation is never silent."""
    cut = [e for e in encoded if e.cut]
    if cut:
        warnings.warn(
            f"{len(cut)} of {len(encoded)} texts are longer than the {clf.limit} tokens {clf.name} reads: "
            f"{sum(e.cut for e in cut)} tokens were left out. `explain` explains them whole with --overlap N.",
            Caution,
            stacklevel=3,
        )
