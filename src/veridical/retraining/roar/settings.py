"""The paper's settings of the BiLSTM, by dataset: what a benchmark takes unless told otherwise.

Tables 4 and 5, and the released experiments, which alone say that bAbI's model is 32 wide. None of them stops early.
"""

from __future__ import annotations

import dataclasses
import re

from veridical.core import store
from veridical.core.records import Dataset
from veridical.core.spec import read_place
from veridical.model.names import WIDTH
from veridical.training.config import TrainConfig, defaults


@dataclasses.dataclass(frozen=True)
class Settings:
    """A row of the paper's table 4."""

    width: int  # of the LSTM per direction, and of the attention
    epochs: int
    batch: int


SINGLE = Settings(width=128, epochs=8, batch=32)  # SST, IMDB, MIMIC
SNLI = Settings(width=128, epochs=25, batch=128)
BABI = Settings(width=32, epochs=100, batch=50)
NAMED = {"babi": BABI, "snli": SNLI}


def family(data: str) -> str | None:
    """`babi` or `snli`, if a dataset's name has that word: `babi/1:path=en-10k`, `e-snli`, `hub:owner/snli`."""
    words = re.findall("[a-z]+", store.slug(data).lower())
    return next((word for word in words if word in NAMED), None)


def settings(data: Dataset) -> Settings:
    """The paper's row for this data; other pairs take that of SNLI."""
    known = family(data.name)
    if known is not None:
        return NAMED[known]
    return SNLI if _pairs(data) else SINGLE


def training(model: str, data: Dataset) -> TrainConfig:
    """What a model is trained with unless told otherwise. The best epoch on dev is by AUROC for single texts, by
    accuracy for pairs, all of whose parameters are decayed."""
    usual = dataclasses.replace(defaults(model), threads=1)
    if read_place(model).name != "bilstm":
        return usual
    row = settings(data)
    usual = dataclasses.replace(usual, epochs=row.epochs, batch=row.batch, patience=None, select="auroc")
    return dataclasses.replace(usual, no_decay=(), select="accuracy") if _pairs(data) else usual


def with_width(model: str, data: Dataset) -> str:
    """The model with the paper's width written out, unless it says its own: `bilstm` on bAbI is `bilstm:hidden=32`."""
    typed = read_place(model)
    width = settings(data).width if typed.name == "bilstm" else WIDTH
    return model if "hidden" in typed.options or width == WIDTH else f"{model}:hidden={width}"


def _pairs(data: Dataset) -> bool:
    return any(example.context is not None for example in data.splits.get("train", ()))
