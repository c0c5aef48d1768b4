"""Explanations for requests: a method on a text, as a row of the exchange schema with what a page shows beside it."""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from veridical.attribution import Method
from veridical.core.errors import Caution
from veridical.core.registry import Choice
from veridical.explanations.exchange import to_row
from veridical.explanations.explain import attributions
from veridical.explanations.explanation import Explanation
from veridical.explanations.passes import BACKWARD
from veridical.model.target import Which, read_contrast, read_target
from veridical.playground.job import Job
from veridical.playground.limits import REMEMBERED
from veridical.playground.problem import ProblemError, WithdrawnError, problem_of
from veridical.playground.served import Served
from veridical.playground.text import read

Key = tuple[str, str, str | None, str, Which]  # model, text, context, method, what is explained


class Explainer:
    """Explains, and remembers the last explanations: an export or a comparison of what is on the page costs nothing.

    Only the thread that explains uses it.
    """

    def __init__(self, budget: int | None = None) -> None:
        self._budget = budget
        self._held: OrderedDict[Key, tuple[Explanation, list[str]]] = OrderedDict()

    def explain(
        self, model: Served, text: str, context: str | None, choice: Choice[Method], which: Which
    ) -> tuple[Explanation, list[str]]:
        """The explanation of a text, in windows where it is long, and what is to be said about it."""
        key = (model.name, text, context, choice.label, which)
        if key in self._held:
            self._held.move_to_end(key)
            return self._held[key]
        clf = model.explains
        held = read(clf, text, context)
        with _heard() as notes:
            (found,) = attributions(clf, held.windows, choice, which, budget=self._budget)
        if len(held.windows) > 1:
            notes.append(f"Longer than the model reads: explained in {len(held.windows)} windows that share tokens.")
        self._held[key] = Explanation.of(clf, found), notes
        while len(self._held) > REMEMBERED:
            self._held.popitem(last=False)
        return self._held[key]


@contextmanager
def _heard() -> Iterator[list[str]]:
    """Our own warnings of this thread, as sentences; those of others go where they went."""
    notes: list[str] = []
    mine = threading.get_ident()
    with warnings.catch_warnings():
        before = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if threading.get_ident() != mine:
                before(message, category, *where, **more)
            elif issubclass(category, Caution):
                notes.append(str(message))

        warnings.simplefilter("always", Caution)
        warnings.showwarning = show
        yield notes


def lines(
    explainer: Explainer,
    model: Served,
    text: str,
    context: str | None,
    choices: Sequence[Choice[Method]],
    which: Which,
    job: Job,
    counted: Mapping[str, float],
) -> Iterator[dict[str, Any]]:
    """A line for every method, or why there is none; `counted` are the passes that methods were seen to take."""
    for choice in choices:
        try:
            job.check()
            explanation, notes = explainer.explain(model, text, context, choice, which)
        except WithdrawnError:
            raise
        except Exception as problem:
            yield failed(choice, problem)
            continue
        line = line_of(explanation, choice.entry, notes, counted.get(choice.label, 0.0))
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


def all_of(
    explainer: Explainer,
    model: Served,
    text: str,
    context: str | None,
    choices: Sequence[Choice[Method]],
    which: Which,
    job: Job,
) -> Iterator[Explanation]:
    """Every explanation, and an error where there is one that does not work: for a file that shall be whole."""
    for choice in choices:
        job.check()
        yield explainer.explain(model, text, context, choice, which)[0]


def checked_target(model: Served, target: str) -> str:
    """A class of the model, or `predicted`; texts that people type have no gold label."""
    if target == "gold":
        raise ProblemError(422, "input", "A text that is typed has no gold label; choose predicted or a class.")
    read_target(target, model.labels)
    return target


def checked_question(model: Served, target: str, contrast: str | None) -> Which:
    """What is explained: a class, or one against another."""
    return read_contrast(checked_target(model, target), contrast, model.labels)
