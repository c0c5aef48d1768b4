"""Labels as people write them (indices, names, lists of them) -> class indices and class names."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from veridical.core.errors import Caution, InputError
from veridical.core.records import Example

Written = Mapping[str, Sequence[tuple[str, Any]]]  # split -> (where, label as written)
Value = int | str
Label = int | tuple[int, ...]


def read_labels(written: Written, given: tuple[str, ...] = ()) -> tuple[tuple[str, ...], bool, dict[str, list[Label]]]:
    """Class names, whether labels are lists (multi-label), and the label of every row of every split.

    Numbers are indices: of the given names, or of as many classes as the highest needs. Only if the given
    names are numbers themselves (`labels=1+2+3+4+5`) is a number a name. Names are sorted unless given.
    Where there is a train split, a label that it lacks is an error, because no model could learn it.
    """
    if len(set(given)) != len(given):
        raise InputError(f"labels={'+'.join(given)} names a class twice; give every class once.")
    multilabel = _all_alike([pair for rows in written.values() for pair in rows])
    values = {split: [_values(where, label) for where, label in rows] for split, rows in written.items()}
    places: dict[Value, str] = {}  # every value, and where it was met first
    for split, rows in written.items():
        for (where, _), row in zip(rows, values[split], strict=True):
            for value in row:
                places.setdefault(value, where)
    in_train = {value for row in values["train"] for value in row} if "train" in values else set(places)
    numbered = all(map(_is_number, places)) and not (given and all(map(_is_number, given)))
    names, index = (_number if numbered else _name)(places, in_train, given)
    return (
        names,
        multilabel,
        {
            split: [tuple(sorted({index[v] for v in row})) if multilabel else index[row[0]] for row in rows]
            for split, rows in values.items()
        },
    )


def numbered(rows: Iterable[tuple[str, Any]]) -> bool:
    """Whether labels as written are class indices; those that are missing do not count."""
    return all(_is_number(value) for where, label in rows if label is not None for value in _values(where, label))


def _all_alike(rows: Sequence[tuple[str, Any]]) -> bool:
    lists = [isinstance(label, (list, tuple)) for _, label in rows]
    for (where, label), is_list in zip(rows, lists, strict=True):
        if is_list != lists[0]:
            raise InputError(
                f"{where}: the label is {label!r}, but {rows[0][0]} has {rows[0][1]!r}; labels must all be "
                f"single, or all be lists."
            )
    return bool(lists) and lists[0]


def _values(where: str, label: Any) -> tuple[Value, ...]:
    values = tuple(_value(where, v) for v in (label if isinstance(label, (list, tuple)) else (label,)))
    if len(set(values)) < len(values):
        raise InputError(
            f"{where}: the label {str(label)[:50]} has a class twice; list the classes that hold, no 0 or 1 for each."
        )
    return values


def _value(where: str, value: Any) -> Value:
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.strip():
        return value.strip()
    problem = "is missing" if value is None or value == "" else f"is {value!r}"
    raise InputError(f"{where}: the label {problem}; give a class index from 0, a name, or a list of them.")


def _is_number(value: Value) -> bool:
    return isinstance(value, int) or re.fullmatch(r"[+-]?\d+", value) is not None


def _number(
    places: Mapping[Value, str], in_train: set[Value], given: tuple[str, ...]
) -> tuple[tuple[str, ...], dict[Value, int]]:
    index = {value: int(value) for value in places}
    for value, where in places.items():
        if index[value] < 0:
            raise InputError(
                f"{where}: the label is {value}, but an index starts at 0; mend it, or remove the row if "
                f"this means that it has no label."
            )
        if given and index[value] >= len(given):
            raise InputError(
                f"{where}: the label is {value}, but labels={'+'.join(given)} names only the classes 0 to "
                f"{len(given) - 1}; mend it or name them all."
            )
    if given:
        return given, index
    if index and 0 not in index.values():
        every = sorted(set(index.values()))
        raise InputError(
            f"The labels are {', '.join(map(str, every))} without 0, so they are no class indices; name all "
            f"classes in order, as in labels={'+'.join(map(str, every))}."
        )
    known = [str(n) for n in range(max(map(int, in_train), default=-1) + 1)]
    for value, where in places.items():
        if index[value] >= len(known):
            raise _not_in_train(where, value, known)
    return tuple(known), index


def _name(
    places: Mapping[Value, str], in_train: set[Value], given: tuple[str, ...]
) -> tuple[tuple[str, ...], dict[Value, int]]:
    names = given or tuple(sorted({str(value) for value in in_train}))
    for value, where in places.items():
        if str(value) not in names and given:
            raise InputError(f"{where}: the label {value!r} is not one of {', '.join(given)}; mend one of them.")
        if str(value) not in names:
            raise _not_in_train(where, value, names)
    return names, {value: names.index(str(value)) for value in places}


def _not_in_train(where: str, value: Value, known: Sequence[str]) -> InputError:
    return InputError(
        f"{where}: the label {value!r} does not occur in train, which has: {', '.join(known)}; mend it, or "
        f"name all classes with labels=a+b+c."
    )


def of_kind(examples: Sequence[Example], multilabel: bool) -> list[Example]:
    """Gold labels as a model of this kind has them: sets of classes, or one class; several where it has one are left
    out, and said so."""

    def fitted(label: int | tuple[int, ...] | None) -> int | tuple[int, ...] | None:
        if multilabel:
            return (label,) if isinstance(label, int) else label
        return label if not isinstance(label, tuple) else label[0] if len(label) == 1 else None

    fitting = [replace(example, label=fitted(example.label)) for example in examples]
    lost = sum(new.label is None and old.label is not None for old, new in zip(examples, fitting, strict=True))
    if lost:
        several = f"{lost} of {len(examples)} texts have several labels or none, where the model has one"
        warnings.warn(f"{several}; their gold labels are left out.", Caution, stacklevel=2)
    return fitting


def relabel(examples: Sequence[Example], names: tuple[str, ...], labels: tuple[str, ...]) -> list[Example]:
    """Examples with their gold labels as the model numbers its classes: matched by name, or by place where the model
    (LABEL_0, ... or 0, 1, ...) or the data (0, 1, ...) has no names; left out, and said so, where neither fits."""
    if not names or names == labels:
        return list(examples)
    place = {name.casefold(): index for index, name in enumerate(labels)}
    numbers = tuple(map(str, range(len(labels))))
    unnamed = numbers in (names, labels) or labels == tuple(f"LABEL_{i}" for i in numbers)
    if unnamed and len(names) == len(labels):
        return list(examples)
    if not all(name.casefold() in place for name in names):
        theirs = f"The data's labels ({', '.join(names)}) are not the model's ({', '.join(labels)})"
        warnings.warn(f"{theirs}; gold labels are left out.", Caution, stacklevel=2)
        return [replace(example, label=None) for example in examples]
    to = [place[name.casefold()] for name in names]

    def moved(label: int | tuple[int, ...] | None) -> int | tuple[int, ...] | None:
        if isinstance(label, tuple):
            return tuple(sorted(to[i] for i in label))
        return None if label is None else to[label]

    return [replace(example, label=moved(example.label)) for example in examples]
