"""Work under way in watched folders, told from its files alone: nothing is written, and nobody who works is asked."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from veridical.audits.caveats import with_caveats
from veridical.audits.looks import PART
from veridical.audits.record import SUMMARY, read_summary
from veridical.core import store, stored
from veridical.core.errors import InputError
from veridical.core.readable import one_line
from veridical.grid.liveness import WORK, is_alive
from veridical.grid.status import GridStatus, RunStatus, grids, status
from veridical.playground.house import House
from veridical.playground.requests import WatchedFolder

MOST = 200  # things in one answer
ALIVE = 120.0  # seconds without a write after which a training counts as stopped
TITLES = {"report.html": "report", "record.html": "audit record"}
Row = dict[str, Any]
T = TypeVar("T")


def folders(house: House) -> list[Row]:
    """Everything that is worked on, or was, in all watched folders; what runs first."""
    rows = [row for name, folder in house.watched.items() for row in _inside(house, name, folder)]
    return sorted(rows, key=lambda row: row["state"] != "running")[:MOST]


def _inside(house: House, name: str, root: Path) -> Iterator[Row]:
    """Every piece of work by itself: one that cannot be read is a row that says so, and the others are shown."""
    place = name, root, house.key(root)
    held = _read(grids, root)
    if isinstance(held, str):
        yield _row(*place, root, **_broken("grid", held))
        held = []
    inside = {grid.folder for grid in held}
    for grid in held:
        yield _row(*place, grid.folder, **_facts("grid", lambda grid=grid: _of_grid(grid)))
    runs = _read(status, root)
    if isinstance(runs, str):
        yield _row(*place, root, **_broken("train", runs))
        runs = []
    for run in runs:
        if run.state != "done" or not inside & {run.folder, *run.folder.parents}:
            yield _row(*place, run.folder, **_facts("train", lambda run=run: _of_run(run)))
    for folder in _audits(root):
        if folder not in inside:
            yield _row(*place, folder, **_facts("audit", lambda folder=folder: _of_audit(folder)))


def _read(look: Callable[[Path], list[T]], root: Path) -> list[T] | str:
    """What there is, or why it cannot be told: whatever others left in a folder must not hide the rest of it."""
    try:
        return look(root)
    except Exception as problem:
        return _reason(problem)


def _facts(kind: str, told: Callable[[], Row]) -> Row:
    try:
        facts = told()
        WatchedFolder.model_validate({"name": "", "pages": [], **facts})  # as the answer has to be
        return facts
    except Exception as problem:
        return _broken(kind, _reason(problem))


def _broken(kind: str, problem: str) -> Row:
    row = {"kind": kind, "state": "broken", "done": 0, "of": None, "seconds_left": None}
    return {**row, "figures": {"problem": problem}}


def _reason(problem: Exception) -> str:
    return _shown(one_line(str(problem)) or type(problem).__name__)


def _shown(text: str) -> str:
    """A name of a file as people can read it; one that is no UTF-8 has marks in the place of what is none."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _row(name: str, root: Path, key: str, folder: Path, **facts: Any) -> Row:
    place = folder.relative_to(root).as_posix()
    prefix = "" if place == "." else f"{place}/"
    names = [f"{prefix}{path.name}" for path in sorted(folder.glob("*.html")) if path.is_file()]
    return {
        "name": _shown(name if place == "." else f"{name}/{place}"),
        **facts,
        "pages": [
            {"title": TITLES.get(Path(page).name, Path(page).stem), "url": f"/watched/{key}/{quote(page)}"}
            for page in names
            if _shown(page) == page  # no address leads to any other
        ],
    }


def _of_grid(grid: GridStatus) -> Row:
    kind = "grid"
    for mark, of in (("timing.json", "roar"), ("worlds", "validate"), ("corpora", "audit")):
        if (grid.folder / mark).exists():
            kind = of
    figures = {state: grid.count(state) for state in ("running", "failed", "missing") if grid.count(state)}
    return {
        "kind": kind,
        "state": grid.state,
        "done": grid.count("done"),
        "of": len(grid.cells),
        "seconds_left": grid.remaining,
        "figures": figures,
    }


def _of_run(run: RunStatus) -> Row:
    state = "stopped" if run.state == "running" and run.age > ALIVE else run.state
    best = {} if run.best is None else {f"best dev {run.select}": run.best}
    trouble = {"problem": run.problem} if run.problem else {}
    return {
        "kind": "train",
        "state": state,
        "done": run.step,
        "of": run.steps or None,
        "seconds_left": run.remaining if state == "running" else None,
        "figures": {"epochs": run.epoch, **best, **trouble},
    }


# -- audits ---------------------------------------------------------------------------------------------------


def _audits(root: Path) -> list[Path]:
    found = []
    for parent, inner, names in os.walk(root):
        if "spec.json" in names and "corpora" in inner:
            found.append(Path(parent))
            inner.clear()
    return sorted(found)


def _of_audit(folder: Path) -> Row:
    spec = stored.read_fields(folder / "spec.json", "corpora", "looks")
    corpora, looks = [str(name) for name in spec["corpora"]], list(spec["looks"])
    if not looks or not all(isinstance(look, int) for look in looks):
        raise InputError("spec.json has no looks, which are numbers of texts.")
    texts = {name: _texts(folder / "corpora" / store.slug(name)) for name in corpora}
    done, of = sum(texts.values()), looks[-1] * len(corpora)
    alive, ended = is_alive(folder / WORK), (folder / SUMMARY).is_file()
    left = None
    if alive and done and (folder / "stamp.json").is_file():
        worked = time.time() - (folder / "stamp.json").stat().st_mtime
        left = worked / done * max(0, of - done)
    return {
        "kind": "audit",
        "state": "running" if alive else "done" if ended else "stopped",
        "done": done,
        "of": done if ended and not alive else of,
        "seconds_left": left,
        "figures": {**{f"texts of {name}": count for name, count in texts.items()}, **_verdict(folder)},
    }


def _texts(corpus: Path) -> int:
    """Texts that were explained by some method, in whole parts."""
    parts = {path.name for path in corpus.glob("attributions/*/part-*.parquet")}
    return PART * len(parts)


def _verdict(folder: Path) -> Row:
    try:
        summary = read_summary(folder)
        return {"verdict": with_caveats(summary, summary.verdicts[0].corpus)} if summary.verdicts else {}
    except (InputError, OSError):
        return {}  # not there yet: it is written at the end
