"""How good a run's model is and how sure that is, from the predictions that the run stored."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from veridical.core import store
from veridical.core.seed import generator
from veridical.core.statistics import Estimate, estimate, proportion
from veridical.model.accuracy import auroc, calibration_error, decisions, macro_f1

RESAMPLES = 1000
FEWEST = 5  # texts, below which no interval is given


@dataclass(frozen=True)
class SplitScores:
    """One split; intervals are 95% over its texts."""

    split: str
    texts: int  # with a label
    accuracy: Estimate
    macro_f1: Estimate
    auroc: float | None
    majority: float  # what always naming the most frequent answer gets right
    calibration_error: float
    confidence: float  # mean
    excess: Estimate  # of confidence over being right


def scores_with_intervals(folder: Path) -> list[SplitScores]:
    """Of every split of a run that has labels, train aside."""
    held = store.read_parquet(folder / "predictions.parquet").to_pydict()
    found = []
    for split in dict.fromkeys(held["split"]):
        rows = [i for i, own in enumerate(held["split"]) if own == split and held["label"][i] is not None]
        if split != "train" and rows:
            probabilities = np.array([held["probabilities"][i] for i in rows])
            found.append(_scores(split, probabilities, [held["label"][i] for i in rows]))
    return found


def _scores(split: str, probabilities: np.ndarray, labels: list[int] | list[list[int]]) -> SplitScores:
    several = any(isinstance(label, list) for label in labels)
    truth = np.zeros(probabilities.shape, dtype=bool)
    for row, label in enumerate(labels):
        truth[row, label] = True
    decided = decisions(probabilities, "multi" if several else "single")
    right = (decided == truth).all(1)
    if several:  # every label of every text is a decision of its own
        confidence, correct = np.maximum(probabilities, 1 - probabilities), decided == truth
    else:
        confidence, correct = probabilities.max(1, keepdims=True), right[:, None]
    _, counts = np.unique(truth, axis=0, return_counts=True)
    return SplitScores(
        split=split,
        texts=len(truth),
        accuracy=_share(right),
        macro_f1=_resampled(truth, decided),
        auroc=auroc(truth, probabilities),
        majority=float(counts.max() / len(truth)),
        calibration_error=calibration_error(np.ravel(confidence), np.ravel(correct)),
        confidence=float(confidence.mean()),
        excess=estimate((confidence - correct).mean(1)),
    )


def _share(right: np.ndarray) -> Estimate:
    low, high = proportion(int(right.sum()), len(right))
    return Estimate(float(right.mean()), low, high, len(right), 0)


def _resampled(truth: np.ndarray, decided: np.ndarray) -> Estimate:
    """Macro-F1 with its percentile interval over resampled texts: it is no mean over them."""
    n, whole = len(truth), macro_f1(truth, decided)
    if n < FEWEST or whole is None:
        return Estimate(whole, None, None, n, 0)
    draws = generator("card", n)
    rows = (draws.integers(0, n, n) for _ in range(RESAMPLES))
    values = [value for drawn in rows if (value := macro_f1(truth[drawn], decided[drawn])) is not None]
    low, high = (float(bound) for bound in np.quantile(values, [0.025, 0.975]))
    if low == high:  # every prediction is right: resampling cannot show what a wrong one would do
        return Estimate(whole, None, None, n, 0)
    return Estimate(whole, low, high, n, 0)
