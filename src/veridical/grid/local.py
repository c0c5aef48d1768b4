"""The local engine: long-lived worker processes, one thread each, side by side."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import IO, Any

from veridical.core import store
from veridical.grid.job import Job, Outcome

# More threads than cores only wait for each other; and results are equal to the last bit for equal threads only.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
TAIL = 2000  # characters of what a worker said last


@dataclass(frozen=True, eq=False)
class Worker:
    """A process, and a nameless file with whatever it says."""

    process: subprocess.Popen[str]
    words: IO[bytes]

    def send(self, out: Path, job: Job) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps([str(out), store.plain(job)]) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:  # it was killed while idle: its empty answer will tell
            return

    def answer(self) -> dict[str, Any] | None:
        """What it answers; none if it died instead."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line.endswith("\n") else None

    def end(self) -> tuple[int, str]:
        """Kill it if it lives; its exit code, negative for a signal, and its last words."""
        self.process.kill()
        code = self.process.wait()
        self.words.seek(max(0, self.words.seek(0, os.SEEK_END) - TAIL))
        last = self.words.read().decode(errors="replace").strip()
        for pipe in (self.process.stdin, self.process.stdout, self.words):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:  # a job that it did not live to read
                    continue
        return code, last


def spawn() -> Worker:
    words = tempfile.TemporaryFile()  # noqa: SIM115  closed by Worker.end
    process = subprocess.Popen(
        [sys.executable, "-m", "veridical.grid.job"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=words,
        env={**os.environ, **ONE_THREAD, "PYTHONPATH": _importable()},
        text=True,
        encoding="utf-8",
    )
    return Worker(process, words)


def _importable() -> str:
    """Where this process finds modules, so that a worker finds the same ones wherever it stands."""
    return os.pathsep.join(os.path.abspath(entry) for entry in sys.path)


class LocalPool:
    """At most `workers` processes, started when there is work for them."""

    def __init__(self, out: Path, *, workers: int):
        self.out, self.free = out, workers
        self._idle: list[Worker] = []
        self._busy: dict[Worker, Job] = {}

    def start(self, job: Job) -> None:
        worker = self._idle.pop() if self._idle else spawn()
        self._busy[worker] = job
        self.free -= 1
        worker.send(self.out, job)

    def ended(self, timeout: float) -> list[Outcome]:
        pipes = {worker.process.stdout: worker for worker in self._busy}
        return [self._settle(pipes[pipe]) for pipe in wait(list(pipes), timeout)]  # type: ignore[arg-type, index]

    def _settle(self, worker: Worker) -> Outcome:
        job = self._busy.pop(worker)
        self.free += 1
        answer = worker.answer()
        if answer is not None:
            self._idle.append(worker)
            return Outcome(**answer)
        code, words = worker.end()
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return Outcome(job.key, "lost", f"The worker {how}, and so did those before it.\n{words}\n")

    def close(self) -> None:
        for worker in [*self._idle, *self._busy]:
            worker.end()
        self._idle, self._busy = [], {}
