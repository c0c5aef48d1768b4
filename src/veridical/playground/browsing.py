"""Texts to choose from: the examples of the data, with what the model says of them, or those that an audit shows."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from veridical.audits.record import ShownText
from veridical.core.errors import InputError
from veridical.core.records import Example, Variant
from veridical.core.wording import option
from veridical.data.labels import of_kind, relabel
from veridical.playground.answering import Asking
from veridical.playground.erasing import decided
from veridical.playground.house import Audited, House
from veridical.playground.job import Job, Who
from veridical.playground.limits import CHARACTERS
from veridical.playground.problem import ProblemError, problem_of
from veridical.playground.requests import ExamplesAsked, Sort
from veridical.playground.served import Served

AT_ONCE = 32  # texts whose predictions are asked for together
PATIENCE = 3.0  # seconds until it is said how far they are
Row = dict[str, Any]


def part(rows: Sequence[Row], offset: int, limit: int) -> Row:
    """Some of the rows, how many there are, and that no more are to come."""
    return {"total": len(rows), "examples": rows[offset : offset + limit], "read": len(rows), "of": len(rows)}


def ordered(rows: Sequence[Row], sort: Sort) -> list[Row]:
    """Wrong ones, the surest of them first; the surest; those that methods disagree on most."""
    if sort == "wrong":
        return sorted((row for row in rows if row["right"] is False), key=lambda row: -row["probability"])
    if sort == "confident":
        return sorted(rows, key=lambda row: -row["probability"])
    if sort == "disagreeing":
        return sorted((row for row in rows if row["disagreement"] is not None), key=lambda row: -row["disagreement"])
    return list(rows)


# -- of an audit ----------------------------------------------------------------------------------------------


def of_audit(audit: Audited | None, split: str | None, sort: Sort) -> list[Row]:
    """The texts that an audit's page shows; its splits are its corpora."""
    if audit is None:
        raise ProblemError(
            409,
            "no_audit",
            f"There is no audit here; serve it with {option('audit=DIR')}, or data with {option('data=DATA')}.",
        )
    corpora = list(dict.fromkeys(text.corpus for text in audit.examples.texts))
    wanted = split if split is not None else corpora[0] if corpora else ""
    _insist(wanted, corpora)
    multi = audit.summary.model.kind == "multi"
    rows = [_stored(text, audit.summary.model.labels, multi) for text in audit.examples.texts if text.corpus == wanted]
    return ordered(rows, sort)


def _stored(text: ShownText, labels: Sequence[str], multi: bool) -> Row:
    holds = [label for label, p in zip(labels, text.probabilities, strict=True) if p >= 0.5]
    gold = text.label.split(", ") if multi and text.label is not None else text.label
    return {
        "id": text.id,
        "text": text.text,
        "context": text.context,
        "label": gold,
        "predicted": holds if multi else text.predicted,
        "probability": max(text.probabilities),
        "disagreement": text.disagreement,
        "right": text.right,
    }


# -- of the data ----------------------------------------------------------------------------------------------


async def of_data(house: House, who: Who, model: Served, asked: ExamplesAsked) -> Row:
    """Examples of a split with the model's predictions. Where all of them are needed they are worked out once, in the
    background: an answer says how far that is, and what the order is so far."""
    data = house.data
    if data is None:
        raise ProblemError(
            409,
            "no_data",
            f"There is no data here; serve it with {option('data=DATA')}, or an audit with {option('audit=DIR')}.",
        )
    if asked.sort == "disagreeing":
        raise ProblemError(
            409, "no_audit", "How far methods disagree is known of an audit's texts alone; take source=audit."
        )
    wanted = asked.split if asked.split is not None else "test" if "test" in data.splits else next(iter(data.splits))
    _insist(wanted, list(data.splits))
    examples = of_kind(relabel(data.splits[wanted], data.labels, model.labels), model.multi_label)
    if asked.sort == "first":
        some = examples[asked.offset : asked.offset + asked.limit]
        rows = await house.ask(who, model, _rows(model, some))
        return {"total": len(examples), "examples": rows, "read": len(examples), "of": len(examples)}
    key = model.name, wanted
    if key not in house.predictions or house.predictions[key].problem is not None:
        house.predictions[key] = Predictions(len(examples), Job(math.inf))
        house.answering.submit(house.predictions[key].job, model.answers, _all(model, examples, house.predictions[key]))
    held = house.predictions[key]
    until = time.monotonic() + PATIENCE
    while not held.job.over and time.monotonic() < until:
        await asyncio.sleep(0.05)
    if held.problem is not None:
        raise held.problem
    return {
        **part(ordered(list(held.rows), asked.sort), asked.offset, asked.limit),
        "read": len(held.rows),
        "of": held.of,
    }


@dataclass
class Predictions:
    """Of a whole split, as far as they are worked out; everybody who asks reads the same."""

    of: int
    job: Job
    rows: list[Row] = field(default_factory=list)
    problem: ProblemError | None = None


def _all(model: Served, examples: Sequence[Example], held: Predictions) -> Asking:
    """Some texts at a time, each of which stays when a later one fails."""
    try:
        for start in range(0, len(examples), AT_ONCE):
            held.rows += yield from _rows(model, examples[start : start + AT_ONCE])
    except Exception as problem:
        held.problem = problem_of(problem)
        raise held.problem from problem


def _rows(model: Served, examples: Sequence[Example]) -> Asking:
    """Predictions as browsing shows them: of a text that is too long, of its beginning."""
    if not examples:
        return []
    encoded = model.answers.encode(examples)
    answers = yield [Variant(each.ids, each.types) for each in encoded]
    return [_row(model, example, p) for example, p in zip(examples, answers.probabilities, strict=True)]


def _row(model: Served, example: Example, probabilities: np.ndarray) -> Row:
    predicted, label = decided(model, probabilities), None
    if isinstance(example.label, tuple):
        label = [model.labels[index] for index in example.label]
    elif example.label is not None:
        label = model.labels[example.label]
    return {
        "id": example.id,
        "text": example.text[:CHARACTERS],
        "context": example.context,
        "label": label,
        "predicted": predicted,
        "probability": float(probabilities.max()),
        "disagreement": None,
        "right": None if label is None else label == predicted,
    }


def _insist(split: str, known: Sequence[str]) -> None:
    if split not in known:
        raise InputError(f"There is no split {split[:80]!r} here; there are: {', '.join(known) or 'none'}.")
