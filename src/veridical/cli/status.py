"""`veridical status`: how far runs and grids are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from veridical.cli.speech import print_json
from veridical.core.options import Help, Json
from veridical.core.place import A_SOURCE

if TYPE_CHECKING:
    from veridical.grid.status import CellStatus, GridStatus, RunStatus

MOST = 12  # cells of a kind that are named
Folder = Annotated[str, Help("A run's or a grid's folder, or one that holds some.", "DIR", argument=True), A_SOURCE]


def status(folder: Folder = "runs", as_json: Json = False) -> None:
    """Show which runs and grids are done, how far the others are and how long they will take.

    Of the runs inside a grid only those that are not finished are shown.

    Example: veridical status runs
    """
    from veridical.grid.status import grids
    from veridical.grid.status import status as look

    runs, held = look(folder), grids(folder)
    if as_json:
        print_json([*held, *runs])
        return
    for grid in held:
        _print(grid)
    inside = {grid.folder for grid in held}
    left = [run for run in runs if run.state != "done" or not inside & {run.folder, *run.folder.parents}]
    if left:
        _print_runs(left)
    elif not held:
        typer.echo("No runs yet.")


def _print_runs(runs: Sequence[RunStatus]) -> None:
    from veridical.core.tables import to_text
    from veridical.explanations.display import duration

    cells = [["run", "state", "step", "epochs", "best dev", "last write", "to go"]]
    for run in runs:
        cells.append(
            [
                str(run.folder),
                run.state if run.state != "broken" else f"broken: {run.problem}",
                f"{run.step}/{run.steps}" if run.steps else "",
                str(run.epoch),
                "" if run.best is None else f"{run.select} {run.best:.3f}",
                f"{duration(run.age)} ago",
                "" if not run.remaining else duration(run.remaining),
            ]
        )
    typer.echo(to_text(cells, right=(2, 3)))


def _print(grid: GridStatus) -> None:
    counts = ", ".join(f"{n} {state}" for state in ("done", "running", "failed", "missing") if (n := grid.count(state)))
    typer.echo(f"{grid.folder}: {grid.state}, {len(grid.cells)} cells: {counts}")
    for state in ("running", "failed"):
        named = [cell for cell in grid.cells if cell.state == state]
        for cell in named[:MOST]:
            typer.echo(f"  {state:<8} {cell.key}{_detail(grid, cell)}")
        if len(named) > MOST:
            typer.echo(f"  {state:<8} {len(named) - MOST} more")
    if grid.remaining is None:
        typer.echo("  no estimate before a first cell is done")
    elif grid.state != "done":
        typer.echo(f"  about {_long(grid.remaining)} to go, {grid.workers} at once")


def _detail(grid: GridStatus, cell: CellStatus) -> str:
    from veridical.grid.job import error

    if cell.state == "failed":
        return f": {error(grid.folder, cell.key)}"
    again = f", attempt {cell.attempts}" if cell.attempts > 1 else ""
    return f": {_long(cell.seconds)}{again}"


def _long(seconds: float) -> str:
    """`45.2 s`, `12 min`, `3 h 5 min`"""
    from veridical.explanations.display import duration

    minutes = round(seconds / 60)
    if seconds < 100:
        return duration(seconds)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
