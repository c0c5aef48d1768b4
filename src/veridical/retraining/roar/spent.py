"""What a benchmark has cost so far (appendix D): the one part of its results that no two runs share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from veridical.core import store
from veridical.retraining.roar.cells import FIXED, curve_place, place
from veridical.retraining.roar.experiment import SPLITS
from veridical.retraining.roar.points import Points, Row


def time_spent(found: Points) -> Row:
    """By measure: seconds of a training, of an explanation of all texts, and of all of them together."""
    rows = [_spent("the two ends", None, found.ends(), [])]
    for measure, kind in found.distinct():
        passes = [] if measure in FIXED else _passes(found, measure, kind)
        rows.append(_spent(measure, None if measure in FIXED else kind, found.between(measure, kind), passes))
    if checks := [point for *_, point in found.leaks() if point is not None]:
        rows.append(_spent("leakage checks", None, checks, []))
    return {"rows": rows, "seconds": sum(row["seconds"] for row in rows)}


def _spent(measure: str, recursive: bool | None, points: Sequence[Row | None], passes: Sequence[float]) -> Row:
    done = [point for point in points if point is not None]
    training = [point["seconds"] for point in done]
    return {
        "measure": measure,
        "recursive": recursive,
        "trainings": len(done),
        "of": len(points),
        "epochs": float(np.mean([point["epochs"] for point in done])) if done else None,
        "seconds_a_training": float(np.mean(training)) if done else None,
        "explanations": len(passes),
        "seconds_an_explanation": float(np.mean(passes)) if passes else None,
        "seconds": sum(training) + sum(passes),
    }


def _passes(found: Points, measure: str, recursive: bool) -> list[float]:
    """Seconds of every explanation of all texts; that of the whole texts serves both kinds and counts for the first."""
    seconds = []
    for seed in found.request.seeds:
        home = found.seed(seed) / place(measure)
        folders = [home / "order"] if recursive == found.request.kinds[0] else []
        if recursive:
            here = found.seed(seed) / curve_place(measure, found.request.steps, True)
            folders += [here / amount.name / "order" for amount in found.amounts[:-1]]
        for folder in folders:
            if all(found.explained(folder, split) for split in SPLITS):
                tables = [store.read_parts(folder / split, ["seconds"]) for split in SPLITS]
                seconds.append(sum(sum(table["seconds"].to_pylist()) for table in tables))
    return seconds
