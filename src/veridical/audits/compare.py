"""Tables over runs: what several audits found, side by side, with intervals and tests between models.

Runs whose models have the same name but for the seed (`...-seed3-7f2c91ab`) are seeds of one model. With one run an
interval is over its texts; with several it is over the runs' means, and from five on: below that the values are
shown and no interval. Models are compared over seeds where both have at least two, else over texts, in pairs where the
texts are the same. How alike two
models, or two seeds of one, explain the same texts is read from the explanations that the audits stored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations, product
from pathlib import Path

import numpy as np

from veridical.audits.changes import SHARED
from veridical.audits.compare_latex import to_latex
from veridical.audits.compare_table import MEASURES, Agreement, Entry, Table, Test, Unit, to_csv, to_text
from veridical.audits.filing import RECORD, read_record
from veridical.audits.likeness import Likeness, Readings, compared, likeness, stored
from veridical.audits.oracles import ORACLES
from veridical.audits.pairs import CHANCE
from veridical.audits.record import SUMMARY, AuditSummary, CorpusFacts, read_summary
from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.readable import shown
from veridical.core.spec import base_name
from veridical.core.statistics import Estimate, between, estimates, holm, mean, number, signed_rank
from veridical.core.stored import read_fields
from veridical.core.wording import option

__all__ = [
    "Agreement",
    "Entry",
    "Likeness",
    "Table",
    "Test",
    "compare",
    "likeness",
    "model_name",
    "to_csv",
    "to_latex",
    "to_text",
]

Key = tuple[str, str, str]  # corpus, metric, method
NET = "net wins over chance"
AREAS = ("sufficiency", "comprehensiveness")  # mean falls along an order: their limits are each model's own
LIMITED = ("naopc", "naopc_sufficiency")  # the same between those limits
ACCURACY = "accuracy"


@dataclass(frozen=True)
class _Run:
    folder: Path
    model: str
    summary: AuditSummary
    values: Mapping[Key, Mapping[str, float]]  # by text, NaN where undefined
    whole: Mapping[Key, Estimate]  # figures of the audit itself, with their intervals where it has them
    weights: str | None  # their hash


def compare(folders: Sequence[str | Path], *, seed: int = 0, controls: bool = False) -> Table:
    """The audits in these folders side by side.

    Args:
        folders: What `audit` wrote, a folder each. `NAME=FOLDER` gives a model a name of its own, and runs of one name
            are seeds of one model.
        seed: Of the bootstrap, by which intervals over texts are found.
        controls: Rows for random orders and oracles too, which are no explanations.

    Returns:
        Every model's figures with intervals (`.entries`, and `.to_pandas()`), the tests between models (`.tests`), and
        how alike they explain (`.agreements`). It displays itself in a notebook.

    Example:
        >>> veridical.compare(["plain=audits/plain", "saloss=audits/saloss"]).plot("sufficiency")
    """
    if not folders:
        raise InputError("There is nothing to compare; name at least one folder that an audit wrote.")
    runs = [_read(*_named(folder)) for folder in folders]
    models = {name: [run for run in runs if run.model == name] for name in dict.fromkeys(run.model for run in runs)}
    _insist_on_common(runs)
    keys = list(dict.fromkeys(key for run in runs for key in (*run.whole, *run.values)))
    keys = _limited_first([key for key in keys if controls or not _is_control(key[2])])
    entries = _entries(models, keys, seed)
    agreements, missing = _agreements(models, seed) if len(runs) > 1 else ((), ())
    lower = {metric.name for run in runs for metric in run.summary.metrics if metric.better == "lower"}
    notes = (*_notes(runs), *missing, *(_of_areas(keys, runs) if len(models) > 1 else ()))
    return Table(tuple(models), entries, _tests(models, keys), agreements, frozenset(lower), notes)


# -- reading ------------------------------------------------------------------------------------------------


def model_name(name: str) -> str:
    """A model's name without its seed (and the hash that goes with it), for runs trained by us.

    A run folder is `...-seed3-7f2c91ab`, or `seed3` in the folder that several seeds were trained to.
    """
    name = name.rstrip("/").removesuffix("/model")
    return re.sub(r"[-/]seed\d+(-[0-9a-f]{8})?(?=/|$)", "", name)


def _named(given: str | Path) -> tuple[Path, str]:
    """The folder, and the name that it was given: a folder that is there may hold an equals sign itself."""
    name, equals, folder = str(given).partition("=")
    if not equals or os.path.exists(given):
        return Path(given), ""
    if not name.strip() or not folder:
        raise InputError(f"{shown(str(given))} names no run; write NAME=RUN, the model's name and an audit's folder.")
    return Path(folder), name.strip()


def _read(folder: Path, name: str = "") -> _Run:
    for file in (SUMMARY, "scores.parquet"):
        if not os.path.isfile(folder / file):
            raise InputError(f"{folder} has no {file}; name a folder that `veridical audit` wrote.")
    summary = read_summary(folder)
    pairs = {metric.name for metric in summary.metrics if metric.kind == "agreement"}
    names = ("corpus", "metric", "method", "control", "example", "value")
    columns = store.read_parquet(folder / "scores.parquet", names).to_pydict()
    values: dict[Key, dict[str, float]] = {}
    for corpus, metric, method, control, example, value in zip(*(columns[n] for n in names), strict=True):
        if not control and metric not in pairs:
            values.setdefault((corpus, metric, method), {})[example] = np.nan if value is None else value
    values |= _right(folder)
    figures = {(c.name, name, ""): value for c in summary.corpora for name, value in _predicts(c).items()}
    figures |= {
        (s.corpus, NET, s.method): Estimate(s.net_chance, s.net_chance_low, s.net_chance_high, s.n, 0)
        for s in summary.ranking
    }
    whole = {key: figure for key, figure in figures.items() if figure.mean is not None}
    spec = folder / "spec.json"
    weights = read_fields(spec, "model.hash")["model"]["hash"] if spec.is_file() else None
    return _Run(folder, name or model_name(summary.model.name), summary, values, whole, weights)


def _right(folder: Path) -> dict[Key, dict[str, float]]:
    """Whether the model is right (1) or not (0) on every text, as the audit's record has it, to test accuracies by."""
    if not os.path.isfile(folder / RECORD):
        return {}
    return {
        (evidence.corpus, ACCURACY, ""): {
            key: float(right) for key, right in zip(evidence.texts, evidence.right, strict=True) if right is not None
        }
        for evidence in read_record(folder / RECORD).evidence
    }


def _predicts(corpus: CorpusFacts) -> dict[str, Estimate]:
    """How well the model itself does: figures without a method."""
    exact = Estimate(corpus.accuracy, corpus.accuracy_low, corpus.accuracy_high, corpus.texts, 0)
    return {ACCURACY: exact, "macro_f1": Estimate(corpus.macro_f1, None, None, corpus.texts, 0)}


def _is_control(method: str) -> bool:
    return method in ORACLES or base_name(method) == CHANCE


def _insist_on_common(runs: Sequence[_Run]) -> None:
    """That some two runs have a corpus in common: else there is nothing to put side by side."""
    corpora = [corpus.name for run in runs for corpus in run.summary.corpora]
    if len(runs) > 1 and len(set(corpora)) == len(corpora):
        named = "; ".join(f"{run.folder}: {', '.join(c.name for c in run.summary.corpora)}" for run in runs)
        raise InputError(
            f"These audits have no corpus in common, so nothing can be compared ({named}); audit the models on the "
            "same data."
        )


def _notes(runs: Sequence[_Run]) -> tuple[str, ...]:
    """Why figures of these runs may not compare: the same weights, other settings, or other texts."""
    notes = []
    first = runs[0]
    for a, b in combinations(runs, 2):
        if a.weights is not None and a.weights == b.weights:
            notes.append(f"{a.folder.name} and {b.folder.name} are of the same weights: no two models or seeds.")
    for run in runs[1:]:
        ours, theirs = (store.plain(each.summary.settings) for each in (first, run))
        for key in sorted({*ours} - {"seed"}):
            if ours[key] != theirs[key]:
                notes.append(
                    f"{key} is {ours[key]!r} in {first.folder.name} and {theirs[key]!r} in {run.folder.name}: "
                    "their figures may not compare."
                )
        for corpus in dict.fromkeys(key[0] for key in first.values):
            ids = _ids(run, corpus)
            if ids and (ids != _ids(first, corpus) or not _same_texts(first, run, corpus)):
                notes.append(f"{first.folder.name} and {run.folder.name} rest on different texts of {corpus}.")
    return tuple(notes)


def _limited_first(keys: Sequence[Key]) -> list[Key]:
    """The metrics that compare between models before the areas that do not."""
    if not any(base_name(metric) in LIMITED for _, metric, _ in keys):
        return list(keys)
    return sorted(keys, key=lambda key: base_name(key[1]) in AREAS)


def _of_areas(keys: Sequence[Key], runs: Sequence[_Run]) -> list[str]:
    """That areas over a perturbation curve do not compare between models, where there are any, and what does: of the
    metrics between limits those that every run has, erased in the same way."""
    names = dict.fromkeys(base_name(metric) for _, metric, _ in keys)
    areas = [name for name in names if name in AREAS]
    if not areas:
        return []
    common = set.intersection(*({metric for _, metric, _ in run.values} for run in runs))
    there = [name for name in LIMITED if name in map(base_name, common)]
    if there:
        read = f"read {' and '.join(there)}"
    else:
        read = f"audit all of them with {option('metrics', '--metric')} naopc"
        if len({run.summary.settings.by for run in runs}) > 1:
            read += f" and the same {option('by')}, for instance by=mask if one was trained on masks"
    return [
        f"Plain AOPC ({', '.join(areas)}) does not compare across models, because the most and the least that any "
        "order could reach differ from model to model, also where it is divided by the fall to the empty text; "
        f"between models {read}."
    ]


def _ids(run: _Run, corpus: str) -> set[str]:
    """The texts of a corpus that a run has scores of."""
    return {text for key, by_text in run.values.items() if key[0] == corpus and key[1] != ACCURACY for text in by_text}


def _same_texts(a: _Run, b: _Run, corpus: str) -> bool:
    """Whether equal ids mean equal texts: two files of one name may have numbered others alike. (Audits from before
    their texts were hashed are taken at their word.)"""
    first, second = (next((c for c in run.summary.corpora if c.name == corpus), None) for run in (a, b))
    if first is None or second is None or first.hash is None or second.hash is None:
        return True
    return first.texts != second.texts or first.hash == second.hash


# -- figures ------------------------------------------------------------------------------------------------


def _entries(models: Mapping[str, Sequence[_Run]], keys: Sequence[Key], seed: int) -> tuple[Entry, ...]:
    rows: list[Entry] = []
    samples: list[np.ndarray] = []  # of each row, what its mean and interval are of
    said: list[Estimate | None] = []
    for key in keys:
        for model, runs in models.items():
            means = _means(runs, key)
            if not means and not any(key in run.values for run in runs):
                continue
            texts = [np.array(list(run.values[key].values())) for run in runs if key in run.values]
            undefined = sum(int(np.isnan(values).sum()) for values in texts)
            alone = runs[0].whole.get(key) if len(runs) == 1 else None  # what the audit itself says of one run
            unit: Unit = "texts" if len(runs) == 1 else "seeds"
            samples.append(texts[0] if unit == "texts" and alone is None else np.array(means))
            said.append(alone)
            rows.append(Entry(*key, model, None, None, None, unit, 0, undefined, means))
    return tuple(
        replace(row, mean=figure.mean, low=figure.low, high=figure.high, n=figure.n)
        for row, alone, drawn in zip(rows, said, estimates(samples, seed=seed), strict=True)
        for figure in (alone or drawn,)
    )


def _means(runs: Sequence[_Run], key: Key) -> tuple[float, ...]:
    """A run's figure each; runs in which it does not exist are left out."""
    figures = [run.whole[key].mean if key in run.whole else mean(run.values.get(key, {}).values()) for run in runs]
    return tuple(float(figure) for figure in figures if figure is not None)


# -- how alike models explain -------------------------------------------------------------------------------

Pair = tuple[_Run, _Run]


def _agreements(models: Mapping[str, Sequence[_Run]], seed: int) -> tuple[tuple[Agreement, ...], tuple[str, ...]]:
    """Every two models, and the seeds of each, on every corpus and method that both have; and what was missing."""
    runs = [run for of_model in models.values() for run in of_model]
    corpora = list(dict.fromkeys(corpus.name for run in runs for corpus in run.summary.corpora))
    held = {id(run): {corpus: _explanations(run, corpus) for corpus in corpora} for run in runs}
    groups = [(name, name, combinations(of_model, 2)) for name, of_model in models.items()]
    groups += [(a, b, product(models[a], models[b])) for a, b in combinations(models, 2)]
    rows: list[tuple[Agreement, list[float | None]]] = []
    for a, b, pairs in groups:
        pairs = [pair for pair in pairs if pair[0].weights is None or pair[0].weights != pair[1].weights]
        for corpus in corpora:
            readings = [(held[id(x)][corpus], held[id(y)][corpus]) for x, y in pairs]
            for method in dict.fromkeys(name for first, _ in readings for name in first):
                both = [
                    (pair, first[method], second[method])
                    for pair, (first, second) in zip(pairs, readings, strict=True)
                    if method in first and method in second and first[method].keys() & second[method].keys()
                ]
                if both:
                    rows += _measured((corpus, method, a, b), both)
    figures = estimates((means for _, means in rows), seed=seed)
    agreements = tuple(replace(row, **asdict(figure)) for (row, _), figure in zip(rows, figures, strict=True))
    without = [run.folder.name for run in runs if not any(held[id(run)].values())]
    note = (
        f"No explanations are stored in {', '.join(without)}: how alike models explain is not said for what is there."
    )
    return agreements, (note,) if without else ()


def _explanations(run: _Run, corpus: str) -> dict[str, Readings]:
    """What the audit stored, by method. `random` never looked at the model: its draws agree by their seed."""
    wanted = {method.name for method in run.summary.methods if base_name(method.name) != CHANCE}
    held = stored(run.folder / "corpora" / store.slug(corpus) / "attributions")
    return {name: readings for name, readings in held.items() if name in wanted}


def _measured(
    names: tuple[str, str, str, str], both: Sequence[tuple[Pair, Readings, Readings]]
) -> list[tuple[Agreement, list[float | None]]]:
    """Each measure's record but for its estimate, and what that is of: every text's mean over the pairs of runs."""
    likenesses = [compared(first, second) for _, first, second in both]
    if len({pair.level for pair in likenesses}) > 1:  # one figure is of one kind of unit
        likenesses = [compared(first, second, level="word") for _, first, second in both]
    rows = []
    for measure in MEASURES:
        values = [pair.tau if measure == "tau" else pair.jaccard for pair in likenesses]
        texts: dict[str, list[float | None]] = {}
        for pair, by_text in zip(likenesses, values, strict=True):
            for text, value in zip(pair.texts, by_text, strict=True):
                texts.setdefault(text, []).append(value)
        row = Agreement(
            *names,
            measure=measure,
            level=likenesses[0].level,
            mean=None,
            low=None,
            high=None,
            n=0,
            undefined=0,
            values=tuple(map(mean, values)),
            runs=tuple((x.folder.name, y.folder.name) for (x, y), _, _ in both),
            comparisons=sum(len(pair.texts) for pair in likenesses),
            other_class=sum(pair.other_class for pair in likenesses),
        )
        rows.append((row, [mean(of_text) for of_text in texts.values()]))
    return rows


# -- tests --------------------------------------------------------------------------------------------------


def _tests(models: Mapping[str, Sequence[_Run]], keys: Sequence[Key]) -> tuple[Test, ...]:
    families: dict[tuple[str, str], list[Test]] = {}  # by corpus and metric
    for key in keys:
        for a, b in combinations(models, 2):
            test = _test(models, a, b, key)
            if test is not None:
                families.setdefault(key[:2], []).append(test)
    return tuple(
        replace(test, p_holm=float(p))
        for family in families.values()
        for test, p in zip(family, holm([test.p for test in family]), strict=True)
    )


def _test(models: Mapping[str, Sequence[_Run]], a: str, b: str, key: Key) -> Test | None:
    """Two models on one figure, its p not yet corrected; None where one of them has too few values."""
    seeds = len(models[a]) > 1 and len(models[b]) > 1
    paired = None
    if seeds:
        first, second = np.array(_means(models[a], key)), np.array(_means(models[b], key))
    else:
        ours, theirs = _per_text(models[a], key), _per_text(models[b], key)
        first, second = np.array(list(ours.values())), np.array(list(theirs.values()))
        alike = all(_same_texts(models[a][0], other, key[0]) for other in (*models[a], *models[b]))
        common = [text for text in ours if text in theirs] if alike else []
        if common and len(common) >= SHARED * min(len(ours), len(theirs)):
            signed = signed_rank(np.array([ours[text] - theirs[text] for text in common]))
            paired = number(signed.p[0]) if signed.n[0] else None
    samples = between(first, second)
    if samples is None:
        return None
    return Test(*key, a, b, "seeds" if seeds else "texts", p_holm=np.nan, p_paired=paired, **asdict(samples))


def _per_text(runs: Sequence[_Run], key: Key) -> dict[str, float]:
    """Each text's value, its mean over the runs in which it has one; NaN where it has none."""
    texts = dict.fromkeys(text for run in runs for text in run.values.get(key, ()))
    means = {text: mean(run.values.get(key, {}).get(text) for run in runs) for text in texts}
    return {text: np.nan if value is None else value for text, value in means.items()}
