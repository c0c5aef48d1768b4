"""Scores of explanations: every metric of every method on every example, all questions through one scheduler.

Examples are worked on in parts, cut from their order before anything runs. With a folder each part's results are
files of their own, and what is there is not done again:

    evaluation.json                                                 of which model, texts, target, controls and seed
    attributions/<method>-<hash>/part-0000.parquet                  the exchange schema
    scores/<metric>-<hash>/<method>-<hash>/part-0000.parquet        corpus, example, ..., value, curve, error, room
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import combinations
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from veridical.attribution import Method, methods
from veridical.audits.computable import computable
from veridical.audits.evaluation import Evaluation
from veridical.audits.operator import warn_of_operators
from veridical.audits.options import PART, Draw, EvaluateOptions
from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.options import Tick, takes
from veridical.core.progress import Report, for_work
from veridical.core.readable import shown
from veridical.core.records import Attribution, Cell, Encoded, Example, Explained, Given, Score
from veridical.core.registry import Choice
from veridical.core.seed import generator
from veridical.data.objects import examples_of
from veridical.explanations.alignment import to_attributions
from veridical.explanations.exchange import read_explanations, write_explanations
from veridical.explanations.explain import attributions, explained, warn_of_cuts
from veridical.explanations.explanation import Explanation
from veridical.grid.liveness import alone
from veridical.metric import Metric, metrics
from veridical.model.ask import Asker, ask, predict
from veridical.model.classifier import Classifier
from veridical.model.load import classifier_of
from veridical.model.target import Which, read_target


@takes(EvaluateOptions)
def evaluate(clf: Any, examples: Given, options: EvaluateOptions) -> Evaluation:
    """Explain texts with every method, and score every explanation with every metric.

    `controls` are what diagnosticity compares with: a method's own scores shuffled among the tokens, or Gaussian draws.
    With `metrics=None` nothing is scored: the explanations are kept. A metric that cannot be computed on these texts is
    left out with a warning; where none can, that is an error.

    Args:
        clf: What `load` returns, or anything that it takes: a folder, a hub id, a pipeline.
        examples: The texts, in any form that `explain` takes. Metrics of plausibility need their rationales.

    Returns:
        A score for each text, method and metric: `.table()` has the means, `.estimates` their 95% intervals,
        `.to_pandas()` every score. It displays itself in a notebook.

    Example:
        >>> veridical.evaluate(clf, texts, ["attention", "lime"], "sufficiency").table()
    """
    clf = classifier_of(clf)
    texts = examples_of(examples, "evaluate", labels=clf.labels, multilabel=clf.kind == "multi")
    if twice := [id for id, times in Counter(text.id for text in texts).items() if times > 1]:
        raise InputError(f"Two examples have the id {twice[0]!r}, by which scores are kept; give every one its own.")
    job = _Job(
        clf=clf,
        methods=_methods(options.methods),
        metrics=_metrics(options.metrics or ()),
        which=read_target(options.target, clf.labels),
        controls=tuple(options.controls),
        orders=options.orders,
        corpus=options.corpus,
        seed=options.seed,
        folder=None if options.out is None else Path(options.out),
        weights=options.weights,
        part=options.part,
        budget=options.budget,
    )
    foreign = _by_method(options.explanations, texts)
    _check(job, foreign)
    if options.parts is None:  # who works on some parts has chosen by all of them
        warn_of_operators(clf, job.metrics)
        job = replace(job, metrics=computable(job.metrics, texts, len(job.methods) + len(foreign), above=3))
    numbers = range(math.ceil(len(texts) / options.part)) if options.parts is None else options.parts
    if job.folder is None:
        return _evaluated(job, texts, foreign, numbers, options.tick, options.progress)
    # Who does some parts alone shares the folder with those who do others.
    with alone(job.folder) if options.parts is None else nullcontext():
        _claim(job.folder, job, texts)
        return _evaluated(job, texts, foreign, numbers, options.tick, options.progress)


@dataclass(frozen=True)
class _Job:
    clf: Classifier
    methods: Sequence[Choice[Method]]
    metrics: Sequence[Choice[Metric]]
    which: Which
    controls: tuple[Draw, ...]
    orders: bool
    corpus: str
    seed: int
    folder: Path | None
    weights: str | None
    part: int
    budget: int | None


def _evaluated(
    job: _Job,
    texts: Sequence[Example],
    foreign: Mapping[str, Sequence[Attribution]],
    numbers: Iterable[int],
    tick: Tick | None,
    progress: bool | None,
) -> Evaluation:
    """Part by part, explained by our methods and scored with the explanations made elsewhere."""
    places = {choice.label: _place(choice) for choice in job.methods}
    places |= {name: f"{store.slug(name)}-{_content(rows)}" for name, rows in foreign.items()}
    of_part = {number: slice(number * job.part, (number + 1) * job.part) for number in numbers}
    encoded = {number: job.clf.encode(texts[rows]) for number, rows in of_part.items()}
    warn_of_cuts(job.clf, [text for part in encoded.values() for text in part], above=4)
    cells: list[Cell] = []
    by_method: dict[str, list[Attribution]] = {}
    count = sum(map(len, encoded.values()))
    with Report("Evaluating", count, progress=for_work(progress, count)) as report:
        for number, part in encoded.items():
            ours = {choice.label: _attributions(job, choice, part, number) for choice in job.methods}
            both = {**ours, **{name: rows[of_part[number]] for name, rows in foreign.items()}}
            cells += _cells(job, both, places, part, number)
            for name, rows in both.items():
                by_method.setdefault(name, []).extend(rows)
            report.advance(steps=len(part))
            if tick is not None:
                tick(len(part))
    return Evaluation(tuple(cells), {name: tuple(rows) for name, rows in by_method.items()})


def _check(job: _Job, foreign: Mapping[str, Sequence[Attribution]]) -> None:
    """Insist on something to evaluate, and on names that tell explanations apart."""
    if not job.methods and not foreign:
        raise InputError("There is no method to evaluate; name at least one, such as attention.")
    if twice := [choice.label for choice in job.methods if choice.label in foreign]:
        raise InputError(f"The explanations made elsewhere are called {twice[0]!r}, as one of ours is; rename them.")


def _methods(specs: str | Sequence[str]) -> list[Choice[Method]]:
    return methods.choose_all(specs)


def _metrics(specs: str | Sequence[str]) -> list[Choice[Metric]]:
    return metrics.choose_all(specs)


def _place(choice: Choice[Any]) -> str:
    """A folder name for a method or metric with its options: readable, unique by hash."""
    identity = {"name": choice.entry.name, "options": dict(choice.options), "version": choice.entry.version}
    return f"{choice.entry.name}-{store.stable_hash(identity)}"


def _content(rows: Sequence[Attribution]) -> str:
    """A hash of explanations made elsewhere: a name alone does not say that they are still the same."""
    return store.stable_hash([[a.example.id, a.encoded.ids, a.target, a.scores.tolist()] for a in rows])


def _claim(folder: Path, job: _Job, examples: Sequence[Example]) -> None:
    """What is in a folder is of one model, of these texts, and so on; other methods and metrics add to it."""
    spec = {
        "model": job.weights or job.clf.fingerprint(),
        "texts": store.stable_hash(examples),
        "target": job.which,
        "controls": job.controls,
        "corpus": job.corpus,
        "seed": job.seed,
        **({"orders": True} if job.orders else {}),
        **({"part": job.part} if job.part != PART else {}),
    }
    path = folder / "evaluation.json"
    store.clean(folder)
    if path.exists():
        store.insist(path, spec)
    else:
        store.write_json(path, spec)


def _file(folder: Path, number: int) -> Path:
    return folder / f"part-{number:04d}.parquet"


# -- explanations -------------------------------------------------------------------------------------------


def _attributions(job: _Job, choice: Choice[Method], part: Sequence[Encoded], number: int) -> list[Attribution]:
    path = None if job.folder is None else _file(job.folder / "attributions" / _place(choice), number)
    if path is not None and path.exists():
        return to_attributions(job.clf, read_explanations(path), [e.example for e in part])
    rows = attributions(job.clf, part, choice, job.which, budget=job.budget)
    if path is not None:
        write_explanations(path, [Explanation.of(job.clf, row) for row in rows])
    return rows


def _by_method(given: Sequence[Attribution], examples: Sequence[Example]) -> dict[str, list[Attribution]]:
    """Explanations made elsewhere, in the order of the examples, one for each."""
    ordered: dict[str, list[Attribution]] = {}
    for name in dict.fromkeys(a.method for a in given):
        rows = [a for a in given if a.method == name]
        by_id = {a.example.id: a for a in rows}
        if len(by_id) < len(rows):
            twice = next(key for key, count in Counter(a.example.id for a in rows).items() if count > 1)
            raise InputError(f"The explanations {name!r} have example {twice!r} twice; give one for every example.")
        missing = [e.id for e in examples if e.id not in by_id]
        if missing:
            raise InputError(
                f"The explanations {name!r} lack {len(missing)} of {len(examples)} examples, the first {missing[0]!r}; "
                "give one for every example that is evaluated."
            )
        ordered[name] = [by_id[e.id] for e in examples]
    return ordered


# -- scores -------------------------------------------------------------------------------------------------


def _cells(
    job: _Job,
    explanations: Mapping[str, Sequence[Attribution]],
    places: Mapping[str, str],
    part: Sequence[Encoded],
    number: int,
) -> list[Cell]:
    """The part's cells: those on file are read, all others are worked out together."""
    files: dict[tuple[str, str], Path | None] = {}
    pairs = {pair_name(a, b): (places[a], places[b]) for a, b in combinations(explanations, 2)}
    for metric in job.metrics:
        for method in _subjects(metric, explanations):
            place = f"pair-{store.stable_hash(pairs[method])}" if method in pairs else places[method]
            folder = None if job.folder is None else job.folder / "scores" / _place(metric) / place
            files[metric.label, method] = None if folder is None else _file(folder, number)
    # What is worked out together shares batches, whose make-up shows in the last bit. So a part that was interrupted
    # between its files is worked out again as it was, which the journal tells.
    journal = None if job.folder is None else job.folder / "scores" / f"part-{number:04d}.writing.json"
    begun = [tuple(key) for key in store.read_json(journal)] if journal is not None and journal.exists() else []
    missing = [key for key, path in files.items() if key in begun or path is None or not path.exists()]
    worked = _work(job, explanations, part, missing)
    if journal is not None and worked:
        store.write_json(journal, list(worked))
    cells: list[Cell] = []
    for key, path in files.items():
        if key in worked:
            if path is not None:
                store.write_parquet(path, columns(worked[key]))
            cells += worked[key]
        else:
            assert path is not None
            cells += read_cells(path)
    if journal is not None:
        store.remove_file(journal)
    return cells


def _subjects(metric: Choice[Metric], explanations: Mapping[str, Any]) -> list[str]:
    """What a metric is a metric of: each method, or each pair of them."""
    if "pair" in metric.entry.needs:
        return [pair_name(a, b) for a, b in combinations(explanations, 2)]
    return list(explanations)


def pair_name(a: str, b: str) -> str:
    """How a pair of methods is written in a cell."""
    return f"{a} ~ {b}"


def _work(
    job: _Job,
    explanations: Mapping[str, Sequence[Attribution]],
    part: Sequence[Encoded],
    missing: Sequence[tuple[str, str]],
) -> dict[tuple[str, str], list[Cell]]:
    if not missing:
        return {}
    chosen = {metric.label: metric for metric in job.metrics}
    full = predict(job.clf, part, budget=job.budget)

    def seen(attribution: Attribution, row: int, scores: np.ndarray) -> Explained:
        plain = explained(job.clf, part[row], attribution.target, full.logits[row], full.probabilities[row])
        return replace(plain, scores=scores, seed=job.seed)

    pairs = {pair_name(a, b): (a, b) for a, b in combinations(explanations, 2)}  # a name may hold anything
    results: dict[tuple[str, str], list[Cell]] = {key: [] for key in missing}
    askers: list[Asker[Score]] = []
    waiting: list[tuple[tuple[str, str], str, str]] = []  # key, example, control
    for key in missing:
        metric = chosen[key[0]]
        if "pair" in metric.entry.needs:
            for row, e in enumerate(part):
                held = (explanations[name][row] for name in pairs[key[1]])
                pair = (seen(attribution, row, attribution.scores) for attribution in held)
                score = _sound(metric.entry.run(*pair, **metric.options), key[0])
                results[key].append(Cell(job.corpus, e.example.id, key[1], key[0], score))
            continue
        by_orders = job.orders and metric.entry.of_order(metric.options)
        held = metric.entry.kind in ("faithfulness", "truth") and not by_orders
        controls = ("", *job.controls) if held else ("",)
        for control in controls:
            for row, attribution in enumerate(explanations[key[1]]):
                if not _applies(metric.entry, attribution.example):
                    continue
                ex = seen(attribution, row, _scores(job, attribution, control))
                if metric.entry.asks:
                    askers.append(metric.entry.run(ex, **metric.options))
                    waiting.append((key, attribution.example.id, control))
                else:
                    score = _sound(metric.entry.run(ex, **metric.options), key[0])
                    results[key].append(Cell(job.corpus, attribution.example.id, key[1], key[0], score, control))
    for (key, example, control), (score, _) in zip(waiting, ask(job.clf, askers, budget=job.budget), strict=True):
        results[key].append(Cell(job.corpus, example, key[1], key[0], _sound(score, key[0]), control))
    return results


def _sound(score: Any, metric: str) -> Score:
    """Refuse what a metric of somebody's own may return in the place of a score."""
    value = score.value if isinstance(score, Score) else math.nan
    if value is not None and not (isinstance(value, Real) and math.isfinite(value)):
        raise InputError(f"{metric} returned {shown(score)}; it must be a Score of a finite number, or of None.")
    return score


def _applies(metric: Metric, example: Example) -> bool:
    return "rationale" not in metric.needs or bool(example.rationale)


def _scores(job: _Job, attribution: Attribution, control: str) -> np.ndarray:
    """The explanation's own scores, or random ones in their place, from a seed of their own."""
    if not control:
        return attribution.scores
    free = np.flatnonzero(attribution.encoded.free)
    draw = generator("control", control, job.seed, attribution.method, attribution.example.id, attribution.encoded.ids)
    scores = np.zeros_like(attribution.scores)
    shuffled = attribution.scores[draw.permutation(free)] if control == "permutation" else draw.normal(size=len(free))
    scores[free] = shuffled
    return scores


# -- cells on file ------------------------------------------------------------------------------------------


def columns(cells: Sequence[Cell]) -> Any:
    """Cells as an Arrow table."""
    import pyarrow

    text, number = pyarrow.string(), pyarrow.float64()
    return pyarrow.table(
        {
            "corpus": pyarrow.array([c.corpus for c in cells], text),
            "example": pyarrow.array([c.example for c in cells], text),
            "method": pyarrow.array([c.method for c in cells], text),
            "control": pyarrow.array([c.control for c in cells], text),
            "metric": pyarrow.array([c.metric for c in cells], text),
            "value": pyarrow.array([c.score.value for c in cells], number),
            "curve": pyarrow.array([list(c.score.curve) for c in cells], pyarrow.list_(number)),
            "error": pyarrow.array([c.score.error for c in cells], number),
            "room": pyarrow.array([c.score.room for c in cells], number),
        }
    )


def read_cells(path: str | Path) -> list[Cell]:
    """The cells of a scores file."""
    return [
        Cell(
            corpus=row["corpus"],
            example=row["example"],
            method=row["method"],
            metric=row["metric"],
            score=Score(row["value"], tuple(row["curve"]), row["error"], row.get("room")),  # no room before it was kept
            control=row["control"],
        )
        for row in store.read_parquet(path).to_pylist()
    ]
