"""What tf-idf and chi-squared share: scikit-learn over a model's own pieces, special tokens and context left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from veridical.core.errors import InputError
from veridical.core.records import Encoded

FLOOR = 1e-8  # of a piece that the train split does not have


def pieces(encoded: Encoded) -> list[int]:
    """The ids of the free tokens, in order: the analyser. Nothing is lower-cased, split or dropped."""
    return [i for i, free in zip(encoded.ids, encoded.free, strict=True) if free]


def vectorise(encoded: Sequence[Encoded]) -> tuple[Any, Any]:
    """scikit-learn's tf-idf, its defaults otherwise, fitted on these texts; and their matrix [texts, pieces]."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    if not encoded:
        raise InputError("The prior needs the statistics of a train split, and it is empty; give texts to train on.")
    vectoriser: Any = TfidfVectorizer(analyzer=pieces)  # pyright: ignore[reportArgumentType]
    return vectoriser, vectoriser.fit_transform(encoded)


def look_up(encoded: Encoded, scores: dict[int, float]) -> np.ndarray:
    """The score of each token by its id, 0 where it has none. [T]"""
    return np.array([scores.get(i, 0.0) if free else 0.0 for i, free in zip(encoded.ids, encoded.free, strict=True)])
