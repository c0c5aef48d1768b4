"""What a benchmark has cost so far (appendix D): the one part of its results that no two runs share."""

from __future__ import annotations

from collections.abc import Sequence

from veridical.core import store
from veridical.core.statistics import mean
from veridical.retraining.roar.cells import FIXED, curve_place, place
from veridical.retraining.roar.point import Point
from veridical.retraining.roar.points import Points
from veridical.retraining.roar.record import Spent, TimeSpent


def time_spent(points: Points) -> TimeSpent:
    """By measure: seconds of a training, of an explanation of all texts, and of all of them together."""
    rows = [_spent("the two ends", None, points.ends(), [])]
    for measure, kind in points.distinct():
        passes = [] if measure in FIXED else _passes(points, measure, kind)
        rows.append(_spent(measure, None if measure in FIXED else kind, points.between(measure, kind), passes))
    if checks := [point for *_, point in points.leaks() if point is not None]:
        rows.append(_spent("leakage checks", None, checks, []))
    return TimeSpent(tuple(rows), sum(row.seconds for row in rows))


def _spent(measure: str, recursive: bool | None, points: Sequence[Point | None], passes: Sequence[float]) -> Spent:
    done = [point for point in points if point is not None]
    training = [point.seconds for point in done]
    return Spent(
        measure=measure,
        recursive=recursive,
        trainings=len(done),
        of=len(points),
        epochs=mean(point.epochs for point in done),
        seconds_a_training=mean(training),
        explanations=len(passes),
        seconds_an_explanation=mean(passes),
        seconds=sum(training) + sum(passes),
    )


def _passes(points: Points, measure: str, recursive: bool) -> list[float]:
    """Seconds of every explanation of all texts; that of the whole texts serves both kinds and counts for the first."""
    seconds = []
    for seed in points.request.seeds:
        home = points.seed(seed) / place(measure)
        folders = [home / "order"] if recursive == points.request.kinds[0] else []
        if recursive:
            here = points.seed(seed) / curve_place(measure, points.request.steps, True)
            folders += [here / amount.name / "order" for amount in points.amounts[:-1]]
        for folder in folders:
            if all(points.explained(folder, split) for split in points.facts):
                tables = [store.read_parts(folder / split, ["seconds"]) for split in points.facts]
                seconds.append(sum(sum(table["seconds"].to_pylist()) for table in tables))
    return seconds
