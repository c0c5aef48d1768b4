"""The options of `train`, of several trainings, and of `search`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import Annotated, Any, Literal

from veridical.core import options as opt
from veridical.core.errors import InputError
from veridical.core.options import Checked, Count, Help, Hidden
from veridical.core.place import A_FOLDER
from veridical.core.ranges import between
from veridical.core.spec import base_name, listed
from veridical.training.config import TrainConfig, defaults, settings

SAVE_STEPS = 200  # between two checkpoints inside an epoch
Trained = Annotated[
    str,
    Help("What is trained: minilm, mpnet, smollm2, minilm:layers=3, bilstm, a folder, a hub id.", "MODEL"),
    Checked("veridical.model.names", "insist_on_trained", places=True),
]
Table = TrainConfig | Mapping[str, Any] | None
KEYS = tuple(field.name for field in fields(TrainConfig))
Settings = Annotated[
    Table, Help("A TrainConfig, or a table of settings on top of the model's own.", table="train", keys=KEYS)
]
TRACKER = Checked("veridical.training.tracker", "insist_on_tracker")
TERMS = Checked("veridical.training.term", "objective")
BOUND = "Hold a term below a value instead: TERM=0.035, TERM=TRAIN+DEV, or TERM=search."
OVER = "Train with each value, keep the best on dev: TERM.weight=1e-2,1e-3,1e-4. May be repeated."
SELECT = "What a search judges by: a metric, or dev macro_f1, loss, ..."
TOKENS = "Padded tokens that a model is given at once where texts are explained; of training steps, train.budget is."
REPORT = "Where else the log goes: tensorboard (the folder tensorboard/ of the run), or none."
MASK = "Mask half of the texts at random, up to this share of their tokens (train.mask): 1 makes erasure measurable."
Searched = Annotated[opt.Names, Help(OVER, "VALUES", "--search", commas=False)]


@dataclass(frozen=True)
class Training:
    """What every training is asked for."""

    data: opt.Data
    model: Trained = "minilm"
    _: KW_ONLY
    objective: Annotated[str, Help("Terms on top of cross-entropy: a:weight=1,b:weight=2.", "TERMS"), TERMS] = (
        "cross_entropy"
    )
    bound: Annotated[str | None, Help(BOUND, "BOUND", none=True)] = None
    config: Settings = None
    mask: Annotated[Annotated[float, between(0, 1)] | None, Help(MASK, "RATIO", default="0")] = None
    limit: opt.Examples = None
    out: Annotated[
        opt.Place | None,
        Help("Run folder; several seeds get a folder each in it.", default="runs/DATA/MODEL/OBJECTIVE-SEED-HASH"),
        A_FOLDER,
    ] = None
    report_to: Annotated[Literal["none", "tensorboard"], Help(REPORT, "NAME"), TRACKER] = "none"
    device: opt.Device = None
    progress: opt.Progress = None

    def __post_init__(self) -> None:
        chosen = self.settings()  # a mistake in them is told before anything is loaded
        others = [name for name in map(base_name, listed(self.objective)) if name != "cross_entropy"]
        if chosen.mask and chosen.mask_rows == 1 and others:
            raise InputError(
                f"mask_rows is 1, so that no text stays whole, and {' and '.join(others)} is of whole texts; lower "
                "mask_rows (0.5 is usual), or train with cross_entropy alone."
            )

    def settings(self) -> TrainConfig:
        usual, given = defaults(self.model, self.bound), self.config
        if self.mask is None:
            return settings(given, usual)
        if isinstance(given, TrainConfig):
            return replace(given, mask=self.mask)
        return settings({**(given or {}), "mask": self.mask}, usual)  # before the others of masking are looked at


@dataclass(frozen=True, kw_only=True)
class TrainOptions(Training):
    """One training."""

    seed: Annotated[int, Help("Of everything random."), opt.SEEDS] = 0
    save_steps: Annotated[Count, Hidden("Steps between two checkpoints inside an epoch.")] = SAVE_STEPS


@dataclass(frozen=True, kw_only=True)
class SeedsOptions(Training):
    """The same training with several seeds."""

    seeds: Annotated[Sequence[int], Help("A seed, or several: 0,1,2 or 0-4.", "SEEDS"), opt.SEEDS] = (0,)


@dataclass(frozen=True, kw_only=True)
class SearchOptions(SeedsOptions):
    """Trainings with every value of some options, of which the best is kept; by default as SaLoss does it."""

    over: Searched
    select: Annotated[str, Help(SELECT, "NAME")] = "decision_flip"
    methods: Annotated[opt.Names, Help("Methods that a search measures.", option="--search-method"), opt.A_METHOD] = (
        *("attention", "attention_x_gradient", "input_x_gradient", "integrated_gradients"),
    )
    texts: Annotated[Count, Help("Dev texts that a search explains.", option="--search-texts")] = 200
    budget: Annotated[opt.Budget, Help(TOKENS, option="--batch-tokens", default=opt.USUAL_TOKENS)] = None
