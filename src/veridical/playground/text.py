"""A text as a model reads it: whole where it fits, in windows where it does not, and with some of it erased."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from veridical.core.errors import InputError
from veridical.core.readable import insist_on_characters
from veridical.core.records import Encoded, Example, Explained, Variant
from veridical.model.classifier import Classifier
from veridical.model.encode import UNLIMITED, encode
from veridical.model.erase import Operator, erase
from veridical.playground.limits import TOKENS, WINDOWS
from veridical.playground.problem import ProblemError

SHARED = 4  # windows share one part in so many of their tokens
ID = "0"  # as `explain` names a plain text: methods that draw then draw the same
_NOTHING = np.empty(0, dtype=np.float32)


@dataclass(frozen=True)
class Text:
    """The encoding of the whole text, whose indices everybody uses, and the windows that the model reads."""

    whole: Encoded
    windows: tuple[Encoded, ...]

    @property
    def free(self) -> np.ndarray:
        """Indices of the tokens that may be erased."""
        return np.flatnonzero(self.whole.free)

    def without(self, gone: Collection[int], by: Operator, mask_id: int | None) -> list[Variant]:
        """What the model is asked when these tokens are erased: one question for each window.

        Windows are cut from the intact text: erasing moves no word from one into another.
        """
        return [erase(_seen(window, mask_id), self._in(window, gone), by) for window in self.windows]

    def _in(self, window: Encoded, gone: Collection[int]) -> list[int]:
        """Indices of the whole text as places in a window that has them."""
        if len(self.windows) == 1:
            return list(gone)
        places = np.flatnonzero(window.free)
        indices = self.free[window.start : window.start + len(places)]
        return [int(place) for place, index in zip(places, indices, strict=True) if int(index) in gone]


def _seen(window: Encoded, mask_id: int | None) -> Explained:
    return Explained(encoded=window, target=0, probabilities=_NOTHING, logits=_NOTHING, mask_id=mask_id)


def read(clf: Classifier, text: str, context: str | None = None) -> Text:
    """A text of a request, under one model's tokenizer."""
    insist_on_characters(text, "The text")
    insist_on_characters(context or "", "The context")
    if not text.strip():
        raise InputError("The text is empty; write some words.")
    example = Example(ID, text, context=context)
    (first,) = clf.encode([example])
    if not first.cut:
        return Text(first, (first,))
    room, tokens = sum(first.free), sum(first.free) + first.cut
    shared = room // SHARED
    windows = 1 + -(-(tokens - room) // (room - shared))
    if windows > WINDOWS or tokens > TOKENS:
        raise ProblemError(
            413,
            "too_long",
            f"The text has {tokens:,} tokens, which {clf.name} reads in {windows:,} windows of {room}; at most "
            f"{WINDOWS} windows are read at once: shorten it.",
        )
    (whole,) = encode(clf.tokenizer, [example], UNLIMITED)
    return Text(whole, tuple(clf.encode([example], overlap=shared)))


def mean_probabilities(clf: Classifier, logits: np.ndarray, windows: int) -> np.ndarray:
    """Of answers for the windows of several texts, one after the other: a text is the mean of its windows. [n, C]"""
    means = logits.reshape(-1, windows, logits.shape[-1]).mean(1)
    return clf.probabilities(torch.from_numpy(means)).numpy()


def checked_indices(text: Text, indices: Sequence[int], name: str) -> set[int]:
    """Indices of a request, if all of them may be erased."""
    free = text.free
    for index in indices:
        if index >= len(text.whole.ids) or not text.whole.free[index]:
            raise InputError(
                f"{name} holds {index}, which is no token of the text; those of this text are {int(free[0])} to "
                f"{int(free[-1])}, as /api/tokens numbers them."
            )
    return set(indices)
