"""One point of a curve: a classifier trained on the data with so much masked.

A point is a folder that appears whole, with `point.json` in it; while it is trained it is called
`<point>.work-<token>`, after the turn of the worker that trains it (`grid/liveness.py`). Different jobs can want the
same point (the baseline serves any steps): who comes second waits for the first. Who comes after a dead one renames its
folder and goes on with what is in it; so one that was taken for dead and lives on finds its folder gone, and never
writes into another's.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from veridical.core import store, stored
from veridical.core.records import Encoded
from veridical.grid import liveness
from veridical.model.accuracy import Scores, score
from veridical.retraining.roar.experiment import Bench
from veridical.training.journal import CHECKPOINT, LOG
from veridical.training.loop import fit
from veridical.training.selection import BEST
from veridical.training.task import ask_all, own_threads, prepare

POINT = "point.json"
OLD_LOCK = "lock"  # a file that versions before 0.2 held a lock on


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
    while True:
        with alone(folder) as work:
            if work is None:
                return
            if not (work / POINT).exists():  # else its worker was killed while it tidied up
                with own_threads(bench.threads, bench.clf.device):
                    store.write_json(work / POINT, _trained(bench, work, encoded))
            for name in (CHECKPOINT, LOG, *(() if keep else (BEST,))):
                store.remove_file(work / name)


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


def is_done(folder: Path) -> bool:
    """Whether a point is there; then what a worker left that was killed right after is removed."""
    if not folder.exists():
        return False
    liveness.forget(folder)
    _sweep(folder)
    return True


@contextmanager
def alone(folder: Path) -> Iterator[Path | None]:
    """A folder that nobody else works in and that becomes `folder` when the block ends, unless the worker was taken for
    dead meanwhile; none if `folder` exists, as it may after waiting for another worker."""
    turn = liveness.wait(folder, folder.exists)
    if turn is None:
        is_done(folder)
        yield None
        return
    with liveness.working(turn):
        if folder.exists():  # since somebody looked
            yield None
            return
        work = _take(folder, turn.token)
        taken = work.stat()
        yield work
        _publish(work, taken, folder)
        if folder.exists():
            _sweep(folder)


def _take(folder: Path, token: str) -> Path:
    """A working folder: the first that a dead worker left, or a new one."""
    work = folder.with_name(f"{folder.name}.work-{token}")
    for left in _left(folder):
        try:
            os.rename(left, work)
        except FileNotFoundError:  # its worker lived on after all, and has just ended
            continue
        store.remove_file(work / OLD_LOCK)
        store.clean(work)
        return work
    work.mkdir()
    return work


def _publish(work: Path, taken: os.stat_result, folder: Path) -> None:
    """Give a folder its name, unless another worker has taken it over: then the point is, or will be, that one's."""
    try:
        if os.path.samestat(work.stat(), taken):  # else it was renamed, and what is here is a part only
            os.rename(work, folder)
            return
    except OSError:
        if work.exists() and not folder.exists():
            raise
    store.remove(work)


def _sweep(folder: Path) -> None:
    """Remove what nobody works on any more, now that the point is done."""
    store.remove_file(folder / OLD_LOCK)
    for left in _left(folder):
        store.remove(left)


def _left(folder: Path) -> list[Path]:
    """The working folders of a point, by the form of their names: what else begins so is not ours."""
    alike = folder.parent.glob(f"{folder.name}.work-{'[0-9a-f]' * 8}")
    return sorted(path for path in alike if path.is_dir() and not path.is_symlink())
