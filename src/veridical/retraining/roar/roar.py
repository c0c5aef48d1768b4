"""ROAR and Recursive ROAR: mask what a measure calls important, retrain, and see whether it hurts more than masking at
random (Madsen et al. 2022). It asks no model about texts it was not trained on, and it takes hundreds of trainings: so
it runs as a grid of cells that may be interrupted, shared among machines and added to.

    report.html, summary.json, curves.parquet, tables/*.csv    the answer so far, rewritten whenever a cell is done
    time.json, tables/time.csv                                 what it cost: the one part that no two runs share
    seed0/...                                                  the points (cells.py)

A folder is of one dataset, model and training. More seeds, measures or steps are added to it by asking again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from veridical.attribution import methods as all_methods
from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.options import takes
from veridical.core.progress import Report
from veridical.core.records import Dataset
from veridical.core.spec import listed
from veridical.core.wording import option
from veridical.explanations.explain import attributions
from veridical.grid import pool as grid
from veridical.grid.job import is_done
from veridical.retraining.options import (
    PAPER,
    QUICK_SEEDS,
    QUICK_STEP,
    SEEDS,
    STEP,
    RoarOptions,
    one_model_folders,
    seeds_of,
)
from veridical.retraining.roar.cells import FIXED, ORACLE, RANDOM, chain, leak, place, shared
from veridical.retraining.roar.experiment import SPLITS, Bench, Experiment, asked, begin, make_bench
from veridical.retraining.roar.finished import Estimate, Roar, Share
from veridical.retraining.roar.mask import Steps
from veridical.retraining.roar.one_model import asked_of, bench_of, seeds_asked, time_one
from veridical.retraining.roar.points import Request, column, default_score
from veridical.retraining.roar.record import RoarSummary
from veridical.retraining.roar.summary import write_facts, write_summary
from veridical.retraining.roar.timing import Timing, take_time

__all__ = ["PAPER", "Estimate", "Roar", "chain", "leak", "plan", "reckon", "roar", "shared"]

TIMING = "timing.json"


@takes(RoarOptions)
def roar(options: RoarOptions) -> Roar:
    """Run Recursive ROAR, or go on with it: mask what a method calls important, retrain, and see what is lost.

    `seeds` is how many (0, 1, ...) or which; one token at a time (`tokens`) is appendix F. A quick run's ends and
    baseline serve the full run in the same folder. With `retrain=False` nothing is trained: `model` is a run that was
    trained on masks (`train(..., mask=1)`), or a folder of such runs, and every point is its own score.

    Returns:
        What is known at the end: `.summary` every curve and area, `.page` the report, `.cost` what it took; after
        `dry_run` the cost alone.

    Example:
        >>> found = veridical.roar("planted", "bilstm", methods=["attention", "gradient"], out="roar", quick=True)
        >>> found.plot()
    """
    quick, model, data = options.quick, options.model, options.data
    how: dict[str, Any] = {name: getattr(options, name) for name in ("engine", "workers", "shard", "address")}
    grid.check(**how)
    if not options.retrain:
        return _of_one_model(options, how)
    experiment = asked(options.out, data, model, config=options.config, limit=options.limit, rounding=options.rounding)
    request = Request(
        measures=_measures(options.methods, experiment.data),
        seeds=seeds_of(options.seeds if options.seeds is not None else QUICK_SEEDS if quick else SEEDS),
        steps=_steps(options.step or (QUICK_STEP if quick else STEP), options.tokens),
        kinds=(True, False) if options.plain else (True,),
        score=options.score or default_score(experiment.data.name),
        leakage=options.leakage,
        interval=options.interval,
    )
    first = make_bench(experiment, request.seeds[0])
    for measure in request.measures:  # one that does not work on this model says so before anything is trained
        if measure not in FIXED:
            attributions(first.clf, first.encoded["test"][:1], all_methods.choose(measure), "gold")
    timing = _timing(first, request.measures)
    cells = plan(experiment, request, timing)
    return _run(options, how, first, request, cells, reckon(experiment, request, timing, cells))


def _run(
    options: RoarOptions,
    how: dict[str, Any],
    first: Bench,
    request: Request,
    cells: list[grid.Job],
    cost: Estimate,
) -> Roar:
    """Do the cells, telling the summary so far whenever one is done."""
    experiment = first.experiment
    done = sum(is_done(experiment.folder, cell.key, cell.hash) for cell in cells)
    with Report(f"ROAR on {experiment.data.name}", len(cells), done=done, progress=options.progress) as report:
        report.say(cost.sentence(options.workers or grid.cores()))
        if options.dry_run:
            return Roar(experiment.folder, None, cost)
        begin(experiment)  # from here on the folder is of this data, model and training
        write_facts(first)
        store.write_json(experiment.folder / TIMING, cost.timing)

        told: set[str] = set()

        def tick(key: str) -> None:
            report.advance(key)
            for seed, sentence in _unlearnt(write_summary(experiment.folder, request)).items():
                if seed not in told:
                    told.add(seed)
                    report.say(sentence)

        try:
            grid.run(cells, experiment.folder, **how, tick=tick)
        finally:  # whatever stopped it: what is done is told
            summary = write_summary(experiment.folder, request)
    return Roar(experiment.folder, summary, cost)


def _unlearnt(summary: RoarSummary) -> dict[str, str]:
    """Of every seed whose model knows as little of whole texts as of masks alone a sentence, hours before the end."""
    (random,) = [curve for curve in summary.curves if curve.measure == RANDOM]
    sentences = {}
    for seed, (whole, *_, masked) in random.values.items():
        if random.masked[-1] == 100 and whole is not None and masked is not None and whole <= masked:
            sentences[seed] = (
                f"Seed {seed}: the model is no better on whole texts ({whole:.1%}) than on texts that are masked "
                f"altogether ({masked:.1%}). It has learnt nothing that masking could take away, so it will have no "
                "area; interrupt, and train it longer or faster (train.epochs, train.lr)."
            )
    return sentences


def _of_one_model(options: RoarOptions, how: dict[str, Any]) -> Roar:
    """The same curves of models that were trained on masks, each of which is asked about its own masked texts."""
    quick, model = options.quick, options.model
    rounding, force = options.rounding, options.force
    given = options.seeds if options.seeds is None else seeds_of(options.seeds)
    seeds = seeds_asked(model, given)[: QUICK_SEEDS if quick and given is None else None]
    experiment = asked_of(options.out, options.data, model, seeds, limit=options.limit, rounding=rounding, force=force)
    request = Request(
        measures=_measures(options.methods, experiment.data),
        seeds=seeds,
        steps=_steps(options.step or (QUICK_STEP if quick else STEP), options.tokens),
        kinds=(True, False) if options.plain else (True,),
        score=options.score or default_score(experiment.data.name),
        leakage=False,  # nothing is trained on what the masks may tell
        interval=options.interval,
    )
    folders = one_model_folders(model)
    first = bench_of(experiment, request.seeds[0], folders[request.seeds[0]])
    timing = _timing(first, request.measures)
    cells = [
        cell for seed in request.seeds for cell in _cells_of_model(experiment, request, timing, seed, folders[seed])
    ]
    return _run(options, how, first, request, cells, reckon(experiment, request, timing, cells))


def _cells_of_model(experiment: Experiment, request: Request, timing: Timing, seed: int, folder: str) -> list[grid.Job]:
    steps = request.steps
    same = {"out": str(experiment.folder.absolute()), "seed": seed, "model": str(Path(folder).absolute())}
    cells = [grid.Job(f"seed{seed}/ends", "veridical.roar:ends", same, weight=2 * timing.point)]
    for measure, recursive in [(RANDOM, False), *_chains(request)]:
        key = f"seed{seed}/{place(measure)}/{steps.name if recursive else f'plain-{steps.name}'}"
        about = {"measure": measure, "recursive": recursive, "size": steps.size, "unit": steps.unit, "last": steps.last}
        cost = timing.chain(measure, len(steps.amounts), _passes(request, measure, recursive))
        cells.append(grid.Job(key, "veridical.roar:curve", {**same, **about}, weight=cost))
    return cells


# -- what is asked for --------------------------------------------------------------------------------------


def _measures(specs: str | Sequence[str], data: Dataset) -> tuple[str, ...]:
    """Specs as short as they can be, each once; the baseline is always run and need not be named."""
    measures: list[str] = []
    for spec in listed(specs):
        if spec == ORACLE:
            without = next((e for s in SPLITS for e in data.splits[s] if not e.rationale), None)
            if without is not None:
                raise InputError(
                    f"The oracle masks rationales first, and example {without.id!r} of {data.name} has none; "
                    f"leave it out of {option('methods', '--method')}, or use data that has them."
                )
            measures.append(spec)
        elif all_methods.choose(spec).entry.name != RANDOM:
            measures.append(all_methods.choose(spec).label)
    if not measures:
        raise InputError(f"There is no measure to hold against random; name one with {option('methods', '--method')}.")
    return tuple(dict.fromkeys(measures))


def _steps(step: int, tokens: int | None) -> Steps:
    return Steps(step) if tokens is None else Steps(1, "token", tokens)


def plan(experiment: Experiment, request: Request, timing: Timing) -> list[grid.Job]:
    """The cells, seed by seed, so that the first whole curves are there as soon as can be."""
    return [cell for seed in request.seeds for cell in _plan_of_seed(experiment, request, timing, seed)]


def _plan_of_seed(experiment: Experiment, request: Request, timing: Timing, seed: int) -> list[grid.Job]:
    """The two ends and the baseline, the measures' curves, and last the checks of those for leakage."""
    steps = request.steps
    common: dict[str, Any] = {"out": str(experiment.folder.absolute()), "seed": seed}
    same = {"size": steps.size, "unit": steps.unit, "last": steps.last}
    points = len(steps.amounts)
    whole, random = f"seed{seed}/whole", f"seed{seed}/{RANDOM}-{steps.name}"
    baseline = {**common, "measure": RANDOM, "recursive": False, **same}
    cells = [
        grid.Job(whole, "veridical.roar:shared", {**common, "everything": False}, weight=timing.point),
        grid.Job(random, "veridical.roar:chain", baseline, weight=timing.chain(RANDOM, points, 0)),
        grid.Job(f"seed{seed}/masked", "veridical.roar:shared", {**common, "everything": True}, weight=timing.point),
    ]
    leaks = []
    for measure, recursive in _chains(request):
        key = f"seed{seed}/{place(measure)}/{steps.name if recursive else f'plain-{steps.name}'}"
        curve = {**common, "measure": measure, "recursive": recursive, **same}
        needs = () if measure in FIXED else (whole,)
        cost = timing.chain(measure, points, _passes(request, measure, recursive))
        cells.append(grid.Job(key, "veridical.roar:chain", curve, needs, cost))
        if request.leakage and measure not in FIXED:
            check = {**curve, "score": column(request.score)}
            leaks.append(grid.Job(f"{key}-leak", "veridical.roar:leak", check, (key, random), timing.point))
    return [*cells, *leaks]


def _chains(request: Request) -> list[tuple[str, bool]]:
    """The curves of a seed beside the baseline's: a measure, and whether recursive. A fixed order has one of both."""
    chains = [(measure, recursive) for recursive in request.kinds for measure in request.measures]
    return [(measure, recursive) for measure, recursive in chains if recursive or measure not in FIXED]


def _passes(request: Request, measure: str, recursive: bool) -> int:
    """Explanations of all texts that a curve takes; that of the whole texts serves both kinds."""
    if measure in FIXED:
        return 0
    return len(request.steps.amounts) if recursive else int(True not in request.kinds)


def reckon(experiment: Experiment, request: Request, timing: Timing, cells: Sequence[grid.Job]) -> Estimate:
    """What the cells cost together, and by measure."""
    points, seeds, chains = len(request.steps.amounts), len(request.seeds), _chains(request)
    trained = experiment.one_model is None
    rows = [Share("the two ends", 2 * seeds * trained, 0, 2 * seeds * timing.point)]
    for measure, recursive in [(RANDOM, False), *chains]:
        passes = _passes(request, measure, recursive)
        rows.append(
            Share(
                measure=measure if recursive or measure == RANDOM else f"{measure}, not recursive",
                trainings=points * seeds * trained,
                explanations=passes * seeds,
                seconds=timing.chain(measure, points, passes) * seeds,
            )
        )
    checks = sum(measure not in FIXED for measure, _ in chains) if request.leakage else 0
    if checks:
        rows.append(Share("leakage checks, at most", checks * seeds, 0, checks * seeds * timing.point))
    return Estimate(
        cells=len(cells),
        trainings=sum(row.trainings for row in rows),
        explanations=sum(row.explanations for row in rows),
        seconds=sum(cell.weight for cell in cells),
        left=sum(cell.weight for cell in cells if not is_done(experiment.folder, cell.key, cell.hash)),
        rows=tuple(rows),
        timing=timing,
    )


def _timing(bench: Bench, measures: Sequence[str]) -> Timing:
    """Taken once per folder; measures asked for later are timed then."""
    path = bench.experiment.folder / TIMING
    held = Timing(**store.read_json(path)) if path.exists() else None
    missing = [m for m in measures if m not in FIXED and (held is None or m not in held.explain)]
    if held is not None and not missing:
        return held
    new = take_time(bench, missing) if bench.experiment.one_model is None else time_one(bench, missing)
    return dataclasses.replace(new, explain={**(held.explain if held else {}), **new.explain})
