"""The options of `train`, of several trainings, and of `search`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Any

from veridical.core.options import Data, Examples, Help, Progress
from veridical.core.ranges import at_least
from veridical.training.config import TrainConfig, defaults, settings

Trained = Annotated[str, Help("What is trained: minilm, minilm:layers=3, bilstm, a folder, a hub id.", "MODEL")]
Settings = Annotated[
    TrainConfig | Mapping[str, Any] | None,
    Help("How it is trained: a TrainConfig, or a table of settings on top of the model's own.", table="train"),
]
Searched = Annotated[
    str | Sequence[str],
    Help(
        "Train with each value, keep the best on dev: TERM.weight=1e-2,1e-3,1e-4. May be repeated.",
        "VALUES",
        "--search",
        commas=False,
    ),
]


@dataclass(frozen=True)
class Training:
    """What every training is asked for."""

    data: Data
    model: Trained = "minilm"
    _: KW_ONLY
    objective: Annotated[str, Help("Terms on top of cross-entropy: a:weight=1,b:weight=0.01.", "TERMS")] = (
        "cross_entropy"
    )
    bound: Annotated[
        str | None,
        Help("Hold a term below a value instead: TERM=0.035, TERM=TRAIN+DEV, or TERM=search.", "BOUND"),
    ] = None
    config: Settings = None
    limit: Examples = None
    out: Annotated[
        str | Path | None,
        Help(
            "Run folder; several seeds get a folder each in it.",
            "DIR",
            default="runs/DATA/MODEL/OBJECTIVE-SEED-HASH",
        ),
    ] = None
    progress: Progress = None

    def __post_init__(self) -> None:
        self.settings()  # a mistake in them is told before anything is loaded

    def settings(self) -> TrainConfig:
        return settings(self.config, defaults(self.model, self.bound))


@dataclass(frozen=True, kw_only=True)
class TrainOptions(Training):
    """One training."""

    seed: Annotated[int, Help("Of everything random.", "N")] = 0
    save_steps: Annotated[int, Help("Steps between two checkpoints.", hidden=True), at_least(1)] = 200


@dataclass(frozen=True, kw_only=True)
class SeedsOptions(Training):
    """The same training with several seeds."""

    seeds: Annotated[Sequence[int], Help("A seed, or several: 0,1,2.", "N", "--seed")] = (0,)


@dataclass(frozen=True, kw_only=True)
class SearchOptions(SeedsOptions):
    """Trainings with every value of some options, of which the best is kept."""

    over: Searched
    select: Annotated[str, Help("What a search judges by: a metric, or dev macro_f1, loss, ...", "NAME")] = (
        "decision_flip"
    )
    methods: Annotated[
        str | Sequence[str], Help("Methods that a search measures, as SaLoss does.", "NAMES", "--search-method")
    ] = ("attention", "attention_x_gradient", "input_x_gradient", "integrated_gradients")  # section 4
    texts: Annotated[int, Help("Dev texts that a search explains.", "N", "--search-texts"), at_least(1)] = 200
