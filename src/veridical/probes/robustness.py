"""`robustness`: do explanations depend on what a model learnt, and only on that? (REGEX section 4.4, tables 3 and 8)

Two tests of Zafar et al. (2021), on the overlap of the top quarter of tokens: models that differ in nothing but their
initialisation should be explained alike, and a model that learnt nothing should be explained differently. What models
do differ in is said with the result: runs of several seeds see their texts in another order and under another dropout
as well, unless they were trained with one data seed (`train.data_seed`).
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from veridical.attribution import Method, methods
from veridical.core import stored, tables
from veridical.core.errors import InputError
from veridical.core.frames import Columns, Tabular, columns_of
from veridical.core.kinds import insist_on_kind
from veridical.core.options import takes
from veridical.core.records import Example, Explained, Given
from veridical.core.registry import Choice
from veridical.core.seed import seed_of
from veridical.core.spec import base_name
from veridical.core.statistics import estimate
from veridical.data.objects import examples_of
from veridical.explanations.explain import attributions, explained, warn_of_cuts
from veridical.metric.jaccard import jaccard
from veridical.model.classifier import Classifier
from veridical.model.load import classifier_of, load
from veridical.model.target import Which, read_target
from veridical.page.snippet import told
from veridical.probes.options import RobustnessOptions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


@dataclass(frozen=True, slots=True, repr=False)
class Robustness(Tabular):
    """Every pair of models, and the mean over the pairs of each test; what the models differ in, and what the untrained
    one is."""

    COLUMNS: ClassVar[Columns] = columns_of(Overlap)  # a row per method and pair, then the tests (`b` is empty)

    models: tuple[str, ...]  # the untrained one last
    overlaps: tuple[Overlap, ...]
    tests: tuple[Overlap, ...]
    untrained: str
    compared: str
    share: float
    texts: int
    target: str

    def __repr__(self) -> str:
        return to_text(self).rstrip()

    def _repr_html_(self) -> str:
        rows = [[o.method, o.a, o.b, _shown(o), str(o.n)] for o in (*self.overlaps, *self.tests)]
        title = f"Jaccard@{100 * self.share:g}% of {self.texts} texts, {self.target} class explained"
        lead = f"{self.compared} {self.untrained}"
        return told([["method", "model", "and", "overlap", "n"], *rows], right=(4,), title=title, lead=lead)

    def _rows(self) -> tuple[Overlap, ...]:
        return (*self.overlaps, *self.tests)

    def plot(self, *, ax: Axes | None = None, figsize: tuple[float, float] | None = None) -> Axes:
        """The mean overlap in each test by method, with 95% intervals over texts: models that differ in their
        initialisation should be high, those against an untrained model low. Returns the Axes, those of `ax` or new
        ones."""
        from veridical.page.charts import Series, intervals

        series = [
            Series(name, {test.method: (test.mean, test.low, test.high) for test in self.tests if test.a == name})
            for name in dict.fromkeys(test.a for test in self.tests)
        ]
        return intervals(series, f"Jaccard@{100 * self.share:g}%, 95% interval", ax, figsize)

    def matrix(self, method: str) -> np.ndarray:
        """Mean overlaps, NaN where undefined. [models, models]"""
        means = np.eye(len(self.models))
        for pair in self.overlaps:
            if pair.method == method:
                i, j = self.models.index(pair.a), self.models.index(pair.b)
                means[i, j] = means[j, i] = np.nan if pair.mean is None else pair.mean
        return means


@takes(RobustnessOptions)
def robustness(models: Sequence[str | Path | Classifier], examples: Given, options: RobustnessOptions) -> Robustness:
    """Whether explanations depend on what a model learnt: the overlap of the top tokens between models.

    For every pair of models it is the Jaccard index of the top `share` of tokens. Models that differ in their
    initialisation alone should be explained alike, and a model that learnt nothing differently. The paper's untrained
    model is what training started from, with a new head: `minilm`, for instance.

    Args:
        models: Models of the same task: run folders, models' folders, hub ids, or what `load` returns.
        examples: The texts, in any form that `explain` takes.

    Returns:
        Every pair of models (`.overlaps`), and the mean over the pairs of each of the two tests (`.tests`).

    Example:
        >>> found = veridical.robustness(["runs/mine/seed0", "runs/mine/seed1"], texts, "attention")
        >>> [(test.b, test.mean) for test in found.tests]
    """
    insist_on_kind(models, Sequence[Any], "models")
    chosen = methods.choose_all(options.method)
    if not models:
        raise InputError("There is no model; name at least one.")
    names = _names(models)
    first = _loaded(models[0])
    texts = examples_of(examples, "robustness", labels=first.labels, multilabel=first.kind == "multi")
    which = read_target(options.target, first.labels)
    blank, about = _untrained(models[0], first, options.untrained, options.seed)
    by_model = {names[0]: _explained(first, texts, chosen, which, options)}
    for name, model in zip(names[1:], models[1:], strict=True):
        clf = _loaded(model)
        if clf.labels != first.labels:
            raise InputError(
                f"{name} has the classes {', '.join(clf.labels)}, {names[0]} has {', '.join(first.labels)}; compare "
                "models of the same task."
            )
        by_model[name] = _explained(clf, texts, chosen, which, options)
    if blank is not None:
        by_model[UNTRAINED] = _explained(blank, texts, chosen, which, options)
    overlaps, tests = [], []
    for choice in chosen:
        of_method = {name: by_method[choice.label] for name, by_method in by_model.items()}
        pairs, means = _compared(choice, of_method, options)
        overlaps += pairs
        tests += means
    differ, share = what_differs(models), options.share
    return Robustness(
        tuple(by_model), tuple(overlaps), tuple(tests), about, differ, share, len(texts), str(options.target)
    )


def _explained(
    clf: Classifier,
    examples: Sequence[Example],
    chosen: Sequence[Choice[Method]],
    which: Which,
    options: RobustnessOptions,
) -> dict[str, list[Explained]]:
    """By method, an explanation per text."""
    encoded = clf.encode(examples)
    warn_of_cuts(clf, encoded)
    return {
        choice.label: [
            replace(explained(clf, a.encoded, a.target, a.probabilities, a.probabilities), scores=a.scores)
            for a in attributions(clf, encoded, choice, which, budget=options.budget, tick=options.tick)
        ]
        for choice in chosen
    }


def _compared(
    choice: Choice[Method], by_model: Mapping[str, Sequence[Explained]], options: RobustnessOptions
) -> tuple[list[Overlap], list[Overlap]]:
    """The overlap of every pair of models by one method, and the mean over the pairs of each test."""
    pairs = list(combinations(by_model, 2))
    values = np.array(
        [
            [
                jaccard(x, y, share=options.share, level=options.level, abs=options.abs).value
                for x, y in zip(by_model[a], by_model[b], strict=True)
            ]
            for a, b in pairs
        ],
        dtype=np.float64,
    )  # [pairs, texts]; None becomes NaN
    tests = (
        (ALL_TRAINED, [UNTRAINED not in pair for pair in pairs]),
        (ALL_UNTRAINED, [UNTRAINED in pair for pair in pairs]),
    )
    return (
        [_overlap(choice, a, b, row) for (a, b), row in zip(pairs, values, strict=True)],
        [_overlap(choice, title, "", values[rows].mean(0)) for title, rows in tests if any(rows)],
    )


def _overlap(choice: Choice[Method], a: str, b: str, values: np.ndarray) -> Overlap:
    return Overlap(method=choice.label, a=a, b=b, **asdict(estimate(values)))


# -- what is compared ---------------------------------------------------------------------------------------


def what_differs(models: Sequence[str | Path | Classifier]) -> str:
    """A sentence on what tells these models apart, from the specs of their runs."""
    if len(models) < 2:
        return "There is one model, and none to compare it with."
    paths = [Path(str(model)) / "spec.json" for model in models if not isinstance(model, Classifier)]
    if len(paths) < len(models) or not all(map(os.path.exists, paths)):
        return "What tells the models apart is not known: not all of them are run folders."
    specs = [stored.read_fields(path) for path in paths]
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
        "Train them with the setting train.data_seed=0 to compare initialisations alone."
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
    blank = load(wanted, labels=clf.labels, multilabel=clf.kind == "multi", seed=seed, device=clf.device)
    blank.read_at_most(min(blank.limit, clf.limit))  # a run may have cut its texts short: the same tokens are compared
    return blank, f"The untrained model is {wanted} with a head drawn from seed {seed}."


def _began_from(source: str | Path | Classifier) -> str | None:
    """The encoder that a run folder's training began with; None of anything else. A BiLSTM begins with nothing."""
    if isinstance(source, Classifier) or not os.path.exists(Path(source) / "spec.json"):
        return None
    model = stored.read_fields(Path(source) / "spec.json").get("model")
    if not isinstance(model, str):  # a folder with a spec.json of somebody else's
        return None
    return "weights" if base_name(model) == "bilstm" else model


def _redrawn(clf: Classifier, keep_encoder: bool, seed: int) -> tuple[Classifier, str]:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed_of("untrained", seed))
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
    return classifier_of(model)


def _names(models: Sequence[str | Path | Classifier]) -> tuple[str, ...]:
    """The folders' own names where they tell the models apart, else their paths, else with their places."""
    long = [model.name if isinstance(model, Classifier) else str(model) for model in models]
    short = [Path(name).name or name for name in long]
    for names in (short, long):
        if len(set(names)) == len(names) and UNTRAINED not in names:
            return tuple(names)
    return tuple(f"{name} ({place})" for place, name in enumerate(short, 1))


# -- tables -------------------------------------------------------------------------------------------------


def to_text(result: Robustness) -> str:
    """A matrix per method, the tests under it."""
    lines = []
    for method in dict.fromkeys(pair.method for pair in result.overlaps):
        pairs = {frozenset((pair.a, pair.b)): pair for pair in result.overlaps if pair.method == method}
        lines.append(
            f"{method}: Jaccard@{100 * result.share:g}% of {result.texts} texts, {result.target} class explained"
        )
        rows = [["", *result.models]]
        for a in result.models:
            rows.append([a, *("1" if a == b else _shown(pairs[frozenset((a, b))]) for b in result.models)])
        lines.append(tables.to_text(rows, right=(), indent="  "))
        lines += [f"  {test.a}: {_shown(test)}" for test in result.tests if test.method == method]
        lines.append("")
    return "\n".join([*lines, result.compared, result.untrained]) + "\n"


def _shown(overlap: Overlap) -> str:
    mean, low, high = overlap.mean, overlap.low, overlap.high
    if mean is None:
        return "undefined"
    return f"{mean:.2f}" if low is None else f"{mean:.2f} ({low:.2f} to {high:.2f})"


def to_csv(result: Robustness) -> str:
    """A line per method and pair, then the tests, whose second model is empty."""
    return tables.to_csv((*result.overlaps, *result.tests), Overlap.__slots__)
