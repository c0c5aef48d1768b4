"""Two models on the same text: how alike they explain it, as `veridical compare` measures it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from veridical.audits.likeness import SHARE, likeness
from veridical.core.records import Attribution
from veridical.playground.explaining import HAND_OVER
from veridical.playground.explanations import Explainer, Question, Steps, failed
from veridical.playground.job import Job
from veridical.playground.problem import WithdrawnError
from veridical.playground.served import Served


def lines(explainer: Explainer, models: tuple[Served, Served], asked: Question, job: Job) -> Iterator[Any]:
    """A line for every method: each model's explanation of its own prediction, held against the other's."""
    steps = Steps(explainer, asked, job)
    for each in asked.plan:
        if steps.goes_over(models, each):
            yield HAND_OVER
        try:
            first, second = (steps.explain(model, each)[0] for model in models)
            yield _line(each.choice.label, first, second)
        except WithdrawnError:
            raise
        except Exception as problem:
            yield failed(each.choice, problem)


def _line(name: str, first: Any, second: Any) -> dict[str, Any]:
    found = likeness([first], [second])
    units = _spans(first) if found.level == "token" else _words(first) & _words(second)
    return {
        "method": name,
        "tau": found.tau[0],
        "top_overlap": found.jaccard[0],
        "share": SHARE,
        "level": found.level,
        "units": len(units),
        "same_class": first.label == second.label,
    }


def _spans(explanation: Attribution) -> set[int]:
    return {place for place, free in enumerate(explanation.encoded.free) if free}


def _words(explanation: Attribution) -> set[int]:
    held = explanation.encoded
    return {word for word, free in zip(held.words, held.free, strict=True) if free}
