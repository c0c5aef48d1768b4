"""The options of `roar` and `fresh`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Literal

from veridical.core.errors import InputError
from veridical.core.options import METHODS, Data, Examples, Help, Methods, Ood, Out, Progress, Target, share
from veridical.core.ranges import at_least, between
from veridical.grid.options import Address, DryRun, Engine, Shard, Workers
from veridical.training.config import TrainConfig, defaults, settings
from veridical.training.options import Settings, Trained

Extractor = Literal["topk", "contiguous"]
Interval = Literal["bca", "percentile", "t"]
Rounding = Literal["floor", "ceil"]
Scored = Literal["macro_f1", "accuracy", "micro_f1"]
# The paper's four measures: absolute values, and the norm of the gradient over the vocabulary.
PAPER = (
    "attention",
    "gradient:over=vocabulary",
    "input_x_gradient:aggregate=abs",
    "integrated_gradients:rule=right:aggregate=abs",
)
SEEDS, STEP = 5, 10
QUICK_SEEDS, QUICK_STEP = 1, 20  # every second point of the usual baseline: a full run finds them done


@dataclass(frozen=True)
class RoarOptions:
    """What is masked, how often, and how it is trained and computed."""

    data: Data
    model: Trained = "bilstm"
    _: KW_ONLY
    out: Out
    methods: Annotated[
        str | Sequence[str],
        Help(
            f"{METHODS[:-1]}; oracle, where the data has rationales.", "NAMES", "--method", default="the paper's four"
        ),
    ] = PAPER
    seeds: Annotated[
        Annotated[int, at_least(1)] | Sequence[int] | None,
        Help("How many seeds: 0, 1, ... A verdict takes five.", "N", default=f"{SEEDS}, or {QUICK_SEEDS} if quick"),
    ] = None
    step: Annotated[
        Annotated[int, between(1, 50)] | None,
        Help("Per cent of the tokens masked at a time, 1 to 50.", "N", default=f"{STEP}, or {QUICK_STEP} if quick"),
    ] = None
    tokens: Annotated[
        Annotated[int, at_least(1)] | None, Help("Mask one token at a time instead, up to so many.", "N")
    ] = None
    plain: Annotated[bool, Help("Run ROAR without recursion too, to compare.")] = False
    quick: Annotated[bool, Help(f"A first answer: one seed in steps of {QUICK_STEP}%.")] = False
    score: Annotated[
        Scored | None,
        Help(
            "What curves show: macro_f1, accuracy or micro_f1.",
            "NAME",
            default="accuracy for bAbI and planted, micro_f1 for SNLI, macro_f1 elsewhere",
        ),
    ] = None
    leakage: Annotated[bool, Help("Where a curve lies above random, train on the positions of the masks alone.")] = True
    interval: Annotated[
        Interval, Help("Over seeds: bca (the paper's bootstrap), percentile (a plain one), t (Student's).", "NAME")
    ] = "bca"
    limit: Examples = None
    config: Settings = None
    rounding: Annotated[Rounding, Help("Of a number of tokens that is not whole: floor, ceil.", hidden=True)] = "floor"
    engine: Engine = "local"
    address: Address = None
    workers: Workers = None
    shard: Shard = None
    dry_run: DryRun = False
    progress: Progress = None

    def __post_init__(self) -> None:
        if self.tokens is not None and self.step is not None:
            raise InputError(
                f"Both --step {self.step} and --tokens {self.tokens}: texts are masked by shares or tokens; give one."
            )
        settings(self.config, defaults(self.model))  # a mistake in them is told before anything is loaded


@dataclass(frozen=True)
class FreshOptions:
    """What is explained, what is kept of a text, and how it is trained."""

    data: Data
    model: Trained = "minilm"
    _: KW_ONLY
    methods: Methods = ("attention",)
    out: Annotated[Out, Help("Folder for the runs, the rationales and the tables.", "DIR")]
    objective: Annotated[
        str | Sequence[str],
        Help(
            "What a support model is trained for, terms with commas. Repeat it to compare several.",
            "TERMS",
            commas=False,
        ),
    ] = "cross_entropy"
    support: Annotated[
        Any | Sequence[Any],
        Help("Explain this finished run or model instead. May be repeated.", "MODEL", commas=False),
    ] = ()
    ratio: Annotated[
        float,
        Help("Share of a text's words that the rationale keeps.", "SHARE"),
        share,
    ] = 0.2
    extractor: Annotated[
        Extractor,
        Help("topk (the highest scored words), or contiguous (the span with the highest sum).", "NAME"),
    ] = "topk"
    seeds: Annotated[
        Annotated[int, at_least(1)] | Sequence[int], Help("How many seeds: 0, 1, ... Intervals need five.", "N")
    ] = 1
    ood: Ood = ()
    limit: Examples = None
    target: Target = "predicted"
    config: Settings = None
    rationale_config: Annotated[
        TrainConfig | Mapping[str, Any] | None,
        Help("The same for the second training only, the one on rationales.", table="rationale"),
    ] = None
    progress: Progress = None

    def __post_init__(self) -> None:
        self.settings()  # a mistake in them is told before anything is loaded

    def settings(self) -> tuple[TrainConfig, TrainConfig]:
        """Of the trainings on full text, and of those on rationales."""
        config = settings(self.config, defaults(self.model))
        return config, settings(self.rationale_config, config, where="rationale")
