"""What `veridical train` and `veridical status` print."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from veridical.cli.data import plain_table
from veridical.cli.speech import say
from veridical.core.store import plain
from veridical.explanations.display import duration
from veridical.grid.status import RunStatus

if TYPE_CHECKING:
    from veridical.training.config import TrainJob
    from veridical.training.train import Run


def run_job(job: TrainJob, *, progress: bool | None = None) -> list[Run]:
    """Train every seed of a job. A bound that is to be searched is found first, in the folder `bound` beside the
    seeds'; then all seeds are trained under it."""
    from accelerate import PartialState

    from veridical.training.bound_search import is_searched, search
    from veridical.training.train import train, train_seeds

    same: dict[str, Any] = {"objective": job.objective, "config": job.train, "limit": job.limit, "progress": progress}
    bound, searched = job.bound, is_searched(job.bound)
    if searched and bound is not None:
        place = None if job.out is None else Path(job.out) / "bound"
        bound = search(job.data, job.model, bound=bound, out=place, **same)
        if progress is not False and PartialState().is_main_process:
            say(f"bound: {bound}")
    if len(job.seeds) == 1 and not searched:
        return [train(job.data, job.model, seed=job.seeds[0], bound=bound, out=job.out, **same)]
    return train_seeds(job.data, job.model, seeds=job.seeds, bound=bound, out=job.out, **same)


def print_runs(runs: Sequence[Run], as_json: bool) -> None:
    """The scores of every run and split, then the folders; once, however many processes trained. Exit code 1 if a run
    failed: its bound was not met."""
    from accelerate import PartialState

    if not PartialState().is_main_process:
        return
    if as_json:
        typer.echo(json.dumps(plain(list(runs)), indent=2))
    else:
        _show(runs)
    if any(run.failed for run in runs):  # after all seeds have had their turn
        raise typer.Exit(1)


def _show(runs: Sequence[Run]) -> None:
    columns = ("accuracy", "macro_f1", "calibration_error", "loss")
    table = plain_table("seed", "split", *columns, right=columns)
    for run in runs:
        if run.failed:
            table.add_row(str(run.seed), "failed", *("" for _ in columns))
        for split, scores in run.scores.items():
            values = (scores.get(name) for name in columns)
            table.add_row(str(run.seed), split, *("" if v is None else f"{v:.3f}" for v in values))
    Console().print(table)
    for run in runs:
        if run.failed:
            typer.echo(f"seed {run.seed} failed: {run.failed}")
    for run in runs:
        typer.echo(str(run.folder))


def print_status(found: Sequence[RunStatus], as_json: bool) -> None:
    """A line per run."""
    if as_json:
        typer.echo(json.dumps(plain(list(found)), indent=2))
        return
    if not found:
        typer.echo("No runs yet.")
        return
    table = plain_table(
        "run",
        "state",
        "step",
        "epochs",
        "best dev",
        "last write",
        "to go",
        right=("step", "epochs"),
        fold=("run", "state"),
    )
    for run in found:
        table.add_row(
            str(run.folder),
            run.state if run.state != "broken" else f"broken: {run.problem}",
            f"{run.step}/{run.steps}" if run.steps else "",
            str(run.epoch),
            "" if run.best is None else f"{run.select} {run.best:.3f}",
            f"{duration(run.age)} ago",
            "" if not run.remaining else duration(run.remaining),
        )
    Console().print(table)
