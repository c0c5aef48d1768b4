from __future__ import annotations

from typing import Any

import numpy as np

from veridical.core.records import Encoded
from veridical.core.text import marked
from veridical.training.prior import Normalise, normalised, prior


@prior("gold")
def gold(encoded: Encoded, fitted: Any = None, *, normalise: Normalise = "sum") -> np.ndarray:
    """The example's own rationale, its tokens alike; nothing where it has none."""
    return normalised(encoded, marked(encoded).astype(float), normalise)
