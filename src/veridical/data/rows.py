"""Rows as people keep them -> checked Examples, with errors that say where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from veridical.core.errors import InputError
from veridical.core.readable import insist_on_characters, shown
from veridical.core.records import Dataset, Example, Span
from veridical.core.text import words_of
from veridical.data.labels import read_labels


@dataclass(frozen=True, slots=True)
class Row:
    """One example as found, unchecked. `where` names file and line for the errors."""

    where: str
    text: Any
    label: Any  # an index, a name, or a list of them (multi-label)
    id: Any = None
    context: Any = None
    rationale: Any = None  # [start, end] character pairs, or 0/1 per whitespace-separated word
    document: Any = None  # that the text comes from, where several do
    lost: int = 0  # pieces of quoted evidence that do not occur in the text


def build(
    name: str,
    splits: Mapping[str, Sequence[Row]],
    *,
    labels: tuple[str, ...] = (),
    about: str = "",
    unlabelled: bool = False,
) -> Dataset:
    """The rows as a Dataset, every one checked; label names are those given, else what the rows hold. Only with
    `unlabelled` may a label be missing."""
    if not splits:
        raise InputError(f"{name!r} holds no examples; give it some.")
    for split, rows in splits.items():
        if not rows:
            raise InputError(f"The split {split!r} of {name!r} holds no examples; give it some or leave it out.")
    names, multilabel, index = read_labels(
        {
            split: [(row.where, row.label) for row in rows if row.label is not None or not unlabelled]
            for split, rows in splits.items()
        },
        labels,
    )
    indices = {split: iter(each) for split, each in index.items()}
    ids = _ids(splits)
    examples = {
        split: tuple(
            Example(
                id,
                _text(row),
                None if row.label is None else next(indices[split]),
                _context(row),
                _rationale(row),
                _document(row),
            )
            for id, row in zip(ids[split], rows, strict=True)
        )
        for split, rows in splits.items()
    }
    return Dataset(name, names, examples, multilabel=multilabel, about=about)


def spans_of_words(text: str, marks: Sequence[Any]) -> tuple[Span, ...]:
    """The spans of the marked words; neighbours make one phrase."""
    phrases: list[Span] = []
    before = False
    for (start, end), mark in zip(words_of(text), marks, strict=True):
        if mark and before:
            phrases[-1] = (phrases[-1][0], end)
        elif mark:
            phrases.append((start, end))
        before = bool(mark)
    return tuple(phrases)


def spans_of_phrases(text: str, phrases: Sequence[str]) -> tuple[tuple[Span, ...], int]:
    """Where quotes stand in a text (a repeated one: its next occurrence), and how many do not occur."""
    after: dict[str, int] = {}
    spans: list[Span] = []
    lost = 0
    for phrase in filter(None, (phrase.strip() for phrase in phrases)):
        start = text.find(phrase, after.get(phrase, 0))
        if start >= 0:
            spans.append((start, start + len(phrase)))
            after[phrase] = start + len(phrase)
        elif phrase not in after:  # quoted more often than it occurs: it is marked already
            lost += 1
    return merged(spans), lost


def merged(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Sorted spans, overlapping ones made one."""
    result: list[Span] = []
    for start, end in sorted(spans):
        if result and start < result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return tuple(result)


def _text(row: Row) -> str:
    if not isinstance(row.text, str | None):
        raise InputError(f"{row.where}: the text is {shown(row.text)}; it must be a string.")
    if row.text is None or not row.text.strip():
        raise InputError(f"{row.where}: the text is empty; remove the row or give it a text.")
    insist_on_characters(row.text, f"{row.where}: the text")
    return row.text


def _context(row: Row) -> str | None:
    if row.context is None or row.context == "":
        return None
    if not isinstance(row.context, str):
        raise InputError(f"{row.where}: the context is {shown(row.context)}; it must be a text.")
    insist_on_characters(row.context, f"{row.where}: the context")
    return row.context


_FORMS = "give [start, end] character spans, or one 0 or 1 per word"


def _document(row: Row) -> str | None:
    """Its name; a cell that is empty names none."""
    return None if row.document is None or str(row.document).strip() == "" else str(row.document)


def _rationale(row: Row) -> tuple[Span, ...]:
    marks = row.rationale
    if marks is None or marks in ([], ()):
        return ()
    if not isinstance(marks, (list, tuple)):
        raise InputError(f"{row.where}: the rationale is {shown(marks)}; {_FORMS}.")
    if all(isinstance(mark, (list, tuple)) for mark in marks):
        for span in marks:
            whole = len(span) == 2 and all(type(edge) is int for edge in span)
            if not whole or not 0 <= span[0] < span[1] <= len(row.text):
                raise InputError(
                    f"{row.where}: the rationale span {shown(list(span))} is not inside the text of {len(row.text)} "
                    f"characters; a span is [start, end] with 0 <= start < end <= length."
                )
        return merged([(start, end) for start, end in marks])
    for mark in marks:
        if type(mark) not in (int, bool) or mark not in (0, 1):
            raise InputError(f"{row.where}: the rationale has the value {shown(mark)}; {_FORMS}.")
    words = len(row.text.split())
    if len(marks) != words:
        raise InputError(
            f"{row.where}: the rationale has {len(marks)} values, but the text has {words} words "
            f"(separated by white space); {_FORMS}."
        )
    return spans_of_words(row.text, marks)


def _id(row: Row) -> str:
    if not isinstance(row.id, (str, int, float)):
        raise InputError(f"{row.where}: the id is {shown(row.id)}; give a text or a number, or leave it out.")
    insist_on_characters(str(row.id), f"{row.where}: the id")
    return str(row.id)


def _ids(splits: Mapping[str, Sequence[Row]]) -> dict[str, list[str]]:
    """Ids as given, else split and number; with the split in front if two splits share one."""
    ids: dict[str, list[str]] = {}
    for split, rows in splits.items():
        seen: dict[str, str] = {}
        for n, row in enumerate(rows):
            id = f"{split}-{n}" if row.id is None or row.id == "" else _id(row)
            if id in seen:
                raise InputError(
                    f"{row.where}: the id {shown(id)} was used before, at {seen[id]}; give every row its own id, "
                    f"or have the rows numbered with id=none."
                )
            seen[id] = row.where
        ids[split] = list(seen)
    total = sum(map(len, ids.values()))
    if len({id for some in ids.values() for id in some}) == total:
        return ids
    return {split: [f"{split}/{id}" for id in some] for split, some in ids.items()}
