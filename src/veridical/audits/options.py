"""The options of `evaluate`, `audit` and `shortcuts`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from veridical.core import options as opt
from veridical.core.errors import InputError
from veridical.core.options import Count, Help, Hidden
from veridical.core.place import A_FOLDER, A_RUN, A_SOURCE
from veridical.core.ranges import at_least, between
from veridical.core.readable import shown
from veridical.core.records import Attribution, Given, Level, Operator
from veridical.grid.options import Address, Engine, Shard

# What a method is held against: random orders that all methods share, its own scores shuffled, or noise.
Control = Literal["orders", "permutation", "gaussian"]
Draw = Literal["permutation", "gaussian"]  # those that are drawn for every method anew
PART = 16  # texts whose questions are held at once
LOOKS = (24, 48, 96)  # texts after which an audit looks at what it knows, per corpus
THOROUGH = (*LOOKS, 192)
LONGEST = 3600 * 24 * 365  # seconds that a budget may have
_TIME = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(s|m|h|)\s*")
QUICK_PASSES = 6_000  # of the model, by which `quick` is bounded
CONTROLS = (
    "Random explanations that metrics are tried on, to see how far to trust them: orders (three random orders that all "
    "methods share; for metrics that read more than the order the method's own scores shuffled), permutation (its own "
    "scores shuffled), gaussian, or several with commas."
)
AGAINST = (
    "An earlier audit, its folder or record.json: what changed since, each figure with a test; a regression ends with "
    "exit code 1."
)
ERASED = (
    "How tokens are erased: delete, mask (the mask token), attention (not attended), zero_id_attended (id 0, as some "
    "released code does)."
)


@dataclass(frozen=True)
class EvaluateOptions:
    """How explanations are scored."""

    methods: Annotated[opt.Methods, Help(opt.METHODS, empty=True)] = (  # where explanations were made elsewhere
        *("attention", "input_x_gradient", "integrated_gradients", "random"),
    )
    metrics: Annotated[opt.Metrics | None, Help(opt.METRICS)] = ("sufficiency", "comprehensiveness", "decision_flip")
    _: KW_ONLY
    target: opt.Target = "predicted"
    controls: Annotated[Sequence[Draw], Hidden("Random explanations scored in the place of each.")] = ()
    orders: Annotated[bool, Hidden("Leave the controls out where a metric reads nothing but the order.")] = False
    explanations: Annotated[Sequence[Attribution], Hidden("Attributions made elsewhere (`to_attributions`).")] = ()
    corpus: Annotated[str, Hidden("The texts' name, which scores carry.")] = ""
    seed: opt.Seed = 0
    out: Annotated[
        opt.Place | None, Help("Folder in which the work is stored part by part, and resumed."), A_FOLDER
    ] = None
    weights: Annotated[str | None, Hidden("The hash of the model's weights, where it is known.")] = None
    part: Annotated[Count, Hidden("Texts whose questions are held at once.")] = PART
    parts: Annotated[Sequence[int] | None, Hidden("Only these parts of the texts, from 0.")] = None
    device: opt.Device = None
    budget: opt.Budget = None
    progress: opt.Progress = None
    tick: opt.Ticks = None


@dataclass(frozen=True)
class AuditOptions:
    """What is audited, on which texts, with what."""

    model: opt.Model
    data: opt.Data
    _: KW_ONLY
    out: opt.Out
    ood: opt.Ood = ()
    split: opt.Split = "test"
    limit: Annotated[Count | None, Help("At most so many texts per corpus.", default=f"{LOOKS[-1]}")] = None
    ood_limit: Annotated[Count | None, Help("The same of every other corpus.", default="as many")] = None
    quick: Annotated[bool, Help(f"A first verdict, within {QUICK_PASSES} passes.")] = False
    thorough: Annotated[bool, Help(f"Up to {THOROUGH[-1]} texts, where fewer do not settle it.")] = False
    fixed: Annotated[Count | None, Help("Every method on N texts, looked at once, instead of stopping early.")] = None
    time: Annotated[str | None, Help("Keep to a time: 90s, 10m, 2h; a number alone is seconds.", "TIME")] = None
    passes: Annotated[Count | None, Help("Keep to so many passes of a whole text through the model.")] = None
    alpha: Annotated[float, Help("How often a list may name a method wrongly."), between(0.0001, 0.5)] = 0.05
    margin: Annotated[
        float, Help("Net share of wins below which methods count as equal: 0.2 is 60 to 40."), between(0.01, 0.9)
    ] = 0.2
    methods: Annotated[opt.Names | None, Help(opt.METHODS, default="all that work on the model"), opt.A_METHOD] = None
    metrics: Annotated[opt.Names | None, Help(opt.METRICS, default="see `veridical list metrics`"), opt.A_METRIC] = None
    target: opt.Target = "predicted"
    by: Annotated[Operator | None, Help(ERASED, default="mask if the model was trained on masks, else delete")] = None
    level: Annotated[Level, Help("What is erased at a time: token or word.")] = "token"
    controls: Annotated[Sequence[Control], Help(CONTROLS)] = ("orders",)
    purpose: Annotated[str | None, Help("What the audit is for, in a sentence: its record says so.", "TEXT")] = None
    against: Annotated[str | None, Help(AGAINST, "OLD")] = None
    seed: opt.Seed = 0
    workers: Annotated[Count | None, Help("Parts at once, a thread each.", default="one process, all threads")] = None
    shard: Shard = None
    engine: Engine = "local"
    address: Address = None
    device: opt.Device = None
    budget: opt.Budget = None
    progress: opt.Progress = None

    def __post_init__(self) -> None:
        _insist_on_design(self)


@dataclass(frozen=True)
class ShortcutsOptions:
    """Which words of which explanations are looked at, and where they are erased."""

    audit: Annotated[opt.Place, Help("A folder that `veridical audit` wrote.", "AUDIT", argument=True), A_SOURCE]
    _: KW_ONLY
    methods: Annotated[
        opt.Names | None,
        Help("Whose explanations on file are read.", default="those that the audit believes, or its first"),
        opt.A_METHOD,
    ] = None
    as_good: Annotated[bool, Help("Those too that the audit shows to be as good.")] = False
    texts: Annotated[
        Count | None, Help("Explain as many texts, where the audit has fewer.", default="those on file")
    ] = None
    min_texts: Annotated[Count, Help("Texts of a class that must have a word for it to be looked at.")] = 5
    alpha: Annotated[float, Help("How often any word may be flagged by chance."), between(0.0001, 0.5)] = 0.05
    permutations: Annotated[int, Help("Draws of each of the two null distributions."), at_least(99)] = 1999
    limit: Annotated[Count, Help("Erase words in at most so many texts of the split.")] = 500
    by: Annotated[Operator | None, Help(ERASED, default="as in the audit")] = None
    model: Annotated[Any, Help("The audited model, where it lies elsewhere now.", "MODEL")] = None
    data: Annotated[Given | Path | None, Help("The audited data, likewise.", "DATA"), opt.A_DATASET] = None
    seed: Annotated[int, Help("Seed of the draws."), opt.SEEDS] = 0
    out: Annotated[
        opt.Place | None, Help("Folder for the result.", default="in the audit's, whose page tells it"), A_RUN
    ] = None
    device: opt.Device = None
    budget: opt.Budget = None
    progress: opt.Progress = None


def _insist_on_design(options: AuditOptions) -> None:
    """Refuse designs that exclude each other, before anything is loaded."""
    bounds = {"quick": options.quick, "time": options.time, "passes": options.passes}
    given = [name for name, value in bounds.items() if value]
    if len(given) > 1:
        raise InputError(f"An audit has one budget, but {' and '.join(given)} were given; leave all but one out.")
    if options.quick and options.thorough:
        raise InputError("An audit is quick or thorough, but both were given; leave one of the two out.")
    if options.thorough and options.limit and options.limit <= LOOKS[-1]:
        raise InputError(
            f"A thorough audit looks at up to {THOROUGH[-1]} texts, but limit is {options.limit}, at which thorough "
            f"changes nothing; raise it above {LOOKS[-1]}, or leave one of the two out."
        )
    others = [name for name, value in (("thorough", options.thorough), ("limit", options.limit)) if value]
    if options.fixed and (others or given):
        other = (others + given)[0]
        raise InputError(f"A fixed design of {options.fixed} texts has no {other}; leave one of the two out.")
    if options.time is not None:
        seconds_of(options.time)


def seconds_of(text: str) -> float:
    """`90s`, `10m`, `2h`, or a number of seconds."""
    match = _TIME.fullmatch(text)
    seconds = float(match[1]) * {"s": 1, "": 1, "m": 60, "h": 3600}[match[2]] if match else 0.0
    if not 0 < seconds <= LONGEST:
        raise InputError(f"time is {shown(text)}; write a number with s, m or h: 90s, 10m, 2h.")
    return seconds
