"""Explanations of texts: encode, cut into batches by length, run the method, put the results in order."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, overload

import numpy as np
import torch

from veridical.attribution import Method, Sampled, insist_on_scores, methods, scores_of, warn_of_no_class
from veridical.core.device import computing
from veridical.core.errors import Caution, InputError
from veridical.core.kinds import as_annotated
from veridical.core.progress import Report, for_work
from veridical.core.records import Attribution, Cost, Encoded, Explained, Given
from veridical.core.registry import Choice
from veridical.core.wording import option
from veridical.data.objects import examples_of
from veridical.explanations.arguments import insist_on_options, told_of
from veridical.explanations.collected import Explanations, ExplanationsByMethod
from veridical.explanations.explanation import Explanation
from veridical.explanations.long_texts import groups, join_windows, window_means
from veridical.explanations.portions import parts, soon, stretches
from veridical.model.ask import ask, predict
from veridical.model.classifier import Classifier
from veridical.model.load import classifier_of
from veridical.model.memory import passes
from veridical.model.sound import insist_on_answers
from veridical.model.target import Wanted, Which, read_contrast, wanted_of

Tick = Callable[[int], None]


@overload
def explain(clf: Any, texts: Given, method: str = ..., **how: Any) -> Explanations: ...
@overload
def explain(clf: Any, texts: Given, method: list[str] | tuple[str, ...], **how: Any) -> ExplanationsByMethod: ...
@as_annotated
def explain(
    clf: Any,
    texts: Given,
    method: str | Sequence[str] = "integrated_gradients",
    *,
    target: str | int = "predicted",
    contrast: str | int | None = None,
    context: str | Iterable[str | None] | None = None,
    overlap: int | None = None,
    budget: int | None = None,
    device: str | None = None,
    progress: bool | None = None,
    tick: Tick | None = None,
    **options: Any,
) -> Explanations | ExplanationsByMethod:
    """Explain texts with a method, or with several.

    Args:
        clf: What `load` returns, or anything that it takes: a folder, a hub id, a pipeline.
        texts: One text or several. A text is a string, a (text, context) tuple, a dict with the columns of a file, or
            an `Example`; a DataFrame, a Series, a `datasets.Dataset` or one split of a `Dataset` holds several. A tuple
            of two strings is a pair, a list of two strings is two texts.
        method: A name, options behind colons: `"integrated_gradients:steps=20"`. A list of names for several methods.
        target: The class to explain: `predicted`, `gold`, the name of a class or its index.
        contrast: Explain the class against this one, as the difference of their logits: the name of a class, its
            index, or `second`, the likeliest of the others. Without it the class's own logit is explained.
        context: What the model reads beside the text, such as a question: one string for all texts, or a list. It is
            not explained.
        overlap: Explain a text that is too long in windows that share so many tokens. Without it the text is cut, with
            a warning.
        budget: Padded tokens that the model is given at once. Default: 2048 on a CPU; found by itself elsewhere.
        device: Where the model runs: cpu, cuda, cuda:1, mps or auto. A model that is loaded already is moved there.
        progress: Whether progress is shown; None: in a terminal or notebook only, where there is much to do.
        tick: Called with the number of texts (or windows) that were just done, for each method.
        **options: The method's options as keywords, instead of behind colons: `steps=20`.

    Returns:
        An `Explanation` for each text, in their order; with a list of methods, a dict from each method to such a list.
        Both display themselves in a notebook.

    Example:
        >>> (found,) = veridical.explain(clf, "Not bad at all.", "integrated_gradients", steps=20)
        >>> dict(zip(found.words, found.word_scores))
    """
    with computing(device, budget):
        specs = [method] if isinstance(method, str) else list(method)
        asked = _asked(clf, texts, specs, options, about=(target, contrast), context=context, overlap=overlap)
        work = len(asked.encoded) * len(specs)
        how = told_of(asked.clf, len(specs))
        with Report("Explaining", work, progress=for_work(progress, work), **how) as report:
            by_method = {
                choice.label: Explanations(asked.explanations(choice, budget, _both(tick, report)))
                for choice in asked.chosen
            }
        return by_method[asked.chosen[0].label] if isinstance(method, str) else ExplanationsByMethod(by_method)


@as_annotated
def explain_iter(
    clf: Any,
    texts: Given,
    method: str = "integrated_gradients",
    *,
    target: str | int = "predicted",
    contrast: str | int | None = None,
    context: str | Iterable[str | None] | None = None,
    overlap: int | None = None,
    budget: int | None = None,
    device: str | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Iterator[Explanation]:
    """The explanations that `explain` returns, in the same order and to the last bit, in portions as they are there.

    Texts that share passes of the model come together: of methods that look inside it those of similar length, of
    methods that ask it about altered texts some twenty short ones at a time, or one long one. Mistakes are found at
    once, not when the first is asked for.

    Args:
        clf: What `load` returns, or anything that it takes.
        texts: One text or several, in any form that `explain` takes.
        method: One method, options behind colons: `"lime:samples=300"`.
        target: The class to explain: `predicted`, `gold`, the name of a class or its index.
        contrast: Explain the class against this one, as the difference of their logits: the name of a class, its
            index, or `second`, the likeliest of the others. Without it the class's own logit is explained.
        context: What the model reads beside the text: one string for all texts, or a list.
        overlap: Explain a text that is too long in windows that share so many tokens.
        budget: Padded tokens that the model is given at once. Default: 2048 on a CPU; found by itself elsewhere.
        device: Where the model runs: cpu, cuda, cuda:1, mps or auto.
        progress: Whether progress is shown; None: in a terminal or notebook only, where there is much to do.
        **options: The method's options as keywords.

    Returns:
        An iterator over one `Explanation` for each text.

    Example:
        >>> for found in veridical.explain_iter(clf, texts, "lime"):
        ...     print(found)
    """
    with computing(device, budget):
        asked = _asked(clf, texts, [method], options, about=(target, contrast), context=context, overlap=overlap)
    return _one_by_one(asked, budget, device, progress)


def _one_by_one(asked: _Asked, budget: int | None, device: str | None, progress: bool | None) -> Iterator[Explanation]:
    """Between two of them everything is as the caller left it."""
    work = len(asked.encoded)
    with Report("Explaining", work, progress=for_work(progress, work), **told_of(asked.clf, 1)) as report:
        found = asked.explanations(asked.chosen[0], budget, _both(None, report))
        while True:
            with computing(device, budget):
                explanation = next(found, None)
            if explanation is None:
                return
            yield explanation


@dataclass(frozen=True)
class _Asked:
    """What is to be explained, all of it checked."""

    clf: Classifier
    encoded: Sequence[Encoded]
    chosen: Sequence[Choice[Method]]
    which: Which

    def explanations(self, choice: Choice[Method], budget: int | None, tick: Tick) -> Iterator[Explanation]:
        for stretch in stretches(self.encoded):
            for attribution in _in_order(self.clf, stretch, choice, self.which, budget, tick, several=True):
                yield Explanation.of(self.clf, attribution)


def _asked(
    given: Any,
    texts: Given,
    specs: Sequence[str],
    options: Mapping[str, Any],
    *,
    about: tuple[str | int, str | int | None],
    context: str | Iterable[str | None] | None,
    overlap: int | None,
) -> _Asked:
    clf = classifier_of(given)
    if not specs:
        raise InputError("explain was given no method; name at least one, or leave it out.")
    examples = examples_of(texts, "explain", labels=clf.labels, multilabel=clf.kind == "multi", context=context)
    insist_on_options(specs, options)
    chosen = [methods.choose(spec, **options) for spec in specs]
    which = read_contrast(*about, clf.labels)
    warn_of_no_class(chosen, about[1], above=4)
    encoded = clf.encode(examples, overlap=overlap)
    warn_of_cuts(clf, encoded, above=4)
    return _Asked(clf, encoded, chosen, which)


def _both(tick: Tick | None, report: Report) -> Tick:
    def told(count: int) -> None:
        report.advance(steps=count)
        if tick is not None:
            tick(count)

    return told


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
    return list(_in_order(clf, encoded, choice, which, budget, tick or (lambda n: None)))


def _in_order(
    clf: Classifier,
    encoded: Sequence[Encoded],
    choice: Choice[Method],
    which: Which,
    budget: int | None,
    tick: Tick,
    *,
    several: bool = False,
) -> Iterator[Attribution]:
    """The same, each as soon as it and all before it are there; with `several`, askers come in more portions."""
    wanted = wanted_of(which, [e.example for e in encoded], clf.labels)
    portions = soon(clf, encoded, budget) if several else parts(encoded)
    run = partial(_ask, portions) if choice.entry.asks else _look
    if not any(e.start for e in encoded):
        yield from run(clf, encoded, choice, wanted, budget, tick)
        return
    # A text in windows is one prediction, the mean of theirs, and one class is explained in all of them.
    means = window_means(encoded, predict(clf, encoded, budget=budget).logits)
    by_window = run(clf, encoded, choice, wanted.settled_all(means), budget, tick)
    probabilities = clf.probabilities(torch.from_numpy(means)).numpy()
    for group in groups(encoded):
        windows = [encoded[index] for index in group]
        yield from join_windows(clf, windows, list(islice(by_window, len(group))), probabilities[list(group)])


def _look(
    clf: Classifier,
    encoded: Sequence[Encoded],
    choice: Choice[Method],
    wanted: Wanted,
    budget: int | None,
    tick: Tick,
) -> Iterator[Attribution]:
    attributed: dict[int, Attribution] = {}
    method = choice.entry

    def run(rows: list[int]) -> None:
        attention = clf.eager() if "attention" in method.needs else nullcontext()
        # Gradients are on only where a method differentiates: a graph nobody uses costs time and memory.
        with clf.at_rest(), attention, torch.set_grad_enabled("gradient" in method.needs):
            attributed.update(_looked(clf, encoded, choice, wanted, rows))
        tick(len(rows))

    waiting = iter(range(len(encoded)))
    following = next(waiting, None)
    for _ in passes(clf, [len(e.ids) for e in encoded], run, work=choice.label, budget=budget, in_order=True):
        while following in attributed:
            yield attributed.pop(following)
            following = next(waiting, None)


def _looked(
    clf: Classifier, encoded: Sequence[Encoded], choice: Choice[Method], wanted: Wanted, rows: list[int]
) -> dict[int, Attribution]:
    """Those of one batch, by their place."""
    batch = clf.collate([encoded[i] for i in rows])
    target = wanted.target(rows, clf.device)
    began, forwards, backwards = time.perf_counter(), clf.forwards, clf.backwards
    returned = choice.entry.run(clf, batch, target, **choice.options)
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
    passed = (clf.forwards - forwards) / len(rows), (clf.backwards - backwards) / len(rows)
    return {
        index: Attribution(
            encoded=encoded[index],
            target=int(target.classes[row]),
            scores=_finite(kept[row, : len(encoded[index].ids)], choice, encoded[index]),
            probabilities=probabilities[row],
            method=choice.label,
            options=choice.options,
            cost=Cost(seconds * len(encoded[index].ids) / tokens, *passed),
            sampling_error=returned.error[row] if isinstance(returned, Sampled) else None,
            contrast=None if target.against is None else int(target.against[row]),
        )
        for row, index in enumerate(rows)
    }


def _ask(
    portions: Sequence[Sequence[int]],
    clf: Classifier,
    encoded: Sequence[Encoded],
    choice: Choice[Method],
    wanted: Wanted,
    budget: int | None,
    tick: Tick,
) -> Iterator[Attribution]:
    for part in portions:
        began = time.perf_counter()
        full = predict(clf, [encoded[i] for i in part], budget=budget)
        asked = []
        for row, i in enumerate(part):
            target, contrast = wanted.settled(i, full.logits[row])
            asked.append(explained(clf, encoded[i], target, full.logits[row], full.probabilities[row], contrast))
        replies = ask(clf, [choice.entry.run(ex, **choice.options) for ex in asked], budget=budget)
        seconds = time.perf_counter() - began
        weight = [questions * len(ex.encoded.ids) for ex, (_, questions) in zip(asked, replies, strict=True)]
        tick(len(part))
        for ex, (returned, questions), share in zip(asked, replies, weight, strict=True):
            yield Attribution(
                encoded=ex.encoded,
                target=ex.target,
                scores=_finite(scores_of(returned), choice, ex.encoded),
                probabilities=ex.probabilities,
                method=choice.label,
                options=choice.options,
                cost=Cost(seconds * share / max(1, sum(weight)), questions + 1, 0),
                sampling_error=returned.error if isinstance(returned, Sampled) else None,
                contrast=ex.contrast,
            )


def explained(
    clf: Classifier,
    encoded: Encoded,
    target: int,
    logits: np.ndarray,
    probabilities: np.ndarray,
    contrast: int | None = None,
) -> Explained:
    """What an asker sees of one example."""
    return Explained(
        encoded=encoded,
        target=target,
        probabilities=probabilities,
        logits=logits,
        mask_id=getattr(clf.tokenizer, "mask_token_id", None),
        contrast=contrast,
    )


def _finite(scores: np.ndarray, choice: Choice[Method], encoded: Encoded) -> np.ndarray:
    insist_on_scores(scores, (len(encoded.ids),), choice.label)
    if not np.isfinite(scores).all():
        raise InputError(
            f"{choice.label} gave a score that is not a finite number for example {encoded.example.id!r}; "
            "check the model's weights, or choose another method."
        )
    return scores


def warn_of_cuts(clf: Classifier, encoded: Sequence[Encoded], *, above: int = 3) -> None:
    """Truncation is never silent. `above` this function, so many calls up, stands the user's line."""
    cut = [e for e in encoded if e.cut]
    if cut:
        warnings.warn(
            f"{len(cut)} of {len(encoded)} texts are longer than the {clf.limit} tokens {clf.name} reads: "
            f"{sum(e.cut for e in cut)} tokens were left out. `explain` explains them whole with "
            f"{option('overlap=N')}.",
            Caution,
            stacklevel=above + 1,
        )
