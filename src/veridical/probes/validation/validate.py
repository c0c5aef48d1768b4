"""The auditor audited: in worlds whose truth is known, how often is the verdict wrong?

    spec.json, stamp.json                       what all worlds of the folder share
    worlds/seed0/<world>/                       a world's scores (making.py)
    summary.json, tables/*.csv, report.html     the answer so far, rewritten whenever a world is done (summary.py)

A folder takes more seeds at any time. Judging stored scores is cheap next to making them, and is done anew every time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from veridical.audits.plan import known_methods
from veridical.audits.selection import default_methods
from veridical.audits.sequential import Rule
from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.options import takes
from veridical.core.progress import Report
from veridical.core.spec import listed
from veridical.grid import pool as grid
from veridical.grid.job import is_done
from veridical.metric import metrics as all_metrics
from veridical.probes.options import ValidateOptions
from veridical.probes.validation.finished import Validation
from veridical.probes.validation.making import is_small, read_facts
from veridical.probes.validation.panels import SOFT, of_order
from veridical.probes.validation.record import ValidationSummary
from veridical.probes.validation.summary import Judged, Request, judged, sum_up, write
from veridical.probes.validation.world import Setting, World, worlds


@takes(ValidateOptions)
def validate(options: ValidateOptions) -> Validation:
    """How often an audit's verdict is wrong: train models in worlds whose deciding words are known, and audit them.

    What each panel of metrics says in the worlds is held against the truth. Interrupted at any moment, the same call
    goes on.

    Returns:
        What is known so far: `.summary`, `.page` the report, `.to_pandas()` a row for each world.

    Example:
        >>> found = veridical.validate(out="validation", seeds=range(2), fresh=range(5, 7))
        >>> print(found.summary.answer)
    """
    how: dict[str, Any] = {name: getattr(options, name) for name in ("engine", "workers", "shard", "address")}
    grid.check(**how)
    out, setting = Path(options.out), setting_of(options)
    store.claim(out, setting.spec)
    seeds, fresh = tuple(options.seeds), tuple(options.fresh)
    asked = list(worlds((*seeds, *fresh), setting.models, options.rules, options.copies, options.shortcuts))
    request = Request(setting, seeds, fresh, len(asked), Rule())
    jobs = plan(out, asked)
    known: dict[str, Judged] = {}
    done = sum(is_done(out, job.key, job.hash) for job in jobs)
    with Report("Worlds", len(jobs), done=done, progress=options.progress) as report:
        setting.write(out)

        def tick(key: str) -> None:
            report.advance(key)
            _sum_up(out, request, asked, known)

        try:
            grid.run(jobs, out, **how, tick=tick)
        finally:  # whatever stopped it: what is done is told
            summary = _sum_up(out, request, asked, known)
    return Validation(out, summary)


def _sum_up(out: Path, request: Request, asked: Sequence[World], known: dict[str, Judged]) -> ValidationSummary:
    """Judge the worlds that are done and not yet known, sum up, and write it down."""
    for world in asked:
        facts = read_facts(out, world) if world.key not in known else None
        if facts is not None:
            known[world.key] = judged(out, request, facts)
    worlds = [known[world.key] for world in asked if world.key in known]
    summary = sum_up(request, worlds)
    write(out, summary, worlds)
    return summary


def setting_of(options: ValidateOptions) -> Setting:
    """What was asked for, every name of it checked."""
    named = default_methods() if options.methods is None else listed(options.methods)
    chosen = known_methods(named)
    metrics = judging_metrics(options.metrics)
    return Setting(
        models=tuple(listed(options.models)),
        methods=tuple(chosen),
        metrics=tuple(metric for metric in metrics if metric not in SOFT),
        shaped=tuple(metric for metric in metrics if metric in SOFT),
        texts=options.texts,
        dear_texts=options.dear_texts,
        size=options.size,
        length=options.length,
        learnt=options.learnt,
        epochs=options.epochs,
    )


def judging_metrics(named: str | Sequence[str] | None) -> tuple[str, ...]:
    """The metrics that explanations are scored by: those of all panels, or some that make up a panel at least."""
    known = (*of_order(), *SOFT)
    if named is None:
        return known
    asked = [choice.label for choice in all_metrics.choose_all(named)]
    if strange := [label for label in asked if label not in known]:
        raise InputError(f"{strange[0]} is in no panel that is judged here; name some of {', '.join(known)}.")
    return tuple(label for label in known if label in asked)


def plan(out: Path, made: Sequence[World]) -> list[grid.Job]:
    """A job for every world, the cheap ones first."""
    return [
        grid.Job(
            world.key,
            "veridical.validate:make",
            {"out": str(out.absolute()), **dataclasses.asdict(world)},
            weight=1.0 if is_small(world.model) else 6.0,
        )
        for world in sorted(made, key=lambda world: not is_small(world.model))
    ]
