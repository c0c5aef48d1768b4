"""Scores against marks: the metrics of plausibility, where people marked, and of known truth (planted data).

All of it is plain arithmetic on two arrays, the scores of a text's units (tokens or words) and which of them are
marked. A quantity that does not exist for a text is None.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from veridical.core.errors import InputError
from veridical.core.records import Explained, Score
from veridical.core.text import marked
from veridical.metric import metric
from veridical.model.erase import Level, ranking, units

Ties = Literal["stable", "expected"]


@metric("auc", kind="plausibility", better="higher", bounds=(0, 1), needs=("rationale",))
def auc(ex: Explained, *, level: Level = "token", include_specials: bool = False, abs: bool = False) -> Score:
    """How often a marked token scores higher than one that is not (area under the ROC curve).

    Ties count half; undefined where every token is marked, or none. `include_specials` counts all positions that
    are not explained as unmarked, as ER's released code does; `abs` ranks by absolute value, as it does for signed
    methods.
    """
    return Score(area(*judged(ex, level=level, include_specials=include_specials, abs=abs)))


@metric("average_precision", kind="plausibility", better="higher", bounds=(0, 1), needs=("rationale",))
def average_precision(
    ex: Explained, *, level: Level = "token", include_specials: bool = False, abs: bool = False
) -> Score:
    """Precision averaged over the recall each threshold adds (a sum of steps, not ERASER's trapezoids).

    Undefined where nothing is marked. Options as for `auc`.
    """
    return Score(step_precision(*judged(ex, level=level, include_specials=include_specials, abs=abs)))


@metric("recall_at_k", kind="plausibility", better="higher", bounds=(0, 1), needs=("rationale",))
def recall_at_k(
    ex: Explained, *, level: Level = "token", include_specials: bool = False, ties: Ties = "stable", abs: bool = False
) -> Score:
    """Share of the marked tokens among the k highest scored, k being how many are marked.

    Undefined where nothing is marked. Ties at the cut go to the earlier token; `ties=expected` averages over them.
    """
    return Score(recall(*judged(ex, level=level, include_specials=include_specials, abs=abs), ties))


@metric("token_f1", kind="plausibility", better="higher", bounds=(0, 1), needs=("rationale",))
def token_f1(
    ex: Explained, *, level: Level = "token", include_specials: bool = False, ties: Ties = "stable", abs: bool = False
) -> Score:
    """F1 of the k highest scored tokens against the k marked ones (equal to recall_at_k, as both sets have k).

    Undefined where nothing is marked. Options as for `recall_at_k`.
    """
    scores, truth = judged(ex, level=level, include_specials=include_specials, abs=abs)
    k = int(truth.sum())
    return Score(sum(p * precision_recall_f1(n, k, k)[2] for n, p in hits(scores, truth, ties)) if k else None)


@metric("iou", kind="plausibility", better="higher", bounds=(0, 1), needs=("rationale",))
def iou(
    ex: Explained, *, level: Level = "token", include_specials: bool = False, ties: Ties = "stable", abs: bool = False
) -> Score:
    """Intersection over union of the k highest scored tokens and the k marked ones.

    Undefined where nothing is marked. Options as for `recall_at_k`.
    """
    scores, truth = judged(ex, level=level, include_specials=include_specials, abs=abs)
    k = int(truth.sum())
    return Score(sum(p * intersection_over_union(n, k, k) for n, p in hits(scores, truth, ties)) if k else None)


@metric("truth", kind="truth", better="higher", bounds=(0, 1), needs=("rationale", "planted"))
def truth(ex: Explained, *, level: Level = "token", ties: Ties = "stable", abs: bool = False) -> Score:
    """Share of the k highest scored tokens that really decide, k being how many do (planted data).

    Undefined where no token decides. It is the yardstick for the other metrics: it needs no model to answer.
    """
    return Score(recall(*judged(ex, level=level, abs=abs), ties))


# -- arithmetic ---------------------------------------------------------------------------------------------


def scored(
    ex: Explained, *, level: Level = "token", include_specials: bool = False, abs: bool = False
) -> tuple[np.ndarray, list[list[int]]]:
    """Scores of the units in reading order [n], and the positions each is made of.

    A word's score is the sum of its tokens'; `abs` takes the absolute value after that. `include_specials` adds
    every position that is not free as a unit of its own.
    """
    if ex.scores is None:
        raise ValueError("a metric needs scores")
    groups = units(ex, level)
    if include_specials:
        fixed = ([position] for position, free in enumerate(ex.encoded.free) if not free)
        groups = sorted([*groups, *fixed])
    scores = _gathered(np.asarray(ex.scores, dtype=np.float64), groups, np.add)
    if not np.isfinite(scores).all():
        raise InputError(f"A score of {ex.encoded.example.id!r} is not a finite number; it cannot be judged.")
    return np.abs(scores) if abs else scores, groups


def judged(
    ex: Explained, *, level: Level = "token", include_specials: bool = False, abs: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of the units [n] (see `scored`), and which of them the rationale marks [n]: those with a marked token."""
    scores, groups = scored(ex, level=level, include_specials=include_specials, abs=abs)
    return scores, _gathered(marked(ex.encoded), groups, np.logical_or)


def _gathered(values: np.ndarray, groups: list[list[int]], how: np.ufunc) -> np.ndarray:
    """The values of each group's positions taken together."""
    if not groups:
        return values[:0]
    flat = [position for group in groups for position in group]
    return how.reduceat(values[flat], np.cumsum([0, *(len(group) for group in groups[:-1])]))


def area(scores: np.ndarray, truth: np.ndarray) -> float | None:
    """Share of (marked, unmarked) pairs in which the marked unit scores higher; ties count half."""
    marks, others = scores[truth], scores[~truth]
    if not len(marks) or not len(others):
        return None
    others = np.sort(others)
    below, not_above = np.searchsorted(others, marks, "left"), np.searchsorted(others, marks, "right")
    return float((below + not_above).sum() / (2 * len(marks) * len(others)))


def step_precision(scores: np.ndarray, truth: np.ndarray) -> float | None:
    """Precision at each distinct score as a threshold, weighted by the recall it adds: a sum of steps."""
    if not truth.any():
        return None
    order = np.argsort(-scores, kind="stable")
    last = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))  # tied units pass a threshold together
    hits = np.cumsum(truth[order])[last]
    return float(np.sum(np.diff(hits, prepend=0) * hits / (last + 1)) / hits[-1])


def hits(scores: np.ndarray, truth: np.ndarray, ties: Ties = "stable") -> list[tuple[int, float]]:
    """How many of the k highest units are marked, k being the number of marks: (hits, probability) pairs.

    `stable` breaks ties by position, so one outcome is certain. `expected` draws among the units tied at the cut.
    """
    k = int(truth.sum())
    order = ranking(scores, np.ones(len(scores), dtype=bool))
    if ties == "stable" or k == 0:
        return [(int(truth[order[:k]].sum()), 1.0)]
    from scipy.stats import hypergeom

    cut = scores[order[k - 1]]
    above, tied = scores > cut, scores == cut
    sure, wanted = int(truth[above].sum()), k - int(above.sum())
    drawn = np.arange(wanted + 1)
    chances = hypergeom.pmf(drawn, int(tied.sum()), int(truth[tied].sum()), wanted)
    return [(sure + int(n), float(p)) for n, p in zip(drawn, chances, strict=True) if p > 0]


def precision_recall_f1(hits: float, chosen: float, true: float) -> tuple[float, float, float]:
    """From counts, of one text or pooled over many; 0 where nothing was hit."""
    if not hits:
        return 0.0, 0.0, 0.0
    return hits / chosen, hits / true, 2 * hits / (chosen + true)


def intersection_over_union(hits: float, chosen: float, true: float) -> float:
    """From counts of units: both over either."""
    return hits / (chosen + true - hits)


def recall(scores: np.ndarray, truth: np.ndarray, ties: Ties = "stable") -> float | None:
    """Share of the marks among the k highest units; as many are chosen as marked, so it is precision and F1 too."""
    k = int(truth.sum())
    return sum(p * n / k for n, p in hits(scores, truth, ties)) if k else None
