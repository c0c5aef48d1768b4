"""What the runs under a folder are doing, told from their files alone."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from veridical import store
from veridical.errors import InputError


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


def status(folder: str | Path) -> list[RunStatus]:
    """Every run under a folder (or the run that it is), ordered by name."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"There is no folder {str(folder)!r}; name a folder of runs.")
    return [_status(path.parent) for path in sorted(folder.rglob("spec.json"))]


def _status(folder: Path) -> RunStatus:
    age = max(0.0, time.time() - max(path.stat().st_mtime for path in folder.iterdir()))
    try:
        select = str(store.read_json(folder / "spec.json")["train"]["select"])
        rows = store.read_jsonl(folder / "train.jsonl") if (folder / "train.jsonl").exists() else []
        done = store.read_json(folder / "scores.json") if (folder / "scores.json").exists() else None
        return _read(folder, select, rows, done, age)
    except (InputError, OSError, KeyError, TypeError) as problem:
        said = str(problem) if isinstance(problem, InputError) else f"{type(problem).__name__}: {problem}"
        return RunStatus(folder, "broken", age=age, problem=said)


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
