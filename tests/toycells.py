"""Cells for tests of the grid: small, resumable, deterministic by seed. Workers import this module by name."""

from __future__ import annotations

import os
import secrets
import signal
import sys
import time
from pathlib import Path
from typing import Any

from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.seed import generator
from veridical.grid.job import mark
from veridical.grid.pool import Job


def walk(
    folder: str, name: str, seed: int, steps: int = 4, pause: float = 0.0, start: str | None = None, gate: str = ""
) -> None:
    """A chain: every step is a file that depends on the one before; the first on the end of the chain `start`. Before
    the last step it waits until the file `gate` is there, if one is named."""
    value = store.read_json(Path(folder) / start / "end.json") if start else 0.0
    for step in range(steps):
        path = Path(folder) / name / f"{step}.json"
        if not path.exists():
            time.sleep(pause)
            while gate and step == steps - 1 and not Path(gate).exists():
                time.sleep(0.05)
            store.write_json(path, value + generator(seed, name, step).normal())
        value = store.read_json(path)
    store.write_json(Path(folder) / name / "end.json", value)


def grid(folder: Path, *, chains: int = 6, pause: float = 0.0, steps: int = 4, gate: str = "") -> list[Job]:
    """Two chains that others wait for, and chains that start where one of them ends."""
    same: dict[str, Any] = {"folder": str(folder), "steps": steps, "pause": pause, "gate": gate}
    shared = [Job(f"shared/{i}", "toycells:walk", {**same, "name": f"shared{i}", "seed": i}) for i in range(2)]
    rest = [
        Job(
            f"chain/{i}",
            "toycells:walk",
            {**same, "name": f"chain{i}", "seed": i, "start": f"shared{i % 2}"},
            after=(f"shared/{i % 2}",),
        )
        for i in range(chains)
    ]
    return [*shared, *rest]


def results(folder: Path) -> dict[str, bytes]:
    """What the cells have written: all files but what killed writers left half done and what tells of progress."""
    whole = [path for path in sorted(folder.rglob("*")) if not path.name.startswith(store.TEMPORARY)]
    files = [path for path in whole if path.is_file()]
    own = [path for path in files if path.name != "grid.json" and "cells" not in path.relative_to(folder).parts]
    return {str(path.relative_to(folder)): path.read_bytes() for path in own}


def note(folder: str, name: str, pause: float = 0.0) -> None:
    """Every call leaves a file of its own."""
    time.sleep(pause)
    store.write_json(Path(folder) / "calls" / name / f"{secrets.token_hex(4)}.json", dict(os.environ))


def calls(folder: Path, name: str) -> list[Path]:
    return sorted((folder / "calls" / name).glob("*.json"))


def chatter(folder: str) -> None:
    """Prints what looks like an answer."""
    print('{"key": "chatter", "state": "failed", "text": "no"}', flush=True)
    os.write(1, b"more\n")
    note(folder, "chatter")


def die(word: str = "farewell") -> None:
    print(word, file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def mark_and_die(folder: str, name: str) -> None:
    """As a worker that is killed between its mark and its answer."""
    note(folder, name)
    this = Job(name, "toycells:mark_and_die", {"folder": folder, "name": name})
    store.write_json(mark(folder, name), {"hash": this.hash})
    os.kill(os.getpid(), signal.SIGKILL)


def fail_until(file: str) -> None:
    if not Path(file).exists():
        raise RuntimeError("the file is not there")


def mistake(sentence: str) -> None:
    raise InputError(sentence)


def leave() -> None:
    sys.exit(3)
