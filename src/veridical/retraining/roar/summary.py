"""From points to the summary: curves, areas, verdicts, sparsity and leakage, from whatever is done.

All of it is a function of the points' scores, so a run that was interrupted ends with the same files as one that was
not, to the last bit; what it cost is kept apart, in time.json and tables/time.csv.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import numpy as np

from veridical.core import store, stored, tables
from veridical.page.words import short_names
from veridical.retraining.roar import curve
from veridical.retraining.roar.cells import FIXED, RANDOM, TOP_SHARES, TOP_TOKENS, place
from veridical.retraining.roar.curve import over_seeds
from veridical.retraining.roar.experiment import Bench, OneModel
from veridical.retraining.roar.page import roar_page
from veridical.retraining.roar.points import FACTS, Points, Request, SplitFacts
from veridical.retraining.roar.record import (
    SUMMARY,
    TIME,
    DataFacts,
    Gap,
    Leak,
    LeakageChecks,
    MeanArea,
    MeanCurve,
    RoarSettings,
    RoarSummary,
    TopShare,
    Trainings,
)
from veridical.retraining.roar.spent import time_spent

TITLES = {True: "Recursive ROAR", False: "Masked curves without retraining"}
UNDEFINED = "undefined: masking at random costs nothing"
TOPS: dict[Literal["tokens", "share"], Sequence[float]] = {"tokens": TOP_TOKENS, "share": TOP_SHARES}


def write_facts(bench: Bench) -> None:
    """What the data looks like to the model, for the page."""
    facts = {
        split: SplitFacts(
            texts=len(encoded),
            tokens=float(np.mean([sum(e.free) for e in encoded])),
            cut_texts=sum(e.cut > 0 for e in encoded),
            cut_tokens=sum(e.cut for e in encoded),
        )
        for split, encoded in bench.encoded.items()
    }
    store.write_json(bench.experiment.folder / FACTS, facts)


def write_summary(folder: Path, request: Request) -> RoarSummary:
    """Write what is known so far: summary.json, curves.parquet, the tables, the time and the page."""
    points = Points(folder, request)
    summary, spent = summarise(points), time_spent(points)
    stored.write(folder / SUMMARY, summary)
    stored.write(folder / TIME, spent)
    store.write_parquet(folder / "curves.parquet", tables.to_columns(points.rows()))
    rows = {
        "areas": summary.areas,
        "points": summary.points,
        "sparsity": summary.sparsity,
        "leakage": summary.leakage,
        "time": spent.rows,
    }
    for name, table in rows.items():
        store.write_text(folder / "tables" / f"{name}.csv", tables.to_csv(table))
    stamp = store.read_json(folder / "stamp.json")
    store.write_text(folder / "report.html", roar_page(summary, spent, stamp))
    return summary


# -- the summary --------------------------------------------------------------------------------------------


def summarise(points: Points) -> RoarSummary:
    """Everything that the points done so far tell."""
    request = points.request
    spec = stored.read_fields(points.folder / "spec.json", "roar")["roar"]
    one_model = OneModel(**spec["one_model"]) if "one_model" in spec else None
    areas = [_area(points, measure, kind) for measure, kind in points.curves()[1:]]
    areas.sort(key=lambda area: (not area.recursive, area.mean is None, -(area.mean or 0.0)))
    every = [*points.ends(), *(point for curve in points.distinct() for point in points.between(*curve))]
    names = dict(zip(request.measures, short_names(request.measures, 28), strict=True))
    trainings = Trainings(done=sum(point is not None for point in every), of=len(every))
    return RoarSummary(
        answer=answer(areas, names, trainings, retrained=one_model is None),
        title=f"{TITLES[one_model is None]}: {spec['model']} on {spec['data']['name']}",
        data=DataFacts(spec["data"]["name"], points.facts),
        model=spec["model"],
        settings=RoarSettings(
            score=request.score,
            interval=request.interval,
            unit=request.steps.unit,
            step=request.steps.size,
            amounts=tuple(amount.value for amount in points.all),
            seeds=request.seeds,
            rounding=spec["rounding"],
            train=spec["train"],
            one_model=one_model,
        ),
        measures=request.measures,
        names=names,
        trainings=trainings,
        areas=tuple(areas),
        curves=tuple(_curve(points, measure, kind) for measure, kind in points.curves()),
        points=tuple(gap for measure, kind in points.curves()[1:] for gap in _gaps(points, measure, kind)),
        sparsity=tuple(row for m in request.measures if m not in FIXED for row in _sparsity(points, m)),
        leakage=tuple(_leakage(points)),
        leakage_checks=_checked(points),
    )


def _area(points: Points, measure: str, recursive: bool) -> MeanArea:
    """Eq. 3 per seed and over seeds. Of a curve that stops after some tokens the paper has none: there the mean
    distance below the baseline."""
    whole: dict[int, curve.Area] = {}
    for seed in points.request.seeds:
        scores, floor = points.curve(seed, measure, recursive), points.curve(seed, RANDOM, False)
        if None not in scores and None not in floor:
            ratios = [amount.value / points.all[-1].value for amount in points.all]
            whole[seed] = curve.area(ratios, scores, floor)  # type: ignore[arg-type]
    normal = points.request.steps.unit == "percent"
    values = {seed: area.faithfulness if normal else area.between for seed, area in whole.items()}
    clipped = [area.clipped if normal else None for area in whole.values()]
    over, over_clipped = (over_seeds(list(v), points.request.interval) for v in (values.values(), clipped))
    return MeanArea(
        measure=measure,
        recursive=recursive,
        what="area" if normal else "mean gap",
        **asdict(over),
        clipped=over_clipped.mean,
        clipped_low=over_clipped.low,
        clipped_high=over_clipped.high,
        values={str(seed): value for seed, value in values.items()},
        undefined=sum(value is None for value in values.values()),
        side=over.side,
        verdict=curve.verdict(over, recursive, points.retrained) if over.n or not whole else UNDEFINED,
    )


def _curve(points: Points, measure: str, recursive: bool) -> MeanCurve:
    values = {seed: points.curve(seed, measure, recursive) for seed in points.request.seeds}
    columns = [over_seeds(column, points.request.interval) for column in zip(*values.values(), strict=True)]
    return MeanCurve(
        measure=measure,
        recursive=recursive,
        masked=tuple(amount.value for amount in points.all),
        mean=tuple(column.mean for column in columns),
        low=tuple(column.low for column in columns),
        high=tuple(column.high for column in columns),
        n=tuple(column.n for column in columns),
        values={str(seed): tuple(scores) for seed, scores in values.items() if any(v is not None for v in scores)},
    )


def _gaps(points: Points, measure: str, recursive: bool) -> list[Gap]:
    """How far below the same seed's baseline a curve lies at each amount between the ends."""
    rows = []
    for amount in points.amounts:
        pairs = [
            (points.value(seed, RANDOM, False, amount), points.value(seed, measure, recursive, amount))
            for seed in points.request.seeds
        ]
        gaps = [floor - score for floor, score in pairs if floor is not None and score is not None]
        below = over_seeds(gaps, points.request.interval)
        rows.append(
            Gap(
                measure=measure,
                recursive=recursive,
                masked=amount.value,
                unit=amount.unit,
                below_random=below.mean,
                low=below.low,
                high=below.high,
                n=below.n,
                side=below.side,
                verdict=curve.verdict(below, recursive, points.retrained),
            )
        )
    return rows


def _sparsity(points: Points, measure: str) -> list[TopShare]:
    """Appendix E: mean over the test texts of each seed, then over seeds."""
    by_seed: dict[str, list[list[float | None]]] = {unit: [] for unit in TOPS}
    undefined = 0
    for seed in points.request.seeds:
        order = points.seed(seed) / place(measure) / "order"
        if points.explained(order, "test"):
            table = store.read_parts(order / "test", [f"by_{unit}" for unit in TOPS])
            for unit in TOPS:
                by_seed[unit].append(_means(table[f"by_{unit}"].to_pylist()))
            undefined += sum(row[0] is None for row in table["by_tokens"].to_pylist())
    return [
        TopShare(
            measure=measure,
            unit=unit,
            top=top,
            **asdict(over_seeds([means[k] for means in by_seed[unit]], points.request.interval)),
            undefined_texts=undefined,
        )
        for unit, tops in TOPS.items()
        for k, top in enumerate(tops)
    ]


def _means(rows: Sequence[Sequence[float | None]]) -> list[float | None]:
    """The mean of every column over the rows that have a value."""
    known = np.array([row for row in rows if row[0] is not None], dtype=np.float64)
    return [float(value) for value in known.mean(0)] if len(known) else [None] * len(rows[0])


def _leakage(points: Points) -> list[Leak]:
    """Per seed: what the positions of the masks alone tell, where the curve lies furthest above the baseline."""
    rows = []
    for measure, recursive, seed, at, checked in points.leaks():
        nothing = points.read(points.seed(seed) / "masked")
        score, floor = points.value(seed, measure, recursive, at), points.value(seed, RANDOM, False, at)
        if checked is None or nothing is None or score is None or floor is None:
            continue
        rows.append(
            Leak(
                measure=measure,
                recursive=recursive,
                seed=seed,
                masked=at.value,
                above_random=score - floor,
                positions_alone=checked.test(points.score),
                everything_masked=nothing.test(points.score),
            )
        )
    return rows


def _checked(points: Points) -> LeakageChecks:
    """How many curves were looked at for leakage, of those that are to be."""
    every = points.checked()
    whole = [
        (measure, recursive, seed)
        for measure, recursive, seed in every
        if None not in points.curve(seed, measure, recursive) and None not in points.curve(seed, RANDOM, False)
    ]
    waiting = [(measure, recursive, seed) for measure, recursive, seed, _, check in points.leaks() if check is None]
    return LeakageChecks(points.request.leakage, done=sum(key not in waiting for key in whole), of=len(every))


# -- in words -----------------------------------------------------------------------------------------------


def answer(areas: Sequence[MeanArea], names: Mapping[str, str], trainings: Trainings, *, retrained: bool = True) -> str:
    """The first sentence of the page."""
    known = [area for area in areas if area.recursive and area.mean is not None]
    if not known and any(area.undefined for area in areas):
        return "No area is defined: masking at random costs nothing here, so there is nothing to compare with."
    if not known:
        what = "trainings" if retrained else "points"
        return f"No curve is whole yet: {trainings.done} of {trainings.of} {what} are done."
    named = {area.measure: f"{names[area.measure]} ({_size(area)})" for area in known}
    sides = {side: [named[area.measure] for area in known if area.side == side] for side in curve.SIDES}
    if not any(sides.values()):
        seeds = max(area.n for area in known)
        below = [named[area.measure] for area in known if (area.mean or 0.0) > 0]
        first = f"furthest below random lies {below[0]}" if below else "no measure lies below random"
        others = f", then {_list(below[1:])}" if below[1:] else ""
        return f"After {seeds} of the {curve.FEWEST} seeds that a verdict takes, {first}{others}."
    parts = ["No measure could be shown to point at what the model needs"]
    if sides["below"]:
        who = f"{_list(sides['below'])} {_verb(sides['below'], 'call')}"
        parts = [f"Masking what {who} important hurts more than masking at random"]
    if sides["none"]:
        parts.append(f"{_list(sides['none'])} cannot be told from random")
    if sides["above"]:
        leaks = ", so the class may leak" if retrained else ": worse than random"
        parts.append(f"{_list(sides['above'])} {_verb(sides['above'], 'lie')} above it{leaks}")
    return "; ".join(parts) + "."


def _size(area: MeanArea) -> str:
    """An area in per cent; a gap in points of the score, a hundred of which are the whole of it."""
    size = f"{100 * (area.mean or 0.0):.0f}".replace("-", "−")
    return f"{size}%" if area.what == "area" else f"{size} points"


def _verb(names: Sequence[str], verb: str) -> str:
    return f"{verb}s" if len(names) == 1 else verb


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
