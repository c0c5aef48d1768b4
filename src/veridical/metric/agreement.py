from __future__ import annotations

import numpy as np

from veridical.core.errors import InputError
from veridical.core.records import Explained, Score
from veridical.metric import metric
from veridical.metric.plausibility import scored
from veridical.model.erase import Level


@metric("agreement", kind="agreement", better="higher", bounds=(-1, 1), needs=("pair",))
def agreement(
    a: Explained, b: Explained, *, level: Level = "token", include_specials: bool = False, abs: bool = False
) -> Score:
    """How alike two explanations rank the tokens of a text (Kendall's tau-b): 1 alike, 0 unrelated, -1 opposite.

    Undefined where one of them scores all tokens alike. Two models with different tokenizers are compared at
    level=word, over the words that both have read.
    """
    return Score(kendall(*paired(a, b, level=level, include_specials=include_specials, abs=abs)))


def kendall(a: np.ndarray, b: np.ndarray) -> float | None:
    """Kendall's tau-b; None if a vector is constant."""
    more_a, more_b = a[:, None] > a[None, :], b[:, None] > b[None, :]
    untied = np.count_nonzero(more_a), np.count_nonzero(more_b)
    if not all(untied):
        return None
    alike, opposite = np.count_nonzero(more_a & more_b), np.count_nonzero(more_a & more_b.T)
    return float((alike - opposite) / np.sqrt(float(untied[0]) * float(untied[1])))


def paired(
    a: Explained, b: Explained, *, level: Level = "token", include_specials: bool = False, abs: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The scores of both explanations for the same units, [n] each."""
    first, second = a.encoded, b.encoded
    if first.example.text != second.example.text:
        raise InputError(
            f"Explanations of two texts ({first.example.id!r} and {second.example.id!r}) cannot be compared; "
            "give two explanations of the same text."
        )
    scores = [scored(ex, level=level, include_specials=include_specials, abs=abs)[0] for ex in (a, b)]
    if level == "token" or include_specials:
        if first.ids != second.ids or first.free != second.free:
            raise InputError(
                f"Two explanations of {first.example.id!r} have different tokens; compare them with level=word "
                "and without include_specials."
            )
        return scores[0], scores[1]
    # Units are in reading order, so their words are the distinct words of the free tokens.
    words = [list(dict.fromkeys(w for w, free in zip(e.words, e.free, strict=True) if free)) for e in (first, second)]
    both = sorted(set(words[0]) & set(words[1]))
    by_word = [dict(zip(words[i], scores[i], strict=True)) for i in (0, 1)]
    return np.array([by_word[0][w] for w in both]), np.array([by_word[1][w] for w in both])
