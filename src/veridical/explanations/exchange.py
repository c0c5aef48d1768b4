"""Explanations out and in through one schema, as Parquet or JSON lines, one row per text and method.

    id text context label       the example; label is a class index, or a list of them
    method options              the spec, and all options as a JSON object
    target target_name          the explained class
    contrast contrast_name      the class that it is explained against, if any; no such columns in older files
    probabilities               of the classes
    tokens starts ends free     a unit per entry: its name, its characters in the text, was it explained
    scores                      one per unit
    seconds forward backward    what it took
    sampling_error              of a method that draws, as a share of the scores' spread; no such column in older files

Explanations made elsewhere need less: text (or the id of a known example), method, scores, and either starts
and ends or one score for every word separated by white space. `to_attributions` fills in the rest.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.place import at_home, check_file
from veridical.core.readable import insist_on_characters, parse_json, read_utf8, shown
from veridical.core.records import Cost, Span
from veridical.core.text import words_of

if TYPE_CHECKING:
    from veridical.explanations.explanation import Explanation

FORMATS = (".parquet", ".jsonl")
_LARGEST, _SMALLEST = 1e37, 1e-37  # of scores: metrics read them in single precision, sums and differences too
COLUMNS = (
    *("id", "text", "context", "label", "method", "options", "target", "target_name", "probabilities"),
    *("tokens", "starts", "ends", "free", "scores", "seconds", "forward", "backward", "sampling_error"),
    *("contrast", "contrast_name"),
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
    target_name: str | None = None  # beside an index, so that classes in another order show
    probabilities: np.ndarray | None = None  # [C] float32
    tokens: tuple[str, ...] | None = None
    spans: tuple[Span, ...] | None = None  # None: a score per word
    free: tuple[bool, ...] | None = None  # None: all units are explained
    cost: Cost = field(default_factory=Cost)
    sampling_error: float | None = None
    contrast: int | str | None = None  # an index or a name


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
        "sampling_error": explanation.sampling_error,
        "contrast": explanation.contrast,
        "contrast_name": explanation.contrast_label,
    }


def write_explanations(path: str | Path, explanations: Iterable[Explanation]) -> Path:
    """Write explanations to a file that other programs can read, whole or not at all.

    Args:
        path: The file. Its ending says how it is written: .parquet or .jsonl.
        explanations: What `explain` returns for one method.

    Returns:
        The path.

    Example:
        >>> veridical.write_explanations("mine.parquet", veridical.explain(clf, texts, "lime"))
    """
    path = check_format(at_home(path))
    check_file(path)
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
        **dict.fromkeys(("id", "text", "context", "method", "options"), pyarrow.string()),
        **dict.fromkeys(("target_name", "contrast_name"), pyarrow.string()),
        "label": pyarrow.list_(pyarrow.int64()) if many else pyarrow.int64(),
        **dict.fromkeys(("target", "contrast"), pyarrow.int64()),
        **dict.fromkeys(("probabilities", "scores"), pyarrow.list_(pyarrow.float32())),
        "tokens": pyarrow.list_(pyarrow.string()),
        **dict.fromkeys(("starts", "ends"), pyarrow.list_(pyarrow.int64())),
        "free": pyarrow.list_(pyarrow.bool_()),
        **dict.fromkeys(("seconds", "forward", "backward", "sampling_error"), pyarrow.float64()),
    }
    schema = pyarrow.schema([(name, kinds[name]) for name in COLUMNS])
    return pyarrow.Table.from_pylist(list(rows), schema=schema)


# -- in -----------------------------------------------------------------------------------------------------


def read_explanations(path: str | Path) -> list[Reading]:
    """Read explanations from a file, ours or made elsewhere. Each row is checked; an error names file, row and remedy.

    Args:
        path: A .parquet or .jsonl file with the columns of the exchange schema: text (or id), method, scores at least.

    Returns:
        A row for each text and method, which `to_attributions` puts onto a model's tokens.

    Example:
        >>> rows = veridical.read_explanations("theirs.jsonl")
    """
    path = check_format(at_home(path))
    if not os.path.isfile(path):
        raise InputError(f"There is no file {shown(str(path))}; name a file of explanations.")
    rows = [_reading(values, where) for values, where in (_json_lines if path.suffix == ".jsonl" else _rows)(path)]
    if not rows:
        raise InputError(f"{path} holds no explanations; write one per text and method.")
    return rows


def _rows(path: Path) -> Iterable[tuple[dict[str, Any], str]]:
    import pyarrow
    import pyarrow.parquet

    try:
        with open(path, "rb") as file:  # a path is opened by us, as in `store.read_parquet`
            table = pyarrow.parquet.ParquetFile(file)
            _insist_on_distinct(table.schema_arrow.names, str(path))
            known = [name for name in table.schema_arrow.names if name in COLUMNS]  # others may hold anything
            rows = table.read(columns=known).to_pylist()
    except (OSError, ValueError, OverflowError, pyarrow.ArrowException) as problem:
        reason = next(iter(str(problem).splitlines()), type(problem).__name__)
        remedy = "check that it is whole, or, if Veridical wrote it, delete it to have it made again"
        raise InputError(f"{path} cannot be read as Parquet ({reason}); {remedy}.") from problem
    return ((values, f"{path}, row {number}") for number, values in enumerate(rows, 1))


def _insist_on_distinct(names: Sequence[str], where: str) -> None:
    twice = [name for name in COLUMNS if names.count(name) > 1]
    if twice:
        raise InputError(f"{where}: {twice[0]} is there twice; rename or remove one of them.")


def _json_lines(path: Path) -> Iterable[tuple[dict[str, Any], str]]:
    for number, line in enumerate(read_utf8(path).split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            values = parse_json(line, object_pairs_hook=lambda pairs, where=where: _object(pairs, where))
        except ValueError as problem:
            raise InputError(f"{where}: this is not JSON ({problem}); write one object per line.") from problem
        if not isinstance(values, dict):
            raise InputError(f"{where}: this is not an object; write one object per line.")
        yield values, where


def _object(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    _insist_on_distinct([name for name, _ in pairs], where)
    return dict(pairs)


@dataclass(frozen=True)
class _Cells:
    """The values of one row of a file, each asked for by name and kind."""

    values: Mapping[str, Any]
    where: str

    def get(self, name: str, kind: type | tuple[type, ...], meaning: str) -> Any:
        value = self.values.get(name)
        if value is not None and not _is(value, kind):
            raise InputError(f"{self.where}: {name} is {shown(value)}; it must be {meaning}.")
        return value

    def series(self, name: str, kind: type | tuple[type, ...], meaning: str) -> list[Any] | None:
        values = self.get(name, list, f"a list of {meaning}")
        for value in values or ():
            if not _is(value, kind):
                raise InputError(f"{self.where}: {name} holds {shown(value)}; it must be a list of {meaning}.")
        return values

    def numbers(self, name: str) -> list[Any] | None:
        values = self.series(name, (int, float), "numbers")
        return None if values is None else [self._float(name, value) for value in values]

    def number(self, name: str) -> float | None:
        """A number that counts or measures something."""
        given = self.get(name, (int, float), "a number")
        number = None if given is None else self._float(name, given)
        if number is not None and not 0 <= number < np.inf:
            raise InputError(f"{self.where}: {name} is {number:g}; it must be 0 or more, and finite.")
        return number

    def text(self, name: str, meaning: str = "a text") -> Any:
        value = self.get(name, str, meaning)
        insist_on_characters(value or "", f"{self.where}: {name}")
        return value

    def _float(self, name: str, value: Any) -> float:
        try:
            return float(value)
        except OverflowError as problem:
            raise InputError(f"{self.where}: {name} holds {shown(value)}, which is too large.") from problem


def _is(value: Any, kind: type | tuple[type, ...]) -> bool:
    """True and False are whole numbers to Python alone."""
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _reading(values: Mapping[str, Any], where: str) -> Reading:
    cells = _Cells(values, where)
    identity, text = _identity(values.get("id"), where), cells.text("text")
    if identity is None and text is None:
        raise InputError(f"{where}: there is neither a text nor an id; give one of them.")
    method = cells.text("method", "the name of a method")
    if not method or not method.strip():
        raise InputError(f"{where}: there is no method; name what made these scores.")
    if not method.isprintable():
        raise InputError(f"{where}: method is {shown(method)}; its name stands in tables, so keep it to one line.")
    scores = _scores(cells)
    spans, free = _spans(cells, len(scores)), cells.series("free", bool, "true or false")
    _insist_on_length("free", free, len(scores), where)
    if not len(scores) or (free is not None and not any(free)):
        raise InputError(f"{where}: nothing of the text is explained; give a score per word or span, or no such row.")
    tokens, probabilities = cells.series("tokens", str, "texts"), cells.numbers("probabilities")
    _insist_on_length("tokens", tokens, len(scores), where)
    for probability in probabilities or ():
        if not -1e-5 <= probability <= 1 + 1e-5:  # rounded they may be
            raise InputError(f"{where}: probabilities holds {probability:g}; a probability is from 0 to 1.")
    target = cells.get("target", (int, str), "a class index or name")
    name = cells.text("target_name", "a class name")
    options = values.get("options")
    return Reading(
        where=where,
        method=method,
        scores=scores,
        id=identity,
        text=text,
        context=cells.text("context"),
        label=_label(values.get("label"), where),
        options=None if options is None else _options(options, where),
        target=name if target is None else target,
        target_name=name,
        probabilities=None if probabilities is None else np.array(probabilities, dtype=np.float32),
        tokens=None if tokens is None else tuple(tokens),
        spans=spans,
        free=None if free is None else tuple(free),
        cost=Cost(*(cells.number(name) or 0.0 for name in ("seconds", "forward", "backward"))),
        sampling_error=cells.number("sampling_error"),
        contrast=cells.text("contrast_name") or cells.get("contrast", (int, str), "a class index or name"),
    )


def _identity(value: Any, where: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, (str, int)):
        raise InputError(f"{where}: id is {shown(value)}; it must be a text or a whole number.")
    insist_on_characters(str(value), f"{where}: id")
    return str(value)


def _scores(cells: _Cells) -> np.ndarray:
    given = cells.numbers("scores")
    if given is None:
        raise InputError(f"{cells.where}: there are no scores; give one number per word or per span.")
    scores = np.array(given, dtype=np.float64)
    if not np.isfinite(scores).all():
        bad = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise InputError(f"{cells.where}: score {bad + 1} is {scores[bad]}; scores must be finite numbers.")
    sizes = np.abs(scores[scores != 0])
    if len(sizes) and (sizes.sum() > _LARGEST or sizes.max() < _SMALLEST):
        raise InputError(
            f"{cells.where}: the scores go up to {sizes.max():g}, which single precision does not hold; multiply them "
            "all by one number, so that they are near 1."
        )
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
    if isinstance(value, list) and all(_is(index, int) for index in value):
        return tuple(value)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise InputError(f"{where}: label is {shown(value)}; it must be a class index or a list of them.")


def _options(value: Any, where: str) -> dict[str, Any]:
    try:
        options = parse_json(value) if isinstance(value, str) else value
    except ValueError:
        options = None
    if not isinstance(options, dict):
        raise InputError(f"{where}: options is {shown(value)}; it must be a JSON object.")
    # A list in JSON was a tuple: no option is a list.
    return {key: tuple(inner) if isinstance(inner, list) else inner for key, inner in options.items()}
