"""A cell: one call of a grid whose results are files, and the worker that computes cells.

Beside the results of its cells a grid's folder holds

    grid.json                the cells there are
    cells/<key>.json         it is done: seconds, attempts, versions; written last
    cells/<key>.running-1    somebody computes it: touched every few seconds, stale when its worker was killed; then
                             whoever creates .running-2 first goes on with it. All go when it has ended
    cells/<key>.error.txt    it failed: the traceback

`python -m veridical.grid.job` is a worker: it reads cells as JSON lines and answers each with an outcome. It ends as
soon as its input ends, so that it never outlives the process that started it, however that one died.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import queue
import re
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from veridical.core import store
from veridical.core.errors import InputError

# Seconds without a touch after which nobody is taken to work on a cell, however slowly a shared disk shows changes.
STALE = float(os.environ.get("VERIDICAL_STALE", "30"))
BEAT = STALE / 15  # seconds between two touches

PLAN = "grid.json"

# Calls by the names that stored hashes have: wherever the functions move, folders that were begun before go on.
JOBS = {
    "veridical.roar:shared": "veridical.retraining.roar.cells:shared",
    "veridical.roar:chain": "veridical.retraining.roar.cells:chain",
    "veridical.roar:leak": "veridical.retraining.roar.cells:leak",
    "veridical.recipe:type_logged": "veridical.cli.recipe:type_logged",
}

_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")


@dataclass(frozen=True)
class Cell:
    """A call by name. It may be made again at any time: what is done is found done, what is half done goes on."""

    key: str  # unique in its grid: letters, digits, / - _ .
    call: str  # a name of `JOBS`, or "module:function": a function of keyword arguments
    arguments: Mapping[str, Any] = field(default_factory=dict)  # as JSON has them
    after: tuple[str, ...] = ()  # keys of the cells that must be done first
    weight: float = 1.0  # expected cost beside that of other cells, for the estimate of the remaining time

    def __post_init__(self) -> None:
        if not _KEY.fullmatch(self.key):
            raise ValueError(f"a cell's key is made of letters, digits, / - _ and ., not {self.key!r}")

    @property
    def hash(self) -> str:
        """Of what is called, not of what it is named or waits for."""
        return store.stable_hash([self.call, self.arguments])


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the attempt to compute a cell ended.

    A `mistake` would befall any cell. `refused` is the call's own InputError: it may befall others (a model that cannot
    be loaded) or not (a training that breaks down). `failed` is a bug of this cell's alone, `lost` its worker's end;
    `elsewhere`: another process is at work on it.
    """

    key: str
    state: Literal["done", "mistake", "refused", "failed", "lost", "elsewhere"]
    text: str = ""  # the sentence, the traceback, or what is known of the worker's end


# -- files --------------------------------------------------------------------------------------------------


def mark(out: str | Path, key: str) -> Path:
    return Path(out) / "cells" / f"{key}.json"


def beat(out: str | Path, key: str, attempt: int) -> Path:
    return Path(out) / "cells" / f"{key}.running-{attempt}"


def error(out: str | Path, key: str) -> Path:
    return Path(out) / "cells" / f"{key}.error.txt"


def is_done(out: str | Path, key: str, hash: str) -> bool:
    """Whether this very call was made to its end. A mark left by another call under the same key does not count: the
    cell is computed again, and finds for itself what of it holds."""
    path = mark(out, key)
    return path.exists() and store.read_json(path)["hash"] == hash


def attempts(out: str | Path, key: str) -> list[os.stat_result]:
    """The attempts at a cell that has not ended: each began at its st_atime and was last seen alive at its st_mtime."""
    found: list[os.stat_result] = []
    try:
        while True:
            found.append(beat(out, key, len(found) + 1).stat())
    except FileNotFoundError:
        return found


def spent(tries: Sequence[os.stat_result]) -> float:
    """Seconds for which somebody was seen to work."""
    return sum(one.st_mtime - one.st_atime for one in tries)


def is_alive(tries: Sequence[os.stat_result]) -> bool:
    """Whether somebody was seen at the last of them a moment ago."""
    return bool(tries) and time.time() - tries[-1].st_mtime < STALE


def release(out: str | Path, key: str) -> None:
    """Say that nobody works on a cell any more, though it is not done."""
    tries = attempts(out, key)
    if tries:  # long ago, and as long as it was
        os.utime(beat(out, key, len(tries)), (0, spent(tries[-1:])))


def forget(out: str | Path, key: str) -> None:
    """Remove the traces of the attempts at a cell that has ended, as a worker killed right after its mark could not."""
    for attempt in range(len(attempts(out, key)), 0, -1):
        store.remove(beat(out, key, attempt))


# -- computing ----------------------------------------------------------------------------------------------


def compute(out: str | Path, cell: Cell) -> Outcome:
    """Make a cell's call and mark it done, unless it is done or another process is at work on it."""
    tries = attempts(out, cell.key)
    if is_alive(tries) or not _begin(beat(out, cell.key, len(tries) + 1)):
        return Outcome(cell.key, "elsewhere")
    try:
        with _beating(beat(out, cell.key, len(tries) + 1)):
            if not is_done(out, cell.key, cell.hash):  # as it may be since somebody looked
                store.remove(error(out, cell.key))
                begun = time.monotonic()
                _function(cell.call)(**cell.arguments)
                seconds = round(spent(tries) + time.monotonic() - begun, 3)
                facts = {"seconds": seconds, "attempt": len(tries) + 1, "weight": cell.weight}
                store.write_json(mark(out, cell.key), store.stamp(**facts, call=cell.call, hash=cell.hash))
    except InputError as refusal:
        return Outcome(cell.key, "refused", str(refusal))
    except (Exception, SystemExit):  # whatever it is, it is told and stored, and other cells go on
        return Outcome(cell.key, "failed", traceback.format_exc())
    finally:
        forget(out, cell.key)
    return Outcome(cell.key, "done")


def _function(call: str) -> Callable[..., Any]:
    module, _, name = JOBS.get(call, call).partition(":")
    return getattr(importlib.import_module(module), name)


def _begin(path: Path) -> bool:
    """Whether it was this process that created the file, and not another one in the same moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    now = time.time()
    os.utime(path, (now, now))
    return True


@contextmanager
def _beating(path: Path) -> Iterator[None]:
    """Moves the file's second time stamp on while the block runs."""
    begun, ended = path.stat().st_atime, threading.Event()

    def touch() -> None:
        while not ended.wait(BEAT):
            try:
                os.utime(path, (begun, time.time()))
            except FileNotFoundError:  # given up for dead, and finished by another process
                return

    beater = threading.Thread(target=touch, daemon=True)
    beater.start()
    try:
        yield
    finally:
        ended.set()
        beater.join()


# -- a worker of the local engine ---------------------------------------------------------------------------


def serve() -> None:
    """Compute the cells that come in, one after the other, until no more can come."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle: it ends this process
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # whatever a cell prints is no answer
    asked: queue.SimpleQueue[tuple[str, Cell]] = queue.SimpleQueue()

    def read() -> None:
        under_way: tuple[str, Cell] | None = None
        for line in sys.stdin:
            out, given = json.loads(line)
            under_way = out, from_plain(given)
            asked.put(under_way)
        if under_way is not None:  # the parent is gone: whoever comes next need not wait for this cell
            release(under_way[0], under_way[1].key)
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        answers.write(json.dumps(dataclasses.asdict(compute(*asked.get()))) + "\n")


def from_plain(given: Mapping[str, Any]) -> Cell:
    """A cell from its plain form (store.plain)."""
    return Cell(**{**given, "after": tuple(given["after"])})


if __name__ == "__main__":
    from veridical.grid import job as cell  # under its own name: records made in `__main__` would be of other classes

    cell.serve()
