"""What the templates of the audit's page read: rows and figures, drawn. Methods go by their index in the summary, `m`,
and metrics by theirs, `key`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from veridical.audits.diagnosticity import Diagnosticity, MetricTest
from veridical.audits.ranking import Comparison, Standing
from veridical.audits.record import Concentration, CorpusFacts, MeanScore, MetricFacts, PairAgreement, TruthOrder
from veridical.audits.verdict import Verdict


@dataclass(frozen=True)
class RankRow:
    m: int
    standing: Standing
    new_group: bool  # the first of its group, but for the first group
    plot: Markup


@dataclass(frozen=True)
class RankTable:
    rows: tuple[RankRow, ...]
    axis: Markup


@dataclass(frozen=True)
class PanelRow:
    m: int
    score: MeanScore
    plot: Markup


@dataclass(frozen=True)
class Panel:
    """One metric over the methods, dots with intervals."""

    key: int
    metric: MetricFacts
    rows: tuple[PanelRow, ...]
    axis: Markup | None
    undefined: int
    asked: int  # values in all
    weight: float | None  # in the ranking; None: it takes no part
    reference: float | None  # where `random` lies, as a share of the width


@dataclass(frozen=True)
class Panels:
    """The panels of every kind of metric that rates one explanation."""

    faithfulness: tuple[Panel, ...]
    plausibility: tuple[Panel, ...]
    shape: tuple[Panel, ...]
    truth: tuple[Panel, ...]


@dataclass(frozen=True)
class CurvePanels:
    """One metric over its ratios, a panel per method."""

    key: int
    metric: MetricFacts
    back: Markup  # what all panels have behind them
    panels: tuple[PanelRow, ...]


@dataclass(frozen=True)
class MassPanel:
    m: int
    concentration: Concentration
    plot: Markup


@dataclass(frozen=True)
class MassPanels:
    """How concentrated the scores of every method are."""

    back: Markup
    shares: tuple[float, ...]
    panels: tuple[MassPanel, ...]


@dataclass(frozen=True)
class TrustRow:
    key: int
    controls: tuple[Diagnosticity, ...]  # against each control, all methods together
    weight: float | None
    plot: Markup


@dataclass(frozen=True)
class TrustTable:
    rows: tuple[TrustRow, ...]
    controls: tuple[str, ...]
    axis: Markup


@dataclass(frozen=True)
class AgreementMaps:
    pairs: tuple[PairAgreement, ...]
    tau: Markup
    jaccard: Markup


@dataclass(frozen=True)
class UndefinedCount:
    key: int
    missing: int
    asked: int


@dataclass(frozen=True)
class CorpusView:
    """All there is to show of one corpus."""

    index: int  # the model's own domain is 0
    facts: CorpusFacts
    f1: Markup | None  # plotted
    verdict: Verdict | None
    weights: Mapping[str, float]  # by metric
    ranking: RankTable
    panels: Panels
    curves: tuple[CurvePanels, ...]
    trust: TrustTable
    trust_by_method: Mapping[str, list[Diagnosticity]]  # by metric, as the next two
    comparisons: Mapping[str, list[Comparison]]
    cells: Mapping[str, list[MeanScore]]
    tests: tuple[MetricTest, ...]
    tests_by_method: tuple[MetricTest, ...]
    agreement: AgreementMaps | None
    sparsity: MassPanels | None
    undefined: tuple[UndefinedCount, ...]

    @property
    def name(self) -> str:
        return self.facts.name


@dataclass(frozen=True)
class DomainRow:
    """A method's standing on every corpus; None where it was not ranked."""

    m: int
    standings: tuple[Standing | None, ...]
    plot: Markup


@dataclass(frozen=True)
class TruthRow:
    m: int | None  # None: no method of this audit
    name: str
    value: float
    planted: bool  # one of the three whose order is known
    plot: Markup


@dataclass(frozen=True)
class TruthPanel:
    key: int | None  # None: no metric of this audit
    order: TruthOrder
    rows: tuple[TruthRow, ...]
    axis: Markup


@dataclass(frozen=True)
class Setting:
    name: str
    words: str
