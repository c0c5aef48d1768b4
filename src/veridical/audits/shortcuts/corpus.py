"""Explanations as words: what a method says of every word of every text, whatever the tokenizer cuts.

A word is a run of characters between white space, as everywhere here. It goes by its characters in lower case without
the punctuation around it; punctuation alone goes by itself, for a model may well rely on an exclamation mark.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from veridical.audits.likeness import Readings
from veridical.core.records import Encoded, Example
from veridical.core.text import align, words_of
from veridical.explanations.exchange import units_of


@lru_cache(maxsize=2**16)
def name_of(word: str) -> str:
    """What a word goes by: `"Great!"` and `great` are one, `don't` and `!!!` are themselves."""
    folded = word.casefold()
    inner = [place for place, character in enumerate(folded) if unicodedata.category(character)[0] not in "PS"]
    return folded[inner[0] : inner[-1] + 1] if inner else folded


def names_in(text: str) -> list[str]:
    """What the words of a text go by, in reading order."""
    return [name_of(text[start:end]) for start, end in words_of(text)]


@dataclass(frozen=True)
class Said:
    """What a method says of one text."""

    words: tuple[str, ...]  # those that it explains, in reading order
    scores: np.ndarray  # [words], shares of all that it gives out, with their sign; all 0 where it gives nothing
    target: str  # the explained class


def said_of(readings: Readings) -> dict[tuple[str, str], Said]:
    """By id and text. A word has the sum of its tokens, and the sizes of a text's words add up to 1."""
    held: dict[tuple[str, str], Said] = {}
    for (name, text), reading in readings.items():
        units = units_of(reading, text)
        sums: dict[int, float] = {}
        for place, (_, score) in zip(align(text, [span for span, _ in units]), units, strict=True):
            sums[place] = sums.get(place, 0.0) + score
        names = names_in(text)
        scores = np.array([sums[place] for place in sorted(sums)])
        total = np.abs(scores).sum()
        words = tuple(names[place] for place in sorted(sums))
        held[name, text] = Said(words, scores / total if total > 0 else scores, str(reading.target))
    return held


@dataclass(frozen=True)
class Read:
    """A text as the model reads it, with the tokens of every word."""

    encoded: Encoded
    places: Mapping[str, tuple[int, ...]]  # by word, the tokens that go when it is erased

    @property
    def example(self) -> Example:
        return self.encoded.example

    def tokens_of(self, words: Sequence[str]) -> tuple[int, ...]:
        return tuple(place for word in words for place in self.places.get(word, ()))


def read(encoded: Encoded) -> Read:
    """With the words of which the model reads at least a part."""
    names = names_in(encoded.example.text)
    places: dict[str, list[int]] = {}
    for token, (word, free) in enumerate(zip(encoded.words, encoded.free, strict=True)):
        if free and 0 <= word < len(names):
            places.setdefault(names[word], []).append(token)
    return Read(encoded, {word: tuple(held) for word, held in places.items()})
