"""The options of `evaluate` and `audit`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Literal

from veridical.core import options as opt
from veridical.core.options import Count, Help, Hidden
from veridical.core.place import A_FOLDER
from veridical.core.records import Level, Operator

Control = Literal["permutation", "gaussian"]  # the random explanation: the method's own scores shuffled, or noise
TEXTS, QUICK_TEXTS = 200, 48  # per corpus
CONTROLS = (
    "Random explanations that each method is held against: permutation (its own scores shuffled), gaussian, or both "
    "with a comma."
)
ERASED = (
    "How tokens are erased: delete, mask (the mask token), attention (not attended), zero_id_attended (id 0, as some "
    "released code does)."
)


@dataclass(frozen=True)
class EvaluateOptions:
    """How explanations are scored."""

    methods: opt.Methods = ("attention", "input_x_gradient", "integrated_gradients", "random")
    metrics: opt.Metrics = ("sufficiency", "comprehensiveness", "decision_flip")
    _: KW_ONLY
    target: opt.Target = "predicted"
    controls: Annotated[Sequence[Control], Hidden(CONTROLS)] = ()
    explanations: Annotated[Sequence[Any], Hidden("Attributions made elsewhere (`to_attributions`).")] = ()
    corpus: Annotated[str, Hidden("The texts' name, which scores carry.")] = ""
    seed: opt.Seed = 0
    out: Annotated[
        opt.Place | None, Help("Folder in which the work is stored part by part, and resumed."), A_FOLDER
    ] = None
    budget: opt.Budget = opt.TOKEN_BUDGET
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
    limit: Annotated[
        Count | None, Help("At most so many texts per corpus.", default=f"{TEXTS}, or {QUICK_TEXTS} if quick")
    ] = None
    ood_limit: Annotated[Count | None, Hidden("The same of every other corpus.", default="as many")] = None
    quick: Annotated[bool, Help("A first verdict from cheap methods and metrics.")] = False
    methods: Annotated[opt.Names | None, Help(opt.METHODS, default="all that work on the model")] = None
    metrics: Annotated[opt.Names | None, Help(opt.METRICS, default="all that apply to the data")] = None
    target: opt.Target = "predicted"
    by: Annotated[Operator, Help(ERASED)] = "delete"
    level: Annotated[Level, Help("What is erased at a time: token or word.")] = "token"
    controls: Annotated[Sequence[Control], Help(CONTROLS)] = ("permutation",)
    seed: opt.Seed = 0
    progress: opt.Progress = None
