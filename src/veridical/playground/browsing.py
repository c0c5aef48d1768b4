"""Texts to choose from: the examples of the data, with what the model says of them, or those that an audit shows."""

from __future__ import annotations

from collections.abc import Sequence
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
from veridical.playground.limits import CHARACTERS
from veridical.playground.problem import ProblemError
from veridical.playground.requests import Sort
from veridical.playground.served import Served

Row = dict[str, Any]


def part(rows: tuple[int, Sequence[Row]] | Sequence[Row], offset: int, limit: int) -> Row:
    """Some of the rows, and how many there are; of rows that come with their number, all."""
    if isinstance(rows, tuple):
        return {"total": rows[0], "examples": rows[1]}
    return {"total": len(rows), "examples": rows[offset : offset + limit]}


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


async def of_data(
    house: House, model: Served, split: str | None, sort: Sort, offset: int, limit: int
) -> tuple[int, list[Row]] | list[Row]:
    """Examples of a split with the model's predictions, which are worked out once where all of them are needed."""
    data = house.data
    if data is None:
        raise ProblemError(
            409,
            "no_data",
            f"There is no data here; serve it with {option('data=DATA')}, or an audit with {option('audit=DIR')}.",
        )
    if sort == "disagreeing":
        raise ProblemError(
            409, "no_audit", "How far methods disagree is known of an audit's texts alone; take source=audit."
        )
    wanted = split if split is not None else "test" if "test" in data.splits else next(iter(data.splits))
    _insist(wanted, list(data.splits))
    examples = of_kind(relabel(data.splits[wanted], data.labels, model.labels), model.multi_label)
    if sort == "first":
        some = examples[offset : offset + limit]
        return len(examples), await house.ask(model, _rows(model, some))
    if (model.name, wanted) not in house.predictions:
        house.predictions[model.name, wanted] = await house.ask(model, _rows(model, examples))
    return ordered(house.predictions[model.name, wanted], sort)


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
