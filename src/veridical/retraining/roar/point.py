"""One point of a curve: a classifier trained on the data with so much masked.

A point is a folder that appears whole, with `point.json` in it; while it is trained it is called
`<point>.work-<something>`. Its worker holds an advisory lock on a file in that folder, which dies with the worker. So
whoever comes next takes over where a killed one stopped, two that train the same point never touch each other's files,
and the first to end wins. (A file, opened for writing: on NFS a lock on a folder holds on one machine only.)
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from veridical.core import store, stored
from veridical.core.records import Encoded
from veridical.model.accuracy import Scores, score
from veridical.retraining.roar.experiment import Bench
from veridical.training.journal import CHECKPOINT, LOG
from veridical.training.loop import fit
from veridical.training.selection import BEST
from veridical.training.task import ask_all, own_threads, prepare

POINT = "point.json"
LOCK = "lock"


@dataclass(frozen=True)
class Point:
    """What `point.json` holds."""

    SCHEMA: ClassVar[int] = 1

    scores: Mapping[str, Scores]  # on dev and on test
    epochs: int  # trained
    best_epoch: int  # whose weights were scored
    dev: tuple[float | None, ...]  # after every epoch, the score that chose among them
    seconds: float

    def test(self, score: str) -> float:
        """A score on the test texts."""
        value = self.scores["test"][score]
        assert value is not None  # accuracy and F1 exist wherever there are texts
        return value


def train_point(bench: Bench, folder: Path, encoded: Mapping[str, list[Encoded]], *, keep: bool = False) -> None:
    """Train from the seed's first weights on these encodings and write the scores; with `keep` the weights stay."""
    with alone(folder) as work:
        if work is None:
            return
        if not (work / POINT).exists():  # else its worker was killed while it tidied up
            with own_threads(bench.threads, bench.clf.device):
                store.write_json(work / POINT, _trained(bench, work, encoded))
        for name in (CHECKPOINT, LOG, *(() if keep else (BEST,))):
            store.remove(work / name)


def _trained(bench: Bench, work: Path, encoded: Mapping[str, list[Encoded]]) -> Point:
    clf, config = bench.clf, bench.experiment.config
    clf.model.load_state_dict(bench.first)
    task = prepare(clf, encoded, bench.gold, config=config, seed=bench.seed, folder=work)
    state = fit(task, progress=False)
    began = time.monotonic()
    scores = {split: score(ask_all(task, split), bench.gold[split], clf.kind) for split in ("dev", "test")}
    looks = [row["dev"] for row in store.read_jsonl(work / LOG) if "dev" in row]  # one per epoch
    return Point(
        scores=scores,
        epochs=state.epoch,
        best_epoch=state.best_epoch,
        dev=tuple(look.get(config.select) for look in looks),
        seconds=round(state.seconds + time.monotonic() - began, 3),
    )


def read_point(folder: Path) -> Point | None:
    """What is known of a point; none while it is not done."""
    return stored.read(folder / POINT, Point) if folder.exists() else None


@contextmanager
def alone(folder: Path) -> Iterator[Path | None]:
    """A folder that nobody else works in and that becomes `folder` when the block ends; none if that exists."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    if folder.exists():
        store.remove(folder / LOCK)
        _sweep(folder)
        yield None
        return
    work, descriptor = _take(folder)
    try:
        store.clean(work)
        yield work
        try:
            os.rename(work, folder)
        except OSError:
            if not folder.exists():
                raise
            store.remove(work)  # another was first: its results are the same
    finally:
        os.close(descriptor)
    store.remove(folder / LOCK)
    _sweep(folder)


def _take(folder: Path) -> tuple[Path, int]:
    """A working folder that a killed worker left, or a new one; and a descriptor that holds its lock."""
    for left in sorted(folder.parent.glob(f"{folder.name}.work-*")):
        descriptor = _lock(left)
        if descriptor is not None:
            return left, descriptor
    token = secrets.token_hex(4)
    hidden, work = folder.with_name(f".{folder.name}-{token}"), folder.with_name(f"{folder.name}.work-{token}")
    hidden.mkdir()
    descriptor = os.open(hidden / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    _locked(descriptor)  # before it can be found; where files have no locks nobody takes it over, and it is done anew
    os.rename(hidden, work)
    return work, descriptor


def _lock(folder: Path) -> int | None:
    """A descriptor that holds the lock on a folder; none if somebody else works in it, or it is gone."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except FileNotFoundError:
        return None
    if _locked(descriptor) and _is(folder / LOCK, descriptor):
        return descriptor
    os.close(descriptor)
    return None


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:  # somebody else's, or a file system without locks: not ours either way
        return False


def _is(path: Path, descriptor: int) -> bool:
    """Whether the name still is of the file that was opened: its folder may have become the point meanwhile."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _sweep(folder: Path) -> None:
    """Remove what nobody works on any more, now that the point is done."""
    for left in folder.parent.glob(f"{folder.name}.work-*"):
        descriptor = _lock(left)
        if descriptor is not None:
            store.remove(left)
            os.close(descriptor)
