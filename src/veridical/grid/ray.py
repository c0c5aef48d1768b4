"""The Ray engine: a task per job, on this machine or on a cluster whose machines share the grid's folder.

Ray's servers listen on every network interface, whatever address they are told, and whoever may speak to them may run
code. So they are only ever started or spoken to with Ray's token authentication on. A Ray that is started here has a
token of its own, which lives and dies with this process.
"""

from __future__ import annotations

import dataclasses
import os
import secrets
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veridical.core import device, plugins, store
from veridical.core.errors import InputError
from veridical.core.wording import option
from veridical.grid.job import PLAN, Job, Outcome, compute, from_plain
from veridical.grid.local import ONE_THREAD

if TYPE_CHECKING:
    import types

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no reports to anybody
    "RAY_DEDUP_LOGS": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # a warning about a change to come that means nothing here
}
STORE_BYTES = 80 * 2**20  # jobs talk through files: Ray's shared memory may be as small as Ray allows
TOKENS = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")


class RayPool:
    """Ray tasks, at most `workers` at once. A Ray that the caller has started is used, and the caller's to stop."""

    def __init__(self, out: Path, *, workers: int | None, address: str | None):
        ray = _import(address)
        self.out, self._ray = out, ray
        self._started_here = not ray.is_initialized()
        self._running: dict[Any, Job] = {}
        self._place: tempfile.TemporaryDirectory[str] | None = None
        if self._started_here:
            self._connect(workers, address)
        have = ray.cluster_resources()
        self.free = workers or sys.maxsize  # more than there are cores wait in Ray's own queue
        self._task = ray.remote(_compute).options(
            num_cpus=1,
            num_gpus=1 if have.get("GPU") else 0,  # Ray hides accelerators from tasks that do not ask for one
            max_retries=0,  # a machine that is cut off may still work on a job: the grid waits until it is silent
            runtime_env={"env_vars": {**ONE_THREAD, **plugins.environment(), **device.environment()}},
        )

    def _connect(self, workers: int | None, address: str | None) -> None:
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        try:
            if address is not None:
                self._ray.init(address=address, **quiet)
                return
            from veridical.grid.pool import cores

            self._place = tempfile.TemporaryDirectory(prefix="veridical-ray-", ignore_cleanup_errors=True)
            self._ray.init(
                address="local",
                num_cpus=workers or cores(),
                object_store_memory=STORE_BYTES,
                include_dashboard=False,
                _temp_dir=self._place.name,
                **quiet,
            )
        except (OSError, RuntimeError, ValueError, self._ray.exceptions.RayError) as problem:
            self.close()
            raise InputError(_why(problem, address)) from problem

    def start(self, job: Job) -> None:
        self._running[self._task.remote(str(self.out), store.plain(job), version("veridical"))] = job
        self.free -= 1

    def ended(self, timeout: float) -> list[Outcome]:
        if not self._running:
            time.sleep(timeout)
            return []
        ready, _ = self._ray.wait(list(self._running), num_returns=1, timeout=timeout)
        return [self._settle(task) for task in ready]

    def _settle(self, task: Any) -> Outcome:
        job = self._running.pop(task)
        self.free += 1
        try:
            return Outcome(**self._ray.get(task))
        except self._ray.exceptions.RayError as problem:  # its worker or its machine is gone
            return Outcome(job.key, "lost", f"{type(problem).__name__}: {problem}\n")

    def close(self) -> None:
        if self._started_here:  # and with it all its tasks
            self._ray.shutdown()
        else:
            for task in self._running:
                self._ray.cancel(task, force=True)
        if self._place is not None:
            self._place.cleanup()


def _compute(out: str, job: dict[str, Any], asked_by: str) -> dict[str, Any]:
    """What a worker on some machine does."""
    here, wrong = version("veridical"), ""
    if here != asked_by:
        wrong = f"A machine of the cluster has veridical {here}, this one {asked_by}; install the same on all of them."
    elif not (Path(out) / PLAN).exists():
        place = option("out")
        wrong = f"A machine of the cluster does not see {out}; choose an {place} on a disk that all of them share."
    outcome = Outcome(job["key"], "mistake", wrong) if wrong else compute(out, from_plain(job))
    return dataclasses.asdict(outcome)


def _import(address: str | None) -> types.ModuleType:
    """Ray, with its authentication on. Ray reads these settings when it is imported."""
    mode = os.environ.get("RAY_AUTH_MODE", "token")
    if mode.lower() == "disabled":
        raise InputError(
            f"RAY_AUTH_MODE={mode} lets anyone who reaches this machine run code on it; set RAY_AUTH_MODE=token."
        )
    if "ray" not in sys.modules:
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
        os.environ["RAY_AUTH_MODE"] = mode
    if address is None and not any(name in os.environ for name in TOKENS):
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    try:
        import ray
    except ModuleNotFoundError as missing:
        raise InputError(
            "The engine ray needs Ray, which is not installed; install it with pip install 'veridical[ray]', or use "
            + option('engine="local".', "--engine local.")
        ) from missing
    return ray


def _why(problem: Exception, address: str | None) -> str:
    first = (str(problem).strip().splitlines() or [type(problem).__name__])[0].rstrip(".")
    if address is None:
        here, there = option('engine="local"'), option("address")
        return f"Ray could not be started here ({first}); use {here}, or give the {there} of a cluster."
    return (
        f"There is no Ray cluster to talk to at {address!r} ({first}); start one with RAY_AUTH_MODE=token and the same "
        "token as here (see docs/cluster.md)."
    )
