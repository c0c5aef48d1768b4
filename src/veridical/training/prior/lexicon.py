"""VADER's lexicon (Hutto and Gilbert, ICWSM 2014): words that carry sentiment, rated from -4 to 4 by ten people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any

import numpy as np

from veridical.core import assets
from veridical.core.ranges import between
from veridical.core.records import Encoded, Span
from veridical.core.text import words_of
from veridical.training.prior import Normalise, normalised, prior

Least = Annotated[float, between(0, 4, without="high")]


@prior("lexicon")
def lexicon(encoded: Encoded, fitted: Any = None, *, least: Least = 0.0, normalise: Normalise = "sum") -> np.ndarray:
    """|valence| of the words that VADER's lexicon has, above `least`; nothing where a text has none of them.

    A word's valence is shared evenly among its tokens. Negation and degree are not looked at: this says where
    sentiment stands, not which way it points.
    """
    valence = valences()
    scores = np.zeros(len(encoded.ids))
    for (start, stop), word in units(encoded.example.text, valence):
        size = abs(valence[word])
        own = [i for i, (a, b) in enumerate(encoded.spans) if encoded.free[i] and max(a, start) < min(b, stop)]
        if own and size > least:
            scores[own] += size / len(own)
    return normalised(encoded, scores, normalise)


def units(text: str, known: Mapping[str, Any]) -> Iterator[tuple[Span, str]]:
    """The entries that occur, with their characters: a whole word (emoticons), else the letters inside one."""
    for start, stop in words_of(text):
        word = text[start:stop]
        for spelt in (word, word.lower()):
            if spelt in known:
                yield (start, stop), spelt
                break
        else:
            for run in re.finditer(r"[^\W\d_]+(?:['’][^\W\d_]+)*", word):
                spelt = run[0].lower().replace("’", "'")
                if spelt in known:
                    yield (start + run.start(), start + run.end()), spelt


@cache
def valences() -> dict[str, float]:
    """Every entry of one word with its mean rating."""
    lines = (assets.fetch("vader") / "vader_lexicon.txt").read_text("utf-8").splitlines()
    rows = (line.split("\t")[:2] for line in lines if line.strip())
    return {entry: float(mean) for entry, mean in rows if not re.search(r"\s", entry)}
