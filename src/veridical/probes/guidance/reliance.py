"""How much a prediction rests on the words people marked: no explanation is asked, only the model.

k marked words are erased, and as many others. Reliance is how much further the prediction's probability falls without
the marked ones, in units of the model's own confidence (how far its predictions lie above guessing, on average over the
texts), so that a timid model and a bold one compare. Where fewer words are unmarked than marked k is their number, and
the marked ones are drawn too. Which words are drawn depends on the text and a seed alone, so that every model is asked
the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from veridical.core.errors import InputError
from veridical.core.records import Explained, Variant
from veridical.core.seed import generator
from veridical.core.text import marked
from veridical.metric.erasure import of_target
from veridical.model.ask import Asker
from veridical.model.erase import Level, Operator, erase, erase_all, units
from veridical.probes.options import DRAWS

TINY = 1e-9  # confidence of a model that only guesses


@dataclass(frozen=True, slots=True)
class Reliance:
    """Of one text. A fall is of the explained class's probability, from that on the full text; below 0 it rose."""

    words: int  # erased at a time: k
    confidence: float  # the probability on the full text, less that of a guess
    rationale: float  # fall without k marked words, mean over draws
    others: float  # fall without k other words
    flips_rationale: float  # share of the draws in which another class is then predicted
    flips_others: float
    alone: float  # fall if the marked words are all that is left
    empty: float  # fall if nothing is left


def relied(texts: Mapping[str, Reliance]) -> dict[str, float]:
    """By text: above 0 the prediction rests more on a marked word than on another; 1 is all of the mean confidence."""
    if not texts:
        return {}
    confidence = max(float(np.mean([held.confidence for held in texts.values()])), TINY)
    return {text: (held.rationale - held.others) / confidence for text, held in texts.items()}


def reliance(
    ex: Explained, *, draws: int = DRAWS, by: Operator = "delete", level: Level = "word", seed: int = 0
) -> Asker[Reliance | None]:
    """What erasing marked words costs, beside as many others; None where all words are marked, or none.

    A word is marked if one of its tokens is. With `level=token` tokens are drawn, not words.
    """
    if draws < 1:
        raise InputError(f"draws is {draws}; it must be at least 1.")
    marks = marked(ex.encoded)
    groups = units(ex, level)
    inside = [group for group in groups if marks[group].any()]
    outside = [group for group in groups if not marks[group].any()]
    k = min(len(inside), len(outside))
    if k == 0:
        return None
    asked = [erase_all(ex, by), erase(ex, [p for group in outside for p in group], by)]
    for draw in range(draws):
        random = generator("reliance", seed, ex.encoded.example.id, draw)
        asked += [_without(ex, side, random, k, by) for side in (inside, outside)]
    answers = yield asked
    falls = float(ex.probabilities[ex.target]) - of_target(ex, answers)
    flips = answers.logits.argmax(-1) != ex.target
    return Reliance(
        words=k,
        confidence=float(ex.probabilities[ex.target]) - 1 / len(ex.probabilities),
        rationale=float(falls[2::2].mean()),
        others=float(falls[3::2].mean()),
        flips_rationale=float(flips[2::2].mean()),
        flips_others=float(flips[3::2].mean()),
        alone=float(falls[1]),
        empty=float(falls[0]),
    )


def _without(ex: Explained, side: list[list[int]], random: np.random.Generator, k: int, by: Operator) -> Variant:
    chosen = random.permutation(len(side))[:k]
    return erase(ex, [position for i in chosen for position in side[i]], by)
