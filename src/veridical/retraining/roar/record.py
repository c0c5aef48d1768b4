"""What a benchmark stores, as records: `summary.json`, every curve, area and verdict as far as points are done, and
`time.json`, what it took.

A table of the summary is a tuple of rows, and a row names its measure. What is undefined, or not run yet, is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from veridical.core import store, stored
from veridical.retraining.options import Interval, Rounding, Scored
from veridical.retraining.roar.curve import Side
from veridical.retraining.roar.experiment import OneModel
from veridical.retraining.roar.mask import Unit
from veridical.retraining.roar.points import SplitFacts

SUMMARY, TIME = "summary.json", "time.json"
SCORE = {"macro_f1": "macro-F1", "micro_f1": "micro-F1", "accuracy": "accuracy"}  # as people write them


# -- what was asked for -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DataFacts:
    """The texts."""

    name: str
    splits: Mapping[str, SplitFacts]


@dataclass(frozen=True)
class RoarSettings:
    """What is masked and scored, and how models are trained."""

    score: Scored
    interval: Interval
    unit: Unit
    step: int
    amounts: tuple[int, ...]  # masked, the ends among them
    seeds: tuple[int, ...]
    rounding: Rounding
    train: Mapping[str, Any]
    one_model: OneModel | None = store.later(None)  # None: every point is a model of its own


@dataclass(frozen=True)
class Trainings:
    """How far it has come."""

    done: int
    of: int


@dataclass(frozen=True)
class LeakageChecks:
    """Curves that were looked at for leakage."""

    asked: bool
    done: int
    of: int


# -- what was found -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MeanArea:
    """Eq. 3 of one measure, over the seeds whose curves are whole, with 95% intervals."""

    measure: str
    recursive: bool
    what: Literal["area", "mean gap"]  # of curves that stop after some tokens: the mean distance below the baseline
    mean: float | None
    low: float | None
    high: float | None
    n: int  # seeds
    clipped: float | None  # each seed's area kept within -1 and 1
    clipped_low: float | None
    clipped_high: float | None
    values: Mapping[str, float | None]  # by seed
    undefined: int  # seeds in which masking at random costs nothing
    side: Side | None  # None: too few seeds
    verdict: str


@dataclass(frozen=True)
class MeanCurve:
    """The scores of one measure by amount masked, over seeds, with 95% intervals."""

    measure: str
    recursive: bool
    masked: tuple[int, ...]
    mean: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    n: tuple[int, ...]  # seeds
    values: Mapping[str, tuple[float | None, ...]]  # by seed


@dataclass(frozen=True)
class Gap:
    """How far below the baseline a curve lies at one amount, over seeds."""

    measure: str
    recursive: bool
    masked: int
    unit: Unit
    below_random: float | None
    low: float | None
    high: float | None
    n: int  # seeds
    side: Side | None
    verdict: str


@dataclass(frozen=True)
class TopShare:
    """How much of a measure's importance the top tokens hold, over seeds."""

    measure: str
    unit: Literal["tokens", "share"]
    top: int | float
    mean: float | None
    low: float | None
    high: float | None
    n: int  # seeds
    undefined_texts: int  # whose explanation is 0 everywhere


@dataclass(frozen=True)
class Leak:
    """What the positions of the masks tell in one seed, where its curve lies furthest above the baseline."""

    measure: str
    recursive: bool
    seed: int
    masked: int
    above_random: float
    positions_alone: float
    everything_masked: float


@dataclass(frozen=True)
class RoarSummary(stored.OnceMapping):
    """Everything a benchmark has found so far."""

    SCHEMA: ClassVar[int] = 1  # before 0.2 the same without the number

    answer: str
    title: str
    data: DataFacts
    model: str
    settings: RoarSettings
    measures: tuple[str, ...]  # specs; the baseline is not among them
    names: Mapping[str, str]  # the same, shorter
    trainings: Trainings
    areas: tuple[MeanArea, ...]  # the largest first
    curves: tuple[MeanCurve, ...]  # the baseline's first
    points: tuple[Gap, ...]
    sparsity: tuple[TopShare, ...]
    leakage: tuple[Leak, ...]
    leakage_checks: LeakageChecks


# -- what it took -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spent:
    """Of one measure, or of what all share."""

    measure: str
    recursive: bool | None  # None: makes no difference
    trainings: int
    of: int
    epochs: float | None
    seconds_a_training: float | None
    explanations: int
    seconds_an_explanation: float | None
    seconds: float


@dataclass(frozen=True)
class TimeSpent:
    """The one part of the results that no two runs share."""

    SCHEMA: ClassVar[int] = 1

    rows: tuple[Spent, ...]
    seconds: float


# -- files --------------------------------------------------------------------------------------------------


def read_summary(folder: Path) -> RoarSummary:
    """What a benchmark has found so far, also one from before 0.2."""
    return stored.read(folder / SUMMARY, RoarSummary)


def read_time(folder: Path) -> TimeSpent:
    """What a benchmark took so far, also one from before 0.2."""
    return stored.read(folder / TIME, TimeSpent)


def write_copy(path: Path, folder: Path) -> None:
    """Both in one file, for an audit that shows them."""
    for read in (read_summary, read_time):  # what cannot be read is not copied
        read(folder)
    store.write_json(path, {"summary": store.read_json(folder / SUMMARY), "time": store.read_json(folder / TIME)})


def read_copy(path: Path) -> tuple[RoarSummary, TimeSpent]:
    """What `write_copy` wrote."""
    parts = stored.read_fields(path, "summary", "time")
    return (
        stored.from_plain(parts["summary"], RoarSummary, where=f"{path} (summary)"),
        stored.from_plain(parts["time"], TimeSpent, where=f"{path} (time)"),
    )
