"""What the templates of the audit's page read: rows and figures, drawn. Methods go by their index in the summary, `m`,
and metrics by theirs, `key`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from veridical.audits.caveats import Caveat
from veridical.audits.diagnosticity import Diagnosticity, MetricTest
from veridical.audits.pairs import Comparison
from veridical.audits.record import (
    Concentration,
    CorpusFacts,
    LookFacts,
    MeanScore,
    MetricFacts,
    PairAgreement,
    Spending,
    Standing,
    TruthOrder,
    Verdict,
)

# -- the verdict ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tag:
    """Which list a method is on."""

    kind: str  # its class in the style sheet
    sign: str
    words: str


@dataclass(frozen=True)
class ListView:
    """One of the five lists, with the methods on it."""

    tag: Tag
    methods: tuple[str, ...]


@dataclass(frozen=True)
class Ground:
    """Something that the verdict rests on."""

    title: str
    lead: str  # at a glance
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class RankRow:
    m: int
    standing: Standing
    tag: Tag
    new_list: bool  # the first on its list, but for the first list
    plot: Markup | None  # None: net wins were not counted


@dataclass(frozen=True)
class RankTable:
    rows: tuple[RankRow, ...]
    axis: Markup
    counted: bool  # net wins were


@dataclass(frozen=True)
class LookView:
    """One look: who was asked, who entered at it, and what came of it."""

    facts: LookFacts
    asked: tuple[str, ...]
    entered: tuple[str, ...]  # after the first look
    on: int  # methods that are left
    then: str


@dataclass(frozen=True)
class RunPanel:
    m: int
    plot: Markup
    net: float | None  # at the end
    texts: int


@dataclass(frozen=True)
class RunPanels:
    """Net wins over chance as texts came in, a panel per method."""

    back: Markup
    panels: tuple[RunPanel, ...]


@dataclass(frozen=True)
class PlacesRow:
    """The places of the contenders under one setting, or by one subset of the metrics."""

    name: str
    places: tuple[int | None, ...]
    texts: int


@dataclass(frozen=True)
class StabilityTable:
    methods: tuple[int, ...]  # m of the contenders
    settings: tuple[PlacesRow, ...]
    subsets: tuple[PlacesRow, ...]


@dataclass(frozen=True)
class SpendingView:
    spending: Spending
    share: float  # spent, of what was planned


@dataclass(frozen=True)
class DomainRow:
    """A method's standing on every corpus; None where it has none."""

    m: int
    standings: tuple[Standing | None, ...]
    plot: Markup


# -- metrics --------------------------------------------------------------------------------------------------


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
    reference: float | None  # where chance lies, as a share of the width


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
    votes: bool
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


# -- all of it ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CorpusView:
    """All there is to show of one corpus."""

    index: int  # the model's own domain is 0
    facts: CorpusFacts
    f1: Markup | None  # plotted
    verdict: Verdict | None
    caveats: tuple[Caveat, ...]  # told with the verdict
    lists: tuple[ListView, ...]
    grounds: tuple[Ground, ...]
    ranking: RankTable
    looks: tuple[LookView, ...]
    runs: RunPanels | None
    stability: StabilityTable | None
    spending: SpendingView | None
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
class Setting:
    name: str
    words: str
