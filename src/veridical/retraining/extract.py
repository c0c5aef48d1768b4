"""The words an explanation selects: FRESH's extractor (Jain et al., 2020, section 4), at word level."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from veridical.core.records import Attribution, Example
from veridical.core.text import words_of
from veridical.model.erase import budget, ranking
from veridical.retraining.options import Extractor


def extract(scores: Sequence[float] | np.ndarray, ratio: float, extractor: Extractor = "topk") -> list[int]:
    """The places of the k = ceil(ratio x n) words to keep, in document order; at least one.

    `topk` keeps the highest scores, of equal ones the first; `contiguous` the first window with the largest sum.
    """
    scores = np.asarray(scores, dtype=np.float64)
    ordered = ranking(scores, [True] * len(scores))
    k = budget(len(scores), ratio)
    if extractor == "topk":
        return sorted(int(place) for place in ordered[:k])
    # Exact sums: windows that hold the same numbers in another order are tied, and the first of them wins.
    sums = [math.fsum(scores[start : start + k]) for start in range(len(scores) - k + 1)]
    first = max(range(len(sums)), key=sums.__getitem__)
    return list(range(first, first + k))


def rationale_of(attribution: Attribution, *, ratio: float, extractor: Extractor = "topk") -> list[int]:
    """Indices of the words that an explanation selects: a word's score is the sum of its tokens'.

    n counts the words that the model read. What was cut off, or has no token of its own, has no score to compete
    with, not even 0. There is always a word to keep: a text without any is refused when it is encoded.
    """
    encoded, free = attribution.encoded, np.array(attribution.encoded.free)
    words = np.array(encoded.words)[free]
    read, place = np.unique(words, return_inverse=True)
    sums = np.bincount(place, weights=attribution.scores[free].astype(np.float64))
    return [int(read[i]) for i in extract(sums, ratio, extractor)]


def only(example: Example, words: Sequence[int]) -> Example:
    """The example with these words for its text; a pair's context is kept whole."""
    spans = words_of(example.text)
    text = " ".join(example.text[start:end] for start, end in (spans[i] for i in words))
    return Example(example.id, text, example.label, example.context)
