"""The search for a term's weight (or any other option): train with each value, judge by the development set.

SaLoss (appendix C) trains with lambda = 1e-2, 1e-3 and 1e-4 and keeps the model whose explanations need the fewest
tokens removed to change a decision, on the development set. Here that is the mean of `decision_flip` over the paper's
four methods, over the texts and over the seeds; any other metric, or a score of the predictions, may decide instead.

    DIR/<objective>/seed0/             a run folder (train.py), in it
    DIR/<objective>/seed0/dev-<hash>/  the explanations of the dev texts and their scores (evaluate.py)
    DIR/<select>.json  <select>.csv    the table; all else is reused by a search with another metric

Interrupted at any moment, the same call goes on: runs and scores are each resumed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from veridical.attribution import methods as all_methods
from veridical.audits.computable import hindrance
from veridical.audits.evaluate import evaluate
from veridical.core import store, tables
from veridical.core.errors import InputError, unknown
from veridical.core.frames import Columns, Tabular
from veridical.core.options import takes
from veridical.core.progress import Report
from veridical.core.records import Dataset, Example
from veridical.core.registry import Choice
from veridical.core.spec import Spec, base_name, listed
from veridical.core.statistics import mean
from veridical.data import load_data
from veridical.data.split import sample
from veridical.metric import Direction, Metric, metrics
from veridical.model.accuracy import BETTER
from veridical.model.load import load
from veridical.page.snippet import told
from veridical.training.config import TrainConfig
from veridical.training.options import SearchOptions
from veridical.training.term import label
from veridical.training.term import objective as read_objective
from veridical.training.train import Run, train

if TYPE_CHECKING:
    from matplotlib.axes import Axes

REFERENCE = "random"  # shown beside them: a model that is easily flipped by anything has no better explanations


@dataclass(frozen=True)
class Candidate:
    """One objective that was tried; figures are means over the seeds."""

    objective: str
    value: float  # by which it is judged
    by_method: Mapping[str, float | None]  # the metric of each method, the reference included
    dev: Mapping[str, float | None]  # scores of the predictions on the dev split: macro_f1, accuracy, ...
    folders: tuple[Path, ...]  # a run each


@dataclass(frozen=True, repr=False)
class Search(Tabular):
    """What a search found: the candidates in the order they were asked for, and which is best."""

    # A row per candidate: behind the objective what it is judged by, each method's figure and the dev scores.
    COLUMNS: ClassVar[Columns] = {"objective": str}

    folder: Path
    select: str
    better: Direction
    texts: int  # dev texts that were explained; 0 where predictions decide
    candidates: tuple[Candidate, ...]
    best: int

    @property
    def winner(self) -> Candidate:
        return self.candidates[self.best]

    @property
    def sentence(self) -> str:
        """What decides, and on what."""
        if not self.texts:
            return f"{self.select} of the dev predictions ({self.better} is better)."
        names = [method for method in self.candidates[0].by_method if method != REFERENCE]
        return (
            f"{self.select} ({self.better} is better) on {self.texts} dev texts, the mean of {', '.join(names)}; "
            "random explanations beside it for reference, macro_f1 of the dev predictions."
        )

    def __repr__(self) -> str:
        cells = candidate_cells(self)
        table = tables.to_text(cells, right=range(1, len(cells[0]) - 1))
        return "\n".join([table, self.sentence, *map(str, self.winner.folders)])

    def _repr_html_(self) -> str:
        cells = candidate_cells(self)
        return told(cells, right=range(1, len(cells[0]) - 1), title=str(self.folder), lead=self.sentence)

    def _rows(self) -> list[dict[str, Any]]:
        return to_rows(self)

    def plot(self, *, ax: Axes | None = None, figsize: tuple[float, float] | None = None) -> Axes:
        """What every candidate is judged by, and where explanations decide each method's figure. Returns the Axes,
        those of `ax` or new ones."""
        from veridical.page.charts import Series, intervals

        series = [Series("judged by", {c.objective: (c.value, None, None) for c in self.candidates})]
        for method in self.candidates[0].by_method:
            points = {c.objective: (c.by_method[method], None, None) for c in self.candidates}
            series.append(Series(method, points))
        return intervals(series, f"{self.select} ({self.better} is better)", ax, figsize)


@takes(SearchOptions)
def search(options: SearchOptions) -> Search:
    """Train with every value and return the candidates, the best of them marked.

    Several of `over` are tried in all combinations, and a term that `objective` does not name is added to it. `select`
    is a metric (`decision_flip:by=mask`), or a score of the dev predictions (macro_f1, accuracy, auroc, loss,
    calibration_error). Of equals the first is taken.

    Returns:
        The candidates in the order they were asked for; `.winner` is the best, and its `.folders` are its runs.

    Example:
        >>> found = veridical.search("hutto/movies", "minilm", over="saloss.weight=0.1,0.01", out="search")
        >>> found.winner.objective
    """
    model, seeds, over, progress = options.model, options.seeds, options.over, options.progress
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise InputError("A search runs in one process, but several were started; leave out `accelerate launch`.")
    if options.bound is not None:
        raise InputError(f"A search tries weighted sums, but the bound {options.bound} was given too; leave one out.")
    tried = objectives(options.objective, [over] if isinstance(over, str) else over)
    judge = _judge(options.select)
    # A mistake in one is told before anything is trained.
    methods = [choice.label for choice in all_methods.choose_all(options.methods)]
    config = options.settings()
    dataset = load_data(options.data, limit=options.limit)
    examples = _dev(dataset, options.texts)
    why = hindrance(judge.metric.entry, examples, 2) if judge.metric is not None else ""
    if why:
        raise InputError(f"{judge.name} is undefined on the dev texts: {why}; select by another metric.")
    folder = Path(options.out) if options.out is not None else _folder(dataset, model, tried, config)
    same: dict[str, Any] = {"config": config, "report_to": options.report_to, "progress": progress}
    candidates = []
    for spec in tried:
        runs, found = [], []
        for seed in seeds:
            place = folder / _named(spec) / f"seed{seed}"
            runs.append(train(dataset, model, objective=spec, seed=seed, out=place, **same))
            found.append(_measure(runs[-1], judge, methods, examples, progress) if judge.metric else {})
        candidates.append(_candidate(spec, runs, found, judge))
    sign = 1 if judge.better == "higher" else -1
    best = max(range(len(candidates)), key=lambda i: sign * candidates[i].value)
    made = Search(folder, judge.name, judge.better, len(examples) if judge.metric else 0, tuple(candidates), best)
    store.write_json(folder / f"{store.slug(judge.name)}.json", made)
    store.write_text(folder / f"{store.slug(judge.name)}.csv", tables.to_csv(to_rows(made)))
    return made


# -- what is tried ------------------------------------------------------------------------------------------


def objectives(base: str, over: Sequence[str]) -> list[str]:
    """The objective with every combination of the values: `saloss.weight=1e-2,1e-3` gives two."""
    axes = [_axis(one) for one in over]
    if not axes:
        raise InputError("There is nothing to search; write it like saloss.weight=1e-2,1e-3,1e-4.")
    found = []
    for values in product(*(axis[2] for axis in axes)):
        specs = [Spec.read(text) for text in listed(base)]
        for (name, option, _), value in zip(axes, values, strict=True):
            specs = _with(specs, name, option, value)
        text = ",".join(spec.write() for spec in specs)
        found.append(label(read_objective(text)))  # reads, and so checks, every option
    return list(dict.fromkeys(found))


def _axis(text: str) -> tuple[str, str, list[str]]:
    match = re.fullmatch(r"\s*(\w+)\.(\w+)\s*=(.*)", text, re.DOTALL)
    values = listed(match[3]) if match else []
    if match is None or not values:
        raise InputError(f"{text!r} is not TERM.OPTION=value,value; write it like saloss.weight=1e-2,1e-3,1e-4.")
    return match[1], match[2], values


def _with(specs: Sequence[Spec], name: str, option: str, value: str) -> list[Spec]:
    """The terms of an objective with one option of one term set; a term that is not there is added."""
    if all(spec.name != name for spec in specs):
        specs = [*specs, Spec(name)]
    return [Spec(name, {**spec.options, option: value}) if spec.name == name else spec for spec in specs]


def _named(spec: str) -> str:
    """An objective as a folder: readable, and where that would cut it short, unique by its hash."""
    return store.slug(spec) if len(spec) <= 60 else f"{store.slug(spec)[:60]}-{store.stable_hash(spec)}"


def _folder(dataset: Dataset, model: str, tried: Sequence[str], config: TrainConfig) -> Path:
    name = store.stable_hash([dataset.splits, tried, config])
    return Path("runs") / store.slug(dataset.name) / store.slug(model) / f"search-{name}"


# -- how it is judged ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Judge:
    name: str
    better: Direction
    metric: Choice[Metric] | None  # none: a score of the predictions


def _judge(select: str) -> _Judge:
    if select in BETTER:
        return _Judge(select, BETTER[select], None)
    if base_name(select) not in metrics:
        raise unknown("metric or score to select by", select, [*BETTER, *(metric.name for metric in metrics)])
    choice = metrics.choose(select)
    if "pair" in choice.entry.needs:
        raise InputError(f"{select} compares two explanations, so it cannot judge a model; select by another metric.")
    return _Judge(choice.label, choice.entry.reading(choice.options)[0], choice)


def _dev(dataset: Dataset, texts: int) -> tuple[Example, ...]:
    if not dataset.splits.get("dev"):
        raise InputError(f"{dataset.name} has no dev split to search on; add one, or train without a search.")
    return tuple(sample(dataset.splits["dev"], texts, 0))


def _measure(
    run: Run, judge: _Judge, methods: Sequence[str], examples: Sequence[Example], progress: bool | None
) -> dict[str, float | None]:
    """The metric of every method and of the reference on the dev texts."""
    specs = list(dict.fromkeys([*methods, REFERENCE]))
    with Report(f"Explaining {run.folder.parent.name}, seed {run.seed}", len(examples), progress=progress) as report:
        found = evaluate(
            load(run.folder),
            examples,
            specs,
            [judge.name],
            out=run.folder / f"dev-{store.stable_hash(examples)}",
            tick=lambda count: report.advance(steps=count),
        )
    return {method: found.mean(judge.name, method) for method in found.attributions}


def _candidate(spec: str, runs: Sequence[Run], found: Sequence[Mapping[str, float | None]], judge: _Judge) -> Candidate:
    # A mean over some seeds or methods would not compare with one over all.
    dev = {name: mean((run.scores["dev"][name] for run in runs), whole=True) for name in runs[0].scores["dev"]}
    by_method = {method: mean((one[method] for one in found), whole=True) for method in found[0]}
    judged = [value for method, value in by_method.items() if method != REFERENCE or len(by_method) == 1]
    value = dev[judge.name] if judge.metric is None else mean(judged, whole=True)
    if value is None:
        raise InputError(
            f"{judge.name} is undefined on the dev texts of the run {runs[0].folder}; select by another metric."
        )
    return Candidate(spec, value, by_method, dev, tuple(run.folder for run in runs))


# -- as a table ---------------------------------------------------------------------------------------------


def to_rows(found: Search) -> list[dict[str, Any]]:
    """A row per candidate: objective, the figure it is judged by, each method's, dev macro-F1, whether it is best."""
    return [
        {
            "objective": one.objective,
            found.select: one.value,
            **{f"{found.select} of {method}": value for method, value in one.by_method.items()},
            **{f"dev {name}": value for name, value in one.dev.items() if name != found.select},
            "best": "best" if place == found.best else "",
        }
        for place, one in enumerate(found.candidates)
    ]


def candidate_cells(found: Search) -> list[list[str]]:
    """What people are shown: a line per candidate, the best marked at its end."""
    measured = bool(found.candidates[0].by_method)
    columns = [
        found.select,
        *(["of random"] if measured else []),
        *(["macro_f1"] if found.select != "macro_f1" else []),
    ]
    cells = [["objective", *columns, ""]]
    for place, candidate in enumerate(found.candidates):
        values = {
            "macro_f1": candidate.dev.get("macro_f1"),
            "of random": candidate.by_method.get(REFERENCE),
            found.select: candidate.value,
        }
        shown = ("undefined" if (value := values[name]) is None else f"{value:.3f}" for name in columns)
        cells.append([candidate.objective, *shown, "best" if place == found.best else ""])
    return cells
