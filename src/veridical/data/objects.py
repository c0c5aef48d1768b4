"""What people hold in Python -> checked Examples: texts, pairs, dicts, frames, tables of the hub's library.

A tuple of exactly two strings is a text with its context, alone or in a list; a list of two strings is two texts.
Dicts and tables have the columns of files (files.py), and are read as files are. Neither pandas nor datasets is
imported: an object of theirs is known by the name of its type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from veridical.core.errors import InputError
from veridical.core.kinds import as_annotated
from veridical.core.readable import insist_on_characters
from veridical.core.records import Dataset, Example, Given
from veridical.data.files import SPLITS, Share, in_order, insist_on_named, row_of, split_of, with_dev
from veridical.data.labels import insist_on_no_gaps, numbered, of_kind, relabel
from veridical.data.rows import Row, build
from veridical.data.sound import insist_on_dataset, insist_on_example

TAKES = (
    "a text, a (text, context) tuple, a dict with a text, an Example, a list or generator of such, a pandas DataFrame "
    "or Series, a datasets.Dataset or DatasetDict, a dict from split to one of these, or a Dataset"
)
FILES = {"text": "text", "label": "label", "context": None, "id": "id", "rationale": "rationale"}  # their columns
Columns = Mapping[str, str | None]
Record = tuple[str, dict[str, Any]]  # where it stands, and its cells


@as_annotated
def dataset_of(
    given: Given,
    *,
    name: str = "data",
    text: str = "text",
    label: str = "label",
    context: str | None = None,
    id: str | None = "id",
    rationale: str = "rationale",
    labels: Sequence[str] = (),
    dev: Share = 0.1,
) -> Dataset:
    """The object as a Dataset, with the options of files and a name. Labels may be missing.

    A table is the split `test`, or as its `split` column says; a DatasetDict or a dict of tables has its keys' splits.
    """
    columns = {"text": text, "label": label, "context": context, "id": id, "rationale": rationale}
    data = _read(given, "data", name, columns, tuple(labels))
    for split, examples in data.splits.items():
        if not examples:
            raise InputError(f"The split {split!r} of {name!r} holds no examples; give it some or leave it out.")
    return with_dev(insist_on_dataset(data, name), dev)


def examples_of(
    given: Given,
    who: str,
    *,
    labels: tuple[str, ...],
    multilabel: bool = False,
    context: str | Iterable[str | None] | None = None,
) -> list[Example]:
    """The texts that the verb `who` was given for a model of these labels, which theirs become.

    A plain text is named by its place. `context` is for all of them or one for each.
    """
    if isinstance(given, Dataset):
        data = insist_on_dataset(given, who)
    else:
        data = _read(given, who, "data", FILES, (), known=labels)
    if len(data.splits) != 1:
        has = ", ".join(data.splits) or "none"
        raise InputError(f"{who} takes the texts of one split, but these are several ({has}); give one of them.")
    (examples,) = data.splits.values()
    if not examples:
        raise InputError(f"{who} was given no texts; give it at least one.")
    if data.labels:
        examples = of_kind(relabel(examples, data.labels, labels), multilabel)
    for place, example in enumerate(examples, 1):
        insist_on_example(example, "", len(labels))
        if not example.text.strip():
            raise InputError(
                f"Example {example.id!r} has an empty text (row {place}, from 1); there is nothing to explain."
            )
    return _with_context(examples, context)


def _with_context(examples: Sequence[Example], context: Any) -> list[Example]:
    if context is None:
        return list(examples)
    contexts = [context] * len(examples) if isinstance(context, str) else _plain(context)
    if not isinstance(contexts, (list, tuple)) or not all(isinstance(each, str | None) for each in contexts):
        raise InputError(f"context is {_kind(context)}; give a string for all texts, or a list of strings.")
    if len(contexts) != len(examples):
        raise InputError(f"There are {len(contexts)} contexts for {len(examples)} texts; give one for all or for each.")
    for given in contexts:
        insist_on_characters(given or "", "The context")
    for example in examples:
        if example.context is not None:
            raise InputError(f"context was given, but example {example.id!r} has one of its own; leave one out.")
    return [replace(example, context=each) for example, each in zip(examples, contexts, strict=True)]


def _read(
    given: Given, who: str, name: str, columns: Columns, labels: tuple[str, ...], known: tuple[str, ...] = ()
) -> Dataset:
    """`known` are a model's classes: numbers are their indices, even where some classes do not occur."""
    tables = _splits(given, str(columns["text"]))
    items = {split: _items(table, who, split, str(columns["text"])) for split, table in tables.items()}
    if all(isinstance(item, Example) for listed in items.values() for item in listed):
        return _of_examples(name, items, labels)
    rows: dict[str, list[Row]] = {split: [] for split in items if split}
    seen: set[str] = set()
    for split, listed in items.items():
        for item in listed:
            if isinstance(item, Example):
                raise InputError(f"{who} was given dicts and texts in one list; make all of them dicts, or all texts.")
            where, cells = item
            seen |= cells.keys()
            row = row_of(where, cells, columns, unlabelled=True, in_python=True)
            rows.setdefault(split or split_of(where, cells), []).append(row)
    rows = _with_ids(rows, tables, columns["id"])
    insist_on_named(name, seen, columns)
    names = next(filter(None, (_class_names(table, columns["label"]) for table in tables.values())), ())
    if names:  # -1 is that library's sign for "label withheld"
        rows = {split: [replace(row, label=None) if row.label == -1 else row for row in rows[split]] for split in rows}
    if not names and numbered((row.where, row.label) for several in rows.values() for row in several):
        names = known
    labels = labels or names
    return build(name, in_order(rows), labels=labels, about="Given in Python.", unlabelled=True)


def _with_ids(rows: dict[str, list[Row]], tables: Mapping[str, Any], column: str | None) -> dict[str, list[Row]]:
    """Rows that have no ids with those of their frame's index, or else with their numbers; where splits are named,
    with their numbers in the split, as files have them."""
    if any(row.id not in (None, "") for several in rows.values() for row in several):
        return rows
    framed = {split: column is not None and "pandas.DataFrame" in _types(table) for split, table in tables.items()}
    named = {split: _index_names(table) if framed[split] else [] for split, table in tables.items()}
    if "" not in tables:
        names = {split: iter(named[split] or [None] * len(several)) for split, several in rows.items()}
        return {split: [replace(row, id=next(names[split])) for row in several] for split, several in rows.items()}
    # One table: its rows are numbered through, whichever splits they belong to. `where` ends with the row, from 1.
    numbers = {row.where: int(row.where.rpartition(" ")[2]) - 1 for several in rows.values() for row in several}
    ids = named[""] or [str(number) for number in range(len(numbers))]
    return {split: [replace(row, id=ids[numbers[row.where]]) for row in several] for split, several in rows.items()}


def _index_names(table: Any) -> list[str]:
    """The index of a frame or of a column of texts as ids, where somebody made one that tells its rows apart."""
    index = table.index
    usual = type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1
    if usual or index.nlevels > 1 or not index.is_unique or index.hasnans:
        return []
    return [str(value) for value in index.tolist()]


def _of_examples(name: str, splits: Mapping[str, Sequence[Any]], labels: tuple[str, ...]) -> Dataset:
    """Examples number their classes already; only who trains on them needs names."""
    for split, listed in splits.items():
        for example in listed:
            insist_on_example(example, f" of the {split} split" if split else "", len(labels) or None)
    given = [label for listed in splits.values() for e in listed if (label := e.label) is not None]
    indices = [index for label in given for index in (label if isinstance(label, tuple) else (label,))]
    if not labels and "train" in splits:
        insist_on_no_gaps(set(indices), trained=True)
        labels = tuple(map(str, range(max(indices, default=-1) + 1)))
    examples = in_order({split or "test": tuple(listed) for split, listed in splits.items()})
    several = any(isinstance(label, tuple) for label in given)
    return Dataset(name, labels, examples, multilabel=several, about="Given in Python.")


# -- tables -------------------------------------------------------------------------------------------------


def _splits(given: Any, text: str) -> dict[str, Any]:
    """Split -> table, where the keys of a mapping are splits; else all there is, under no name."""
    if not isinstance(given, Mapping) or text in given:
        return {"": given}
    # A row that lacks its text is no splits: one of a dict's keys must have the name of one.
    named = any(str(key).lower() in SPLITS or str(key).startswith("ood") for key in given)
    if not named and "datasets.DatasetDict" not in _types(given):
        return {"": given}
    splits: dict[str, Any] = {}
    for key, table in given.items():
        split = SPLITS.get(str(key).lower(), str(key))
        if split in splits:
            raise InputError(f"The data has two splits that mean {split} ({', '.join(map(str, given))}); keep one.")
        splits[split] = table
    return splits


def _items(table: Any, who: str, split: str, text: str) -> list[Example | Record]:
    types = _types(table)
    place = split or type(table).__name__
    names: list[str] = []
    if isinstance(table, (str, Example)) or _is_pair(table):
        listed: Iterable[Any] = [table]
    elif "pandas.DataFrame" in types:
        listed = _frame(table)
    elif "pandas.Series" in types:  # a column, or a row of a frame
        listed = [_one_row(table)] if text in table.index else table.tolist()
        names = [] if text in table.index else _index_names(table)
    elif "datasets.Dataset" in types:
        listed = table.with_format(None)
    elif isinstance(table, Mapping):
        listed = _mapping(table, text)
    elif isinstance(table, (Sequence, Iterator)) and not isinstance(table, (bytes, bytearray, range)):
        listed = table
    else:
        raise InputError(f"{who} takes {TAKES}; got {_kind(table)}.")
    return [
        _item(item, names[number] if names else str(number), f"{place}, row {number + 1}", who)
        for number, item in enumerate(listed)
    ]


def _item(item: Any, name: str, where: str, who: str) -> Example | Record:
    if isinstance(item, Example):
        return item
    if isinstance(item, str):
        return Example(name, item)
    if _is_pair(item):
        return Example(name, item[0], context=item[1])
    cells = item._asdict() if hasattr(item, "_asdict") else item  # a named tuple is a row of a frame
    if isinstance(cells, Mapping):
        return where, {str(column): _plain(cell) for column, cell in cells.items()}
    raise InputError(f"{who} takes {TAKES}; {where} is {_kind(item)}.")


def _frame(frame: Any) -> list[Any]:
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise InputError(f"The DataFrame has two columns {twice!r}; rename one of them.")
    return frame.to_dict("records")


def _one_row(series: Any) -> dict[Any, Any]:
    if not series.index.is_unique:
        twice = series.index[series.index.duplicated()][0]
        raise InputError(f"The Series, a row of a frame, has two values {twice!r}; rename one of them.")
    return series.to_dict()


def _mapping(table: Mapping[Any, Any], text: str) -> list[Mapping[Any, Any]]:
    """A row, or columns of one length, as slices of a datasets.Dataset are."""
    if not isinstance(_plain(table.get(text)), (list, tuple)):
        return [table]
    columns = {column: _plain(cells) for column, cells in table.items()}
    for column, cells in columns.items():
        if not isinstance(cells, (list, tuple)) or len(cells) != len(columns[text]):
            raise InputError(f"The column {column!r} is not a list of {len(columns[text])} values, as {text!r} is.")
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def _class_names(table: Any, label: str | None) -> tuple[str, ...]:
    """The names that a datasets.Dataset has for its labels, single or in lists."""
    feature = table.features.get(label) if "datasets.Dataset" in _types(table) else None
    return tuple(getattr(getattr(feature, "feature", feature), "names", None) or ())


# -- values -------------------------------------------------------------------------------------------------


def _is_pair(value: Any) -> bool:
    # A tuple with names is a row of some table: its second value may be anything.
    return type(value) is tuple and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], str | None)


def _plain(value: Any) -> Any:
    """Arrays and their scalars as Python has them; what stands for a missing value in them is None."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    missing = type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    return None if missing else value


def _types(value: Any) -> set[str]:
    """Its type and those it descends from, by package and name."""
    return {f"{each.__module__.partition('.')[0]}.{each.__name__}" for each in type(value).__mro__}


def _kind(value: Any) -> str:
    package, name = type(value).__module__.partition(".")[0], type(value).__name__
    if value is None:
        return "None"
    kind = name if package == "builtins" else f"{package}.{name}"
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"
