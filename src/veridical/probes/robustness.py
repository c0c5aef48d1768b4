"""`robustness`: do explanations depend on what a model learnt, and only on that? (REGEX section 4.4, tables 3 and 8)

Two tests of Zafar et al. (2021), on the overlap of the top quarter of tokens: models that differ in nothing but their
initialisation should be explained alike, and a model that learnt nothing should be explained differently. What models
do differ in is said with the result: runs of several seeds see their texts in another order and under another dropout
as well, unless they were trained with one data seed (`train.data_seed`).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch

from veridical.attribution import Method, methods
from veridical.core import store, tables
from veridical.core.errors import InputError
from veridical.core.options import takes
from veridical.core.records import Explained, Given
from veridical.core.registry import Choice
from veridical.core.seed import seed_of
from veridical.core.spec import base_name
from veridical.core.statistics import estimate
from veridical.data.objects import examples_of
from veridical.explanations.explain import attributions, explained, warn_of_cuts
from veridical.metric.jaccard import jaccard
from veridical.model.classifier import Classifier
from veridical.model.load import load
from veridical.model.target import read_target
from veridical.probes.options import RobustnessOptions

UNTRAINED = "untrained"
ALL_TRAINED, ALL_UNTRAINED = "different initialisation", "untrained model"  # the two tests, over all their pairs


@dataclass(frozen=True, slots=True)
class Overlap:
    """Mean overlap of two models' explanations, 95% interval over texts (none under five)."""

    method: str
    a: str
    b: str
    mean: float | None
    low: float | None
    high: float | None
    n: int
    undefined: int


@dataclass(frozen=True, slots=True)
class Robustness:
    """Every pair of models, and the mean over the pairs of each test; what the models differ in, and what the untrained
    one is."""

    models: tuple[str, ...]  # the untrained one last
    overlaps: tuple[Overlap, ...]
    tests: tuple[Overlap, ...]
    untrained: str
    compared: str
    share: float
    texts: int
    target: str

    def matrix(self, method: str) -> np.ndarray:
        """Mean overlaps, NaN where undefined. [models, models]"""
        found = np.eye(len(self.models))
        for one in self.overlaps:
            if one.method == method:
                i, j = self.models.index(one.a), self.models.index(one.b)
                found[i, j] = found[j, i] = np.nan if one.mean is None else one.mean
        return found


@takes(RobustnessOptions)
def robustness(models: Sequence[str | Path | Classifier], examples: Given, options: RobustnessOptions) -> Robustness:
    """Jaccard index of the top `share` of tokens between the explanations of every pair of models.

    The paper's untrained model is what training started from, with a new head: `minilm`, for instance.
    """
    chosen = methods.choose_all(options.method)
    target, share = options.target, options.share
    if not models:
        raise InputError("There is no model; name at least one.")
    names = _names(models)
    first = _loaded(models[0])
    texts = examples_of(examples, "robustness", labels=first.labels, multilabel=first.kind == "multi")
    if not texts:
        raise InputError("There are no texts to explain; give at least one.")
    which = read_target(target, first.labels)
    blank, about = _untrained(models[0], first, options.untrained, options.seed)
    found: dict[tuple[str, str], list[Explained]] = {}  # method, model -> an explanation per text

    def explain(name: str, clf: Classifier) -> None:
        if clf.labels != first.labels:
            raise InputError(
                f"{name} has the classes {', '.join(clf.labels)}, {names[0]} has {', '.join(first.labels)}; compare "
                "models of the same task."
            )
        encoded = clf.encode(texts)
        warn_of_cuts(clf, encoded)
        for choice in chosen:
            made = attributions(clf, encoded, choice, which, budget=options.budget, tick=options.tick)
            found[choice.label, name] = [
                replace(explained(clf, a.encoded, a.target, a.probabilities, a.probabilities), scores=a.scores)
                for a in made
            ]

    explain(names[0], first)
    for name, model in zip(names[1:], models[1:], strict=True):
        explain(name, _loaded(model))
    if blank is not None:
        explain(UNTRAINED, blank)
        names = (*names, UNTRAINED)
    pairs = list(combinations(names, 2))
    overlaps, tests = [], []
    for choice in chosen:
        values = np.array(
            [
                [
                    jaccard(a, b, share=share, level=options.level, abs=options.abs).value
                    for a, b in zip(found[choice.label, one], found[choice.label, other], strict=True)
                ]
                for one, other in pairs
            ],
            dtype=np.float64,
        )  # [pairs, texts]; None becomes NaN
        overlaps += [_overlap(choice, a, b, row) for (a, b), row in zip(pairs, values, strict=True)]
        for title, rows in (
            (ALL_TRAINED, [UNTRAINED not in pair for pair in pairs]),
            (ALL_UNTRAINED, [UNTRAINED in pair for pair in pairs]),
        ):
            if any(rows):
                tests.append(_overlap(choice, title, "", values[rows].mean(0)))
    differ = what_differs(models)
    return Robustness(names, tuple(overlaps), tuple(tests), about, differ, share, len(texts), str(target))


def _overlap(choice: Choice[Method], a: str, b: str, values: np.ndarray) -> Overlap:
    return Overlap(method=choice.label, a=a, b=b, **asdict(estimate(values)))


# -- what is compared ---------------------------------------------------------------------------------------


def what_differs(models: Sequence[str | Path | Classifier]) -> str:
    """A sentence on what tells these models apart, from the specs of their runs."""
    if len(models) < 2:
        return "There is one model, and none to compare it with."
    paths = [Path(str(model)) / "spec.json" for model in models if not isinstance(model, Classifier)]
    if len(paths) < len(models) or not all(path.exists() for path in paths):
        return "What tells the models apart is not known: not all of them are run folders."
    specs = [store.read_json(path) for path in paths]
    seeds = [spec.get("seed") for spec in specs]
    data_seeds = [spec.get("train", {}).get("data_seed", seed) for spec, seed in zip(specs, seeds, strict=True)]
    others = [
        key
        for key in sorted({key for spec in specs for key in spec} - {"seed"})
        if any(_without_data_seed(spec.get(key)) != _without_data_seed(specs[0].get(key)) for spec in specs)
    ]
    if others:
        return (
            f"The models differ in more than their seeds: in {', '.join(others)}. This is not a test of initialisation."
        )
    listed = ", ".join(map(str, dict.fromkeys(seeds)))
    if len(set(data_seeds)) == 1:
        return (
            f"The models differ in their initialisation alone (seeds {listed}): order of texts, dropout and noise were "
            f"those of data seed {data_seeds[0]} for all."
        )
    return (
        f"The models differ in their initialisation, in the order of their texts and in dropout (seeds {listed}). "
        "Train them with --set train.data_seed=0 to compare initialisations alone."
    )


def _without_data_seed(part: Any) -> Any:
    return {key: value for key, value in part.items() if key != "data_seed"} if isinstance(part, dict) else part


# -- the model that learnt nothing --------------------------------------------------------------------------


def _untrained(
    source: str | Path | Classifier, clf: Classifier, wanted: str | None, seed: int
) -> tuple[Classifier | None, str]:
    """The untrained model and a sentence on what it is."""
    if wanted == "none":
        return None, "There is no untrained model."
    if wanted is None:
        wanted = _began_from(source) or "head"
    if wanted in ("head", "weights"):
        return _redrawn(clf, wanted == "head", seed)
    blank = load(wanted, labels=clf.labels, multilabel=clf.kind == "multi", seed=seed)
    blank.read_at_most(min(blank.limit, clf.limit))  # a run may have cut its texts short: the same tokens are compared
    return blank, f"The untrained model is {wanted} with a head drawn from seed {seed}."


def _began_from(source: str | Path | Classifier) -> str | None:
    """The encoder that a run folder's training began with; None of anything else. A BiLSTM begins with nothing."""
    if isinstance(source, Classifier) or not (Path(source) / "spec.json").exists():
        return None
    model = str(store.read_json(Path(source) / "spec.json")["model"])
    return "weights" if base_name(model) == "bilstm" else model


def _redrawn(clf: Classifier, keep_encoder: bool, seed: int) -> tuple[Classifier, str]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_of("untrained", seed))
        model = type(clf.model)(copy.deepcopy(clf.model.config)).to(clf.device).eval()
    what = "with all weights"
    if keep_encoder:
        if clf.model.base_model is clf.model:
            raise InputError(
                f"A {clf.family} model has no encoder apart from its head; take untrained=weights instead of head."
            )
        model.base_model.load_state_dict(clf.model.base_model.state_dict())
        what = "with its head"
    return Classifier(model, clf.tokenizer, name=UNTRAINED, trained=False), (
        f"The untrained model is {clf.name} {what} drawn anew from seed {seed}."
    )


# -- arguments ----------------------------------------------------------------------------------------------


def _loaded(model: str | Path | Classifier) -> Classifier:
    return model if isinstance(model, Classifier) else load(model)


def _names(models: Sequence[str | Path | Classifier]) -> tuple[str, ...]:
    """The folders' own names where they tell the models apart, else their paths, else with their places."""
    long = [model.name if isinstance(model, Classifier) else str(model) for model in models]
    short = [Path(name).name or name for name in long]
    for names in (short, long):
        if len(set(names)) == len(names) and UNTRAINED not in names:
            return tuple(names)
    return tuple(f"{name} ({place})" for place, name in enumerate(short, 1))


# -- tables -------------------------------------------------------------------------------------------------


def to_text(found: Robustness) -> str:
    """A matrix per method, the tests under it."""
    lines = []
    for method in dict.fromkeys(one.method for one in found.overlaps):
        own = {frozenset((o.a, o.b)): o for o in found.overlaps if o.method == method}
        lines.append(f"{method}: Jaccard@{100 * found.share:g}% of {found.texts} texts, {found.target} class explained")
        rows = [["", *found.models]]
        for a in found.models:
            rows.append([a, *("1" if a == b else _shown(own[frozenset((a, b))]) for b in found.models)])
        lines.append(tables.to_text(rows, right=(), indent="  "))
        lines += [f"  {one.a}: {_shown(one)}" for one in found.tests if one.method == method]
        lines.append("")
    return "\n".join([*lines, found.compared, found.untrained]) + "\n"


def _shown(one: Overlap) -> str:
    if one.mean is None:
        return "undefined"
    return f"{one.mean:.2f}" if one.low is None else f"{one.mean:.2f} ({one.low:.2f} to {one.high:.2f})"


def to_csv(found: Robustness) -> str:
    """A line per method and pair, then the tests, whose second model is empty."""
    return tables.to_csv((*found.overlaps, *found.tests), Overlap.__slots__)
