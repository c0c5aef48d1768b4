"""What an audit stores, as records: `summary.json`, every mean, interval, test, ranking and verdict, and
`examples.json`, the texts that its page shows.

A table of the summary is a tuple of rows, and a row names its corpus. What is undefined is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from veridical.audits.diagnosticity import Diagnosticity, MetricTest
from veridical.audits.options import Control
from veridical.audits.ranking import Comparison, Standing
from veridical.audits.verdict import Verdict
from veridical.core import store, stored
from veridical.core.records import Span
from veridical.metric import Direction
from veridical.metric import Kind as MetricKind
from veridical.model.classifier import Kind as ModelKind
from veridical.model.erase import Level, Operator

Role = Literal["in", "ood"]  # the data the model is for; out of its domain

SUMMARY, EXAMPLES = "summary.json", "examples.json"


# -- what was audited ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """What was asked for."""

    target: str | int
    split: str
    by: Operator
    level: Level
    controls: tuple[Control, ...]
    seed: int


@dataclass(frozen=True)
class ModelFacts:
    """The model that was explained."""

    name: str
    family: str
    labels: tuple[str, ...]
    kind: ModelKind


@dataclass(frozen=True)
class CorpusFacts:
    """The texts of one corpus, and how well the model predicts them."""

    name: str
    role: Role
    texts: int
    hash: str | None  # None: the audit is from before texts were hashed
    dropped: int  # texts left out because they also stand in the training data
    cut_texts: int  # longer than the model reads
    cut_tokens: int
    accuracy: float | None  # None: not every text has a label
    macro_f1: float | None


@dataclass(frozen=True)
class MethodFacts:
    """A method, in a sentence, and what it costs per text."""

    name: str  # its spec
    summary: str
    signed: bool
    needs: tuple[str, ...]
    seconds: float
    forward: float
    backward: float


@dataclass(frozen=True)
class MetricFacts:
    """A metric, in a sentence, and how its values are read."""

    name: str  # its spec
    kind: MetricKind
    better: Direction
    bounds: tuple[int | float, int | float]
    summary: str
    repeats: tuple[str, ...] = ()  # methods that ask the model the same: it cannot judge them
    ratios: tuple[float, ...] = ()  # at which its curve has values


# -- what was found -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MeanScore:
    """One metric of one method, over the texts of a corpus, with 95% intervals."""

    corpus: str
    method: str
    metric: str
    n: int  # texts on which it is defined
    undefined: int
    small: int | None  # texts on which a soft metric divides by little; None where that is not known
    mean: float | None
    sampling_error: float | None  # where the metric samples
    curve: tuple[float | None, ...]  # per ratio
    low: float | None
    high: float | None
    curve_low: tuple[float | None, ...]
    curve_high: tuple[float | None, ...]


@dataclass(frozen=True)
class PairAgreement:
    """How alike two methods explain: mean rank correlation, and mean overlap of the top tokens."""

    corpus: str
    a: str
    b: str
    tau: float | None
    jaccard: float | None
    n: int


@dataclass(frozen=True)
class Concentration:
    """How much of a method's total score lies on its top tokens."""

    corpus: str
    method: str
    shares: tuple[float, ...]  # of the tokens
    mass: tuple[float | None, ...]


@dataclass(frozen=True)
class TruthOrder:
    """How a metric orders the methods and the oracles where the truth is known, best first."""

    corpus: str
    metric: str
    order: tuple[str, ...]
    values: tuple[float, ...]
    margin_oracle_random: float | None
    margin_random_inverted: float | None
    p_oracle_random: float | None
    p_random_inverted: float | None
    holds: bool  # the oracle above chance, and chance above the inverted oracle


@dataclass(frozen=True)
class AuditSummary(stored.OnceMapping):
    """Everything an audit found. The tables that come from scores are empty until `summarise` fills them."""

    SCHEMA: ClassVar[int] = 2

    title: str
    created: str
    veridical: str  # its version
    model: ModelFacts
    settings: Settings
    stamp: Mapping[str, str | int]  # versions of packages, platform, time
    corpora: tuple[CorpusFacts, ...]
    methods: tuple[MethodFacts, ...]
    metrics: tuple[MetricFacts, ...]
    left_out: tuple[str, ...] = ()  # methods that do not work on this model, and why
    quick: bool = False
    quick_note: str = ""
    cells: tuple[MeanScore, ...] = ()
    diagnosticity: tuple[Diagnosticity, ...] = ()
    metric_tests: tuple[MetricTest, ...] = ()
    metric_tests_by_method: tuple[MetricTest, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    ranking: tuple[Standing, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    agreement: tuple[PairAgreement, ...] = ()
    sparsity: tuple[Concentration, ...] = ()
    truth: tuple[TruthOrder, ...] = ()  # empty where no truth is known


# -- the texts that are shown -------------------------------------------------------------------------------


@dataclass(frozen=True)
class ShownScores:
    """One method's explanation of a text that is shown."""

    target: str  # the explained class
    scores: tuple[float, ...]  # of the free tokens


@dataclass(frozen=True)
class ShownText:
    """One text of the page's browser, with what the model and the methods say of it."""

    corpus: str
    id: str
    text: str
    context: str | None
    label: str | None
    predicted: str
    probabilities: tuple[float, ...]  # of the classes
    right: bool | None
    rationale: tuple[Span, ...]  # characters that people marked
    tokens: tuple[Span, ...]  # characters of the free tokens
    explanations: Mapping[str, ShownScores]  # by method
    disagreement: float | None  # of the methods: 1 minus their mean rank correlation


@dataclass(frozen=True)
class ShownTexts:
    """The texts that an audit's page shows."""

    SCHEMA: ClassVar[int] = 2

    texts: tuple[ShownText, ...]


# -- files --------------------------------------------------------------------------------------------------


def read_summary(folder: Path) -> AuditSummary:
    """The summary of a finished audit, also one from before 0.2."""
    return stored.read(folder / SUMMARY, AuditSummary, older={1: _summary_of_schema_1})


def read_examples(folder: Path) -> ShownTexts:
    """The texts that a finished audit shows, also one from before 0.2, which stored a bare list."""
    path = folder / EXAMPLES
    value = store.read_json(path)
    texts = {"texts": value, stored.KEY: ShownTexts.SCHEMA} if isinstance(value, list) else value
    return stored.from_plain(texts, ShownTexts, where=str(path))


def _summary_of_schema_1(summary: dict[str, Any]) -> dict[str, Any]:
    """Before 0.2: no truth was null, tests over all methods named no method; at first texts were not hashed, and what
    soft metrics divide by was not kept."""
    return {
        **summary,
        "corpora": [{"hash": None, **corpus} for corpus in summary.get("corpora", ())],
        "cells": [{"small": None, **cell} for cell in summary.get("cells", ())],
        "metric_tests": [{"method": "", **test} for test in summary.get("metric_tests", ())],
        "truth": summary.get("truth") or [],
    }
