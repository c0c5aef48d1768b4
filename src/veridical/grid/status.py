"""What the runs and grids under a folder are doing, told from their files alone."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from veridical.core import store, stored
from veridical.core.errors import InputError
from veridical.core.kinds import as_annotated
from veridical.core.place import at_home
from veridical.core.readable import shown
from veridical.grid import liveness
from veridical.grid.job import PLAN, error, is_done, mark, place


@dataclass(frozen=True, slots=True)
class RunStatus:
    """One run. `running` means not finished; whether a process still works on it, its age tells."""

    folder: Path
    state: Literal["done", "running", "broken"]
    step: int = 0
    steps: int = 0
    epoch: int = 0  # whole epochs so far
    best: float | None = None  # dev score by which the run selects
    select: str = ""
    age: float = 0.0  # seconds since something was written
    seconds: float = 0.0  # of training so far
    remaining: float | None = None  # seconds, if it goes on as it did; early stopping may end it sooner
    problem: str = ""  # why it is broken


@dataclass(frozen=True, slots=True)
class CellStatus:
    """One cell of a grid, which a job makes. `missing` ones may have been begun: then their worker was killed."""

    key: str
    state: Literal["done", "running", "failed", "missing"]
    weight: float
    attempts: int
    seconds: float  # of work so far, in all attempts


@dataclass(frozen=True, slots=True)
class GridStatus:
    """One grid, as it was last asked for."""

    folder: Path
    state: Literal["done", "running", "stopped"]
    workers: int  # cells at once: those that run now, or as many as were asked for
    cells: tuple[CellStatus, ...]
    remaining: float | None  # seconds, if the others cost by their weight what those that are done or run did

    def count(self, state: str) -> int:
        return sum(cell.state == state for cell in self.cells)


@as_annotated
def status(folder: str | Path) -> list[RunStatus]:
    """What the training runs under a folder are doing, told from their files alone.

    Args:
        folder: A folder of runs, or a run.

    Returns:
        A record for each run, ordered by name: `.state` (done, running, broken), `.step` of `.steps`, `.epoch`, `.best`
        (the dev score of the kept epoch), and `.remaining` seconds.

    Example:
        >>> [run.folder for run in veridical.status("runs") if run.state == "done"]
    """
    return [_status(path.parent) for path in _find(folder, "spec.json") if _is_run(path)]


@as_annotated
def grids(folder: str | Path) -> list[GridStatus]:
    """Every grid under a folder (or the grid that it is), ordered by name."""
    return [_grid(path.parent) for path in _find(folder, PLAN)]


def _find(folder: str | Path, name: str) -> list[Path]:
    folder = Path(at_home(folder))
    if not os.path.isdir(folder):
        raise InputError(f"There is no folder {shown(str(folder))}; name a folder of runs.")
    walk = os.walk(folder)  # `rglob` raises where a folder goes while it looks, as working folders do
    return sorted(Path(parent) / name for parent, _, names in walk if name in names)


# -- grids --------------------------------------------------------------------------------------------------


def _grid(folder: Path) -> GridStatus:
    plan = stored.read_fields(folder / PLAN, "cells", "workers")
    cells = tuple(_cell(folder, row) for row in plan["cells"])
    running = sum(cell.state == "running" for cell in cells)
    workers = running or plan["workers"]
    done = all(cell.state == "done" for cell in cells)
    state = "done" if done else "running" if running else "stopped"
    return GridStatus(folder, state, workers, cells, _remaining(cells, workers))


def _cell(folder: Path, row: dict[str, Any]) -> CellStatus:
    key, weight = row["key"], row["weight"]
    if is_done(folder, key, row["hash"]):
        held = stored.read_fields(mark(folder, key), "attempt", "seconds")
        return CellStatus(key, "done", weight, held["attempt"], held["seconds"])
    tries = liveness.attempts(place(folder, key))
    state = "running" if tries and tries[-1].alive else "failed" if error(folder, key).exists() else "missing"
    return CellStatus(key, state, weight, len(tries), round(liveness.spent(tries), 3))


def _remaining(cells: Sequence[CellStatus], workers: int) -> float | None:
    """What is left, shared among the workers, but at least as long as the longest cell that is left."""
    done = [cell for cell in cells if cell.state == "done"]
    if len(done) == len(cells):
        return 0.0
    weight = sum(cell.weight for cell in done)
    if not weight:
        return None
    begun = [cell for cell in cells if cell.state in ("done", "running")]  # what runs costs at least what it has cost
    rate = max(sum(c.seconds for c in some) / sum(c.weight for c in some) for some in (done, begun))
    left = [max(0.0, rate * cell.weight - cell.seconds) for cell in cells if cell.state != "done"]
    return max(sum(left) / workers, *left)


# -- runs ---------------------------------------------------------------------------------------------------


def _is_run(spec: Path) -> bool:
    """Whether it is of a training: audits and other work have specs too. One that cannot be read may be of one."""
    try:
        held = store.read_json(spec)
        return isinstance(held, dict) and "train" in held
    except InputError:
        return True


def _status(folder: Path) -> RunStatus:
    times = [changed for path in folder.iterdir() if (changed := _changed(path)) is not None]
    age = max(0.0, time.time() - max(times))
    try:
        select = str(stored.read_fields(folder / "spec.json", "train.select")["train"]["select"])
        rows = store.read_jsonl(folder / "train.jsonl") if (folder / "train.jsonl").exists() else []
        done = store.read_json(folder / "scores.json") if (folder / "scores.json").exists() else None
        return _read(folder, select, rows, done, age)
    except (InputError, OSError, KeyError, TypeError) as problem:
        reason = str(problem) if isinstance(problem, InputError) else f"{type(problem).__name__}: {problem}"
        return RunStatus(folder, "broken", age=age, problem=reason)


def _changed(path: Path) -> float | None:
    """When a path was changed last; none if it has gone meanwhile, as temporary files do."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return None


def _read(folder: Path, select: str, rows: list[dict[str, Any]], done: dict[str, Any] | None, age: float) -> RunStatus:
    epochs = [row for row in rows if "dev" in row]
    kept = [row["dev"].get(select) for row in epochs if row["best"]]
    best, epoch = (kept[-1] if kept else None), (epochs[-1]["epoch"] if epochs else 0)
    steps = rows[0]["steps"] if rows else 0
    if done is not None:
        ran, seconds = done["steps"], done["seconds"]
        return RunStatus(folder, "done", ran, steps or ran, done["epochs"], best, select, age, seconds, 0.0)
    step, seconds = (rows[-1].get("step", 0), rows[-1]["seconds"]) if rows else (0, 0.0)
    remaining = seconds / step * (steps - step) if step else None
    return RunStatus(folder, "running", step, steps, epoch, best, select, age, seconds, remaining)
