"""The thread that explains: requests a step at a time, where a step is one method on one text.

Whoever has had the least of its time so far comes next, so that several people see their first highlights soon. Before
every pass of the model it asks whether the request is still wanted (model/interruption.py). When nobody waits it does
what is useful some time (`spare`), and lets go of it as soon as somebody comes.
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
from veridical.playground.problem import WithdrawnError, problem_of


@dataclass(eq=False)
class _Task:
    """A request, and the seconds that were spent on it."""

    job: Job
    steps: Iterator[Any]
    spent: float = 0.0


class Explaining(threading.Thread):
    def __init__(self) -> None:
        super().__init__(name="veridical-explaining", daemon=True)
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
                task = min(self._tasks, key=lambda task: task.spent, default=None)
                spare = self._spare.popleft() if task is None else None
            if task is not None:
                self._step(task)
            elif spare is not None:
                self._try(spare)

    def _step(self, task: _Task) -> None:
        began = time.perf_counter()
        try:
            if not task.job.wanted:
                raise WithdrawnError
            with between_passes(task.job.check):
                line = next(task.steps)
            task.job.tell(line)
        except StopIteration:
            self._end(task, None)
        except WithdrawnError as problem:
            self._end(task, problem)
        except Exception as problem:
            self._end(task, problem_of(problem))
        finally:
            task.spent += time.perf_counter() - began

    def _end(self, task: _Task, outcome: Exception | None) -> None:
        with self._wake:
            self._tasks.remove(task)
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
