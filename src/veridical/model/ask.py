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

from veridical.core.errors import InputError
from veridical.core.options import TOKEN_BUDGET as TOKEN_BUDGET
from veridical.core.records import Answers, Encoded, Output, Variant
from veridical.model.classifier import Classifier
from veridical.model.memory import by_length, run_all
from veridical.model.padding import start_token
from veridical.model.pooling import last_positions, reads_last
from veridical.model.sound import insist_on_answers

R = TypeVar("R")
Asker = Generator[list[Variant], Answers, R]


def batches_of(lengths: Sequence[int], budget: int = TOKEN_BUDGET) -> list[list[int]]:
    """Indices in batches of similar length, longest first, rows x longest within the budget (or one row)."""
    batches: list[list[int]] = []
    for index in by_length(lengths):
        longest = lengths[batches[-1][0]] if batches else 0
        if batches and (len(batches[-1]) + 1) * longest <= budget:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches


def answer(clf: Classifier, variants: Sequence[Variant], budget: int | None = None) -> Answers:
    """The model's logits and probabilities for each variant, each distinct one asked once."""
    from veridical.model.soft import forward, ready, style_of  # a method that looks inside the model needs none of it

    start = start_token(clf.model)
    if start is not None:
        variants = [v if v.ids else Variant((start,), (0,)) for v in variants]
    distinct = list(dict.fromkeys(variants))
    if reads_last(clf.model.config):
        _insist_on_end(clf, distinct)
    if any(not variant.ids or (variant.attend is not None and not any(variant.attend)) for variant in distinct):
        # In a batch it would be answered all the same, from the padding.
        raise InputError(
            "Nothing of a text would be left to read once its tokens are erased, as it has no special tokens; erase by "
            "mask, or say which tokens stay (for attribute: special_tokens_mask)."
        )
    clf.asked += sum(len(variant.ids) for variant in distinct)
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


def erased_by_attention(clf: Classifier, encoded: Encoded) -> bool:
    """Whether any token of a text can be erased by attention: a decoder's head reads its last one, attended to or not,
    and that is a word of the text unless a prompt or a special token follows."""
    if not reads_last(clf.model.config):
        return True
    return not encoded.free[int(last_positions(torch.tensor([encoded.ids]), clf.model.config.pad_token_id)[0])]


def _insist_on_end(clf: Classifier, variants: Sequence[Variant]) -> None:
    """Refuse questions in which a decoder is not to attend to the token that its head reads, which it reads all the
    same."""
    for variant in variants:
        if variant.attend is None and (variant.soft is None or variant.soft.mode != "attention"):
            continue
        place = int(last_positions(torch.tensor([variant.ids]), clf.model.config.pad_token_id)[0])
        weak = variant.soft is not None and variant.soft.mode == "attention" and variant.soft.keep[place] < 1
        if weak or (variant.attend is not None and not variant.attend[place]):
            raise InputError(
                f"Erasing by attention cannot take away the last token of a text from {clf.name} ({clf.family}): its "
                "head reads there, attended to or not; erase by delete, or soften by mode=bernoulli."
            )


def predict(clf: Classifier, encoded: Sequence[Encoded], *, budget: int | None = None, finite: bool = True) -> Answers:
    """Logits and probabilities of whole examples, in their order; refused if they are not `finite`, unless that is for
    the caller to say."""
    logits = np.empty((len(encoded), len(clf.labels)), dtype=np.float32)
    _forward(
        clf,
        [len(e.ids) for e in encoded],
        lambda rows: clf.forward(clf.collate([encoded[i] for i in rows])),
        logits,
        budget,
        finite,
    )
    return Answers(logits, clf.probabilities(torch.from_numpy(logits)).numpy())


def _forward(
    clf: Classifier,
    lengths: Sequence[int],
    output: Callable[[list[int]], Output],
    logits: np.ndarray,
    budget: int | None,
    finite: bool = True,
) -> None:
    def run(rows: list[int]) -> None:
        logits[rows] = output(rows).logits.float().cpu().numpy()
        if finite:
            insist_on_answers(logits[rows], clf.name)

    with clf.at_rest(), torch.inference_mode():
        run_all(clf, lengths, run, work="questions", budget=budget)


def ask(clf: Classifier, askers: Sequence[Asker[R]], *, budget: int | None = None) -> list[tuple[R, int]]:
    """Run all askers to their end; each one's result and how many distinct questions it asked.

    What was answered is remembered to the end: in a later turn nobody asks it again.
    """
    results: dict[int, R] = {}
    asked: list[set[Variant]] = [set() for _ in askers]
    place: dict[Variant, int] = {}  # of every answer so far in the two arrays
    logits = probabilities = np.empty((0, len(clf.labels)), dtype=np.float32)
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
        new = list(dict.fromkeys(v for _, variants in turn for v in variants if v not in place))
        if new:
            place.update(zip(new, range(len(place), len(place) + len(new)), strict=True))
            replies = answer(clf, new, budget)
            logits = np.concatenate([logits, replies.logits])
            probabilities = np.concatenate([probabilities, replies.probabilities])
        for index, variants in turn:
            rows = [place[variant] for variant in variants]
            advance(index, Answers(logits[rows], probabilities[rows]))
    return [(results[i], len(asked[i])) for i in range(len(askers))]
