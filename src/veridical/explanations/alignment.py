"""Explanations read from a file, put onto a model's own tokens, so that they are evaluated like ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from veridical.core.errors import InputError
from veridical.core.records import Attribution, Encoded, Example, Span
from veridical.core.text import words_of
from veridical.explanations.exchange import Row
from veridical.model.ask import predict
from veridical.model.classifier import Classifier
from veridical.model.encode import UNLIMITED, encode
from veridical.model.target import classes_of, read_target


def to_attributions(
    clf: Classifier,
    rows: Sequence[Row],
    examples: Iterable[Example] | None = None,
    *,
    target: str | int = "predicted",
) -> list[Attribution]:
    """The rows as attributions over the model's own tokens, in their order.

    Equal spans map one to one. Otherwise a unit's score is shared among the tokens it overlaps in proportion
    to the characters they share, so totals are kept. With `examples`, rows are of these, by id or by text. `target` is
    the class that rows without one are taken to explain.
    """
    known = None if examples is None else list(examples)
    found = _examples(rows, known)
    encoded = _encode(clf, rows, found)
    lacking = [i for i, row in enumerate(rows) if row.probabilities is None or row.target is None]
    answers = predict(clf, [encoded[i] for i in lacking]).probabilities if lacking else np.empty((0, 0))
    predicted = dict(zip(lacking, answers, strict=True))
    classes = classes_of(read_target(target, clf.labels), found, clf.labels)
    made = []
    for index, (row, own) in enumerate(zip(rows, encoded, strict=True)):
        probabilities = predicted[index] if row.probabilities is None else row.probabilities
        if len(probabilities) != len(clf.labels):
            raise InputError(
                f"{row.where}: there are {len(probabilities)} probabilities for {len(clf.labels)} classes of "
                f"{clf.name}; use the model that was explained, or leave probabilities out."
            )
        if row.target is not None:
            explained = _target(row, clf)
        else:
            explained = int(predicted[index].argmax()) if classes is None else classes[index]
        made.append(
            Attribution(
                encoded=own,
                target=explained,
                scores=_align(row, own).astype(np.float32),
                probabilities=probabilities,
                method=row.method,
                options=row.options or {},
                cost=row.cost,
            )
        )
    return made


def _examples(rows: Sequence[Row], known: list[Example] | None) -> list[Example]:
    by_id = {example.id: example for example in known or ()}
    by_text = {(example.text, example.context): example for example in known or ()}
    found = []
    for place, row in enumerate(rows):
        if known is None:
            if row.text is None:
                raise InputError(f"{row.where}: there is no text; give it, or the data that id {row.id!r} is of.")
            found.append(Example(row.id or str(place), row.text, row.label, row.context))
            continue
        example = by_id.get(row.id) if row.id is not None else by_text.get((row.text or "", row.context))
        if example is None:
            what = f"id {row.id!r}" if row.id is not None else f"text {(row.text or '')[:40]!r}"
            raise InputError(f"{row.where}: the data has no example with {what}; use the data that was explained.")
        if row.text is not None and row.text != example.text:
            raise InputError(
                f"{row.where}: the text of id {row.id!r} is not the one in the data; use the data that was explained."
            )
        found.append(example)
    for row, example in zip(rows, found, strict=True):
        if not example.text.strip():
            raise InputError(f"{row.where}: the text is empty; leave the row out.")
    return found


def _encode(clf: Classifier, rows: Sequence[Row], examples: Sequence[Example]) -> list[Encoded]:
    """As the model reads them; whole where a row of our own explains a longer text (in windows)."""
    found = clf.encode(examples)
    for place, (row, own) in enumerate(zip(rows, found, strict=True)):
        if own.cut and row.spans is not None and row.probabilities is not None and row.target is not None:
            (whole,) = encode(clf.tokenizer, [examples[place]], UNLIMITED)
            found[place] = whole if row.spans == whole.spans else own
    return found


def _target(row: Row, clf: Classifier) -> int:
    if isinstance(row.target, str) and row.target in clf.labels:
        return clf.labels.index(row.target)
    if isinstance(row.target, int) and 0 <= row.target < len(clf.labels):
        return row.target
    raise InputError(
        f"{row.where}: target {row.target!r} is not a class of {clf.name}; it has "
        f"{', '.join(f'{i} ({name})' for i, name in enumerate(clf.labels))}."
    )


def _align(row: Row, encoded: Encoded) -> np.ndarray:
    """The row's scores on the tokens of an encoding. [T]"""
    units = _units(row, encoded.example.text)
    tokens = [i for i, free in enumerate(encoded.free) if free]
    scores = np.zeros(len(encoded.ids))
    if [span for span, _ in units] == [encoded.spans[i] for i in tokens]:
        scores[tokens] = [score for _, score in units]
        return scores
    read = max(encoded.spans[i][1] for i in tokens) if encoded.cut else len(encoded.example.text)
    for (start, end), score in units:
        if score == 0:
            continue
        if start >= read:
            raise InputError(
                f"{row.where}: characters {start} to {end} have score {score:g}, but the model reads only "
                f"the first {read} characters; set the scores of what it does not read to 0."
            )
        shared = np.array([min(end, encoded.spans[i][1]) - max(start, encoded.spans[i][0]) for i in tokens])
        # A unit that meets no token (a character the tokenizer drops) goes to the nearest ones.
        weights = np.maximum(shared, 0) if (shared > 0).any() else (shared == shared.max()).astype(int)
        scores[tokens] += score * weights / weights.sum()
    return scores


def _units(row: Row, text: str) -> list[tuple[Span, float]]:
    """The explained units and their scores, each inside the text."""
    if row.spans is None:
        words = words_of(text)
        if len(row.scores) != len(words):
            raise InputError(
                f"{row.where}: there are {len(row.scores)} scores for {len(words)} words; give one for every "
                "word separated by white space, or starts and ends."
            )
        return list(zip(words, row.scores.tolist(), strict=True))
    units = []
    for place, ((start, end), score) in enumerate(zip(row.spans, row.scores.tolist(), strict=True)):
        if not 0 <= start <= end <= len(text):
            raise InputError(
                f"{row.where}: score {place + 1} is of characters {start} to {end}, outside the text of "
                f"{len(text)}; count characters (not bytes) from 0, the end not included."
            )
        if row.free is None and start == end and score:
            raise InputError(
                f"{row.where}: score {place + 1} is {score:g} but covers no character ({start} to {end}); "
                "if it is of a special token, add `free` with false there."
            )
        if row.free is None or row.free[place]:
            units.append(((start, end), score))
    return units
