"""Texts longer than the model takes, explained in overlapping windows.

The explained function is the mean of the windows' logits. A token's score is the sum of its scores in the windows
that hold it, divided by the number of windows: for a complete method the scores still sum to the change of that
mean. Tokens in an overlap count in each window that reads them, because each one's logit depends on them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import numpy as np

from veridical.core.errors import Caution
from veridical.core.records import Attribution, Cost, Encoded
from veridical.core.wording import option
from veridical.model.classifier import Classifier
from veridical.model.encode import UNLIMITED, encode


def groups(encoded: Sequence[Encoded]) -> Iterator[range]:
    """Index ranges of the windows that belong to one example: the first begins its text, the others do not."""
    start = 0
    for index in range(1, len(encoded) + 1):
        if index == len(encoded) or encoded[index].start == 0:
            yield range(start, index)
            start = index


def window_means(encoded: Sequence[Encoded], logits: np.ndarray) -> np.ndarray:
    """The mean logits of each example, repeated for each of its windows. [n, C]"""
    means = np.empty_like(logits)
    for group in groups(encoded):
        means[list(group)] = logits[list(group)].mean(0)
    return means


def join_windows(
    clf: Classifier, encoded: Sequence[Encoded], by_window: Sequence[Attribution], probabilities: np.ndarray
) -> list[Attribution]:
    """One attribution per example over its whole text."""
    joined = []
    for group in groups(encoded):
        first = by_window[group[0]]
        if len(group) == 1:
            joined.append(first)
            continue
        (whole,) = encode(clf.tokenizer, [first.example], UNLIMITED)
        text = np.flatnonzero(whole.free)
        scores = np.zeros(len(whole.ids), dtype=np.float64)
        for index in group:
            window = encoded[index]
            free = np.flatnonzero(window.free)
            scores[text[window.start : window.start + len(free)]] += by_window[index].scores[free] / len(group)
        costs = [by_window[index].cost for index in group]
        joined.append(
            Attribution(
                encoded=whole,
                target=first.target,
                scores=scores.astype(np.float32),
                probabilities=probabilities[group[0]],
                method=first.method,
                options=first.options,
                cost=Cost(
                    sum(c.seconds for c in costs),
                    sum(c.forward for c in costs),
                    sum(c.backward for c in costs),
                ),
                sampling_error=_largest([by_window[index].sampling_error for index in group]),
                contrast=first.contrast,
                gap=_largest([by_window[index].gap for index in group]),
            )
        )
    return joined


def _largest(errors: Sequence[float | None]) -> float | None:
    """A text is as sure as its least sure window."""
    return None if None in errors else max(error for error in errors if error is not None)


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
