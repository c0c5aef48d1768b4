"""From cells to the summary: every mean, interval, test, ranking and verdict of an audit, as plain JSON types.

The cells of a corpus become arrays [methods, metrics, texts] once; every section reads those. Undefined values are
NaN in the arrays, None in the summary, and counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from veridical.audits.diagnosticity import credit, diagnosticity_rows, metric_tests, outcomes, over_methods, settled
from veridical.audits.ranking import CHANCE, RIVALS, Ranking, Verdict, compare_all, rank, verdict
from veridical.core.errors import InputError
from veridical.core.records import Cell
from veridical.core.spec import base_name
from veridical.core.statistics import bca, signed_rank
from veridical.metric.agreement import kendall
from veridical.metric.soft_faithfulness import SMALL

Row = dict[str, Any]
ORACLES = ("oracle", "inverted oracle")  # known from how the data was made: never ranked, never believed
PAIR = " ~ "  # joins the two methods an agreement is between


@dataclass(frozen=True)
class Sheet:
    """All scores of one corpus, for the explanations themselves ("") and for each control in their place."""

    corpus: str
    examples: tuple[str, ...]
    methods: tuple[str, ...]
    metrics: tuple[str, ...]
    values: Mapping[str, np.ndarray]  # control -> [methods, metrics, texts]; "" first, then permutation if there
    scored: Mapping[str, np.ndarray]  # control -> [methods, metrics, texts] bool: a cell is there
    curves: Mapping[str, tuple[np.ndarray, ...]]  # control -> per metric [methods, texts, ratios]
    errors: np.ndarray  # [methods, metrics, texts]
    rooms: np.ndarray  # [methods, metrics, texts], what values were divided by; NaN where a metric does not say


def summarise(
    cells: Iterable[Cell],
    *,
    corpora: Sequence[Mapping[str, Any]],
    metrics: Sequence[Mapping[str, Any]],
    methods: Sequence[Mapping[str, Any]] = (),
    model: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Row:
    """The sections of summary.json that come from scores, beside the facts given.

    `corpora` have a name and a role (in, ood); `metrics` a name, kind, better and ratios. The bootstrap draws from
    `seed`.
    """
    cells = list(cells)
    facts = {m["name"]: m for m in metrics}
    alone = [name for name, m in facts.items() if m["kind"] != "agreement"]
    summary: Row = {
        "settings": dict(settings or {}),
        "model": dict(model or {}),
        "corpora": [dict(c) for c in corpora],
        "methods": [dict(m) for m in methods],
        "metrics": [dict(m) for m in metrics],
    }
    sections = ("cells", "diagnosticity", "metric_tests", "metric_tests_by_method", "comparisons", "ranking")
    summary |= {name: [] for name in (*sections, "verdicts", "agreement", "sparsity")}
    truth: list[Row] = []
    home: tuple[str, Ranking] | None = None
    for fact in corpora:
        own = [cell for cell in cells if cell.corpus == fact["name"]]
        sheet = gather([c for c in own if c.metric in alone], fact["name"], alone)
        found = _diagnosticity(sheet, facts, seed)
        ranking = _rank(sheet, facts, found["diagnosticity"], seed)
        said = verdict(ranking)
        notes = [*said.notes, *_notes(sheet, facts, ranking)]
        if home is not None and fact.get("role") == "ood":
            notes += _moved(home, ranking)
        elif home is None:
            home = (fact["name"], ranking)
        for name, rows in {
            "cells": _cells(sheet, seed),
            **found,
            "comparisons": [*({"metric": "", **asdict(c)} for c in ranking.comparisons), *_comparisons(sheet, facts)],
            "ranking": [asdict(s) for s in ranking.standings],
            "verdicts": [_said(said, ranking, notes)],
            "agreement": _agreement([c for c in own if PAIR in c.method], facts),
            "sparsity": _sparsity(sheet, facts),
        }.items():
            summary[name] += [{"corpus": fact["name"], **row} for row in rows]
        truth += [{"corpus": fact["name"], **row} for row in _truth(sheet, facts)]
    return {**summary, "truth": truth or None}


# -- arrays -------------------------------------------------------------------------------------------------


def gather(cells: Sequence[Cell], corpus: str, metrics: Sequence[str]) -> Sheet:
    """The cells of one corpus as arrays; methods and texts in order of appearance."""
    methods = {name: i for i, name in enumerate(dict.fromkeys(c.method for c in cells))}
    examples = {name: i for i, name in enumerate(dict.fromkeys(c.example for c in cells))}
    column = {name: i for i, name in enumerate(metrics)}
    lengths = [0] * len(metrics)
    for cell in cells:
        at, length = column[cell.metric], len(cell.score.curve)
        if length and lengths[at] not in (0, length):
            raise ValueError(f"{cell.metric} gave curves of {lengths[at]} and of {length} ratios")
        lengths[at] = length or lengths[at]
    shape = (len(methods), len(metrics), len(examples))
    controls = sorted({"", *(c.control for c in cells)}, key=lambda name: (name != "", name != "permutation", name))
    values = {c: np.full(shape, np.nan) for c in controls}
    scored = {c: np.zeros(shape, dtype=bool) for c in controls}
    curves = {c: tuple(np.full((shape[0], shape[2], n), np.nan) for n in lengths) for c in controls}
    errors, rooms = np.full(shape, np.nan), np.full(shape, np.nan)
    for cell in cells:
        m, k, i = methods[cell.method], column[cell.metric], examples[cell.example]
        if scored[cell.control][m, k, i]:
            raise InputError(
                f"{cell.corpus} has two scores of {cell.method} by {cell.metric} on text {cell.example!r}; "
                "texts need ids of their own."
            )
        scored[cell.control][m, k, i] = True
        score = cell.score
        if score.value is not None:
            values[cell.control][m, k, i] = score.value
        if score.curve:
            curves[cell.control][k][m, i] = score.curve  # None becomes NaN
        if score.error is not None and not cell.control:
            errors[m, k, i] = score.error
        if score.room is not None and not cell.control:
            rooms[m, k, i] = score.room
    return Sheet(corpus, tuple(examples), tuple(methods), tuple(metrics), values, scored, curves, errors, rooms)


def _cells(sheet: Sheet, seed: int) -> list[Row]:
    values, scored = sheet.values[""], sheet.scored[""]
    rows, stack = [], []
    for m, method in enumerate(sheet.methods):
        for k, metric in enumerate(sheet.metrics):
            if not scored[m, k].any():
                continue
            own, curve = values[m, k], sheet.curves[""][k][m].T  # [N], [R, N]
            rooms = sheet.rooms[m, k]  # [N]
            defined = ~np.isnan(own)
            errors = sheet.errors[m, k][defined & ~np.isnan(sheet.errors[m, k])]
            rows.append(
                {
                    "method": method,
                    "metric": metric,
                    "n": int(defined.sum()),
                    "undefined": int((scored[m, k] & ~defined).sum()),
                    # Texts on which a soft metric divides by little; none where rooms are not known.
                    "small": None if np.isnan(rooms).all() else int((rooms[defined] < SMALL).sum()),
                    "mean": _mean(own),
                    # The draws of different texts are independent: their errors add in squares.
                    "sampling_error": float(np.sqrt((errors**2).sum()) / len(errors)) if len(errors) else None,
                    "curve": [_mean(point) for point in curve],
                }
            )
            stack += [own, *curve]
    if not rows:
        return []
    low, high = (list(map(_number, bound)) for bound in bca(np.array(stack), seed=seed))
    at = 0
    for row in rows:
        end = at + 1 + len(row["curve"])
        row |= {"low": low[at], "high": high[at], "curve_low": low[at + 1 : end], "curve_high": high[at + 1 : end]}
        at = end
    return rows


# -- metrics ------------------------------------------------------------------------------------------------


def _diagnosticity(sheet: Sheet, facts: Mapping[str, Mapping[str, Any]], seed: int) -> dict[str, list[Row]]:
    """Of every metric that scored random explanations too, against each kind of them; tests with the first only."""
    found: dict[str, list[Row]] = {"diagnosticity": [], "metric_tests": [], "metric_tests_by_method": []}
    pooled = [_real(method) for method in sheet.methods]
    for number, control in enumerate(c for c in sheet.values if c):
        known = [k for k in range(len(sheet.metrics)) if sheet.scored[control][:, k].any()]
        names = [sheet.metrics[k] for k in known]
        outcome = np.stack(
            [outcomes(sheet.values[""][:, k], sheet.values[control][:, k], _better(facts, k, sheet)) for k in known], 1
        )
        curves = [outcomes(sheet.curves[""][k], sheet.curves[control][k], _better(facts, k, sheet)) for k in known]
        rows = diagnosticity_rows(outcome, curves, sheet.methods, names, pooled, seed=seed)
        found["diagnosticity"] += [{"control": control, **row} for row in rows]
        if number:
            continue
        judges = [i for i, name in enumerate(names) if facts[name]["kind"] == "faithfulness"]
        own = [names[i] for i in judges]
        found["metric_tests"] = metric_tests(over_methods(credit(outcome[pooled][:, judges])), own)
        for m, method in enumerate(sheet.methods):
            if pooled[m]:
                tests = metric_tests(credit(outcome[m, judges]), own)
                found["metric_tests_by_method"] += [{"method": method, **row} for row in tests]
    return found


def _rank(sheet: Sheet, facts: Mapping[str, Mapping[str, Any]], diagnostic: Sequence[Row], seed: int) -> Ranking:
    """The methods by all faithfulness metrics, weighted by what they proved against the first control."""
    partial = _partial(sheet, facts)
    chosen = [
        k for k, name in enumerate(sheet.metrics) if facts[name]["kind"] == "faithfulness" and name not in partial
    ]
    rows = [m for m, method in enumerate(sheet.methods) if method not in ORACLES]
    names = [sheet.metrics[k] for k in chosen]
    control = next((c for c in sheet.values if c), None)
    weight = {r["metric"]: r["weight"] for r in diagnostic if r["control"] == control and not r["method"]}
    pick = np.ix_(rows, chosen)
    return rank(
        sheet.values[""][pick],
        [sheet.methods[m] for m in rows],
        names,
        [facts[name]["better"] for name in names],
        [1.0 if control is None else weight.get(name, 0.0) for name in names],
        None if control is None else sheet.values[control][pick],
        control=control or "permutation",
        seed=seed,
    )


def _partial(sheet: Sheet, facts: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Metrics that ask the model what one of the methods asks it: they would crown it by definition."""
    own = {method: base_name(method) for method in sheet.methods}
    found = {name: [m for m, base in own.items() if base in facts[name].get("repeats", ())] for name in sheet.metrics}
    return {name: methods for name, methods in found.items() if methods}


def _comparisons(sheet: Sheet, facts: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    """Every pair of methods on every metric that rates them, Holm within the metric."""
    rows = []
    for k, metric in enumerate(sheet.metrics):
        if facts[metric]["kind"] == "shape":
            continue
        for found in compare_all(settled(sheet.values[""][:, k]), sheet.methods, facts[metric]["better"]):
            rows.append({"metric": metric, **asdict(found)})
    return rows


# -- what is said -------------------------------------------------------------------------------------------


def _said(said: Verdict, ranking: Ranking, notes: Sequence[str]) -> Row:
    lists = {name: list(getattr(said, name)) for name in ("believe", "tied", "undecided", "avoid")}
    rest = {"texts": said.texts, "enough": said.enough, "sentence": said.sentence, "notes": list(notes)}
    return {**lists, **rest, "weights": dict(ranking.weights)}


def _notes(sheet: Sheet, facts: Mapping[str, Mapping[str, Any]], ranking: Ranking) -> list[str]:
    """What a reader of the verdict should know: the weights, what was undefined, and metrics at odds."""
    notes = []
    if len(sheet.values) == 1:
        notes.append("No random explanations were scored in their place, so every metric counts alike.")
    else:
        used = [f"{name} {weight:.2f}" for name, weight in ranking.weights.items() if weight]
        unused = [name for name, weight in ranking.weights.items() if not weight]
        if used:
            notes.append(
                f"Metrics count by how reliably they rated explanations above {RIVALS[ranking.control]}: "
                f"{', '.join(used)}."
            )
        if unused:
            notes.append(
                f"Not shown to rate explanations above {RIVALS[ranking.control]}, so without weight: "
                f"{', '.join(unused)}."
            )
    for name, methods in _partial(sheet, facts).items():
        notes.append(f"{name} asks the model what {' and '.join(methods)} asks it, so it has no say in the ranking.")
    gaps = []
    for k, name in enumerate(sheet.metrics):
        asked, whole = int(sheet.scored[""][:, k].any(0).sum()), int((~np.isnan(sheet.values[""][:, k])).all(0).sum())
        if facts[name]["kind"] == "faithfulness" and whole < asked:
            gaps.append(f"{name} on {asked - whole} of {asked}")
    if gaps:
        notes.append(f"Texts on which a metric is undefined for some method are left out of it: {', '.join(gaps)}.")
    return notes + _small(sheet) + _at_odds(sheet, facts, ranking)


def _small(sheet: Sheet) -> list[str]:
    """Texts on which a soft metric divides by little, so that its draws are too few."""
    found = []
    for k, name in enumerate(sheet.metrics):
        defined = ~np.isnan(sheet.values[""][:, k]).all(0)  # [texts]
        small = (sheet.rooms[:, k] < SMALL).any(0) & defined
        if small.any():
            found.append(f"{name} on {int(small.sum())} of {int(defined.sum())}")
    if not found:
        return []
    return [
        f"On some texts the model is hardly less sure without its tokens (D below {SMALL:g}), and ten draws of a soft "
        f"metric are too few: {', '.join(found)}. Ask for more (samples=100)."
    ]


def _at_odds(sheet: Sheet, facts: Mapping[str, Mapping[str, Any]], ranking: Ranking) -> list[str]:
    """Pairs of metrics with weight that order the methods (three or more, `random` apart) against each other."""
    rows = [m for m, method in enumerate(sheet.methods) if _real(method)]
    means = {}
    for k, name in enumerate(sheet.metrics):
        if ranking.weights.get(name):
            sign = 1 if facts[name]["better"] == "higher" else -1
            means[name] = sign * np.array([_mean(sheet.values[""][m, k]) for m in rows], dtype=np.float64)
    found = []
    for i, a in enumerate(means):
        for b in list(means)[i + 1 :]:
            both = ~np.isnan(means[a]) & ~np.isnan(means[b])
            tau = kendall(means[a][both], means[b][both]) if both.sum() >= 3 else None
            if tau is not None and tau < 0:
                found.append((tau, f"{a} and {b} order the methods against each other (Kendall's tau {tau:.2f})."))
    return [note for _, note in sorted(found)[:3]]


def _moved(home: tuple[str, Ranking], ranking: Ranking) -> list[str]:
    """What changed out of domain: only if another method than at home comes first."""
    name, before = home
    if not before.standings or not ranking.standings:
        return []
    first, now = before.standings[0].method, ranking.standings[0].method
    place = {s.method: s.place for s in ranking.standings}
    if first == now or first not in place:
        return []
    sure = "which the texts can tell apart" if ranking.apart(first, now) else "which the texts cannot tell apart"
    return [f"On {name} {first} ranks first; here {now} does and {first} is number {place[first]}, {sure}."]


# -- other sections -----------------------------------------------------------------------------------------


def _agreement(cells: Sequence[Cell], facts: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    """Mean rank correlation and overlap of every pair of methods."""
    found: dict[str, dict[str, list[float]]] = {}
    measures = {key: _first(facts, key) for key in ("agreement", "jaccard")}
    for cell in cells:
        for key, metric in measures.items():
            if cell.metric == metric:
                values = found.setdefault(cell.method, {"agreement": [], "jaccard": []})
                if cell.score.value is not None:
                    values[key].append(cell.score.value)
    rows = []
    for pair, values in found.items():
        a, _, b = pair.partition(PAIR)
        tau, jaccard = (float(np.mean(v)) if v else None for v in values.values())
        rows.append({"a": a, "b": b, "tau": tau, "jaccard": jaccard, "n": max(map(len, values.values()))})
    return rows


def _sparsity(sheet: Sheet, facts: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    metric = _first(facts, "sparsity")
    if metric is None:
        return []
    k, shares = sheet.metrics.index(metric), list(facts[metric]["ratios"])
    curves = [sheet.curves[""][k][m].T for m in range(len(sheet.methods))]
    return [
        {"method": method, "shares": shares, "mass": [_mean(point) for point in curve]}
        for method, curve in zip(sheet.methods, curves, strict=True)
    ]


def _truth(sheet: Sheet, facts: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    """How each metric ranks the oracle, the methods, random and the inverted oracle, where they were scored."""
    floor = next((m for m in sheet.methods if base_name(m) == CHANCE), None)
    if floor is None or any(name not in sheet.methods for name in ORACLES):
        return []
    rows = []
    for k, metric in enumerate(sheet.metrics):
        sign = 1 if facts[metric]["better"] == "higher" else -1
        own = dict(zip(sheet.methods, sheet.values[""][:, k], strict=True))
        means = {method: _mean(values) for method, values in own.items()}
        if facts[metric]["kind"] == "shape" or any(means[name] is None for name in (*ORACLES, floor)):
            continue
        order = sorted((m for m in means if means[m] is not None), key=lambda m: -sign * (means[m] or 0.0))
        test = signed_rank(sign * np.array([own[ORACLES[0]] - own[floor], own[floor] - own[ORACLES[1]]]))
        rows.append(
            {
                "metric": metric,
                "order": order,
                "values": [means[m] for m in order],
                "margin_oracle_random": _number(test.difference[0]),
                "margin_random_inverted": _number(test.difference[1]),
                "p_oracle_random": _number(test.p[0]),
                "p_random_inverted": _number(test.p[1]),
                "holds": bool((test.difference > 0).all()),
            }
        )
    return rows


def _real(method: str) -> bool:
    return method not in ORACLES and base_name(method) != CHANCE


def _better(facts: Mapping[str, Mapping[str, Any]], k: int, sheet: Sheet) -> Any:
    return facts[sheet.metrics[k]]["better"]


def _first(facts: Mapping[str, Mapping[str, Any]], name: str) -> str | None:
    """The first spec of a metric, whatever its options."""
    return next((spec for spec in facts if base_name(spec) == name), None)


def _mean(values: np.ndarray) -> float | None:
    return None if np.isnan(values).all() else float(np.nanmean(values))


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
