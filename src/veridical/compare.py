"""Tables over runs: what several audits found, side by side, with intervals and tests between models.

Runs whose models have the same name but for the seed (`...-seed3-7f2c91ab`) are seeds of one model. With one run an
interval is over its texts; with several it is over the runs' means, and from five on: below that the values are
shown and no interval. Models are compared over seeds where both have at least two, else over texts.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np

from veridical import store
from veridical.errors import InputError
from veridical.statistics import ALPHA, bca, between, holm, signed_rank

Unit = Literal["texts", "seeds"]
Key = tuple[str, str, str]  # corpus, metric, method
WHOLE = ("accuracy", "macro_f1")  # of the model itself: no method, no value per text
RANK = "mean rank"


@dataclass(frozen=True)
class Entry:
    """One model's figure for one metric of one method on one corpus."""

    corpus: str
    metric: str
    method: str  # "" for a figure of the model itself
    model: str
    mean: float | None
    low: float | None
    high: float | None
    unit: Unit  # what the interval is over
    n: int  # texts with a value, or runs
    undefined: int  # texts without one, over all runs
    values: tuple[float, ...]  # a run each


@dataclass(frozen=True)
class Test:
    """Two models on one metric of one method; effect and difference are positive where `a` is larger."""

    __test__ = False  # not a test of ours, whatever its name

    corpus: str
    metric: str
    method: str
    a: str
    b: str
    unit: Unit
    difference: float
    p_rank_sum: float
    p_holm: float  # of the rank sum, over the methods and pairs of models of this corpus and metric
    p_t: float | None  # Welch
    p_paired: float | None  # signed rank, where both were scored on the same texts
    effect: float  # Cliff's delta
    n: tuple[int, int]


@dataclass(frozen=True)
class Table:
    """Every figure of every model, every test between models, and what a reader has to know."""

    models: tuple[str, ...]
    entries: tuple[Entry, ...]
    tests: tuple[Test, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Run:
    folder: Path
    model: str
    summary: Mapping[str, Any]
    values: Mapping[Key, Mapping[str, float]]  # by text, NaN where undefined
    whole: Mapping[Key, float]  # figures without a value per text


def compare(folders: Sequence[str | Path], *, seed: int = 0) -> Table:
    """The audits in these folders side by side; `seed` is the bootstrap's."""
    if not folders:
        raise InputError("There is nothing to compare; name at least one folder that an audit wrote.")
    runs = [_read(Path(folder)) for folder in folders]
    models = {name: [run for run in runs if run.model == name] for name in dict.fromkeys(run.model for run in runs)}
    keys = list(dict.fromkeys(key for run in runs for key in (*run.whole, *run.values)))
    entries = _entries(models, keys, seed)
    return Table(tuple(models), entries, _tests(models, keys), _notes(runs))


# -- reading ------------------------------------------------------------------------------------------------


def model_name(name: str) -> str:
    """A model's name without its seed (and the hash that goes with it), for runs trained by us."""
    name = re.sub(r"-seed\d+(-[0-9a-f]{8})?(?=/|$)", "", name.rstrip("/"))
    return name.removesuffix("/model")


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
    return _Run(folder, model_name(summary["model"]["name"]), summary, values, whole)


def _notes(runs: Sequence[_Run]) -> tuple[str, ...]:
    """Why figures of these runs may not compare: other settings, or other texts."""
    notes = []
    first = runs[0]
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
            if theirs and ours != theirs:
                notes.append(f"{first.folder.name} and {run.folder.name} rest on different texts of {corpus}.")
    return tuple(notes)


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
    bounds = _intervals([sample for _, _, _, sample, _, _ in found], seed)
    return tuple(
        Entry(
            *key,
            model=model,
            mean=float(np.mean(means)) if means else None,
            low=low,
            high=high,
            unit=unit,
            n=int((~np.isnan(sample)).sum()),
            undefined=undefined,
            values=means,
        )
        for (key, model, unit, sample, means, undefined), (low, high) in zip(found, bounds, strict=True)
    )


def _means(runs: Sequence[_Run], key: Key) -> tuple[float, ...]:
    """A run's figure each; runs in which it does not exist are left out."""
    means = []
    for run in runs:
        if key in run.whole:
            means.append(float(run.whole[key]))
        elif key in run.values:
            own = np.array(list(run.values[key].values()))
            if not np.isnan(own).all():
                means.append(float(np.nanmean(own)))
    return tuple(means)


def _intervals(samples: Sequence[np.ndarray], seed: int) -> list[tuple[float | None, float | None]]:
    """Intervals of samples of different sizes, in one call: the shorter ones padded with nothing."""
    longest = max((len(s) for s in samples), default=0)
    padded = np.array([[*s, *[np.nan] * (longest - len(s))] for s in samples]).reshape(len(samples), longest)
    low, high = bca(padded, seed=seed) if samples else (np.array([]), np.array([]))
    return [(None, None) if np.isnan(a) else (float(a), float(b)) for a, b in zip(low, high, strict=True)]


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
        common = [text for text in ours if text in theirs]
        if common:
            test = signed_rank(np.array([ours[text] - theirs[text] for text in common]))
            paired = float(test.p[0]) if test.n[0] else None
    found = between(first, second)
    if found is None:
        return None
    return {
        "unit": "seeds" if seeds else "texts",
        "difference": found.difference,
        "p_rank_sum": found.p_rank_sum,
        "p_t": found.p_t,
        "p_paired": paired,
        "effect": found.effect,
        "n": found.n,
    }


def _per_text(runs: Sequence[_Run], key: Key) -> dict[str, float]:
    """Each text's value, its mean over the runs in which it has one; NaN where it has none."""
    texts = dict.fromkeys(text for run in runs for text in run.values.get(key, ()))
    found = {}
    for text in texts:
        own = [run.values[key].get(text, np.nan) for run in runs if key in run.values]
        own = [value for value in own if not np.isnan(value)]
        found[text] = float(np.mean(own)) if own else np.nan
    return found


# -- as text, CSV and LaTeX ---------------------------------------------------------------------------------


def to_text(table: Table) -> str:
    """A block per corpus and metric, a line per method, a column per model; * marks a difference to the first."""
    lines = []
    for (corpus, metric), rows in _blocks(table):
        cells = [["", *table.models], *([method or "(model)", *shown] for method, shown in rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
        lines += [f"{corpus}: {metric}"]
        for row in cells:
            lines.append("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        lines.append("")
    if any(test.p_holm < ALPHA for test in _to_first(table)):
        lines.append(f"* differs from {table.models[0]} (rank sum, Holm over the block, p < {ALPHA}).")
    return "\n".join([*lines, *table.notes]).rstrip() + "\n"


def to_csv(table: Table) -> str:
    """A line per figure, beside it its test against the first model."""
    tests = {(t.corpus, t.metric, t.method, t.b): t for t in _to_first(table)}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    figure = ("corpus", "metric", "method", "model", "mean", "low", "high", "unit", "n", "undefined")
    test = ("difference", "p_rank_sum", "p_holm", "p_t", "p_paired", "effect")
    writer.writerow([*figure, "values", *(f"{name}_to_first" for name in test)])
    for e in table.entries:
        found = tests.get((e.corpus, e.metric, e.method, e.model))
        turned = ("difference", "effect")  # a test is of the first model against another; here the line is the other's
        tested = [
            None if found is None else -getattr(found, name) if name in turned else getattr(found, name)
            for name in test
        ]
        writer.writerow([*(getattr(e, n) for n in figure), " ".join(map(str, e.values)), *tested])
    return text.getvalue()


def to_latex(table: Table) -> str:
    """A booktabs table per corpus: a line per metric and method, a column per model."""
    lines = []
    for corpus in dict.fromkeys(e.corpus for e in table.entries):
        blocks = [(metric, rows) for (name, metric), rows in _blocks(table) if name == corpus]
        lines += [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_tex(corpus)}: means with 95\% intervals; $^*$ differs from {_tex(table.models[0])}.}}",
            rf"\begin{{tabular}}{{ll{'r' * len(table.models)}}}",
            r"\toprule",
            " & ".join(["metric", "method", *map(_tex, table.models)]) + r" \\",
        ]
        for metric, rows in blocks:
            lines.append(r"\midrule")
            for number, (method, shown) in enumerate(rows):
                cells = [_tex(metric) if number == 0 else "", _tex(method), *map(_tex, shown)]
                lines.append(" & ".join(cells) + r" \\")
        lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}", ""]
    return "\n".join([*lines, *(f"% {note}" for note in table.notes)]).rstrip() + "\n"


def _blocks(table: Table) -> Iterator[tuple[tuple[str, str], list[tuple[str, list[str]]]]]:
    """(corpus, metric) and its lines: method and what is shown for each model."""
    differs = {(t.corpus, t.metric, t.method, t.b) for t in _to_first(table) if t.p_holm < ALPHA}
    own = {(e.corpus, e.metric, e.method, e.model): e for e in table.entries}
    for corpus, metric in dict.fromkeys((e.corpus, e.metric) for e in table.entries):
        methods = dict.fromkeys(e.method for e in table.entries if (e.corpus, e.metric) == (corpus, metric))
        rows = []
        for method in methods:
            keys = [(corpus, metric, method, model) for model in table.models]
            rows.append((method, [_shown(own.get(key)) + ("*" if key in differs else "") for key in keys]))
        yield (corpus, metric), rows


def _to_first(table: Table) -> list[Test]:
    return [test for test in table.tests if test.a == table.models[0]]


def _shown(entry: Entry | None) -> str:
    if entry is None:
        return "-"
    if entry.mean is None:
        return "undefined"
    if entry.low is not None:
        return f"{entry.mean:.3f} [{entry.low:.3f}, {entry.high:.3f}]"
    if len(entry.values) > 1:
        return f"{entry.mean:.3f} ({' '.join(f'{value:.3f}' for value in entry.values)})"
    return f"{entry.mean:.3f}"


def _tex(text: str) -> str:
    escaped = re.sub(r"([&%$#_{}])", r"\\\1", text.replace("\\", r"\textbackslash "))
    return escaped.replace("~", r"\textasciitilde ").replace("^", r"\textasciicircum ").replace("*", "$^*$")
