"""Explanations read from a file, put onto a model's own tokens, so that they are evaluated like ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from veridical.core.errors import InputError
from veridical.core.records import Attribution, Encoded, Example
from veridical.explanations.exchange import Reading, units_of
from veridical.model.ask import predict
from veridical.model.classifier import Classifier
from veridical.model.encode import UNLIMITED, encode
from veridical.model.target import Contrast, classes_of, read_contrast, read_target


def to_attributions(
    clf: Classifier,
    rows: Sequence[Reading],
    examples: Iterable[Example] | None = None,
    *,
    target: str | int = "predicted",
) -> list[Attribution]:
    """Put explanations that were read from a file onto a model's own tokens, so that they are scored like ours.

    Equal spans map one to one. Otherwise a unit's score is shared among the tokens it overlaps in proportion to the
    characters they share, so totals are kept.

    Args:
        clf: What `load` returns: the model that was explained.
        rows: What `read_explanations` returns.
        examples: The texts that the rows are of, found by id or by text. Default: the texts that the rows hold.
        target: The class that rows without one are taken to explain: `predicted`, `gold`, a name or an index.

    Returns:
        An `Attribution` for each row, in their order: what `evaluate` takes as `explanations`.

    Example:
        >>> theirs = veridical.to_attributions(clf, veridical.read_explanations("theirs.jsonl"), texts)
        >>> veridical.evaluate(clf, texts, [], "sufficiency", explanations=theirs)
    """
    texts = _examples(rows, None if examples is None else list(examples))
    encoded = _encode(clf, rows, texts)
    lacking = [i for i, row in enumerate(rows) if row.probabilities is None or row.target is None]
    answers = predict(clf, [encoded[i] for i in lacking]).probabilities if lacking else np.empty((0, 0))
    predicted = dict(zip(lacking, answers, strict=True))
    classes = classes_of(read_target(target, clf.labels), texts, clf.labels)
    attributions = []
    for index, (row, text) in enumerate(zip(rows, encoded, strict=True)):
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
        attributions.append(
            Attribution(
                encoded=text,
                target=explained,
                scores=_align(row, text).astype(np.float32),
                probabilities=probabilities,
                method=row.method,
                options=row.options or {},
                cost=row.cost,
                sampling_error=row.sampling_error,
                contrast=_contrast(row, explained, clf),
            )
        )
    return attributions


def _examples(rows: Sequence[Reading], known: list[Example] | None) -> list[Example]:
    by_id = {example.id: example for example in known or ()}
    by_text = {(example.text, example.context): example for example in known or ()}
    examples = []
    for place, row in enumerate(rows):
        if known is None:
            if row.text is None:
                raise InputError(f"{row.where}: there is no text; give it, or the data that id {row.id!r} is of.")
            examples.append(Example(row.id or str(place), row.text, row.label, row.context))
            continue
        example = by_id.get(row.id) if row.id is not None else by_text.get((row.text or "", row.context))
        if example is None:
            what = f"id {row.id!r}" if row.id is not None else f"text {(row.text or '')[:40]!r}"
            raise InputError(f"{row.where}: the data has no example with {what}; use the data that was explained.")
        if row.text is not None and row.text != example.text:
            raise InputError(
                f"{row.where}: the text of id {row.id!r} is not the one in the data; use the data that was explained."
            )
        if row.context is not None and row.context != example.context:
            raise InputError(
                f"{row.where}: the context of id {row.id!r} is not the one in the data; use what was explained."
            )
        examples.append(example)
    for row, example in zip(rows, examples, strict=True):
        if not example.text.strip():
            raise InputError(f"{row.where}: the text is empty; leave the row out.")
    return examples


def _encode(clf: Classifier, rows: Sequence[Reading], examples: Sequence[Example]) -> list[Encoded]:
    """As the model reads them; whole where a row of our own explains a longer text (in windows)."""
    encoded = clf.encode(examples)
    for place, (row, text) in enumerate(zip(rows, encoded, strict=True)):
        if text.cut and row.spans is not None and row.probabilities is not None and row.target is not None:
            (whole,) = encode(clf.tokenizer, [examples[place]], UNLIMITED)
            encoded[place] = whole if row.spans == whole.spans else text
    return encoded


def _target(row: Reading, clf: Classifier) -> int:
    """The class that a row explains. An index beside the name of another class is of a model with another order."""
    if isinstance(row.target, int) and row.target_name in clf.labels:
        named = clf.labels.index(row.target_name)
        if named != row.target:
            raise InputError(
                f"{row.where}: target is {row.target} and target_name {row.target_name!r}, which is class {named} of "
                f"{clf.name}; use the model that was explained, or leave target out."
            )
    if isinstance(row.target, str) and row.target in clf.labels:
        return clf.labels.index(row.target)
    if isinstance(row.target, int) and 0 <= row.target < len(clf.labels):
        return row.target
    raise InputError(
        f"{row.where}: target {row.target!r} is not a class of {clf.name}; it has "
        f"{', '.join(f'{i} ({name})' for i, name in enumerate(clf.labels))}."
    )


def _contrast(row: Reading, explained: int, clf: Classifier) -> int | None:
    """The class that a row explains its own against, if it says one."""
    which = read_contrast(explained, row.contrast, clf.labels)
    return which.against if isinstance(which, Contrast) and isinstance(which.against, int) else None


def _align(row: Reading, encoded: Encoded) -> np.ndarray:
    """The row's scores on the tokens of an encoding. [T]"""
    units = units_of(row, encoded.example.text)
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
