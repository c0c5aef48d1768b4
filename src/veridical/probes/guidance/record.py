"""What guidance stores, as records: `summary.json`, every mean, test and verdict.

A table of the summary is a tuple of rows, and a row names its corpus and condition. What is undefined is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from veridical.audits.record import Role
from veridical.core import stored
from veridical.model.erase import Operator
from veridical.probes.guidance.change import State

Outcome = Literal["changed", "hacked", "mixed", "unmoved", "unclear"]

SUMMARY = "summary.json"


# -- what was compared --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TextSettings:
    """Which texts are looked at: what a folder is of."""

    split: str
    ood_split: str
    limit: int
    ood_limit: int | None
    f1_limit: int
    seed: int


@dataclass(frozen=True)
class GuidanceSettings(TextSettings):
    """What was asked for."""

    methods: tuple[str, ...]
    ood_methods: tuple[str, ...]
    metrics: tuple[str, ...]
    witnesses: tuple[str, ...]
    margin: float
    draws: int
    by: Operator


@dataclass(frozen=True)
class ConditionFacts:
    """What runs were trained for."""

    name: str
    objective: str
    bound: str  # empty: none
    guides: tuple[str, ...]
    select: str | None  # the dev score that chose the epochs that were kept; None: written before 0.2
    setting: str
    seeds: tuple[int, ...]
    failed: tuple[int, ...]


@dataclass(frozen=True)
class Cut:
    """Texts that are longer than the model reads, and the tokens they lost."""

    cut_texts: int
    cut_tokens: int


@dataclass(frozen=True)
class CorpusFacts:
    """The texts that are explained."""

    name: str
    role: Role
    texts: int
    rationales: int
    labelled: int
    dropped: int  # left out because they also stand in the training data
    cut_texts: int
    cut_tokens: int


# -- what was found -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OverSeeds:
    """A mean over seeds with the values behind it, and from five on a 95% interval."""

    mean: float | None
    low: float | None
    high: float | None
    values: tuple[float, ...]


@dataclass(frozen=True)
class CorpusVerdict:
    """What is said of a condition on a corpus."""

    corpus: str
    condition: str
    outcome: Outcome
    sentence: str
    details: tuple[str, ...]


@dataclass(frozen=True)
class ChangeRow:
    """A change (`change.py`) of reliance, or of a metric of a method."""

    corpus: str
    what: str  # reliance, or the metric
    condition: str
    method: str  # empty: of reliance
    base: float | None
    guided: float | None
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    p_holm: float | None
    texts: int
    seeds: tuple[int, int]
    state: State
    freedom: float | None = None  # of the interval; not kept by older runs


@dataclass(frozen=True)
class Prediction:
    """How well a condition predicts, over seeds."""

    corpus: str
    condition: str
    score: str
    mean: float | None
    low: float | None
    high: float | None
    values: tuple[float, ...]


@dataclass(frozen=True)
class MetricMean:
    """A metric of a method, over seeds."""

    corpus: str
    metric: str
    condition: str
    method: str
    guided: bool
    mean: float | None
    low: float | None
    high: float | None
    values: tuple[float, ...]
    texts: int  # that have a value in some seed
    undefined: int


@dataclass(frozen=True)
class RelianceRow:
    """What erasing the rationale costs a condition, beside as many other words, over seeds (`reliance.py`)."""

    corpus: str
    condition: str
    value: OverSeeds
    rationale: OverSeeds
    others: OverSeeds
    flips_rationale: OverSeeds
    flips_others: OverSeeds
    alone: OverSeeds
    empty: OverSeeds
    confidence: OverSeeds
    texts: int


@dataclass(frozen=True)
class LayerMean:
    """A metric of what one layer says, over seeds."""

    corpus: str
    metric: str
    condition: str
    technique: str
    layer: int  # from 1
    mean: float | None
    low: float | None
    high: float | None
    values: tuple[float, ...]
    texts: int


@dataclass(frozen=True)
class SpecialShare:
    """The share of a layer's attention on tokens that are not explained, over seeds."""

    corpus: str
    condition: str
    layer: int
    mean: float | None
    low: float | None
    high: float | None
    values: tuple[float, ...]
    texts: int


@dataclass(frozen=True)
class AlikeRow:
    """How alike a condition and the baseline explain by one method (Kendall's tau), beside two seeds of either."""

    corpus: str
    condition: str
    method: str
    guided: bool
    to_base: float | None
    within_base: float | None
    within_own: float | None
    difference: float | None  # of to_base from within_base, paired by text
    low: float | None
    high: float | None
    p: float | None
    texts: int
    histogram: tuple[int, ...]
    histogram_base: tuple[int, ...]
    p_holm: float | None = None


@dataclass(frozen=True)
class MethodPair:
    """How alike two methods explain one condition's models (Kendall's tau)."""

    corpus: str
    condition: str
    a: str
    b: str
    tau: float | None
    n: int


@dataclass(frozen=True)
class TradeoffRow:
    """Both losses of a condition on dev, over seeds."""

    guide: str  # the term
    method: str  # that it guides
    condition: str
    setting: str
    dev_bound: float | None
    cross_entropy: OverSeeds
    explanation: OverSeeds


@dataclass(frozen=True)
class RunPoint:
    """A run: what is known of it, and its macro-F1 on another corpus."""

    condition: str
    seed: int
    x: float
    y: float


@dataclass(frozen=True)
class Correlation:
    """Spearman's rho with a 95% interval; None of too few runs."""

    rho: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None


@dataclass(frozen=True)
class ForetoldRow:
    """How something known of a run goes with its macro-F1 on another corpus."""

    corpus: str
    where: str  # it is known
    what: str
    method: str  # empty: of none
    n: int  # runs
    rho: float | None
    low: float | None
    high: float | None
    p: float | None
    points: tuple[RunPoint, ...]
    p_holm: float | None = None


@dataclass(frozen=True)
class GuidanceSummary(stored.OnceMapping):
    """Everything that was found."""

    SCHEMA: ClassVar[int] = 2

    title: str
    headline: str
    verdicts: tuple[CorpusVerdict, ...]
    conditions: tuple[ConditionFacts, ...]  # the baseline first
    corpora: tuple[CorpusFacts, ...]  # the model's own first
    changes: tuple[ChangeRow, ...]
    predictions: tuple[Prediction, ...]
    explanations: tuple[MetricMean, ...]
    reliance: tuple[RelianceRow, ...]
    layers: tuple[LayerMean, ...]
    specials: tuple[SpecialShare, ...]
    alike: tuple[AlikeRow, ...]
    between_methods: tuple[MethodPair, ...]
    tradeoff: tuple[TradeoffRow, ...]
    foretold: tuple[ForetoldRow, ...]
    settings: GuidanceSettings
    left_out: tuple[str, ...]  # methods that do not work on these models, and why
    selection: str  # what has to be said of how epochs were chosen
    created: str
    veridical: str  # its version
    stamp: Mapping[str, Any]


# -- files --------------------------------------------------------------------------------------------------


def read_summary(folder: Path) -> GuidanceSummary:
    """What was found, also before 0.2."""
    return stored.read(folder / SUMMARY, GuidanceSummary, older={1: _summary_of_schema_1})


def _summary_of_schema_1(summary: dict[str, Any]) -> dict[str, Any]:
    """Before 0.2 nothing was said of how epochs were chosen."""
    conditions = [{"select": None, **condition} for condition in summary.get("conditions", ())]
    return {"selection": "", **summary, "conditions": conditions}
