"""The settings of a training run: a dataclass whose fields carry name, type, range and default; nothing else repeats
them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from veridical.core.errors import InputError
from veridical.core.ranges import Seed, above, at_least, between, insist
from veridical.core.settings import build
from veridical.core.spec import base_name
from veridical.core.store import later

T = TypeVar("T")

# loss is cross-entropy; objective is the whole sum, terms included.
Select = Literal["macro_f1", "accuracy", "auroc", "loss", "calibration_error", "objective", "last"]


Count = Annotated[int, at_least(1)]
Rate = Annotated[float, at_least(0)]
Share = Annotated[float, between(0, 1, without="high")]
Epochs = Annotated[int, between(1, 1_000_000)]
Threads = Annotated[int, between(1, 1024)]  # for each of a million OpenMP would set aside memory, and end the process


@dataclasses.dataclass(frozen=True, slots=True)
class TrainConfig:
    """How the training loop runs: everything that can change its result, and nothing else."""

    epochs: Epochs = 3
    batch: Count = 32  # examples per step, over all processes together
    lr: Rate = 5e-5  # of the encoder
    head_lr: Rate = 1e-3  # of what stands on it
    optimizer: Literal["adamw", "amsgrad"] = "adamw"
    weight_decay: Rate = 0.01
    no_decay: tuple[str, ...] = ("bias", "norm")  # parameters with such a word in their name are not decayed
    schedule: Literal["linear", "constant"] = "linear"  # after the warm-up
    warmup: Share = 0.1  # share of all steps
    clip: Annotated[float, above(0)] | None = 1.0  # largest norm of the gradient; none: no clipping
    select: Select = "macro_f1"  # the dev score that picks the epoch to keep
    patience: Count | None = None  # epochs without a better score before stopping; none: run them all
    budget: Count = 8192  # padded tokens in one pass; a larger batch is run in several passes
    threads: Threads | None = None  # none: as many as torch takes when the run starts
    max_length: Count | None = later(None)  # tokens a text is cut to, special ones included; none: what the model takes
    betas: tuple[float, float] = later((0.9, 0.999))  # of Adam: decay of the running mean and of the mean square
    dropout: Share | None = later(None)  # everywhere in the model; none: the model's own
    data_seed: Seed | None = later(None)  # of order, dropout and noise, all that is random once the weights are drawn
    # The rank of adapters on the attention's maps, trained with the head in place of all weights; none: all weights.
    lora: Annotated[int, between(1, 1024)] | None = later(None)
    enough: float | None = later(None)  # of the dev score: the first epoch that reaches it is the last
    mask: Annotated[float, between(0, 1)] = later(0.0)  # largest share of a text's tokens that is masked; 0: none is
    mask_rows: Annotated[float, between(0, 1, without="low")] = later(0.5)  # chance of a text to be masked in a step
    mask_context: bool = later(False)  # mask the second text of a pair too, by the same share

    def __post_init__(self) -> None:
        insist(self)
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise InputError(f"betas is {self.betas!r}; it must be two numbers from 0 to below 1, like 0.9+0.98.")
        if self.select == "last" and self.patience is not None:
            raise InputError("patience needs a dev score to watch; choose select=macro_f1, or leave patience out.")
        if self.select == "last" and self.enough is not None:
            raise InputError("enough is of a dev score; choose select=accuracy, or leave enough out.")
        if not self.mask and (self.mask_rows != 0.5 or self.mask_context):
            raise InputError("mask_rows and mask_context are of masked training; set mask too, to 1 for instance.")


# Recursive ROAR, table 4 (single texts): the BiLSTM is trained from scratch, every part at one rate.
BILSTM = TrainConfig(
    epochs=8,
    lr=1e-3,
    head_lr=1e-3,
    optimizer="amsgrad",
    weight_decay=1e-5,
    no_decay=("attention",),
    schedule="constant",
    warmup=0.0,
    clip=None,
)


LORA_RATE = 5e-4  # of adapters, which begin at 0, unless another is given: ten times that of weights


def defaults(model: str, bound: str | None = None) -> TrainConfig:
    """The settings a model is trained with unless told otherwise; under a bound the lowest dev loss is kept."""
    usual = BILSTM if base_name(model) == "bilstm" else TrainConfig()
    return dataclasses.replace(usual, select="loss") if bound else usual


def settings(config: TrainConfig | Mapping[str, Any] | None, base: TrainConfig, *, where: str = "train") -> TrainConfig:
    """The settings that were given: whole, or a table of some on top of others."""
    if isinstance(config, TrainConfig):
        return config
    given = config or {}
    if given.get("lora") not in (None, "none") and "lr" not in given:
        base = dataclasses.replace(base, lr=LORA_RATE)
    return build(TrainConfig, given, base=base, where=where)
