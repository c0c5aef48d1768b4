"""What `veridical train` and `veridical status` print."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from veridical.cli_data import plain_table
from veridical.display import duration
from veridical.status import RunStatus
from veridical.store import plain

if TYPE_CHECKING:
    from veridical.train import Run


def print_runs(runs: Sequence[Run], as_json: bool) -> None:
    """The scores of every run and split, then the folders."""
    if as_json:
        typer.echo(json.dumps(plain(list(runs)), indent=2))
        return
    columns = ("accuracy", "macro_f1", "calibration_error", "loss")
    table = plain_table("seed", "split", *columns, right=columns)
    for run in runs:
        for split, scores in run.scores.items():
            values = (scores.get(name) for name in columns)
            table.add_row(str(run.seed), split, *("" if v is None else f"{v:.3f}" for v in values))
    Console().print(table)
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
