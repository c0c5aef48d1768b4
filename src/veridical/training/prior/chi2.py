from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from veridical.core.errors import InputError
from veridical.core.records import Encoded
from veridical.model.classifier import Classifier
from veridical.training.prior import Normalise, normalised, prior
from veridical.training.prior.pieces import FLOOR, look_up, vectorise


def fit(clf: Classifier, encoded: Sequence[Encoded], labels: Any) -> dict[int, float]:
    """The statistic of every piece of the train split, over its tf-idf matrix, all classes together."""
    from sklearn.feature_selection import chi2 as statistics

    vectoriser, matrix = vectorise(encoded)
    gold = np.asarray(labels)
    if len(np.unique(gold, axis=0)) < 2:
        raise InputError("The prior chi2 asks which pieces tell labels apart, but all train texts have the same one.")
    values, _ = statistics(matrix, gold)  # [pieces]
    return {piece: float(values[column]) for piece, column in vectoriser.vocabulary_.items()}


@prior("chi2", fit=fit)
def chi2(encoded: Encoded, fitted: dict[int, float], *, normalise: Normalise = "sum") -> np.ndarray:
    """How far a piece's weight differs between the classes of the train split, the same in every text (appendix H)."""
    return normalised(encoded, look_up(encoded, fitted), normalise, floor=FLOOR)
