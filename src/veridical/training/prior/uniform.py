from __future__ import annotations

from typing import Any

import numpy as np

from veridical.core.records import Encoded
from veridical.training.prior import Normalise, normalised, prior


@prior("uniform")
def uniform(encoded: Encoded, fitted: Any = None, *, normalise: Normalise = "sum") -> np.ndarray:
    """Every token alike: SaLoss's uninformative baseline (tables 3 and 7)."""
    scores = np.ones(len(encoded.ids)) if normalise == "softmax_all" else np.array(encoded.free, dtype=float)
    return normalised(encoded, scores, normalise)
