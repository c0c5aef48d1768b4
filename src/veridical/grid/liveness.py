"""Who works on what, and whether it still lives: the one protocol of processes and machines that share a folder.

A *thing* is a path that several of them may want to make: a cell of a grid, a point of a curve. It is done when it is
there, for `store` writes whole files or none. Until then `<thing>.running-1` is the sign of the first that tries to
make it, `<thing>.running-2` of the next, and the last of them is whose turn it is.

- A sign is created by its worker, exclusively: of those who come in the same moment one gets the turn, on NFS too.
- It is alive while its worker moves its time on, every `BEAT` seconds. After `STALE` seconds without, it counts as
  dead; on the worker's own machine it does as soon as its process is gone, for the sign names that process.
- What is alive is left alone, or waited for. What is dead is gone on with, from what it had stored.
- So kill -9 leaves a sign that says no more than how long its attempt lasted, and costs nobody a wait on that machine.
  After the loss of a machine the others wait `STALE` seconds, and so does that machine if it is up again sooner.
- When a thing has ended, done or failed, its worker removes its signs.
- One that was taken for dead and lives on (suspended, cut off from the disk) finds that its turn is over, and then
  neither removes signs nor tells an outcome. What it writes until then is whole and equal to what the other writes.

Nothing else is locked. The machines' clocks, and the time in which a shared disk shows a change to the others, may
differ by less than `STALE`: 30 seconds, or VERIDICAL_STALE.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from veridical.core import store
from veridical.core.errors import Caution
from veridical.core.process import Process, this_process

STALE = float(os.environ.get("VERIDICAL_STALE", "30"))
BEAT = STALE / 15
WORK = ".work"  # in a run's folder, what `alone` takes turns at
POLL = 1.0  # seconds after which one looks again at what others do


@dataclass(frozen=True, slots=True)
class Attempt:
    """A sign as it is found. Those of versions before 0.2 are empty, and began at their file's time of access."""

    begun: float
    seen: float  # last
    alive: bool
    token: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """The right to make a thing, until another takes its worker for dead."""

    thing: Path
    attempt: int
    token: str
    begun: float
    before: float  # seconds for which earlier attempts were seen to work

    def holds(self) -> bool:
        """Whether it still is this worker's turn."""
        mine = _look(sign(self.thing, self.attempt))
        later = sign(self.thing, self.attempt + 1)
        return mine is not None and mine.token == self.token and not later.exists()


# -- looking ------------------------------------------------------------------------------------------------


def sign(thing: Path, attempt: int) -> Path:
    return thing.with_name(f"{thing.name}.running-{attempt}")


def attempts(thing: Path) -> list[Attempt]:
    """The attempts at a thing that has not ended, in their order."""
    signs: list[Attempt] = []
    while (attempt := _look(sign(thing, len(signs) + 1))) is not None:
        signs.append(attempt)
    return signs


def is_alive(thing: Path) -> bool:
    """Whether somebody is seen at work on a thing."""
    return any(attempt.alive for attempt in attempts(thing)[-1:])


def spent(tries: Sequence[Attempt]) -> float:
    """Seconds for which somebody was seen at work."""
    return sum(attempt.seen - attempt.begun for attempt in tries)


def _look(path: Path) -> Attempt | None:
    try:
        with path.open(encoding="utf-8") as file:  # opened first: then NFS asks its server for the time
            times = os.fstat(file.fileno())
            text = file.read() if times.st_size else ""
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        worker: dict[str, Any] = json.loads(text)
    except ValueError:  # of an old version, or not written to its end: its time alone tells
        worker = {"begun": times.st_atime}
    alive = time.time() - times.st_mtime < STALE and not _is_gone(worker)
    return Attempt(worker["begun"], times.st_mtime, alive, worker.get("token", ""))


def _is_gone(worker: Mapping[str, Any]) -> bool:
    """Whether it is known that a sign's process, or its work there, has ended; old signs name none."""
    if not {"machine", "process", "started"} <= worker.keys():
        return False
    process = Process(worker["machine"], worker["process"], worker["started"])
    return worker["token"] not in _turns if process == this_process() else process.is_gone()


# -- working ------------------------------------------------------------------------------------------------


def begin(thing: Path) -> Turn | None:
    """The turn to make a thing, which `working` has to show; none if somebody else is at it."""
    tries = attempts(thing)
    if tries and tries[-1].alive:
        return None
    turn = Turn(thing, len(tries) + 1, secrets.token_hex(4), time.time(), spent(tries))
    text = json.dumps({"begun": turn.begun, "token": turn.token, **asdict(this_process())})
    path = sign(thing, turn.attempt)
    _turns.add(turn.token)  # before its sign is there, or another thread would read of a turn that has ended
    made = False
    try:
        made = store.create(path, text)
    finally:
        if not made:
            _turns.discard(turn.token)
    if not made:
        return None
    os.utime(path, (turn.begun, turn.begun))  # by this machine's clock, not by that of a disk's server
    return turn


def wait(thing: Path, done: Callable[[], bool]) -> Turn | None:
    """The turn to make a thing as soon as nobody else is at it; none when it is done."""
    while not done():
        turn = begin(thing)
        if turn is not None:
            return turn
        time.sleep(POLL)
    return None


@contextmanager
def working(turn: Turn) -> Iterator[None]:
    """Shows that the worker lives while the block runs. Then the thing has ended, however it did."""
    ended = threading.Event()

    def show() -> None:
        while not ended.wait(BEAT):
            try:
                if not turn.holds():
                    return
                os.utime(sign(turn.thing, turn.attempt), (turn.begun, time.time()))
            except OSError:  # a disk that does not answer may do so next time; if not, others take over
                continue

    beater = threading.Thread(target=show, daemon=True)
    beater.start()
    try:
        yield
    finally:
        ended.set()
        beater.join()
        mine = turn.holds()
        _turns.discard(turn.token)
        if mine:
            forget(turn.thing)


@contextmanager
def alone(folder: str | Path) -> Iterator[None]:
    """The turn to work in a run's folder while the block runs: who comes second waits, and says so.

    Its sign lies in that folder, hidden, for the folder that it stands in may be somebody else's. Blocks of one thread
    may be nested.
    """
    here = (os.path.realpath(folder), threading.get_ident())
    if here in _ours:
        yield
        return
    thing = Path(folder) / WORK
    turn = begin(thing)
    if turn is None:
        warnings.warn(f"Another process is at work in {folder}; this one goes on when that has ended.", Caution, 3)
        turn = wait(thing, lambda: False)
    assert turn is not None
    with working(turn):
        _ours.add(here)
        try:
            yield
        finally:
            _ours.discard(here)


_ours: set[tuple[str, int]] = set()  # the folders in which threads of this process have the turn
_turns: set[str] = set()  # tokens of the turns that this process has


def forget(thing: Path) -> None:
    """Remove the signs of a thing that has ended, as a worker that was killed right then could not."""
    for path in thing.parent.glob(f"{thing.name}.running-[0-9]*"):
        if path.name.rpartition("-")[2].isdigit():
            store.remove_file(path)
