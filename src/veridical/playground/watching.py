"""Work under way in watched folders, told from its files alone: nothing is written, and nobody who works is asked."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from veridical.audits.caveats import with_caveats
from veridical.audits.looks import PART
from veridical.audits.record import SUMMARY, read_summary
from veridical.core import store
from veridical.core.errors import InputError
from veridical.grid.liveness import WORK, is_alive
from veridical.grid.status import GridStatus, RunStatus, grids, status
from veridical.playground.house import House

MOST = 200  # things in one answer
ALIVE = 120.0  # seconds without a write after which a training counts as stopped
TITLES = {"report.html": "report", "record.html": "audit record"}
Row = dict[str, Any]


def folders(house: House) -> list[Row]:
    """Everything that is worked on, or was, in all watched folders; what runs first."""
    rows = [row for name, folder in house.watched.items() for row in _inside(house, name, folder)]
    return sorted(rows, key=lambda row: row["state"] != "running")[:MOST]


def _inside(house: House, name: str, root: Path) -> Iterator[Row]:
    key = house.key(root)
    held = grids(root)
    for grid in held:
        yield _row(name, root, key, grid.folder, **_of_grid(grid))
    inside = {grid.folder for grid in held}
    for run in status(root):
        if run.state != "done" or not inside & {run.folder, *run.folder.parents}:
            yield _row(name, root, key, run.folder, **_of_run(run))
    for folder in _audits(root):
        if folder not in inside:
            yield _row(name, root, key, folder, **_of_audit(folder))


def _row(name: str, root: Path, key: str, folder: Path, **facts: Any) -> Row:
    place = folder.relative_to(root).as_posix()
    pages = sorted(path.name for path in folder.glob("*.html") if path.is_file())
    prefix = "" if place == "." else f"{place}/"
    return {
        "name": name if place == "." else f"{name}/{place}",
        **facts,
        "pages": [
            {"title": TITLES.get(page, page.removesuffix(".html")), "url": f"/watched/{key}/{prefix}{page}"}
            for page in pages
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
    try:
        spec = store.read_json(folder / "spec.json")
        corpora, looks = list(spec["corpora"]), list(spec["looks"])
    except (InputError, KeyError, TypeError) as problem:
        broken = {"kind": "audit", "state": "broken", "done": 0, "of": None, "seconds_left": None}
        return {**broken, "figures": {"problem": str(problem)}}
    texts = {name: _texts(folder / "corpora" / store.slug(name)) for name in corpora}
    done, of = sum(texts.values()), looks[-1] * len(corpora)
    alive, ended = is_alive(folder / WORK), (folder / SUMMARY).is_file()
    left = None
    if alive and done:
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
