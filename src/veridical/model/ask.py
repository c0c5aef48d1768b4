"""The scheduler: every question of every example, deduplicated, sorted by length, batched by token budget.

An asker is a generator. It yields a list of altered inputs and receives their `Answers`, as often as it likes,
and returns its result. All askers advance in lock-step, so their questions share batches.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from itertools import groupby
from typing import TypeVar

import numpy as np
import torch

from veridical.core.options import TOKEN_BUDGET as TOKEN_BUDGET
from veridical.core.records import Answers, Encoded, Output, Variant
from veridical.model.classifier import Classifier

R = TypeVar("R")
Asker = Generator[list[Variant], Answers, R]


def batches_of(lengths: Sequence[int], budget: int = TOKEN_BUDGET) -> list[list[int]]:
    """Indices in batches of similar length, longest first, rows x longest within the budget (or one row)."""
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    batches: list[list[int]] = []
    for index in order:
        longest = lengths[batches[-1][0]] if batches else 0
        if batches and (len(batches[-1]) + 1) * longest <= budget:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches


def halving(run: Callable[[list[int]], None], batch: list[int]) -> None:
    """`run(batch)`, or on running out of accelerator memory the same for its two halves."""
    try:
        run(batch)
        return
    except torch.cuda.OutOfMemoryError:
        if len(batch) == 1:
            raise
        torch.cuda.empty_cache()
    middle = len(batch) // 2
    halving(run, batch[:middle])
    halving(run, batch[middle:])


def answer(clf: Classifier, variants: Sequence[Variant], budget: int = TOKEN_BUDGET) -> Answers:
    """The model's logits and probabilities for each variant, each distinct one asked once."""
    from veridical.model.soft import forward, ready, style_of  # a method that looks inside the model needs none of it

    distinct = list(dict.fromkeys(variants))
    place = {variant: i for i, variant in enumerate(distinct)}
    logits = np.empty((len(distinct), len(clf.labels)), dtype=np.float32)
    for style, group in groupby(sorted(distinct, key=style_of), key=style_of):
        alike = list(group)  # hard ones, or soft ones that the model is run in the same way for
        answered = np.empty((len(alike), len(clf.labels)), dtype=np.float32)
        with ready(clf, style):
            _forward(
                clf,
                [len(v.ids) for v in alike],
                lambda rows, alike=alike: forward(clf, [alike[i] for i in rows]),
                answered,
                budget,
            )
        logits[[place[variant] for variant in alike]] = answered
    logits = logits[[place[variant] for variant in variants]]
    return Answers(logits, clf.probabilities(torch.from_numpy(logits)).numpy())


def predict(clf: Classifier, encoded: Sequence[Encoded], *, budget: int = TOKEN_BUDGET) -> Answers:
    """Logits and probabilities of whole examples, in their order."""
    logits = np.empty((len(encoded), len(clf.labels)), dtype=np.float32)
    _forward(
        clf,
        [len(e.ids) for e in encoded],
        lambda rows: clf.forward(clf.collate([encoded[i] for i in rows])),
        logits,
        budget,
    )
    return Answers(logits, clf.probabilities(torch.from_numpy(logits)).numpy())


def _forward(
    clf: Classifier,
    lengths: Sequence[int],
    output: Callable[[list[int]], Output],
    logits: np.ndarray,
    budget: int,
) -> None:
    def run(rows: list[int]) -> None:
        logits[rows] = output(rows).logits.float().cpu().numpy()

    with clf.at_rest(), torch.inference_mode():
        for rows in batches_of(lengths, budget):
            halving(run, rows)


def ask(clf: Classifier, askers: Sequence[Asker[R]], *, budget: int = TOKEN_BUDGET) -> list[tuple[R, int]]:
    """Run all askers to their end; each one's result and how many distinct questions it asked."""
    results: dict[int, R] = {}
    asked: list[set[Variant]] = [set() for _ in askers]
    waiting: dict[int, list[Variant]] = {}

    def advance(index: int, reply: Answers | None) -> None:
        try:
            waiting[index] = askers[index].send(reply)  # type: ignore[arg-type]
            asked[index].update(waiting[index])
        except StopIteration as end:
            waiting.pop(index, None)
            results[index] = end.value

    for index in range(len(askers)):
        advance(index, None)
    while waiting:
        turn = list(waiting.items())
        replies = answer(clf, [variant for _, variants in turn for variant in variants], budget)
        start = 0
        for index, variants in turn:
            stop = start + len(variants)
            advance(index, Answers(replies.logits[start:stop], replies.probabilities[start:stop]))
            start = stop
    return [(results[i], len(asked[i])) for i in range(len(askers))]
