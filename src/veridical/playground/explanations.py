"""Explanations for requests: a method on a text, as a row of the exchange schema with what a page shows beside it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from veridical.attribution import Method
from veridical.core.errors import InputError
from veridical.core.hearing import heard
from veridical.core.readable import shown
from veridical.core.registry import Choice
from veridical.explanations.exchange import to_row
from veridical.explanations.explain import attributions
from veridical.explanations.explanation import Explanation
from veridical.explanations.passes import BACKWARD
from veridical.model.target import Which, read_contrast
from veridical.playground.bounding import Planned
from veridical.playground.explaining import HAND_OVER
from veridical.playground.job import Job
from veridical.playground.limits import REMEMBERED
from veridical.playground.problem import ProblemError, WithdrawnError, problem_of
from veridical.playground.served import Served
from veridical.playground.text import read

Key = tuple[str, str, str | None, str, Which]  # model, text, context, method, what is explained


@dataclass(frozen=True)
class Question:
    """A text, and the methods that explain it, the least work first."""

    text: str
    context: str | None
    plan: Sequence[Planned]
    which: Which = "predicted"


class Explainer:
    """Explains, and remembers the last explanations: an export or a comparison of what is on the page costs nothing."""

    def __init__(self, budget: int | None = None) -> None:
        self._budget = budget
        self._held: OrderedDict[Key, tuple[Explanation, list[str]]] = OrderedDict()
        self._lock = threading.Lock()  # of what is remembered

    def remembered(
        self, model: Served, asked: Question, choice: Choice[Method]
    ) -> tuple[Explanation, list[str]] | None:
        key = _key(model, asked, choice)
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
            return self._held.get(key)

    def explain(
        self, model: Served, asked: Question, choice: Choice[Method], *, quick: bool = False
    ) -> tuple[Explanation, list[str]]:
        """The explanation of a text, in windows where it is long, and what is to be said about it.

        `quick`: by the thread that does what takes little, which has a classifier of its own.
        """
        if (known := self.remembered(model, asked, choice)) is not None:
            return known
        clf = model.quick if quick else model.explains
        held = read(clf, asked.text, asked.context)
        with heard() as notes:
            (found,) = attributions(clf, held.windows, choice, asked.which, budget=self._budget)
        if len(held.windows) > 1:
            notes.append(f"Longer than the model reads: explained in {len(held.windows)} windows that share tokens.")
        result = Explanation.of(clf, found), notes
        with self._lock:
            self._held[_key(model, asked, choice)] = result
            while len(self._held) > REMEMBERED:
                self._held.popitem(last=False)
        return result


def _key(model: Served, asked: Question, choice: Choice[Method]) -> Key:
    return model.name, asked.text, asked.context, choice.label, asked.which


class Steps:
    """The steps of one request: it begins with the quick thread, and goes over before the first that is not quick."""

    def __init__(self, explainer: Explainer, asked: Question, job: Job):
        self._explainer, self._asked, self._job = explainer, asked, job
        self._quick = True

    def goes_over(self, models: Sequence[Served], each: Planned) -> bool:
        known = all(self._explainer.remembered(model, self._asked, each.choice) for model in models)
        if not self._quick or each.quick or known:
            return False
        self._quick = False
        return True

    def explain(self, model: Served, each: Planned) -> tuple[Explanation, list[str]]:
        self._job.check()
        return self._explainer.explain(model, self._asked, each.choice, quick=self._quick)


def lines(
    explainer: Explainer, model: Served, asked: Question, job: Job, counted: Mapping[str, float]
) -> Iterator[Any]:
    """A line for every method, or why there is none; `counted` are the passes that methods were seen to take."""
    steps = Steps(explainer, asked, job)
    for each in asked.plan:
        if steps.goes_over([model], each):
            yield HAND_OVER
        try:
            explanation, notes = steps.explain(model, each)
        except WithdrawnError:
            raise
        except Exception as problem:
            yield failed(each.choice, problem)
            continue
        line = line_of(explanation, each.choice.entry, notes, counted.get(each.choice.label, 0.0))
        job.passes += line["passes"]
        yield line


def failed(choice: Choice[Method], problem: Exception) -> dict[str, Any]:
    return {"method": choice.label, "error": problem_of(problem).plain()}


def line_of(explanation: Explanation, method: Method, notes: Sequence[str], counted: float) -> dict[str, Any]:
    """A row of the exchange schema, and what a page would have to work out.

    A method that looks inside may do the work of many passes in one (decompositions do), so there what was counted
    holds if it is more; one that asks takes as many passes as this text has questions.
    """
    cost = explanation.cost
    passes = cost.forward + BACKWARD * cost.backward
    return {
        **to_row(explanation),
        "signed": explanation.signed,
        "about_class": method.of_target,
        "predicted": explanation.labels[int(explanation.probabilities.argmax())],
        "words": list(explanation.words),
        "word_scores": [float(score) for score in explanation.word_scores],
        "offsets": [list(span) for span in explanation.encoded.spans],
        "passes": round(passes if method.asks else max(passes, counted), 2),
        "notes": list(notes),
    }


def all_of(explainer: Explainer, model: Served, asked: Question, job: Job) -> Iterator[Any]:
    """Every explanation, and an error where there is one that does not work: for a file that shall be whole."""
    steps = Steps(explainer, asked, job)
    for each in asked.plan:
        if steps.goes_over([model], each):
            yield HAND_OVER
        yield steps.explain(model, each)[0]


def checked_target(model: Served, target: str) -> int | Literal["predicted"]:
    """A class of the model, or `predicted`; texts that people type have no gold label, but a class may be named so."""
    if target == "predicted":
        return "predicted"
    if target in model.labels:
        return model.labels.index(target)
    if target.isdecimal() and len(target) < 10 and int(target) < len(model.labels):
        return int(target)
    if target == "gold":
        raise ProblemError(422, "input", "A text that is typed has no gold label; choose predicted or a class.")
    allowed = ", ".join(f"{place} ({name})" for place, name in enumerate(model.labels))
    raise InputError(f"The target {shown(target)} is not a class of {model.name}; allowed: predicted, {allowed}.")


def checked_question(model: Served, target: str, contrast: str | None) -> Which:
    """What is explained: a class, or one against another."""
    return read_contrast(checked_target(model, target), contrast, model.labels)
