from __future__ import annotations

import numpy as np

from veridical.attribution import method
from veridical.core.records import Explained
from veridical.model.ask import Asker
from veridical.model.best_order import Of as Of
from veridical.model.best_order import explained_value as explained_value
from veridical.model.erase import Level, Operator, erase, intact, units


def spread(ex: Explained, groups: list[list[int]], values: np.ndarray) -> np.ndarray:
    """Scores per position from one value per group, shared evenly among its tokens. [T]"""
    scores = np.zeros(len(ex.encoded.ids), dtype=np.float32)
    for group, value in zip(groups, values, strict=True):
        scores[group] = value / len(group)
    return scores


@method("occlusion", needs=("questions",), signed=True, passes="1 forward for every token")
def occlusion(ex: Explained, *, by: Operator = "delete", of: Of = "logit", level: Level = "token") -> Asker[np.ndarray]:
    """How far the explained class falls when one token (or word) alone is erased."""
    groups = units(ex, level)
    answers = yield [intact(ex), *(erase(ex, group, by) for group in groups)]
    values = explained_value(answers, ex, of)
    return spread(ex, groups, values[0] - values[1:])
