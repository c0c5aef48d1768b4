"""The threads that explain: requests a step at a time, where a step is one method on one text.

There are two of them. A request begins with the one that does what takes little; when that is done it goes over to the
other (`HAND_OVER`), so that nobody's first highlights wait behind a dear method. In each, whoever comes from the
address that has had the least time so far is next. Before every pass of the model a step asks whether the request is
still wanted (model/interruption.py), and one that takes long ends there if others wait. When nobody waits, a thread
does what is useful some time (`spare`), and lets go of it as soon as somebody comes.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from veridical.model.interruption import between_passes
from veridical.playground.job import Job
from veridical.playground.limits import STEP
from veridical.playground.problem import LateError, WithdrawnError, problem_of

NAME = "veridical-explaining"
HAND_OVER = object()  # yielded before the first step that takes long


@dataclass(eq=False)
class _Task:
    """A request, and the seconds that were spent on it."""

    job: Job
    steps: Iterator[Any]
    spent: float = 0.0


class Explaining(threading.Thread):
    """`then` is who goes on with what is handed over."""

    def __init__(self, then: Explaining | None = None) -> None:
        super().__init__(name=f"{NAME}-quick" if then else NAME, daemon=True)
        self._then = then
        self._tasks: list[_Task] = []
        self._spare: deque[Callable[[], None]] = deque()
        self._wake = threading.Condition()
        self._over = False
        self._at_work = False

    @property
    def idle(self) -> bool:
        """Whether it waits for somebody, and has nothing useful to do meanwhile."""
        with self._wake:
            return not (self._at_work or self._tasks or self._spare)

    def submit(self, job: Job, steps: Iterator[Any]) -> None:
        """What the iterator yields is told to the job, a step at a time; what it ends with is not."""
        with self._wake:
            self._tasks.append(_Task(job, steps))
            self._wake.notify()

    def spare(self, work: Callable[[], None]) -> None:
        """Work for when nobody waits. It may be broken off before any pass of a model, and is then begun again."""
        with self._wake:
            self._spare.append(work)
            self._wake.notify()

    def stop(self) -> None:
        with self._wake:
            self._over = True
            for task in self._tasks:
                task.job.withdraw()
            self._wake.notify()

    def run(self) -> None:
        while True:
            with self._wake:
                self._at_work = False
                self._wake.wait_for(lambda: self._over or self._tasks or self._spare)
                self._at_work = True
                if self._over:
                    return
                task = self._next()
                spare = self._spare.popleft() if task is None else None
            if task is not None:
                self._step(task)
            elif spare is not None:
                self._try(spare)

    def _next(self) -> _Task | None:
        """Of the address that had least, the request that had least."""
        had: dict[str, float] = {}
        for task in self._tasks:
            had[task.job.who.peer] = had.get(task.job.who.peer, 0.0) + task.spent
        return min(self._tasks, key=lambda task: (had[task.job.who.peer], task.spent), default=None)

    def _step(self, task: _Task) -> None:
        began = time.perf_counter()

        def check() -> None:
            task.job.check()
            if len(self._tasks) > 1 and time.perf_counter() - began > STEP:
                raise LateError(
                    f"Others wait, and a method may then take {STEP:g} seconds; ask for fewer samples or steps, "
                    "shorten the text, or try again later."
                )

        try:
            if not task.job.wanted:
                raise WithdrawnError
            with between_passes(check):
                line = next(task.steps)
            if line is HAND_OVER and self._then is not None:
                self._remove(task)
                self._then.submit(task.job, task.steps)
            elif line is not HAND_OVER:
                task.job.tell(line)
        except StopIteration:
            self._end(task, None)
        except WithdrawnError as problem:
            self._end(task, problem)
        except Exception as problem:
            self._end(task, problem_of(problem))
        finally:
            task.spent += time.perf_counter() - began

    def _remove(self, task: _Task) -> None:
        with self._wake:
            self._tasks.remove(task)

    def _end(self, task: _Task, outcome: Exception | None) -> None:
        self._remove(task)
        task.job.end(outcome)

    def _try(self, work: Callable[[], None]) -> None:
        def check() -> None:
            if self._tasks or self._over:
                raise WithdrawnError

        try:
            with between_passes(check):
                work()
        except WithdrawnError:
            with self._wake:
                self._spare.appendleft(work)
        except Exception as problem:
            problem_of(problem)  # to the terminal
