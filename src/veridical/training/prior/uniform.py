from __future__ import annotations

from typing import Any

import numpy as np

from veridical.core.records import Encoded
from veridical.training.prior import normalised, prior


@prior("uniform")
def uniform(encoded: Encoded, fitted: Any = None) -> np.ndarray:
    """Every token alike: SaLoss's uninformative baseline (tables 3 and 7)."""
    return normalised(encoded, np.array(encoded.free, dtype=float))
