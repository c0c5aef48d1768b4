"""The options of `evaluate` and `audit`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from veridical.core.options import (
    METHODS,
    METRICS,
    TOKEN_BUDGET,
    Budget,
    Data,
    Help,
    Methods,
    Metrics,
    Model,
    Ood,
    Out,
    Progress,
    Seed,
    Split,
    Target,
    Ticks,
)
from veridical.core.ranges import at_least
from veridical.core.records import Level, Operator

Control = Literal["permutation", "gaussian"]
TEXTS, QUICK_TEXTS = 200, 48  # per corpus


@dataclass(frozen=True)
class EvaluateOptions:
    """How explanations are scored."""

    methods: Methods = ("attention", "input_x_gradient", "integrated_gradients", "random")
    metrics: Metrics = ("sufficiency", "comprehensiveness", "decision_flip")
    _: KW_ONLY
    target: Target = "predicted"
    controls: Annotated[
        Sequence[Control],
        Help("Random explanations to score in each method's place: permutation, gaussian.", hidden=True),
    ] = ()
    explanations: Annotated[
        Sequence[Any], Help("Attributions made elsewhere (`to_attributions`), scored like ours.", hidden=True)
    ] = ()
    corpus: Annotated[str, Help("The texts' name, which scores carry.", hidden=True)] = ""
    seed: Seed = 0
    out: Annotated[str | Path | None, Help("Folder in which the work is stored part by part, and resumed.", "DIR")] = (
        None
    )
    budget: Budget = TOKEN_BUDGET
    tick: Ticks = None


@dataclass(frozen=True)
class AuditOptions:
    """What is audited, on which texts, with what."""

    model: Model
    data: Data
    _: KW_ONLY
    out: Out
    ood: Ood = ()
    split: Split = "test"
    limit: Annotated[
        Annotated[int, at_least(1)] | None,
        Help("At most so many texts per corpus, a seeded sample.", "N", default=f"{TEXTS}, or {QUICK_TEXTS} if quick"),
    ] = None
    ood_limit: Annotated[
        Annotated[int, at_least(1)] | None,
        Help("The same of every other corpus.", "N", default="as many", hidden=True),
    ] = None
    quick: Annotated[bool, Help("A first verdict from cheap methods and metrics.")] = False
    methods: Annotated[
        str | Sequence[str] | None, Help(METHODS, "NAMES", "--method", default="all that work on the model")
    ] = None
    metrics: Annotated[
        str | Sequence[str] | None, Help(METRICS, "NAMES", "--metric", default="all that apply to the data")
    ] = None
    target: Target = "predicted"
    by: Annotated[
        Operator,
        Help(
            "How tokens are erased: delete, mask (the mask token), attention (not attended), zero_id_attended (id 0, "
            "as some released code does).",
            "HOW",
        ),
    ] = "delete"
    level: Annotated[Level, Help("What is erased at a time: token or word.", "UNIT")] = "token"
    controls: Annotated[
        Sequence[Control],
        Help(
            "Random explanations that each method is held against: permutation (its own scores shuffled), gaussian, "
            "or both with a comma.",
            "NAMES",
            "--control",
        ),
    ] = ("permutation",)
    seed: Seed = 0
    progress: Progress = None
