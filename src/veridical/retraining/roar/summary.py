"""From points to the summary: curves, areas, verdicts, sparsity and leakage, from whatever is done.

All of it is a function of the points' scores, so a run that was interrupted ends with the same files as one that was
not, to the last bit; what it cost is kept apart, in time.json and tables/time.csv.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from veridical.core import store, tables
from veridical.page.words import short_names
from veridical.retraining.roar import curve
from veridical.retraining.roar.cells import (
    FIXED,
    RANDOM,
    TOP_SHARES,
    TOP_TOKENS,
    place,
)
from veridical.retraining.roar.curve import estimate
from veridical.retraining.roar.experiment import Bench
from veridical.retraining.roar.page import roar_page
from veridical.retraining.roar.points import FACTS, Points, Request, Row
from veridical.retraining.roar.spent import time_spent

UNDEFINED = "undefined: masking at random costs nothing"


def write_facts(own: Bench) -> None:
    """What the data looks like to the model, for the page."""
    facts = {
        split: {
            "texts": len(found),
            "tokens": float(np.mean([sum(e.free) for e in found])),
            "cut_texts": sum(e.cut > 0 for e in found),
            "cut_tokens": sum(e.cut for e in found),
        }
        for split, found in own.encoded.items()
    }
    store.write_json(own.job.folder / FACTS, facts)


def write_summary(folder: Path, request: Request) -> Row:
    """Write what is known so far: summary.json, curves.parquet, the tables, the time and the page."""
    found = Points(folder, request)
    summary, spent = summarise(found), time_spent(found)
    store.write_json(folder / "summary.json", summary)
    store.write_json(folder / "time.json", spent)
    store.write_parquet(folder / "curves.parquet", tables.to_columns(found.rows()))
    for name in ("areas", "points", "sparsity", "leakage"):
        store.write_text(folder / "tables" / f"{name}.csv", tables.to_csv(summary[name]))
    store.write_text(folder / "tables" / "time.csv", tables.to_csv(spent["rows"]))
    stamp = store.read_json(folder / "stamp.json")
    store.write_text(folder / "report.html", roar_page(store.plain(summary), store.plain(spent), stamp))
    return store.plain(summary)


# -- the summary --------------------------------------------------------------------------------------------


def summarise(found: Points) -> Row:
    request, folder = found.request, found.folder
    spec = store.read_json(folder / "spec.json")["roar"]
    areas = [_area(found, measure, kind) for measure, kind in found.curves()[1:]]
    areas.sort(key=lambda row: (not row["recursive"], row["mean"] is None, -(row["mean"] or 0.0)))
    every = [*found.ends(), *(point for one in found.distinct() for point in found.between(*one))]
    summary: Row = {
        "title": f"Recursive ROAR: {spec['model']} on {spec['data']['name']}",
        "data": {"name": spec["data"]["name"], "splits": found.facts},
        "model": spec["model"],
        "settings": {
            "score": request.score,
            "interval": request.interval,
            "unit": request.steps.unit,
            "step": request.steps.size,
            "amounts": [amount.value for amount in found.all],
            "seeds": list(request.seeds),
            "rounding": spec["rounding"],
            "train": spec["train"],
        },
        "measures": list(request.measures),
        "names": dict(zip(request.measures, short_names(request.measures, 28), strict=True)),
        "trainings": {"done": sum(point is not None for point in every), "of": len(every)},
        "areas": areas,
        "curves": [_curve(found, measure, kind) for measure, kind in found.curves()],
        "points": [row for measure, kind in found.curves()[1:] for row in _points(found, measure, kind)],
        "sparsity": [row for m in request.measures if m not in FIXED for row in _sparsity(found, m)],
        "leakage": _leakage(found),
        "leakage_checks": _checked(found),
    }
    return {"answer": answer(summary), **summary}


def _area(found: Points, measure: str, recursive: bool) -> Row:
    """Eq. 3 per seed and over seeds. Of a curve that stops after some tokens the paper has none: there the mean
    distance below the baseline."""
    whole: dict[int, curve.Area] = {}
    for seed in found.request.seeds:
        own, floor = found.curve(seed, measure, recursive), found.curve(seed, RANDOM, False)
        if None not in own and None not in floor:
            ratios = [amount.value / found.all[-1].value for amount in found.all]
            whole[seed] = curve.area(ratios, own, floor)  # type: ignore[arg-type]
    normal = found.request.steps.unit == "percent"
    values = {seed: one.faithfulness if normal else one.between for seed, one in whole.items()}
    clipped = {seed: one.clipped if normal else None for seed, one in whole.items()}
    over, over_clipped = (estimate(list(v.values()), found.request.interval) for v in (values, clipped))
    return {
        "measure": measure,
        "recursive": recursive,
        "what": "area" if normal else "mean gap",
        **asdict(over),
        "clipped": over_clipped.mean,
        "clipped_low": over_clipped.low,
        "clipped_high": over_clipped.high,
        "values": {str(seed): value for seed, value in values.items()},
        "undefined": sum(value is None for value in values.values()),
        "side": over.side,
        "verdict": curve.said(over, recursive) if over.n or not whole else UNDEFINED,
    }


def _curve(found: Points, measure: str, recursive: bool) -> Row:
    values = {seed: found.curve(seed, measure, recursive) for seed in found.request.seeds}
    columns = [estimate(at, found.request.interval) for at in zip(*values.values(), strict=True)]
    return {
        "measure": measure,
        "recursive": recursive,
        "masked": [amount.value for amount in found.all],
        "mean": [one.mean for one in columns],
        "low": [one.low for one in columns],
        "high": [one.high for one in columns],
        "n": [one.n for one in columns],
        "values": {str(seed): own for seed, own in values.items() if any(v is not None for v in own)},
    }


def _points(found: Points, measure: str, recursive: bool) -> list[Row]:
    """How far below the same seed's baseline a curve lies at each amount between the ends."""
    rows = []
    for amount in found.amounts:
        pairs = [
            (found.value(seed, RANDOM, False, amount), found.value(seed, measure, recursive, amount))
            for seed in found.request.seeds
        ]
        gaps = [floor - own for floor, own in pairs if floor is not None and own is not None]
        below = estimate(gaps, found.request.interval)
        rows.append(
            {
                "measure": measure,
                "recursive": recursive,
                "masked": amount.value,
                "unit": amount.unit,
                "below_random": below.mean,
                "low": below.low,
                "high": below.high,
                "n": below.n,
                "side": below.side,
                "verdict": curve.said(below, recursive),
            }
        )
    return rows


def _sparsity(found: Points, measure: str) -> list[Row]:
    """Appendix E: mean over the test texts of each seed, then over seeds."""
    tops: dict[str, Sequence[float]] = {"tokens": TOP_TOKENS, "share": TOP_SHARES}
    by_seed: dict[str, list[list[float | None]]] = {unit: [] for unit in tops}
    undefined = 0
    for seed in found.request.seeds:
        order = found.seed(seed) / place(measure) / "order"
        if found.explained(order, "test"):
            table = store.read_parts(order / "test", [f"by_{unit}" for unit in tops])
            for unit in tops:
                by_seed[unit].append(_means(table[f"by_{unit}"].to_pylist()))
            undefined += sum(row[0] is None for row in table["by_tokens"].to_pylist())
    return [
        {
            "measure": measure,
            "unit": unit,
            "top": top,
            **asdict(estimate([means[k] for means in by_seed[unit]], found.request.interval)),
            "undefined_texts": undefined,
        }
        for unit, of_unit in tops.items()
        for k, top in enumerate(of_unit)
    ]


def _means(rows: Sequence[Sequence[float | None]]) -> list[float | None]:
    """The mean of every column over the rows that have a value."""
    known = np.array([row for row in rows if row[0] is not None], dtype=np.float64)
    return [float(value) for value in known.mean(0)] if len(known) else [None] * len(rows[0])


def _leakage(found: Points) -> list[Row]:
    """Per seed: what the positions of the masks alone tell, where the curve lies furthest above the baseline."""
    rows = []
    for measure, recursive, seed, at, checked in found.leaks():
        nothing = found.read(found.seed(seed) / "masked")
        own, floor = found.value(seed, measure, recursive, at), found.value(seed, RANDOM, False, at)
        if checked is None or nothing is None or own is None or floor is None:
            continue
        rows.append(
            {
                "measure": measure,
                "recursive": recursive,
                "seed": seed,
                "masked": at.value,
                "above_random": own - floor,
                "positions_alone": checked["scores"]["test"][found.score],
                "everything_masked": nothing["scores"]["test"][found.score],
            }
        )
    return rows


def _checked(found: Points) -> Row:
    """How many curves were looked at for leakage, of those that are to be."""
    every = found.checked()
    whole = [
        one
        for one in every
        if None not in found.curve(one[2], one[0], one[1]) and None not in found.curve(one[2], RANDOM, False)
    ]
    waiting = [one[:3] for one in found.leaks() if one[4] is None]
    return {"asked": found.request.leakage, "done": sum(one not in waiting for one in whole), "of": len(every)}


# -- in words -----------------------------------------------------------------------------------------------


def answer(summary: Mapping[str, Any]) -> str:
    """The first sentence of the page."""
    rows = [row for row in summary["areas"] if row["recursive"] and row["mean"] is not None]
    trainings = summary["trainings"]
    if not rows and any(row["undefined"] for row in summary["areas"]):
        return "No area is defined: masking at random costs nothing here, so there is nothing to compare with."
    if not rows:
        return f"No curve is whole yet: {trainings['done']} of {trainings['of']} trainings are done."
    named = {row["measure"]: f"{summary['names'][row['measure']]} ({_size(row)})" for row in rows}
    sides = {side: [named[row["measure"]] for row in rows if row["side"] == side] for side in curve.SAID}
    if not any(sides.values()):
        seeds = max(row["n"] for row in rows)
        below = [named[row["measure"]] for row in rows if row["mean"] > 0]
        first = f"furthest below random lies {below[0]}" if below else "no measure lies below random"
        rest = f", then {_list(below[1:])}" if below[1:] else ""
        return f"After {seeds} of the {curve.FEWEST} seeds that a verdict takes, {first}{rest}."
    parts = ["No measure could be shown to point at what the model needs"]
    if sides["below"]:
        who = f"{_list(sides['below'])} {_verb(sides['below'], 'call')}"
        parts = [f"Masking what {who} important hurts more than masking at random"]
    if sides["none"]:
        parts.append(f"{_list(sides['none'])} cannot be told from random")
    if sides["above"]:
        parts.append(f"{_list(sides['above'])} {_verb(sides['above'], 'lie')} above it, so the class may leak")
    return "; ".join(parts) + "."


def _size(row: Mapping[str, Any]) -> str:
    """An area in per cent; a gap in points of the score, a hundred of which are the whole of it."""
    said = f"{100 * row['mean']:.0f}".replace("-", "−")
    return f"{said}%" if row["what"] == "area" else f"{said} points"


def _verb(names: Sequence[str], verb: str) -> str:
    return f"{verb}s" if len(names) == 1 else verb


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
