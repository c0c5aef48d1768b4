"""`veridical run`: a recipe's commands through the grid."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veridical.cli.speech import print_json, say
from veridical.core.options import Budget, Device, Help, Json
from veridical.core.place import A_FOLDER, A_SOURCE, check_folder
from veridical.grid.options import Address, DryRun, Engine, Shard, Workers

if TYPE_CHECKING:
    from veridical.cli.recipe import Command, Line

Recipe = Annotated[str, Help("A recipe's file: recipes/*.toml.", "RECIPE", argument=True), A_SOURCE]
Only = Annotated[
    Sequence[str], Help("Only this line, 'table 3' or 'table 3, SST'. May be repeated.", "LINE", commas=False)
]
Unrun = Annotated[bool, Help("Also the lines marked unrun, whatever the reason.")]
Files = Annotated[
    Sequence[str],
    Help(
        "Read these files in a dataset's place: sst2=my/sst2. May be repeated.", "NAME=FOLDER", "--data", commas=False
    ),
]
Out = Annotated[str | None, Help("Folder in which the commands run.", "DIR", default="runs/RECIPE"), A_FOLDER]


def run(
    recipe: Recipe,
    only: Only = (),
    unrun: Unrun = False,
    files: Files = (),
    engine: Engine = "local",
    workers: Workers = None,
    shard: Shard = None,
    address: Address = None,
    out: Out = None,
    device: Device = None,
    budget: Budget = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Run a recipe: the commands that make a paper's tables and figures, side by side.

    What a command says is in logs/ of the folder, but for those that are grids themselves, which say it here.
    Interrupted at any moment, the same command goes on; `veridical status` shows how far it is. --json prints
    the plan, and what of it is done at the end. --data reads files where the hub cannot be reached.

    Example: veridical run recipes/soft-faithfulness.toml --only "table 3, SST" --dry-run
    """
    from veridical.cli import recipe as recipes
    from veridical.cli.rehearsal import insist_on_commands
    from veridical.cli.replaced import with_data
    from veridical.grid.pool import check

    check(engine, workers, shard, address)
    lines = with_data(recipes.read(recipe), files)
    commands = recipes.choose(lines, only, unrun=unrun)
    insist_on_commands(commands)
    folder = Path(out) if out else Path("runs") / Path(recipe).stem
    check_folder(folder)
    recipes.insist_on_folder(folder)
    how = {"engine": engine, "workers": workers, "shard": shard, "address": address}
    if not dry_run:
        if not as_json:
            _show(lines, commands, folder, say)
        _run(commands, folder, how, silent=as_json)
    if as_json:
        print_json(_plan(lines, commands, folder))
    elif dry_run:
        _show(lines, commands, folder, typer.echo)
    else:
        typer.echo(str(folder))


def _run(commands: Sequence[Command], folder: Path, how: dict[str, Any], *, silent: bool) -> None:
    """Commands that are grids themselves (they take --shard) get the same engine, one after the other; all others are
    cells of one grid, before them or, if they read what those make, after them.

    Of an array job every task sees done what a grid reads, and the first to find all grids done does what reads them.
    """
    from veridical.cli import recipe as recipes

    grids = [command for command in commands if _is_grid(command)]
    plain = [command for command in commands if command not in grids]
    own, needs = [command.key for command in grids], {command.key: command.after for command in commands}
    inputs = _reach(own, lambda key: needs.get(key, ()))
    later = _reach(own, lambda key: [other for other, before in needs.items() if key in before])
    whole = {**how, "shard": None}
    _compute([command for command in plain if command.key in inputs - later], folder, whole, silent)
    _compute([command for command in plain if command.key not in later], folder, how, silent)
    failed, whole_grids = [], set()
    for command in grids:
        options = [text for name, value in how.items() if value is not None for text in (f"--{name}", str(value))]
        if not silent:
            say(f"$ {command}")
        with redirect_stdout(sys.stderr) if silent else nullcontext():
            code = recipes.type_in([*command.words, *options], folder)
        if code:
            failed.append(str(command))
        elif how["shard"] is None or len(set(_counts(command, folder))) == 1:
            whole_grids.add(command.key)
    after = [command for command in plain if command.key in later]
    ready = [one for one in after if _reach([one.key], lambda key: needs.get(key, ())) & {*own} <= whole_grids]
    _compute(ready, folder, whole, silent)
    if left := len(after) - len(ready):
        wait = "command waits" if left == 1 else "commands wait"
        say(f"{left} {wait} for grids that are not done; when they are, run this again.")
    if failed:
        say(f"{len(failed)} of {len(grids)} grids failed: {'; '.join(failed)}")
        raise typer.Exit(1)


def _reach(keys: Sequence[str], near: Callable[[str], Sequence[str]]) -> set[str]:
    """These keys, those near them, those near these, and so on."""
    found: set[str] = set()
    ask = list(keys)
    while ask:
        key = ask.pop()
        if key not in found:
            found.add(key)
            ask.extend(near(key))
    return found


def _counts(command: Command, folder: Path) -> tuple[int, int]:
    """The cells of a command and how many of them are done; of a grid that has not begun, one that is not."""
    from veridical.cli import recipe as recipes
    from veridical.grid.job import PLAN
    from veridical.grid.status import grids

    if not _is_grid(command):
        cells = recipes.cells([command], folder)
        return len(cells), _done(cells, folder)
    own = folder / (command.out or "")
    if command.out is None or not (own / PLAN).exists():
        return 1, 0
    (found,) = [grid for grid in grids(own) if grid.folder == own]
    return len(found.cells), found.count("done")


def _is_grid(command: Command) -> bool:
    from veridical.cli.app import VERBS, verb

    name = command.words[0]
    return name in VERBS and any(option.name == "shard" for option in verb(name).options)


def _compute(commands: Sequence[Command], folder: Path, how: dict[str, Any], silent: bool) -> None:
    from veridical.cli import recipe as recipes
    from veridical.core.progress import Report
    from veridical.grid.pool import GridError
    from veridical.grid.pool import run as compute

    cells = recipes.cells(commands, folder)
    if not cells:
        return
    with Report("Running", len(cells), done=_done(cells, folder), progress=not silent) as report:
        try:
            compute(cells, folder, tick=report.advance, **how)
        except GridError as problem:
            say(str(problem))
            raise typer.Exit(1) from problem


def _done(cells: Sequence[Any], folder: Path) -> int:
    from veridical.grid.job import is_done

    return sum(is_done(folder, cell.key, cell.hash) for cell in cells)


# -- showing ------------------------------------------------------------------------------------------------


def _plan(lines: Sequence[Line], commands: Sequence[Command], folder: Path) -> list[dict[str, Any]]:
    """A row per line: its commands that are to run, with how much of them is done, or why none is."""
    chosen = {command.key for command in commands}
    rows = []
    for line in lines:
        own = [command for command in line.commands if command.key in chosen]
        counts = [_counts(command, folder) for command in own]
        if own:
            state = "runs"
        elif given := [name for name in line.lines if all(one.key in chosen for one in _of(lines, name))]:
            state = f"{'runs' if len(given) == len(line.lines) else 'in part'} with {', '.join(given)}"
        elif line.pointer and not line.lines:
            state = f"to be typed: {line.pointer}"
        else:
            state = line.status if line.unrun else "not asked for"
        rows.append(
            {
                "line": line.name,
                "state": state,
                "status": line.status,
                "commands": [str(command) for command in own],
                "cells": sum(cells for cells, _ in counts),
                "done": sum(done for _, done in counts),
            }
        )
    return rows


def _of(lines: Sequence[Line], name: str) -> list[Command]:
    return [command for line in lines if line.name == name for command in line.commands]


def _show(lines: Sequence[Line], commands: Sequence[Command], folder: Path, write: Any) -> None:
    rows = _plan(lines, commands, folder)
    width = max(len(row["line"]) for row in rows)
    for row in rows:
        count = f"{row['cells']} {'cell' if row['cells'] == 1 else 'cells'}, {row['done']} done"
        write(f"{row['line']:<{width}}  {count if row['commands'] else row['state']}")
        for command in row["commands"]:
            write(f"{'':<{width}}  $ {command}")
    write(f"In {folder}: {sum(row['cells'] for row in rows)} cells, {sum(row['done'] for row in rows)} done.")
