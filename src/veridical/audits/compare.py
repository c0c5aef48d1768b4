"""Tables over runs: what several audits found, side by side, with intervals and tests between models.

Runs whose models have the same name but for the seed (`...-seed3-7f2c91ab`) are seeds of one model. With one run an
interval is over its texts; with several it is over the runs' means, and from five on: below that the values are
shown and no interval. Models are compared over seeds where both have at least two, else over texts. How alike two
models, or two seeds of one, explain the same texts is read from the explanations that the audits stored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

from veridical.audits.compare_table import MEASURES, Agreement, Entry, Table, Test, Unit, to_csv, to_latex, to_text
from veridical.audits.likeness import Likeness, Readings, compared, likeness, stored
from veridical.audits.ranking import CHANCE
from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.spec import base_name
from veridical.core.statistics import between, estimates, holm, mean, signed_rank

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
WHOLE = ("accuracy", "macro_f1")  # of the model itself: no method, no value per text
RANK = "mean rank"


@dataclass(frozen=True)
class _Run:
    folder: Path
    model: str
    summary: Mapping[str, Any]
    values: Mapping[Key, Mapping[str, float]]  # by text, NaN where undefined
    whole: Mapping[Key, float]  # figures without a value per text
    weights: str | None  # their hash


def compare(folders: Sequence[str | Path], *, seed: int = 0) -> Table:
    """The audits in these folders side by side; `seed` is the bootstrap's."""
    if not folders:
        raise InputError("There is nothing to compare; name at least one folder that an audit wrote.")
    runs = [_read(Path(folder)) for folder in folders]
    models = {name: [run for run in runs if run.model == name] for name in dict.fromkeys(run.model for run in runs)}
    keys = list(dict.fromkeys(key for run in runs for key in (*run.whole, *run.values)))
    entries = _entries(models, keys, seed)
    agreements, missing = _agreements(models, seed) if len(runs) > 1 else ((), ())
    lower = {RANK} | {m["name"] for run in runs for m in run.summary["metrics"] if m["better"] == "lower"}
    notes = (*_notes(runs), *missing)
    return Table(tuple(models), entries, _tests(models, keys), agreements, frozenset(lower), notes)


# -- reading ------------------------------------------------------------------------------------------------


def model_name(name: str) -> str:
    """A model's name without its seed (and the hash that goes with it), for runs trained by us.

    A run folder is `...-seed3-7f2c91ab`, or `seed3` in the folder that several seeds were trained to.
    """
    name = name.rstrip("/").removesuffix("/model")
    return re.sub(r"[-/]seed\d+(-[0-9a-f]{8})?(?=/|$)", "", name)


def _read(folder: Path) -> _Run:
    for name in ("summary.json", "scores.parquet"):
        if not (folder / name).is_file():
            raise InputError(f"{folder} has no {name}; name a folder that `veridical audit` wrote.")
    summary = store.read_json(folder / "summary.json")
    pairs = {m["name"] for m in summary["metrics"] if m["kind"] == "agreement"}
    columns = store.read_parquet(folder / "scores.parquet").to_pydict()
    names = ("corpus", "metric", "method", "control", "example", "value")
    values: dict[Key, dict[str, float]] = {}
    for corpus, metric, method, control, example, value in zip(*(columns[n] for n in names), strict=True):
        if not control and metric not in pairs:
            values.setdefault((corpus, metric, method), {})[example] = np.nan if value is None else value
    whole = {(c["name"], m, ""): c[m] for c in summary["corpora"] for m in WHOLE if c.get(m) is not None}
    whole |= {(r["corpus"], RANK, r["method"]): r["mean_rank"] for r in summary["ranking"]}
    spec = folder / "spec.json"
    weights = store.read_json(spec)["model"]["hash"] if spec.is_file() else None
    return _Run(folder, model_name(summary["model"]["name"]), summary, values, whole, weights)


def _notes(runs: Sequence[_Run]) -> tuple[str, ...]:
    """Why figures of these runs may not compare: other settings, or other texts."""
    notes = []
    first = runs[0]
    for one, other in combinations(runs, 2):
        if one.weights is not None and one.weights == other.weights:
            notes.append(f"{one.folder.name} and {other.folder.name} are of the same weights: no two models or seeds.")
    for run in runs[1:]:
        mine, other = first.summary["settings"], run.summary["settings"]
        for key in sorted({*mine, *other} - {"seed"}):
            if mine.get(key) != other.get(key):
                notes.append(
                    f"{key} is {mine.get(key)!r} in {first.folder.name} and {other.get(key)!r} in {run.folder.name}: "
                    "their figures may not compare."
                )
        for corpus in dict.fromkeys(key[0] for key in first.values):
            ours, theirs = (
                {text for key, own in one.values.items() if key[0] == corpus for text in own} for one in (first, run)
            )
            if theirs and (ours != theirs or not _same_texts(first, run, corpus)):
                notes.append(f"{first.folder.name} and {run.folder.name} rest on different texts of {corpus}.")
    return tuple(notes)


def _same_texts(a: _Run, b: _Run, corpus: str) -> bool:
    """Whether equal ids mean equal texts: two files of one name may have numbered others alike. (Audits from before
    their texts were hashed are taken at their word.)"""
    facts = [next((c for c in one.summary["corpora"] if c["name"] == corpus), {}) for one in (a, b)]
    hashes, sizes = ([own.get(key) for own in facts] for key in ("hash", "texts"))
    return None in hashes or sizes[0] != sizes[1] or hashes[0] == hashes[1]


# -- figures ------------------------------------------------------------------------------------------------


def _entries(models: Mapping[str, Sequence[_Run]], keys: Sequence[Key], seed: int) -> tuple[Entry, ...]:
    found: list[tuple[Key, str, Unit, np.ndarray, tuple[float, ...], int]] = []
    for key in keys:
        for model, runs in models.items():
            means = _means(runs, key)
            if not means and not any(key in run.values for run in runs):
                continue
            texts = [np.array(list(run.values[key].values())) for run in runs if key in run.values]
            undefined = sum(int(np.isnan(own).sum()) for own in texts)
            unit: Unit = "texts" if len(runs) == 1 and texts else "seeds"
            sample = texts[0] if unit == "texts" else np.array(means)
            found.append((key, model, unit, sample, means, undefined))
    figures = estimates((sample for _, _, _, sample, _, _ in found), seed=seed)
    return tuple(
        Entry(*key, model=model, unit=unit, values=means, **(asdict(figure) | {"undefined": undefined}))
        for (key, model, unit, _, means, undefined), figure in zip(found, figures, strict=True)
    )


def _means(runs: Sequence[_Run], key: Key) -> tuple[float, ...]:
    """A run's figure each; runs in which it does not exist are left out."""
    figures = [run.whole[key] if key in run.whole else mean(run.values.get(key, {}).values()) for run in runs]
    return tuple(float(figure) for figure in figures if figure is not None)


# -- how alike models explain -------------------------------------------------------------------------------

Pair = tuple[_Run, _Run]


def _agreements(models: Mapping[str, Sequence[_Run]], seed: int) -> tuple[tuple[Agreement, ...], tuple[str, ...]]:
    """Every two models, and the seeds of each, on every corpus and method that both have; and what was missing."""
    runs = [run for own in models.values() for run in own]
    corpora = list(dict.fromkeys(corpus["name"] for run in runs for corpus in run.summary["corpora"]))
    held = {id(run): {corpus: _explanations(run, corpus) for corpus in corpora} for run in runs}
    groups = [(name, name, combinations(own, 2)) for name, own in models.items()]
    groups += [(a, b, product(models[a], models[b])) for a, b in combinations(models, 2)]
    found: list[tuple[dict[str, Any], list[float | None]]] = []
    without = [run.folder.name for run in runs if not any(held[id(run)].values())]
    note = (
        f"No explanations are stored in {', '.join(without)}: how alike models explain is not said for what is there."
    )
    for a, b, pairs in groups:
        pairs = [pair for pair in pairs if pair[0].weights is None or pair[0].weights != pair[1].weights]
        for corpus in corpora:
            own = [(held[id(x)][corpus], held[id(y)][corpus]) for x, y in pairs]
            for method in dict.fromkeys(name for first, _ in own for name in first):
                both = [
                    (pair, first[method], second[method])
                    for pair, (first, second) in zip(pairs, own, strict=True)
                    if method in first and method in second and first[method].keys() & second[method].keys()
                ]
                if both:
                    found += _measured({"corpus": corpus, "method": method, "a": a, "b": b}, both)
    figures = estimates((means for _, means in found), seed=seed)
    made = [Agreement(**row, **asdict(figure)) for (row, _), figure in zip(found, figures, strict=True)]
    return tuple(made), (note,) if without else ()


def _explanations(run: _Run, corpus: str) -> dict[str, Readings]:
    """What the audit stored, by method. `random` never looked at the model: its draws agree by their seed."""
    wanted = {method["name"] for method in run.summary["methods"]}
    found = stored(run.folder / "corpora" / store.slug(corpus) / "attributions")
    return {name: own for name, own in found.items() if name in wanted and base_name(name) != CHANCE}


def _measured(
    key: Mapping[str, str], both: Sequence[tuple[Pair, Readings, Readings]]
) -> list[tuple[dict[str, Any], list[float | None]]]:
    """Each measure's record but for its estimate, and what that is of: every text's mean over the pairs of runs."""
    found = [compared(first, second) for _, first, second in both]
    if len({one.level for one in found}) > 1:  # one figure is of one kind of unit
        found = [compared(first, second, level="word") for _, first, second in both]
    rows = []
    for measure in MEASURES:
        texts: dict[str, list[float | None]] = {}
        for one in found:
            for text, value in zip(one.texts, getattr(one, measure), strict=True):
                texts.setdefault(text, []).append(value)
        row = {
            **key,
            "measure": measure,
            "level": found[0].level,
            "values": tuple(mean(getattr(one, measure)) for one in found),
            "runs": tuple((x.folder.name, y.folder.name) for (x, y), _, _ in both),
            "comparisons": sum(len(one.texts) for one in found),
            "other_class": sum(one.other_class for one in found),
        }
        rows.append((row, [mean(values) for values in texts.values()]))
    return rows


# -- tests --------------------------------------------------------------------------------------------------


def _tests(models: Mapping[str, Sequence[_Run]], keys: Sequence[Key]) -> tuple[Test, ...]:
    families: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for key in keys:
        for a, b in combinations(models, 2):
            found = _test(models[a], models[b], key)
            if found is not None:
                families.setdefault(key[:2], []).append({"method": key[2], "a": a, "b": b, **found})
    return tuple(
        Test(corpus=corpus, metric=metric, p_holm=float(p), **row)
        for (corpus, metric), rows in families.items()
        for row, p in zip(rows, holm([row["p_rank_sum"] for row in rows]), strict=True)
    )


def _test(a: Sequence[_Run], b: Sequence[_Run], key: Key) -> dict[str, Any] | None:
    seeds = len(a) > 1 and len(b) > 1
    paired = None
    if seeds:
        first, second = np.array(_means(a, key)), np.array(_means(b, key))
    else:
        ours, theirs = _per_text(a, key), _per_text(b, key)
        first, second = np.array(list(ours.values())), np.array(list(theirs.values()))
        alike = all(_same_texts(a[0], other, key[0]) for other in (*a, *b))
        common = [text for text in ours if text in theirs] if alike else []
        if common:
            test = signed_rank(np.array([ours[text] - theirs[text] for text in common]))
            paired = float(test.p[0]) if test.n[0] else None
    found = between(first, second)
    if found is None:
        return None
    return {"unit": "seeds" if seeds else "texts", "p_paired": paired, **asdict(found)}


def _per_text(runs: Sequence[_Run], key: Key) -> dict[str, float]:
    """Each text's value, its mean over the runs in which it has one; NaN where it has none."""
    texts = dict.fromkeys(text for run in runs for text in run.values.get(key, ()))
    means = {text: mean(run.values.get(key, {}).get(text) for run in runs) for text in texts}
    return {text: np.nan if value is None else value for text, value in means.items()}
