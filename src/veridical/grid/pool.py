"""Grids: jobs that run in a pool of processes, in shards of an array job, or on Ray, with the same files at the end.

A job is done when its mark exists (job.py), so a grid that was interrupted goes on with the same command. Processes
that share a grid's folder know of each other only what lies there: each leaves alone what another one is seen to work
on, until it is done or its worker counts as dead (liveness.py). Of a shard's own jobs nobody else does any; the jobs
that others wait for belong to every shard that needs them, and the first to come does them. Only a worker that was
given up for dead and lives on can meet another at the same job, so jobs write their results under temporary names and
rename them, as `store` does: both write the same bytes.
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
from veridical.core.readable import shown
from veridical.core.wording import option
from veridical.grid import liveness
from veridical.grid.job import PLAN, Job, Outcome, error, is_done, place

__all__ = ["GridError", "Job", "Pool", "cores", "run"]

ENGINES = ("local", "ray")


class Pool(Protocol):
    """An engine at work."""

    free: int  # how many more jobs it can take now

    def start(self, job: Job) -> None: ...

    def ended(self, timeout: float) -> list[Outcome]:
        """The jobs that have ended, as soon as there is one; none when the time is up."""
        ...

    def close(self) -> None:
        """End whatever still runs."""
        ...


def run(
    jobs: Iterable[Job],
    out: str | Path,
    *,
    engine: Literal["local", "ray"] = "local",
    workers: int | None = None,
    shard: str | None = None,
    retries: int = 3,
    address: str | None = None,
    tick: Callable[[str], None] | None = None,
) -> None:
    """Do the jobs that are not done, each after those it waits for, otherwise in the order given.

    `out` is the folder of the grid; on a cluster all machines must see it. `shard="2/8"` takes the second of eight
    parts. A job whose worker is killed is started again up to `retries` times. `tick` is called with the key of every
    job that is done now. Raises GridError at the end if jobs failed; and the InputError of a job at once if none has
    been done yet, for then it would befall the others too.
    """
    jobs = list(jobs)
    check(engine, workers, shard, address)
    _check(jobs)
    out = Path(out).absolute()  # workers may stand elsewhere
    done = {job.key for job in jobs if is_done(out, job.key, job.hash)}
    _write_plan(out, jobs, workers or cores())
    store.clean(out)
    for key in done:
        liveness.forget(place(out, key))
    waiting = [job for job in _mine(jobs, shard) if job.key not in done]
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
    store.clean(out)  # of workers that were killed
    if failed:
        _complain(out, failed, left=sum(job.key not in done for job in waiting) - len(failed))


def _schedule(
    pool: Pool, out: Path, waiting: list[Job], done: set[str], retries: int, tick: Callable[[str], None]
) -> list[str]:
    """Start jobs as they become ready until none can, adding to `done`. Returns the keys of those that failed."""
    hashes = {job.key: job.hash for job in waiting}
    running: set[str] = set()
    failed: list[str] = []
    losses: Counter[str] = Counter()
    news: list[str] = []
    while True:
        others = False  # whether other processes work on what is awaited, or have just done so
        for job in waiting:
            if job.key in done or job.key in running or job.key in failed:
                continue
            if is_done(out, job.key, job.hash):
                others = True
                done.add(job.key)
                liveness.forget(place(out, job.key))
                news.append(job.key)
            elif liveness.is_alive(place(out, job.key)):
                others = True
            elif pool.free > 0 and done.issuperset(job.after):
                pool.start(job)
                running.add(job.key)
        for key in news:  # now that no worker waits for a job
            tick(key)
        news.clear()
        if not running and not others:
            return failed
        for outcome in pool.ended(liveness.POLL):
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
        least = option("workers=1")
        raise InputError(f"{workers} workers cannot compute anything; give {least} or more, or leave it out.")
    if address is not None and engine != "ray":
        ray = option('engine="ray"')
        raise InputError(f"An address ({address}) is of a Ray cluster; give {ray} with it, or leave it out.")
    if shard is not None:
        part_of(shard)


def cores() -> int:
    """Cores that this process may use: on a cluster often fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _check(jobs: Sequence[Job]) -> None:
    """A grid that could never end is a bug of its author's."""
    after = {job.key: job.after for job in jobs}
    if len(after) < len(jobs):
        twice = next(key for key, count in Counter(job.key for job in jobs).items() if count > 1)
        raise ValueError(f"two jobs have the key {twice!r}")
    ended: set[str] = set()
    left = list(after)
    while left:
        free = [key for key in left if ended.issuperset(after[key])]
        if not free:
            raise ValueError(f"{left[0]!r} waits for jobs that are not there or wait for it: {after[left[0]]}")
        ended |= set(free)
        left = [key for key in left if key not in ended]


def part_of(shard: str) -> tuple[int, int]:
    """`2/8` -> (2, 8)"""
    match = re.fullmatch(r"\s*([0-9]{1,6})\s*/\s*([0-9]{1,6})\s*", shard)  # no more: a list of as many is made
    number, count = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= count:
        raise InputError(
            f"Shard {shown(shard)} is not one of 1/n, 2/n, ..., n/n; number the tasks of an array job from 1 "
            "(--array=1-n)."
        )
    return number, count


def _mine(jobs: Sequence[Job], shard: str | None) -> list[Job]:
    """The jobs that a shard is to see done.

    The jobs nobody waits for are dealt out to and fro, sorted by the last step of their keys first: that puts alike
    jobs of all seeds side by side, so every shard gets as many of the costly ones. Of the others a shard has those
    that its own need; shards that start together begin at different places of these, so as not to meet.
    """
    if shard is None:
        return list(jobs)
    number, count = part_of(shard)
    shared = {key for job in jobs for key in job.after}
    alike = sorted((job for job in jobs if job.key not in shared), key=lambda job: job.key.split("/")[::-1])
    turns = cycle([*range(1, count + 1), *range(count, 0, -1)])
    dealt = [job for job, turn in zip(alike, turns, strict=False) if turn == number]
    by_key, needed, ask = {job.key: job for job in jobs}, set(), [key for job in dealt for key in job.after]
    while ask:
        key = ask.pop()
        if key not in needed:
            needed.add(key)
            ask.extend(by_key[key].after)
    before = [job for job in jobs if job.key in needed]
    first = (number - 1) * len(before) // count
    return [*before[first:], *before[:first], *dealt]


def _write_plan(out: Path, jobs: Sequence[Job], workers: int) -> None:
    """What there is to do, for `veridical status`; the last run's word holds."""
    rows = [{"key": job.key, "weight": job.weight, "after": job.after, "hash": job.hash} for job in jobs]
    store.write_json(out / PLAN, {"workers": workers, "cells": rows})
