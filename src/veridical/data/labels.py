"""Labels as people write them (indices, names, lists of them) -> class indices and class names."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from veridical.core.errors import Caution, InputError
from veridical.core.readable import insist_on_characters, shown
from veridical.core.records import Example

Written = Mapping[str, Sequence[tuple[str, Any]]]  # split -> (where, label as written)
Value = int | str
Label = int | tuple[int, ...]
_DECIMAL = re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?|nan", re.ASCII | re.IGNORECASE)
SKIPPED = 100  # classes that texts which are not for training may lack
MOST = 10_000  # classes; a higher number is an id or a rating, and as many names would fill the memory


def read_labels(written: Written, given: tuple[str, ...] = ()) -> tuple[tuple[str, ...], bool, dict[str, list[Label]]]:
    """Class names, whether labels are lists (multi-label), and the label of every row of every split.

    Numbers are indices: of the given names, or of as many classes as the highest needs. Only if the given
    names are numbers themselves (`labels=1+2+3+4+5`) is a number a name. Names are sorted unless given.
    Where there is a train split, a label that it lacks is an error, because no model could learn it.
    """
    if len(set(given)) != len(given):
        raise InputError(f"labels={'+'.join(given)} names a class twice; give every class once.")
    if given and not all(name.strip() for name in given):
        raise InputError(f"labels={'+'.join(given)} has a class without a name; give every class one.")
    every = [pair for rows in written.values() for pair in rows]
    multilabel = _all_alike(every)
    if multilabel:
        _insist_on_no_switches(every)
    values = {split: [_values(where, label, given) for where, label in rows] for split, rows in written.items()}
    places: dict[Value, str] = {}  # every value, and where it was met first
    for split, rows in written.items():
        for (where, _), row in zip(rows, values[split], strict=True):
            for value in row:
                places.setdefault(value, where)
    if not given:
        _insist_on_one_kind(places)
    in_train = {value for row in values["train"] for value in row} if "train" in values else set(places)
    numbered = all(map(_is_number, places)) and not (given and all(map(_is_number, given)))
    names, index = (_number if numbered else _name)(places, in_train, given)
    if numbered and not given:
        insist_on_no_gaps({index[value] for value in in_train}, trained="train" in values)
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
                f"{where}: the label is {shown(label)}, but {rows[0][0]} has {shown(rows[0][1])}; labels must all be "
                f"single, or all be lists."
            )
    return bool(lists) and lists[0]


def _insist_on_no_switches(rows: Sequence[tuple[str, Any]]) -> None:
    """Refuse a 0 or 1 for each of two classes, which would read as both classes for every text. (With more classes one
    of the two is there twice, which is refused anyway.)"""
    if all(list(label) in ([0, 1], [1, 0]) for _, label in rows) and any(list(label) == [1, 0] for _, label in rows):
        raise InputError(
            f"{rows[0][0]}: the label is {shown(rows[0][1])}, and every text has both classes; list the classes that "
            "hold, no 0 or 1 for each."
        )


def _insist_on_one_kind(places: Mapping[Value, str]) -> None:
    """Refuse indices beside names: whether 1 and `good` are one class or two, nobody can tell."""
    kinds = {_is_number(value): value for value in reversed(places)}  # the first of each
    if len(kinds) == 2:
        raise InputError(
            f"{places[kinds[False]]}: the label is {shown(kinds[False])}, but {places[kinds[True]]} has "
            f"{shown(kinds[True])}; make all of them indices or all of them names, or name all classes with "
            "labels=a+b+c."
        )


def _values(where: str, label: Any, given: tuple[str, ...] = ()) -> tuple[Value, ...]:
    values = tuple(_value(where, v, given) for v in (label if isinstance(label, (list, tuple)) else (label,)))
    if len(set(values)) < len(values):
        raise InputError(
            f"{where}: the label {shown(label)} has a class twice; list the classes that hold, no 0 or 1 for each."
        )
    return values


def _value(where: str, value: Any, given: tuple[str, ...] = ()) -> Value:
    if isinstance(value, str) and _DECIMAL.fullmatch(value.strip()) and value.strip() not in given:
        value = float(value)  # as pandas writes whole numbers beside a gap; a table has no other way to say 1.0
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.strip():
        insist_on_characters(value, f"{where}: the label")
        return value.strip()
    problem = "is missing" if value is None or value == "" else f"is {shown(value)}"
    raise InputError(f"{where}: the label {problem}; give a class index from 0, a name, or a list of them.")


def _is_number(value: Value) -> bool:
    return isinstance(value, int) or re.fullmatch(r"[+-]?\d+", value) is not None


def _number(
    places: Mapping[Value, str], in_train: set[Value], given: tuple[str, ...]
) -> tuple[tuple[str, ...], dict[Value, int]]:
    for value, where in places.items():
        if len(str(value)) > len(str(MOST)) or int(value) >= MOST:
            raise InputError(
                f"{where}: the label is {shown(value)}, which is no index of a class; an index is below {MOST:,}: name "
                "all classes with labels=a+b+c, or mend it."
            )
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


def insist_on_no_gaps(indices: set[int], *, trained: bool) -> None:
    """Refuse indices that skip some, where nobody names the classes: whether 0, 1 and 8999 are three or 9,000, nobody
    can tell, and what no train text has cannot be learnt. A few texts of a test split may well lack a few classes."""
    highest = max(indices, default=-1)
    missing = highest + 1 - len(indices)
    if missing <= 0:
        return
    first = next(index for index in range(highest) if index not in indices)
    more = f", nor any of {missing - 1:,} more below {highest:,}" if missing > 1 else ""
    lacking = f"The labels go up to {highest:,}, but no text has class {first}{more}"
    if not trained and missing <= SKIPPED:
        warnings.warn(f"{lacking}; they are taken as indices of {highest + 1} classes.", Caution, stacklevel=2)
        return
    every = "+".join(map(str, range(highest + 1))) if highest < 12 else "a+b+c"
    raise InputError(f"{lacking}; number the classes without gaps, or name all of them in order, as in labels={every}.")


def _name(
    places: Mapping[Value, str], in_train: set[Value], given: tuple[str, ...]
) -> tuple[tuple[str, ...], dict[Value, int]]:
    names = given or tuple(sorted({str(value) for value in in_train}))
    for value, where in places.items():
        if str(value) not in names and given:
            raise InputError(f"{where}: the label {shown(value)} is not one of {', '.join(given)}; mend one of them.")
        if str(value) not in names:
            raise _not_in_train(where, value, names)
    return names, {value: names.index(str(value)) for value in places}


def _not_in_train(where: str, value: Value, known: Sequence[str]) -> InputError:
    return InputError(
        f"{where}: the label {shown(value)} does not occur in train, which has: {', '.join(known)}; mend it, or "
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
    place = {name.casefold(): index for index, name in enumerate(labels)} | {
        name: index for index, name in enumerate(labels)
    }
    numbers = tuple(map(str, range(len(labels))))
    unnamed = numbers in (names, labels) or labels == tuple(f"LABEL_{i}" for i in numbers)
    if unnamed and len(names) == len(labels):
        return list(examples)
    to = [place.get(name, place.get(name.casefold(), -1)) for name in names]
    if -1 in to or len(set(to)) < len(to):  # a name that the model lacks, or two that differ in case alone
        theirs = f"The data's labels ({', '.join(names)}) are not the model's ({', '.join(labels)})"
        warnings.warn(f"{theirs}; gold labels are left out.", Caution, stacklevel=2)
        return [replace(example, label=None) for example in examples]

    def moved(label: int | tuple[int, ...] | None) -> int | tuple[int, ...] | None:
        if isinstance(label, tuple):
            return tuple(sorted(to[i] for i in label))
        return None if label is None else to[label]

    return [replace(example, label=moved(example.label)) for example in examples]
