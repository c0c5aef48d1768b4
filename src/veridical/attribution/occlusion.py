from __future__ import annotations

from typing import Literal

import numpy as np

from veridical.attribution import method
from veridical.core.records import Answers, Explained
from veridical.model.ask import Asker
from veridical.model.erase import Level, Operator, erase, intact, units

Of = Literal["logit", "probability"]


def explained_value(answers: Answers, ex: Explained, of: Of) -> np.ndarray:
    """The explained class's logit or probability in every answer, less that of its contrast. [n]"""
    values = (answers.logits if of == "logit" else answers.probabilities).astype(np.float64)
    return values[:, ex.target] if ex.contrast is None else values[:, ex.target] - values[:, ex.contrast]


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
