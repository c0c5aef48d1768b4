"""Characters, words and tokens: where each lies in the others.

A word is a maximal run of characters that are not white space. It depends on the text alone, so scores at
word level can be compared between models with different tokenizers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import numpy as np

from veridical.core.records import Encoded, Span

Gather = Literal["sum", "max", "mean"]


def words_of(text: str) -> list[Span]:
    """The character span of every word."""
    return [match.span() for match in re.finditer(r"\S+", text)]


def trim(text: str, span: Span) -> Span:
    """The span without white space at its ends (some tokenizers count the space before a word as its own)."""
    start, end = span
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def align(text: str, spans: Iterable[Span]) -> list[int]:
    """The word of each token span, for spans in reading order (one pass over the words): the word it starts in, else
    the next; the last one at the end."""
    words, index, places = words_of(text), 0, []
    for start, _ in spans:
        while index < len(words) - 1 and start >= words[index][1]:
            index += 1
        # A byte-level piece may repeat the span of the piece before it, never an earlier one.
        places.append(index)
    return places


def marked(encoded: Encoded) -> np.ndarray:
    """Which tokens the rationale covers: free tokens that share a character with one of its spans. [T] bool"""
    spans = encoded.example.rationale
    return np.array(
        [
            free and any(max(start, begin) < min(stop, end) for start, stop in spans)
            for free, (begin, end) in zip(encoded.free, encoded.spans, strict=True)
        ],
        dtype=bool,
    )


def by_word(encoded: Encoded, scores: np.ndarray, gather: Gather = "sum") -> np.ndarray:
    """Scores of the words from those of their free tokens; a word with none (cut off) scores 0. [words]"""
    gathered = np.zeros(len(words_of(encoded.example.text)), dtype=np.float64)
    for index in range(len(gathered)):
        pieces = [
            float(score)
            for score, word, free in zip(scores, encoded.words, encoded.free, strict=True)
            if free and word == index
        ]
        if pieces:
            gathered[index] = {"sum": np.sum, "max": np.max, "mean": np.mean}[gather](pieces)
    return gathered.astype(np.float32)
