"""Grids: cells that run in a pool of processes, in shards of an array job, or on Ray, with the same files at the end.

A cell is done when its mark exists (cell.py), so a grid that was interrupted goes on with the same command. Processes
that share a grid's folder know of each other only what lies there: each leaves the cells alone that another one is seen
to work on, until they are done or their file goes stale. Of a shard's own cells nobody else computes any; the cells
that others wait for belong to every shard that needs them, and the first to come computes them. Only a worker that was
given up for dead and lives on (a machine that was cut off) can meet another at the same cell, so cells write their
results under temporary names and rename them, as `store` does: both write the same bytes.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from itertools import cycle
from pathlib import Path
from typing import Literal, Protocol

from veridical.core import store
from veridical.core.errors import GridError as GridError
from veridical.core.errors import InputError, unknown
from veridical.grid.job import PLAN, Cell, Outcome, attempts, error, forget, is_alive, is_done

__all__ = ["Cell", "GridError", "Pool", "cores", "run"]

ENGINES = ("local", "ray")
POLL = 1.0  # seconds after which one looks again at what others have done


class Pool(Protocol):
    """An engine at work."""

    free: int  # how many more cells it can take now

    def start(self, cell: Cell) -> None: ...

    def ended(self, timeout: float) -> list[Outcome]:
        """The cells that have ended, as soon as there is one; none when the time is up."""
        ...

    def close(self) -> None:
        """End whatever still runs."""
        ...


def run(
    cells: Iterable[Cell],
    out: str | Path,
    *,
    engine: Literal["local", "ray"] = "local",
    workers: int | None = None,
    shard: str | None = None,
    retries: int = 3,
    address: str | None = None,
    tick: Callable[[str], None] | None = None,
) -> None:
    """Compute the cells that are not done, each after those it waits for, otherwise in the order given.

    `out` is the folder of the grid; on a cluster all machines must see it. `shard="2/8"` takes the second of eight
    parts. A cell whose worker is killed is started again up to `retries` times. `tick` is called with the key of every
    cell that is done now. Raises GridError at the end if cells failed; and the InputError of a cell at once if none has
    been done yet, for then it would befall the others too.
    """
    cells = list(cells)
    check(engine, workers, shard, address)
    _check(cells)
    out = Path(out).absolute()  # workers may stand elsewhere
    mine = _mine(cells, shard)
    done = {cell.key for cell in cells if is_done(out, cell.key, cell.hash)}
    _write_plan(out, cells, workers or cores())
    for key in done:
        forget(out, key)
    waiting = [cell for cell in mine if cell.key not in done]
    if not waiting:
        return
    if engine == "ray":
        from veridical.grid.ray import RayPool

        pool: Pool = RayPool(out, workers=workers, address=address)
    else:
        from veridical.grid.local import LocalPool

        pool = LocalPool(out, workers=min(workers or cores(), len(waiting)))
    with closing(pool):
        failed = _schedule(pool, out, waiting, done, retries, tick or (lambda key: None))
    if failed:
        _complain(out, failed, left=sum(cell.key not in done for cell in waiting) - len(failed))


def _schedule(
    pool: Pool, out: Path, waiting: list[Cell], done: set[str], retries: int, tick: Callable[[str], None]
) -> list[str]:
    """Start cells as they become ready until none can, adding to `done`. Returns the keys of those that failed."""
    hashes = {cell.key: cell.hash for cell in waiting}
    running: set[str] = set()
    failed: list[str] = []
    losses: Counter[str] = Counter()
    news: list[str] = []
    while True:
        others = False  # whether other processes work on what is awaited, or have just done so
        for cell in waiting:
            if cell.key in done or cell.key in running or cell.key in failed:
                continue
            if is_done(out, cell.key, cell.hash):
                others = True
                done.add(cell.key)
                forget(out, cell.key)
                news.append(cell.key)
            elif is_alive(attempts(out, cell.key)):
                others = True
            elif pool.free > 0 and done.issuperset(cell.after):
                pool.start(cell)
                running.add(cell.key)
        for key in news:  # now that nobody waits for a cell
            tick(key)
        news.clear()
        if not running and not others:
            return failed
        for outcome in pool.ended(POLL):
            key = outcome.key
            running.remove(key)
            losses[key] += outcome.state == "lost"
            if outcome.state == "mistake" or (outcome.state == "refused" and not done):
                raise InputError(outcome.text)
            if outcome.state == "done":
                done.add(key)
                news.append(key)
            elif outcome.state == "lost" and is_done(out, key, hashes[key]):  # killed right after it had marked its end
                continue
            elif outcome.state in ("failed", "refused") or losses[key] > retries:
                store.write_text(error(out, key), outcome.text)
                failed.append(key)


def _complain(out: Path, failed: Sequence[str], left: int) -> None:
    named = ", ".join(failed[:5]) + (f" and {len(failed) - 5} more" if len(failed) > 5 else "")
    kept = f"; {left} that wait for them {'was' if left == 1 else 'were'} not begun" if left else ""
    why = error(out, failed[0]).read_text(encoding="utf-8").strip().splitlines()[-1]
    raise GridError(
        f"{len(failed)} {'cell' if len(failed) == 1 else 'cells'} failed ({named}){kept}; {error(out, failed[0])} says "
        f"why ({why}), and the same command tries again."
    )


# -- what is asked for --------------------------------------------------------------------------------------


def check(engine: str, workers: int | None, shard: str | None, address: str | None) -> None:
    """Refuse what cannot be run; for callers that have work to do before they run a grid."""
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    if workers is not None and workers < 1:
        raise InputError(f"{workers} workers cannot compute anything; give --workers 1 or more, or leave it out.")
    if address is not None and engine != "ray":
        raise InputError(f"An address ({address}) is of a Ray cluster; give --engine ray with it, or leave it out.")
    if shard is not None:
        part_of(shard)


def cores() -> int:
    """Cores that this process may use: on a cluster often fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _check(cells: Sequence[Cell]) -> None:
    """A grid that could never end is a bug of its author's."""
    after = {cell.key: cell.after for cell in cells}
    if len(after) < len(cells):
        twice = next(cell.key for place, cell in enumerate(cells) if cell.key in [c.key for c in cells[:place]])
        raise ValueError(f"two cells have the key {twice!r}")
    ended: set[str] = set()
    left = list(after)
    while left:
        free = [key for key in left if ended.issuperset(after[key])]
        if not free:
            raise ValueError(f"{left[0]!r} waits for cells that are not there or wait for it: {after[left[0]]}")
        ended |= set(free)
        left = [key for key in left if key not in ended]


def part_of(shard: str) -> tuple[int, int]:
    """`2/8` -> (2, 8)"""
    found = re.fullmatch(r"\s*(\d+)\s*/\s*(\d+)\s*", shard)
    place, count = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= place <= count:
        raise InputError(
            f"Shard {shard!r} is not one of 1/n, 2/n, ..., n/n; number the tasks of an array job from 1 (--array=1-n)."
        )
    return place, count


def _mine(cells: Sequence[Cell], shard: str | None) -> list[Cell]:
    """The cells that a shard is to see done.

    The cells nobody waits for are dealt out to and fro, sorted by the last step of their keys first: that puts alike
    cells of all seeds side by side, so every shard gets as many of the costly ones. Of the others a shard has those
    that its own need; shards that start together begin at different places of these, so as not to meet.
    """
    if shard is None:
        return list(cells)
    place, count = part_of(shard)
    shared = {key for cell in cells for key in cell.after}
    alike = sorted((cell for cell in cells if cell.key not in shared), key=lambda cell: cell.key.split("/")[::-1])
    turns = cycle([*range(1, count + 1), *range(count, 0, -1)])
    own = [cell for cell, turn in zip(alike, turns, strict=False) if turn == place]
    by_key, needed, ask = {cell.key: cell for cell in cells}, set(), [key for cell in own for key in cell.after]
    while ask:
        key = ask.pop()
        if key not in needed:
            needed.add(key)
            ask.extend(by_key[key].after)
    before = [cell for cell in cells if cell.key in needed]
    turn = (place - 1) * len(before) // count
    return [*before[turn:], *before[:turn], *own]


def _write_plan(out: Path, cells: Sequence[Cell], workers: int) -> None:
    """What there is to do, for `veridical status`; the last run's word holds."""
    rows = [{"key": cell.key, "weight": cell.weight, "after": cell.after, "hash": cell.hash} for cell in cells]
    store.write_json(out / PLAN, {"workers": workers, "cells": rows})
