"""A job: one call whose results are files; it makes a cell of a grid. And the worker that does jobs.

Beside the results of its jobs a grid's folder holds

    grid.json                the cells there are
    cells/<key>.json         the cell is done: seconds, attempts, versions; written last
    cells/<key>.running-1    somebody works on it, or did (liveness.py)
    cells/<key>.error.txt    it failed: the traceback

`python -m veridical.grid.job` is a worker: it reads jobs as JSON lines and answers each with an outcome. It ends as
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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from veridical.core import store, stored
from veridical.core.errors import BreakdownError, InputError
from veridical.grid import liveness

PLAN = "grid.json"

# Calls by the names that stored hashes have: wherever the functions move, folders that were begun before go on.
JOBS = {
    "veridical.roar:shared": "veridical.retraining.roar.cells:shared",
    "veridical.roar:chain": "veridical.retraining.roar.cells:chain",
    "veridical.roar:leak": "veridical.retraining.roar.cells:leak",
    "veridical.roar:ends": "veridical.retraining.roar.one_model:ends",
    "veridical.roar:curve": "veridical.retraining.roar.one_model:curve",
    "veridical.recipe:type_logged": "veridical.cli.recipe:type_logged",
    "veridical.validate:make": "veridical.probes.validation.making:make",
}

_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")


@dataclass(frozen=True)
class Job:
    """A call by name. It may be made again at any time: what is done is found done, what is half done goes on."""

    key: str  # unique in its grid: letters, digits, / - _ .
    call: str  # a name of `JOBS`, or "module:function": a function of keyword arguments
    arguments: Mapping[str, Any] = field(default_factory=dict)  # as JSON has them
    after: tuple[str, ...] = ()  # keys of the jobs that must be done first
    weight: float = 1.0  # expected cost beside that of other jobs, for the estimate of the remaining time

    def __post_init__(self) -> None:
        if not _KEY.fullmatch(self.key):
            raise ValueError(f"a job's key is made of letters, digits, / - _ and ., not {self.key!r}")

    @property
    def hash(self) -> str:
        """Of what is called, not of what it is named or waits for."""
        return store.stable_hash([self.call, self.arguments])


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the attempt to do a job ended.

    A `mistake` would befall any job. `refused` is the call's own InputError: it may befall others (a model that cannot
    be loaded) or not (a training that breaks down). `failed` is a bug or a breakdown of this job's alone, `lost` its
    worker's end; `elsewhere`: another process is at work on it.
    """

    key: str
    state: Literal["done", "mistake", "refused", "failed", "lost", "elsewhere"]
    text: str = ""  # the sentence, the traceback, or what is known of the worker's end


# -- files --------------------------------------------------------------------------------------------------


def place(out: str | Path, key: str) -> Path:
    """What `liveness` knows a job by."""
    return Path(out) / "cells" / key


def mark(out: str | Path, key: str) -> Path:
    return Path(out) / "cells" / f"{key}.json"


def error(out: str | Path, key: str) -> Path:
    return Path(out) / "cells" / f"{key}.error.txt"


def is_done(out: str | Path, key: str, hash: str) -> bool:
    """Whether this very call was made to its end. A mark left by another call under the same key does not count: the
    call is made, and finds for itself what of it holds."""
    path = mark(out, key)
    return path.exists() and stored.read_fields(path, "hash")["hash"] == hash


# -- computing ----------------------------------------------------------------------------------------------


def compute(out: str | Path, job: Job) -> Outcome:
    """Make a job's call and mark it done, unless it is done or another process is at work on it."""
    turn = liveness.begin(place(out, job.key))
    if turn is None:
        return Outcome(job.key, "elsewhere")
    with liveness.working(turn):
        outcome = _call(out, job, turn)
        overtaken = outcome.state != "done" and not turn.holds()
    return Outcome(job.key, "elsewhere") if overtaken else outcome  # whoever has the turn tells how it ends


def _call(out: str | Path, job: Job, turn: liveness.Turn) -> Outcome:
    try:
        if not is_done(out, job.key, job.hash):  # as it may be since somebody looked
            store.remove_file(error(out, job.key))
            begun = time.monotonic()
            _function(job.call)(**job.arguments)
            seconds = round(turn.before + time.monotonic() - begun, 3)
            facts = {"seconds": seconds, "attempt": turn.attempt, "weight": job.weight}
            store.write_json(mark(out, job.key), store.stamp(**facts, call=job.call, hash=job.hash))
    except BreakdownError as breakdown:
        return Outcome(job.key, "failed", str(breakdown))
    except InputError as refusal:
        return Outcome(job.key, "refused", str(refusal))
    except (Exception, SystemExit):  # whatever it is, it is told and stored, and other jobs go on
        return Outcome(job.key, "failed", traceback.format_exc())
    return Outcome(job.key, "done")


def _function(call: str) -> Callable[..., Any]:
    module, _, name = JOBS.get(call, call).partition(":")
    return getattr(importlib.import_module(module), name)


# -- a worker of the local engine ---------------------------------------------------------------------------


def serve() -> None:
    """Do the jobs that come in, one after the other, until no more can come."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle: it ends this process
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # whatever a job prints is no answer
    asked: queue.SimpleQueue[tuple[str, Job]] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            out, given = json.loads(line)
            asked.put((out, from_plain(given)))
        os._exit(0)  # the parent is gone

    threading.Thread(target=read, daemon=True).start()
    while True:
        answers.write(json.dumps(dataclasses.asdict(compute(*asked.get()))) + "\n")


def from_plain(given: Mapping[str, Any]) -> Job:
    """A job from its plain form (store.plain)."""
    return Job(**{**given, "after": tuple(given["after"])})


if __name__ == "__main__":
    from veridical.grid import job  # under its own name: records made in `__main__` would be of other classes

    job.serve()
