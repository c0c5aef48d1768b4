"""What an audit stores, as records: `summary.json`, every mean, interval, test, ranking and verdict, and
`examples.json`, the texts that its page shows.

A table of the summary is a tuple of rows, and a row names its corpus. What is undefined is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from veridical.audits.conclusion import List
from veridical.audits.diagnosticity import Diagnosticity, MetricTest
from veridical.audits.options import Control
from veridical.audits.pairs import Comparison
from veridical.audits.record_erased import BestShare, Familiarity, MaskTest
from veridical.audits.record_older import summary_of_schema_1, summary_of_schema_2
from veridical.audits.sequential import Drop, Shown
from veridical.core import store, stored
from veridical.core.errors import InputError
from veridical.core.records import Span
from veridical.metric import Direction
from veridical.metric import Kind as MetricKind
from veridical.model.classifier import Kind as ModelKind
from veridical.model.erase import Level, Operator

Role = Literal["in", "ood"]  # the data the model is for; out of its domain
# Why an audit stopped asking: it goes on; no later look could tell more; more texts would not settle it; there are no
# more texts; it was not to spend more passes; or time.
Ending = Literal["", "settled", "futile", "last", "budget", "time"]

TruthState = Literal["holds", "not shown", "broken"]  # of what is known, at a level

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
    looks: tuple[int, ...] = ()  # texts; none: the audit is from before audits looked more than once
    alpha: float = 0.05
    margin: float = 0.2
    budget: str = ""  # as it was asked for: passes, or a time


@dataclass(frozen=True)
class ModelFacts:
    """The model that was explained."""

    name: str
    family: str
    labels: tuple[str, ...]
    kind: ModelKind
    hash: str | None = None  # of its weights; None: the audit is from before it was kept
    files: Mapping[str, str] = field(default_factory=dict)  # name -> SHA-256, of a model that is a folder


@dataclass(frozen=True)
class CorpusFacts:
    """The texts of one corpus, and how well the model predicts them."""

    name: str
    role: Role
    texts: int
    hash: str | None  # None: the audit is from before texts were hashed
    dropped: int  # texts left out of another domain because they also stand in the training data
    cut_texts: int  # longer than the model reads
    cut_tokens: int
    accuracy: float | None  # None: not every text has a label
    macro_f1: float | None
    accuracy_low: float | None = None  # 95%, exact
    accuracy_high: float | None = None
    majority: float | None = None  # share of the most frequent class: what knowing nothing gets right
    unmoved: int | None = None  # texts on which no erasure that was tried tells two methods apart
    documents: int | None = None  # that the texts come from, where the data says so
    sha256: str | None = None  # of ids, texts, contexts, labels and rationales (`core/provenance.py` says how)
    seen: int | None = None  # audited texts that also stand in the training data; None: from before they were counted


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
    passes: float | None = None  # planned, a text; None: the audit is from before they were counted


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
    votes: bool = False  # it has a say in the verdict
    order: bool = False  # it reads nothing but the order of the scores


# -- what was found -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LookFacts:
    """One look at what was known after so many texts: who was let go, and who was shown to be better than chance."""

    corpus: str
    number: int  # from 1
    texts: int
    alive: tuple[str, ...]  # methods after it
    dropped: tuple[Drop, ...]
    shown: tuple[Shown, ...]
    ended: Ending
    passes: float  # planned until then
    asked: tuple[str, ...] = ()  # methods that had explained texts by then; none: all that were left before it


@dataclass(frozen=True)
class Standing:
    """Where a method stands on the texts of a corpus. Net wins: the share of texts on which it does better minus the
    share on which it does worse, over the metrics; 0.2 is 60 to 40."""

    corpus: str
    method: str
    place: int
    list: List | None  # None: there is no verdict
    clearly: bool  # behind by more than the margin
    net_first: float | None  # over the first method; None for the first itself
    net_first_low: float | None
    net_first_high: float | None
    net_chance: float | None  # over random orders
    net_chance_low: float | None
    net_chance_high: float | None
    n: int  # texts that the method explained
    passes: float | None  # to explain one
    left: int | None  # texts after which it was let go
    by: str  # the method that it was let go for
    p_behind: float | None
    level: float | None  # of the test that let it go
    better_than_chance: bool
    p_chance: float | None
    p_as_good: float | None = None  # that it loses to the first by the margin or more
    p_clearly: float | None = None  # that it is behind by no more than the margin
    p_no_better: float | None = None  # that it beats chance by the margin or more
    level_chance: float | None = None
    level_pairs: float | None = None  # of p_as_good and p_clearly
    level_no_better: float | None = None


@dataclass(frozen=True)
class Verdict:
    """What may be said of the methods on the texts of a corpus. Every method is on one list at most; the claims of
    each list hold together at the audit's level."""

    corpus: str
    believe: tuple[str, ...]
    as_good: tuple[str, ...]  # shown to be within the margin of the first
    open: tuple[str, ...]  # not told from the first
    behind: tuple[str, ...]  # shown to be worse than the first or another
    chance: tuple[str, ...]  # shown to be no better than chance
    texts: int
    enough: bool  # the texts carry a belief
    sentence: str
    notes: tuple[str, ...]
    panel: tuple[str, ...]  # metrics with a vote


@dataclass(frozen=True)
class NetCurve:
    """Net wins of a method over chance as the texts came in, each with its 95% interval."""

    corpus: str
    method: str
    texts: tuple[int, ...]
    net: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]


@dataclass(frozen=True)
class StabilityRow:
    """The place of a contender under another way of asking, or by some of the metrics alone."""

    corpus: str
    method: str
    kind: Literal["setting", "subset"]
    name: str  # delete, mask, attention, word; or the metrics
    place: int
    of: int  # contenders
    texts: int


@dataclass(frozen=True)
class Spending:
    """What an audit was planned to cost and what it took, in passes of a text of mean length."""

    corpus: str
    budget: int | None
    planned: float  # if no method is let go early, within the budget
    spent: float  # planned, for what was asked
    fixed: float  # the same methods on the last look's texts, had nobody left
    seconds_a_pass: float | None
    without: tuple[str, ...]  # methods that the budget left out
    stability: float = 0.0  # of what was spent, for asking about the contenders in other ways


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
    holds: bool  # in the mean the oracle is above chance, and chance above the inverted oracle; `state` has tests

    def state(self, level: float) -> TruthState:
        """Whether the known order is shown to hold, shown to be broken, or neither."""
        margins = (
            (self.margin_oracle_random, self.p_oracle_random),
            (self.margin_random_inverted, self.p_random_inverted),
        )
        shown = [0.0 if margin is None or p is None or p > level else margin for margin, p in margins]
        if min(shown) < 0:
            return "broken"
        return "holds" if min(shown) > 0 else "not shown"


@dataclass(frozen=True)
class AuditSummary(stored.OnceMapping):
    """Everything an audit found. The tables that come from scores are empty until `summarise` fills them."""

    SCHEMA: ClassVar[int] = 3

    title: str
    created: str
    veridical: str  # its version
    model: ModelFacts
    settings: Settings
    stamp: Mapping[str, str | int | Mapping[str, str]]  # versions, platform, time, command, users' own parts
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
    looks: tuple[LookFacts, ...] = ()
    net_curves: tuple[NetCurve, ...] = ()
    stability: tuple[StabilityRow, ...] = ()
    spending: tuple[Spending, ...] = ()
    best_shares: tuple[BestShare, ...] = ()  # empty where the best order was not asked for
    familiarity: Familiarity | None = None  # None: the audit is from before it was looked at
    mask_tests: tuple[MaskTest, ...] = ()  # of a model that was trained on masks


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
    path = folder / SUMMARY
    summary = stored.read(path, AuditSummary, older={1: summary_of_schema_1, 2: summary_of_schema_2})
    methods, corpora = {method.name for method in summary.methods}, {corpus.name for corpus in summary.corpora}
    for standing in summary.ranking:
        if standing.method not in methods or standing.corpus not in corpora:
            raise InputError(
                f"{path} is not what Veridical wrote (it ranks {standing.method} on {standing.corpus} and does not "
                "say what these are); run the audit again, which reuses what was computed."
            )
    if not corpora:
        raise InputError(f"{path} is not what Veridical wrote (no corpus was audited); run the audit again.")
    return summary


def read_examples(folder: Path) -> ShownTexts:
    """The texts that a finished audit shows, also one from before 0.2, which stored a bare list."""
    path = folder / EXAMPLES
    value = store.read_json(path)
    texts = {"texts": value, stored.KEY: ShownTexts.SCHEMA} if isinstance(value, list) else value
    return stored.from_plain(texts, ShownTexts, where=str(path))
