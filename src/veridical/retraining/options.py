"""The options of `roar` and `fresh`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from veridical.core import options as opt
from veridical.core import stored
from veridical.core.errors import InputError
from veridical.core.options import Checked, Count, Help, Hidden
from veridical.core.place import A_RUN
from veridical.core.ranges import between
from veridical.core.spec import base_name, listed
from veridical.core.wording import option
from veridical.grid.options import Address, DryRun, Engine, Shard, Workers
from veridical.model.names import ENCODERS
from veridical.training.config import TrainConfig, defaults, settings
from veridical.training.options import KEYS, TERMS, Settings, Table, Trained

Extractor = Literal["topk", "contiguous"]
Interval = Literal["bca", "percentile", "t"]
Rounding = Literal["floor", "ceil"]
Scored = Literal["macro_f1", "accuracy", "micro_f1"]
# The paper's four measures: absolute values, and the norm of the gradient over the vocabulary.
PAPER = (
    "attention",
    "gradient:over=vocabulary",
    "input_x_gradient:aggregate=abs",
    "integrated_gradients:rule=right:aggregate=abs",
)
SEEDS, STEP = 5, 10
QUICK_SEEDS, QUICK_STEP = 1, 20  # every second point of the usual baseline: a full run finds them done
MEASURES = f"{opt.METHODS[:-1]}; oracle, where the data has rationales."
CURVES = "What curves show: macro_f1, accuracy or micro_f1."
USUAL = "accuracy for bAbI and planted, micro_f1 for SNLI, macro_f1 elsewhere"
LEAKAGE = "Where a curve lies above random, train on the positions of the masks alone."
INTERVAL = "Over seeds: bca (the paper's bootstrap), percentile (a plain one), t (Student's)."
COUNTED = "How many seeds (0, 1, ...), or which: 0-4. A verdict takes five."
STEPS = "Per cent of the tokens masked at a time, 1 to 50."
OBJECTIVES = "What a support model is trained for, terms with commas. Repeat it to compare several."
SUPPORT = "Explain this finished run or model instead. May be repeated."
EXTRACTOR = "topk (the highest scored words), or contiguous (the span with the highest sum)."


RETRAIN = "Train anew for every point; without it all points are one model's, which has to be trained on masks."
FORCE = "Take the curves of a model that was not trained on masks all the same; the page says so."
RoarModel = Annotated[
    str,
    Help(
        "What is trained: minilm, bilstm, a folder, a hub id; without retraining a run, or a folder of seeds.", "MODEL"
    ),
    Checked(__name__, "insist_on_roar_model", places=True),
]
UNTOLD = "cross_entropy"  # the objective, if none is named
MOST_SEEDS = 10_000
Counted = Annotated[int, between(1, MOST_SEEDS)]  # a list of as many is made


def seeds_of(given: int | Sequence[int]) -> tuple[int, ...]:
    """So many seeds from 0, or these, each once."""
    if not isinstance(given, int):
        for seed in given:
            opt.SEEDS.check(seed, "seeds")
    seeds = tuple(range(given) if isinstance(given, int) else dict.fromkeys(given))
    if not seeds:
        raise InputError(f"seeds is {given!r}; it is a number of seeds from 1, or a list of seeds.")
    return seeds


def insist_on_measures(specs: opt.Names) -> None:
    opt.A_METHOD.check([spec for spec in listed(specs) if spec != "oracle"])


def one_model_folders(model: str) -> dict[int, str]:
    """The models by seed that a folder holds: a run's own, or those of its finished runs seed0, seed1, ..."""
    path = Path(model)
    runs = {seed: str(folder) for seed, folder in _seed_folders(path).items() if (folder / "model").is_dir()}
    if runs:
        return dict(sorted(runs.items()))
    spec = path / "spec.json"
    seed = stored.read_fields(spec).get("seed", 0) if spec.exists() else 0
    return {int(seed): model}


def _seed_folders(path: Path) -> dict[int, Path]:
    """The runs of a folder of seeds, finished or not; none of a model or a run."""
    if not path.is_dir() or (path / "model").exists() or (path / "config.json").exists():
        return {}
    named = [(re.fullmatch(r"seed(\d+)", folder.name), folder) for folder in path.iterdir()]
    return {int(match[1]): folder for match, folder in named if match and folder.is_dir()}


def unfinished_seeds(model: str) -> tuple[int, ...]:
    """The seeds of a folder that were begun and have no model yet."""
    return tuple(sorted(set(_seed_folders(Path(model))) - set(one_model_folders(model))))


def insist_on_roar_model(model: str) -> None:
    """What can be trained, or a folder of models that were."""
    from veridical.model.names import insist_on_trained

    for folder in one_model_folders(model).values():
        insist_on_trained(folder)


def insist_on_objectives(objectives: opt.Names) -> None:
    for objective in [objectives] if isinstance(objectives, str) else objectives:
        TERMS.check(objective)


@dataclass(frozen=True)
class RoarOptions:
    """What is masked, how often, and how it is trained and computed."""

    data: opt.Data
    model: RoarModel = "bilstm"
    _: KW_ONLY
    out: opt.Out
    methods: Annotated[
        opt.Names, Help(MEASURES, default="the paper's four"), Checked(__name__, "insist_on_measures")
    ] = PAPER
    seeds: Annotated[Counted | Sequence[int] | None, Help(COUNTED, default="5, or 1 if quick")] = None
    step: Annotated[Annotated[int, between(1, 50)] | None, Help(STEPS, default="10, or 20 if quick")] = None
    tokens: Annotated[Count | None, Help("Mask one token at a time instead, up to so many.")] = None
    plain: Annotated[bool, Help("Run ROAR without recursion too, to compare.")] = False
    quick: Annotated[bool, Help("A first answer: one seed in steps of 20%.")] = False
    retrain: Annotated[bool, Help(RETRAIN)] = True
    force: Annotated[bool, Help(FORCE)] = False
    score: Annotated[Scored | None, Help(CURVES, default=USUAL)] = None
    leakage: Annotated[bool, Help(LEAKAGE)] = True
    interval: Annotated[Interval, Help(INTERVAL)] = "bca"
    limit: opt.Examples = None
    config: Settings = None
    rounding: Annotated[Rounding, Hidden("Of a number of tokens that is not whole: floor, ceil.")] = "floor"
    device: opt.Device = None
    budget: opt.Budget = None
    engine: Engine = "local"
    address: Address = None
    workers: Workers = None
    shard: Shard = None
    dry_run: DryRun = False
    progress: opt.Progress = None

    def __post_init__(self) -> None:
        if self.tokens is not None and self.step is not None:
            both = f"{option(f'step={self.step}')} and {option(f'tokens={self.tokens}')}"
            raise InputError(f"Both {both}: texts are masked by shares or by tokens; give one.")
        settings(self.config, defaults(self.model))  # a mistake in them is told before anything is loaded
        if not self.retrain:
            self._check_one_model()
        elif self.force:
            raise InputError(
                f"{option('force=True')} is of curves without retraining; say "
                f"{option('retrain=False', '--no-retrain')} too, or leave it out."
            )

    def _check_one_model(self) -> None:
        """Refuse what only trainings could follow."""
        if base_name(self.model) in ("bilstm", *ENCODERS):
            raise InputError(
                f"Without retraining the curves are those of one trained model, and {self.model!r} is none; name its "
                f"run with {option('model')}."
            )
        if self.config is not None:
            raise InputError(
                f"Nothing is trained here, so {option('config', '--set')} would count for nothing; leave it out."
            )


@dataclass(frozen=True)
class FreshOptions:
    """What is explained, what is kept of a text, and how it is trained."""

    data: opt.Data
    model: Trained = "minilm"
    _: KW_ONLY
    methods: opt.Methods = ("attention",)
    out: Annotated[opt.Place, Help("Folder for the runs, the rationales and the tables."), A_RUN]
    objective: Annotated[
        opt.Names, Help(OBJECTIVES, "TERMS", commas=False), Checked(__name__, "insist_on_objectives")
    ] = UNTOLD
    support: Annotated[
        Any | Sequence[Any],
        Help(SUPPORT, "MODEL", commas=False),
        Checked("veridical.model.names", "insist_on_models", places=True),
    ] = ()
    ratio: Annotated[float, Help("Share of a text's words that the rationale keeps."), opt.share] = 0.2
    extractor: Annotated[Extractor, Help(EXTRACTOR)] = "topk"
    seeds: Annotated[
        Counted | Sequence[int], Help("How many seeds (0, 1, ...), or which: 0-4. Intervals need five.")
    ] = 1
    ood: opt.Ood = ()
    limit: opt.Examples = None
    target: opt.Target = "predicted"
    config: Settings = None
    rationale_config: Annotated[
        Table, Help("The same for the trainings on rationales.", table="rationale", keys=KEYS)
    ] = None
    device: opt.Device = None
    budget: opt.Budget = None
    progress: opt.Progress = None

    def __post_init__(self) -> None:
        given = not isinstance(self.support, (list, tuple)) or bool(self.support)
        if given and self.objective != UNTOLD:
            raise InputError(
                f"The models of {option('support')} are trained already, so {option('objective')} would count for "
                "nothing; leave one of the two out."
            )
        self.settings()  # a mistake in them is told before anything is loaded

    def settings(self) -> tuple[TrainConfig, TrainConfig]:
        """Of the trainings on full text, and of those on rationales."""
        config = settings(self.config, defaults(self.model))
        return config, settings(self.rationale_config, config, where="rationale")
