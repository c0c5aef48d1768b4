"""The thread that answers questions: predictions, erasures and curves of everybody, in shared batches.

A request is an asker, as in the scheduler (model/ask.py): it yields altered inputs and receives the answers. In every
turn each request may ask about so many tokens, and what all of them ask of one model is answered together. Who comes
later joins at the next turn, so that nobody waits behind a long one; who has gone is left out of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from veridical.core.records import Answers, Variant
from veridical.model.ask import answer
from veridical.model.classifier import Classifier
from veridical.playground.job import Job
from veridical.playground.limits import TURN
from veridical.playground.problem import problem_of

Asking = Generator[list[Variant], Answers, Any]


@dataclass(eq=False)
class _Task:
    """A request, and how far its questions are."""

    job: Job
    clf: Classifier
    asker: Asking
    asked: list[Variant] = field(default_factory=list)  # as the asker put them
    waiting: list[Variant] = field(default_factory=list)  # those without an answer, each once
    logits: dict[Variant, np.ndarray] = field(default_factory=dict)
    probabilities: dict[Variant, np.ndarray] = field(default_factory=dict)

    def turn(self) -> list[Variant]:
        """What it may ask now: at least one question."""
        tokens = np.cumsum([len(variant.ids) for variant in self.waiting])
        return self.waiting[: max(1, int(np.searchsorted(tokens, TURN, side="right")))]

    def advance(self, reply: Answers | None) -> bool:
        """On to the next questions; False at its end."""
        try:
            while True:
                self.asked = self.asker.send(reply)  # type: ignore[arg-type]
                self.waiting = list(dict.fromkeys(self.asked))
                self.logits.clear()
                self.probabilities.clear()
                self.job.passes += len(self.waiting)
                if self.waiting:
                    return True
                reply = Answers(*(np.empty((0, len(self.clf.labels)), dtype=np.float32) for _ in range(2)))
        except StopIteration as end:
            self.job.end(end.value)
        except Exception as problem:
            self.job.end(problem_of(problem))
        return False

    def take(self, answered: Sequence[Variant], answers: Answers) -> bool:
        """The answers to what it asked in this turn; False at its end."""
        self.logits |= dict(zip(answered, answers.logits, strict=True))
        self.probabilities |= dict(zip(answered, answers.probabilities, strict=True))
        self.waiting = self.waiting[len(answered) :]
        if self.waiting:
            return True
        rows = (np.stack([held[variant] for variant in self.asked]) for held in (self.logits, self.probabilities))
        return self.advance(Answers(*rows))


class Answering(threading.Thread):
    """It holds no lock while a model runs, and ends after the turn under way."""

    def __init__(self, budget: int | None = None):
        super().__init__(name="veridical-answering", daemon=True)
        self._budget = budget
        self._new: list[_Task] = []
        self._wake = threading.Condition()
        self._over = False
        self.turns = 0  # batches of questions, for tests and the benchmark

    def submit(self, job: Job, clf: Classifier, asker: Asking) -> None:
        with self._wake:
            self._new.append(_Task(job, clf, asker))
            self._wake.notify()

    def stop(self) -> None:
        with self._wake:
            self._over = True
            self._wake.notify()

    def run(self) -> None:
        live: list[_Task] = []
        while True:
            with self._wake:
                self._wake.wait_for(lambda live=live: self._over or self._new or live)
                if self._over:
                    return
                new, self._new = self._new, []
            live += [task for task in new if _begun(task)]
            live = [task for task in live if _wanted(task)]
            for clf in {id(task.clf): task.clf for task in live}.values():
                ended = self._turn(clf, [task for task in live if task.clf is clf])
                live = [task for task in live if task not in ended]

    def _turn(self, clf: Classifier, tasks: Sequence[_Task]) -> list[_Task]:
        """One batch of everybody's questions to one model; those that are done."""
        self.turns += 1
        asked = [task.turn() for task in tasks]
        try:
            answers = answer(clf, [variant for questions in asked for variant in questions], self._budget)
        except Exception as problem:
            if len(tasks) > 1:  # one of them is at fault, and the others shall not suffer for it
                return [task for task in tasks if self._turn(clf, [task])]
            tasks[0].job.end(problem_of(problem))
            return list(tasks)
        ends = np.cumsum([0, *map(len, asked)])
        parts = [Answers(answers.logits[a:b], answers.probabilities[a:b]) for a, b in pairwise(ends)]
        return [
            task for task, questions, part in zip(tasks, asked, parts, strict=True) if not task.take(questions, part)
        ]


def _begun(task: _Task) -> bool:
    return _wanted(task) and task.advance(None)


def _wanted(task: _Task) -> bool:
    """Whether somebody waits for it and its time is not over; else it is ended."""
    try:
        task.job.check()
        return True
    except Exception as problem:
        task.asker.close()
        task.job.end(problem)
        return False


def at_once(value: Callable[[], Any]) -> Asking:
    """A request that asks nothing, for the order of things: it reads texts with this thread's tokenizer."""
    return value()
    yield  # a generator, though it never asks
