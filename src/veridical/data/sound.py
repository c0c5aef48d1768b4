"""Examples and datasets that somebody made in Python: a record checks nothing, so they are checked as files are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from veridical.core.errors import InputError
from veridical.core.readable import insist_on_characters, shown
from veridical.core.records import Dataset, Example


def insist_on_dataset(data: Any, who: str) -> Dataset:
    """The dataset, if it is one and its examples are sound; `who` made it. What a text must be, who reads it says."""
    if not isinstance(data, Dataset) or not isinstance(data.splits, Mapping):
        raise InputError(f"{who} is {shown(data)}; it must be a Dataset of examples in splits.")
    for split, examples in data.splits.items():
        where = f" of the {split} split of {data.name}"
        seen: set[str] = set()
        for example in examples:
            insist_on_example(example, where, len(data.labels) or None)
            if example.id in seen:
                raise InputError(f"Two examples{where} have the id {shown(example.id)}; give every one its own.")
            seen.add(example.id)
    return data


def insist_on_example(example: Any, where: str, classes: int | None) -> None:
    """Refuse an example with a value of a wrong kind, a label that is no class, or a rationale outside its text.

    `where` is said behind its name: nothing, or " of the train split of toy".
    """
    if not isinstance(example, Example):
        raise InputError(f"{shown(example)}{where} is no Example; make it one: Example(id, text, label).")
    for field, value in (("id", example.id), ("text", example.text), ("context", example.context)):
        named = f"The {field} of example {shown(example.id)}{where}"
        if not isinstance(value, str) and not (value is None and field == "context"):
            raise InputError(f"{named} is {shown(value)}; it must be a string.")
        insist_on_characters(value or "", named)
    who = f"Example {shown(example.id)}{where}"
    for index in example.label if isinstance(example.label, tuple) else (example.label,):
        if index is not None:
            _insist_on_class(index, who, classes)
    _insist_on_spans(example, who)


def _insist_on_class(index: Any, who: str, classes: int | None) -> None:
    if type(index) is not int:
        raise InputError(f"{who} has label {shown(index)}; a label is the index of a class, a tuple of them, or None.")
    if index < 0 or (classes is not None and index >= classes):
        allowed = "indices start at 0" if classes is None else f"outside the {classes} labels (0 to {classes - 1})"
        raise InputError(f"{who} has label {index}, {allowed}; mend one or the other.")


def _insist_on_spans(example: Example, who: str) -> None:
    spans: Any = example.rationale
    if not isinstance(spans, (tuple, list)):
        raise InputError(f"{who} has the rationale {shown(spans)}; give a tuple of (start, end) character spans.")
    for span in spans:
        if not _is_inside(span, len(example.text)):
            raise InputError(
                f"{who} has the rationale span {shown(span)}, which is not inside its text of {len(example.text)} "
                "characters; a span is (start, end) with 0 <= start < end <= length."
            )


def _is_inside(span: Any, length: int) -> bool:
    if not isinstance(span, Iterable) or isinstance(span, str):
        return False
    edges = tuple(span)
    whole = len(edges) == 2 and all(type(edge) is int for edge in edges)
    return whole and 0 <= edges[0] < edges[1] <= length
