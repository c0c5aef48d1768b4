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

if TYPE_CHECKING:
    from veridical.explanations.explanation import Explanation

FORMATS = (".parquet", ".jsonl")
COLUMNS = (
    *("id", "text", "context", "label", "method", "options", "target", "target_name", "probabilities"),
    *("tokens", "starts", "ends", "free", "scores", "seconds", "forward", "backward"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One explanation as a file holds it, checked; None is what the file leaves out."""

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
    free: tuple[bool, ...] | None = None
    cost: Cost = field(default_factory=Cost)


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


def read_explanations(path: str | Path) -> list[Row]:
    """The rows of a file, ours or made elsewhere, each checked; an error names file, row and remedy."""
    path = check_format(path)
    if not path.is_file():
        raise InputError(f"There is no file {str(path)!r}; name a file of explanations.")
    if path.suffix == ".jsonl":
        return [_row(values, where) for values, where in _json_lines(path)]
    values = store.read_parquet(path).to_pylist()
    return [_row(value, f"{path}, row {number}") for number, value in enumerate(values, 1)]


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


def _row(values: Mapping[str, Any], where: str) -> Row:
    def get(name: str, kind: type | tuple[type, ...], said: str) -> Any:
        value = values.get(name)
        wrong_bool = isinstance(value, bool) and kind is not bool
        if value is not None and (wrong_bool or not isinstance(value, kind)):
            raise InputError(f"{where}: {name} is {value!r}; it must be {said}.")
        return value

    def series(name: str, kind: type | tuple[type, ...], said: str) -> list[Any] | None:
        found = get(name, list, f"a list of {said}")
        for value in found or ():
            if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
                raise InputError(f"{where}: {name} holds {value!r}; it must be a list of {said}.")
        return found

    identity, text = values.get("id"), get("text", str, "a text")
    if identity is None and text is None:
        raise InputError(f"{where}: there is neither a text nor an id; give one of them.")
    method = get("method", str, "the name of a method")
    if not method:
        raise InputError(f"{where}: there is no method; name what made these scores.")
    scores = series("scores", (int, float), "numbers")
    if scores is None:
        raise InputError(f"{where}: there are no scores; give one number per word or per span.")
    scored = np.array(scores, dtype=np.float64)
    if not np.isfinite(scored).all():
        bad = int(np.flatnonzero(~np.isfinite(scored))[0])
        raise InputError(f"{where}: score {bad + 1} is {scored[bad]}; scores must be finite numbers.")
    starts, ends = series("starts", int, "whole numbers"), series("ends", int, "whole numbers")
    if (starts is None) is not (ends is None):
        raise InputError(f"{where}: there are {'ends' if starts is None else 'starts'} only; give starts and ends.")
    free, tokens = series("free", bool, "true or false"), series("tokens", str, "texts")
    for name, found in (("starts", starts), ("ends", ends), ("free", free)):
        if found is not None and len(found) != len(scored):
            raise InputError(f"{where}: there are {len(scored)} scores but {len(found)} {name}; give one per score.")
    options = values.get("options")
    probabilities = series("probabilities", (int, float), "numbers")
    target, name = get("target", (int, str), "a class index or name"), get("target_name", str, "a class name")
    return Row(
        where=where,
        method=method,
        scores=scored,
        id=None if identity is None else str(identity),
        text=text,
        context=get("context", str, "a text"),
        label=_label(values.get("label"), where),
        options=None if options is None else _options(options, where),
        target=name if target is None else target,
        probabilities=None if probabilities is None else np.array(probabilities, dtype=np.float32),
        tokens=None if tokens is None else tuple(tokens),
        spans=None if starts is None or ends is None else tuple(zip(starts, ends, strict=True)),
        free=None if free is None else tuple(free),
        cost=Cost(*(float(get(n, (int, float), "a number") or 0) for n in ("seconds", "forward", "backward"))),
    )


def _label(value: Any, where: str) -> int | tuple[int, ...] | None:
    if isinstance(value, list) and all(isinstance(one, int) for one in value):
        return tuple(value)
    if value is None or isinstance(value, int):
        return value
    raise InputError(f"{where}: label is {value!r}; it must be a class index or a list of them.")


def _options(value: Any, where: str) -> dict[str, Any]:
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{where}: options is {value!r}; it must be a JSON object.")
    # A list in JSON was a tuple: no option is a list.
    return {key: tuple(inner) if isinstance(inner, list) else inner for key, inner in found.items()}
