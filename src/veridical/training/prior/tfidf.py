from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from veridical.core.records import Encoded
from veridical.model.classifier import Classifier
from veridical.training.prior import Normalise, normalised, prior
from veridical.training.prior.pieces import FLOOR, look_up, pieces, vectorise


def fit(clf: Classifier, encoded: Sequence[Encoded], labels: Any) -> dict[int, float]:
    """The inverse document frequency of every piece of the train split."""
    vectoriser, _ = vectorise(encoded)
    return {piece: float(vectoriser.idf_[column]) for piece, column in vectoriser.vocabulary_.items()}


@prior("tfidf", fit=fit)
def tfidf(encoded: Encoded, fitted: dict[int, float], *, normalise: Normalise = "sum") -> np.ndarray:
    """How often a piece stands in the text, times how few train texts have it (SaLoss appendix H)."""
    # The vectoriser's row of this text, written out: asking it for one text at a time takes milliseconds.
    weights = {piece: count * fitted[piece] for piece, count in Counter(pieces(encoded)).items() if piece in fitted}
    length = math.hypot(*weights.values())
    scores = {piece: weight / length for piece, weight in weights.items()}
    return normalised(encoded, look_up(encoded, scores), normalise, floor=FLOOR)
