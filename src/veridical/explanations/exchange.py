"""Explanations out and in through one schema, as Parquet or JSON lines, one row per text and method.

    id text context label       the example; label is a class index, or a list of them
    method options              the spec, and all options as a JSON object
    target target_name          the explained class
    probabilities               of the classes
    tokens starts ends free     a unit per entry: its name, its characters in the text, was it explained
    scores                      one per unit
    seconds forward backward    what it took

Explanations made elsewhere need less: text (or the id of a known example), method, scores, and either starts
and ends or one score for every word separated by white space. `to_attributions` fills in the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.records import Cost, Span
from veridical.core.text import words_of

if TYPE_CHECKING:
    from veridical.explanations.explanation import Explanation

FORMATS = (".parquet", ".jsonl")
COLUMNS = (
    *("id", "text", "context", "label", "method", "options", "target", "target_name", "probabilities"),
    *("tokens", "starts", "ends", "free", "scores", "seconds", "forward", "backward"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What somebody says of one text, without model and tokenizer: as a file holds it, or as two models are compared.

    None is what was left out.
    """

    where: str  # file and row, for errors
    method: str
    scores: np.ndarray  # [units] float64
    id: str | None = None
    text: str | None = None
    context: str | None = None
    label: int | tuple[int, ...] | None = None
    options: Mapping[str, Any] | None = None
    target: int | str | None = None  # an index or a name
    probabilities: np.ndarray | None = None  # [C] float32
    tokens: tuple[str, ...] | None = None
    spans: tuple[Span, ...] | None = None  # None: a score per word
    free: tuple[bool, ...] | None = None  # None: all units are explained
    cost: Cost = field(default_factory=Cost)


def units_of(reading: Reading, text: str) -> list[tuple[Span, float]]:
    """The explained units and their scores, each inside the text that the reading is of."""
    if reading.spans is None:
        words = words_of(text)
        if len(reading.scores) != len(words):
            raise InputError(
                f"{reading.where}: there are {len(reading.scores)} scores for {len(words)} words; give one for every "
                "word separated by white space, or starts and ends."
            )
        return list(zip(words, reading.scores.tolist(), strict=True))
    units = []
    for place, ((start, end), score) in enumerate(zip(reading.spans, reading.scores.tolist(), strict=True)):
        if not 0 <= start <= end <= len(text):
            raise InputError(
                f"{reading.where}: score {place + 1} is of characters {start} to {end}, outside the text of "
                f"{len(text)}; count characters (not bytes) from 0, the end not included."
            )
        if reading.free is None and start == end and score:
            raise InputError(
                f"{reading.where}: score {place + 1} is {score:g} but covers no character ({start} to {end}); "
                "if it is of a special token, add `free` with false there."
            )
        if reading.free is None or reading.free[place]:
            units.append(((start, end), score))
    return units


# -- out ----------------------------------------------------------------------------------------------------


def to_row(explanation: Explanation) -> dict[str, Any]:
    """The row of one explanation, in plain values."""
    example, encoded, cost = explanation.example, explanation.encoded, explanation.cost
    return {
        "id": example.id,
        "text": example.text,
        "context": example.context,
        "label": list(example.label) if isinstance(example.label, tuple) else example.label,
        "method": explanation.method,
        "options": json.dumps(store.plain(explanation.options), ensure_ascii=False, sort_keys=True),
        "target": explanation.target,
        "target_name": explanation.label,
        "probabilities": explanation.probabilities.tolist(),
        "tokens": list(explanation.tokens),
        "starts": [start for start, _ in encoded.spans],
        "ends": [end for _, end in encoded.spans],
        "free": list(encoded.free),
        "scores": explanation.scores.tolist(),
        "seconds": cost.seconds,
        "forward": cost.forward,
        "backward": cost.backward,
    }


def write_explanations(path: str | Path, explanations: Iterable[Explanation]) -> Path:
    """Write explanations to `path`, whole or not at all; its ending (.parquet, .jsonl) says how."""
    path = check_format(path)
    rows = [to_row(explanation) for explanation in explanations]
    if path.suffix == ".jsonl":
        store.write_jsonl(path, rows)
    else:
        store.write_parquet(path, _table(rows))
    return path


def check_format(path: str | Path) -> Path:
    """The path, if its ending names a format: asked before work begins whose result would have no file."""
    if Path(path).suffix not in FORMATS:
        raise InputError(f"{path} ends in neither {' nor '.join(FORMATS)}; name a file that does.")
    return Path(path)


def _table(rows: Sequence[Mapping[str, Any]]) -> Any:
    import pyarrow

    many = any(isinstance(row["label"], list) for row in rows)
    kinds = {
        **dict.fromkeys(("id", "text", "context", "method", "options", "target_name"), pyarrow.string()),
        "label": pyarrow.list_(pyarrow.int64()) if many else pyarrow.int64(),
        "target": pyarrow.int64(),
        **dict.fromkeys(("probabilities", "scores"), pyarrow.list_(pyarrow.float32())),
        "tokens": pyarrow.list_(pyarrow.string()),
        **dict.fromkeys(("starts", "ends"), pyarrow.list_(pyarrow.int64())),
        "free": pyarrow.list_(pyarrow.bool_()),
        **dict.fromkeys(("seconds", "forward", "backward"), pyarrow.float64()),
    }
    schema = pyarrow.schema([(name, kinds[name]) for name in COLUMNS])
    return pyarrow.Table.from_pylist(list(rows), schema=schema)


# -- in -----------------------------------------------------------------------------------------------------


def read_explanations(path: str | Path) -> list[Reading]:
    """The rows of a file, ours or made elsewhere, each checked; an error names file, row and remedy."""
    path = check_format(path)
    if not path.is_file():
        raise InputError(f"There is no file {str(path)!r}; name a file of explanations.")
    if path.suffix == ".jsonl":
        return [_reading(values, where) for values, where in _json_lines(path)]
    values = store.read_parquet(path).to_pylist()
    return [_reading(value, f"{path}, row {number}") for number, value in enumerate(values, 1)]


def _json_lines(path: Path) -> Iterable[tuple[dict[str, Any], str]]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as problem:
        raise InputError(f"{path} is not UTF-8 ({problem.reason}); save it as UTF-8.") from problem
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            values = json.loads(line)
        except ValueError as problem:
            raise InputError(f"{where}: this is not JSON ({problem}); write one object per line.") from problem
        if not isinstance(values, dict):
            raise InputError(f"{where}: this is not an object; write one object per line.")
        yield values, where


@dataclass(frozen=True)
class _Cells:
    """The values of one row of a file, each asked for by name and kind."""

    values: Mapping[str, Any]
    where: str

    def get(self, name: str, kind: type | tuple[type, ...], meaning: str) -> Any:
        value = self.values.get(name)
        if value is not None and not _is(value, kind):
            raise InputError(f"{self.where}: {name} is {value!r}; it must be {meaning}.")
        return value

    def series(self, name: str, kind: type | tuple[type, ...], meaning: str) -> list[Any] | None:
        values = self.get(name, list, f"a list of {meaning}")
        for value in values or ():
            if not _is(value, kind):
                raise InputError(f"{self.where}: {name} holds {value!r}; it must be a list of {meaning}.")
        return values

    def numbers(self, name: str) -> list[Any] | None:
        return self.series(name, (int, float), "numbers")


def _is(value: Any, kind: type | tuple[type, ...]) -> bool:
    """True and False are whole numbers to Python alone."""
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _reading(values: Mapping[str, Any], where: str) -> Reading:
    cells = _Cells(values, where)
    identity, text = values.get("id"), cells.get("text", str, "a text")
    if identity is None and text is None:
        raise InputError(f"{where}: there is neither a text nor an id; give one of them.")
    method = cells.get("method", str, "the name of a method")
    if not method:
        raise InputError(f"{where}: there is no method; name what made these scores.")
    scores = _scores(cells)
    spans, free = _spans(cells, len(scores)), cells.series("free", bool, "true or false")
    _insist_on_length("free", free, len(scores), where)
    tokens, probabilities = cells.series("tokens", str, "texts"), cells.numbers("probabilities")
    target = cells.get("target", (int, str), "a class index or name")
    name = cells.get("target_name", str, "a class name")
    options = values.get("options")
    return Reading(
        where=where,
        method=method,
        scores=scores,
        id=None if identity is None else str(identity),
        text=text,
        context=cells.get("context", str, "a text"),
        label=_label(values.get("label"), where),
        options=None if options is None else _options(options, where),
        target=name if target is None else target,
        probabilities=None if probabilities is None else np.array(probabilities, dtype=np.float32),
        tokens=None if tokens is None else tuple(tokens),
        spans=spans,
        free=None if free is None else tuple(free),
        cost=Cost(*(float(cells.get(n, (int, float), "a number") or 0) for n in ("seconds", "forward", "backward"))),
    )


def _scores(cells: _Cells) -> np.ndarray:
    given = cells.numbers("scores")
    if given is None:
        raise InputError(f"{cells.where}: there are no scores; give one number per word or per span.")
    scores = np.array(given, dtype=np.float64)
    if not np.isfinite(scores).all():
        bad = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise InputError(f"{cells.where}: score {bad + 1} is {scores[bad]}; scores must be finite numbers.")
    return scores


def _spans(cells: _Cells, count: int) -> tuple[Span, ...] | None:
    starts, ends = (cells.series(name, int, "whole numbers") for name in ("starts", "ends"))
    if starts is None and ends is None:
        return None
    if starts is None or ends is None:
        there = "ends" if starts is None else "starts"
        raise InputError(f"{cells.where}: there are {there} only; give starts and ends.")
    _insist_on_length("starts", starts, count, cells.where)
    _insist_on_length("ends", ends, count, cells.where)
    return tuple(zip(starts, ends, strict=True))


def _insist_on_length(name: str, values: list[Any] | None, count: int, where: str) -> None:
    if values is not None and len(values) != count:
        raise InputError(f"{where}: there are {count} scores but {len(values)} {name}; give one per score.")


def _label(value: Any, where: str) -> int | tuple[int, ...] | None:
    if isinstance(value, list) and all(isinstance(index, int) for index in value):
        return tuple(value)
    if value is None or isinstance(value, int):
        return value
    raise InputError(f"{where}: label is {value!r}; it must be a class index or a list of them.")


def _options(value: Any, where: str) -> dict[str, Any]:
    try:
        options = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        options = None
    if not isinstance(options, dict):
        raise InputError(f"{where}: options is {value!r}; it must be a JSON object.")
    # A list in JSON was a tuple: no option is a list.
    return {key: tuple(inner) if isinstance(inner, list) else inner for key, inner in options.items()}
