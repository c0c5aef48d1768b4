"""Files of the user's own: JSONL, CSV, TSV (gzipped or not) and Parquet, alone or a folder of splits."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from veridical.core.errors import InputError
from veridical.core.ranges import between
from veridical.core.readable import UnreadableError, parse_json, shown, shown_path
from veridical.core.records import Dataset
from veridical.data import dataset
from veridical.data.rows import Row, build
from veridical.data.split import carve_dev

FORMATS = (".jsonl", ".json", ".csv", ".tsv", ".parquet")
SPLITS = {"train": "train", "dev": "dev", "valid": "dev", "validation": "dev", "val": "dev", "test": "test"}
Share = Annotated[float, between(0, 1, without="high")]  # of the train texts; 0: none
_SPLIT_FILE = re.compile(
    r"(?P<split>train|dev|valid|validation|val|test|ood\w*)(-\d+-of-\d+)?\.(parquet|(jsonl?|csv|tsv)(\.gz)?)"
)


@dataset("files", about="your own JSONL, CSV, TSV or Parquet: a path does without this name", needs="path")
def files(
    *,
    path: str,
    text: str = "text",
    label: str = "label",
    context: str | None = None,
    id: str | None = "id",
    rationale: str = "rationale",
    labels: tuple[str, ...] = (),
    dev: Share = 0.1,
    name: str | None = None,
    unlabelled: bool = False,
) -> Dataset:
    """One file (split `test`, or as its `split` column says) or a folder of split files.

    The first options name columns; `context` is found as context or text_pair. If there is train but no dev,
    the share `dev` of the train texts is set apart (0: not). `name` is what the data is called, else as the file is.
    With `unlabelled` labels may be missing.
    """
    columns = {"text": text, "label": label, "context": context, "id": id, "rationale": rationale}
    place = Path(path)
    by_split = split_files(place) if os.path.isdir(place) else {"": [place]}
    splits: dict[str, list[Row]] = {split: [] for split in by_split if split}
    seen: set[str] = set()
    for split, parts in by_split.items():
        for where, cells in (record for part in parts for record in read_records(part)):
            seen |= cells.keys()
            row = row_of(where, cells, columns, unlabelled=unlabelled)
            splits.setdefault(split or split_of(where, cells), []).append(row)
    insist_on_named(path, seen, columns)
    called = place.resolve().name if os.path.isdir(place) else place.name.removesuffix(".gz").rpartition(".")[0]
    data = build(name or called, in_order(splits), labels=labels, about=f"Read from {path}.", unlabelled=unlabelled)
    return with_dev(data, dev)


def with_dev(data: Dataset, share: float) -> Dataset:
    """The dataset with a dev split set apart from train, if it has train and no dev."""
    if "train" not in data.splits or "dev" in data.splits or share == 0:
        return data
    train, dev = carve_dev(data.splits["train"], share)
    if not dev:
        return data
    if not train:
        raise InputError(
            f"dev={share:g} of the {len(dev)} train texts of {data.name} leaves none to train on; lower it."
        )
    splits = in_order({**data.splits, "train": train, "dev": dev})
    note = f"It has no dev split: {share:.0%} of train, by normalised text, serves as one."
    return replace(data, splits=splits, about=f"{data.about} {note}".strip())


def in_order(splits: dict[str, Any]) -> dict[str, Any]:
    """Train, dev and test first, then the others by name."""
    first = [split for split in ("train", "dev", "test") if split in splits]
    return {split: splits[split] for split in [*first, *sorted(set(splits) - set(first))]}


def split_files(folder: Path) -> dict[str, list[Path]]:
    """The split files of a folder: train, dev (valid, validation, val), test and ood*, whole or in shards."""
    by_split: dict[str, list[Path]] = {}
    for file in sorted(folder.iterdir()):
        match = _SPLIT_FILE.fullmatch(file.name)
        if match:
            by_split.setdefault(SPLITS.get(match["split"], match["split"]), []).append(file)
    if not by_split:
        raise InputError(
            f"The folder {folder} has no split files; name them train, dev and test (one will do) with an "
            f"ending of {', '.join(FORMATS)} (all but Parquet also .gz)."
        )
    for split, parts in by_split.items():
        if len(parts) > 1 and not all("-of-" in part.name for part in parts):
            raise InputError(
                f"{folder} has two files for {split}: {parts[0].name} and {parts[1].name}; keep one of them."
            )
    return by_split


def read_records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every record of a file with its place ("file, line 3"), as a mapping of columns."""
    plain = path.name.removesuffix(".gz")
    kind = plain[plain.rfind(".") :]
    if kind not in FORMATS or (kind == ".parquet" and plain != path.name):
        raise InputError(
            f"{shown_path(path)} has no known format; it must end in {', '.join(FORMATS)} (all but Parquet also .gz)."
        )
    if not os.path.isfile(path):
        raise InputError(f"There is no file {shown_path(path)}; check the path.")
    if kind == ".parquet":
        return _parquet(path)
    return {".jsonl": _jsonl, ".json": _jsonl, ".csv": _csv, ".tsv": _tsv}[kind](path, read_text(path))


def read_text(path: Path) -> str:
    """The whole of a text file, unpacked; anything but UTF-8 is an error that names the line."""
    try:
        raw = path.read_bytes()
        if path.name.endswith(".gz"):
            raw = gzip.decompress(raw)
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = problem.object.count(b"\n", 0, problem.start) + 1
        byte = problem.object[problem.start]
        raise InputError(
            f"{path}, line {line}: byte 0x{byte:02x} is not UTF-8; save the file as UTF-8 (if it is Latin-1: "
            f"iconv -f latin1 -t utf-8)."
        ) from problem
    except (OSError, EOFError, zlib.error) as problem:
        raise InputError(f"{path} cannot be read ({problem}); check that it is whole and readable.") from problem


def _jsonl(path: Path, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):  # not splitlines: U+2028 may stand inside a string
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            cells = parse_json(line, object_pairs_hook=lambda pairs, where=where: _object(where, pairs))
        except UnreadableError as problem:
            raise InputError(f"{where}: this is not JSON ({problem}); write an object a line.") from problem
        if not isinstance(cells, dict):
            raise InputError(f"{where}: this is not a JSON object; write one object with text and label per line.")
        yield where, cells


def _object(where: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    cells = dict(pairs)
    if len(cells) < len(pairs):
        _insist_on_distinct(where, [name for name, _ in pairs])
    return cells


def _csv(path: Path, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    return _table(path, csv.reader(io.StringIO(text, newline=""), strict=True))


def _tsv(path: Path, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    # The format knows no quoting: a quotation mark is a character of the text.
    return _table(path, csv.reader(io.StringIO(text, newline=""), delimiter="\t", quoting=csv.QUOTE_NONE))


def _table(path: Path, reader: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    header: list[str] | None = None
    before = csv.field_size_limit(sys.maxsize)  # documents are longer than its default of 128 KiB
    try:
        for cells in reader:
            where = f"{path}, line {reader.line_num}"
            if not cells:
                continue
            if header is None:
                header = [cell.strip() for cell in cells]
                _insist_on_distinct(where, header)
            elif len(cells) != len(header):
                raise InputError(
                    f"{where}: {len(cells)} fields, but the header has {len(header)}; a field that holds the "
                    f"separator or a line break must be quoted (CSV) or cleaned (TSV)."
                )
            else:
                yield where, dict(zip(header, cells, strict=True))
    except csv.Error as problem:
        raise InputError(f"{path}, line {reader.line_num}: {problem}; check the quotation marks.") from problem
    finally:
        csv.field_size_limit(before)


def _insist_on_distinct(where: str, names: list[str]) -> None:
    """Refuse a column that is named twice, of which a mapping would keep the last; columns without a name may be."""
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise InputError(f"{where}: the column {twice[0]!r} is there twice; rename or remove one of them.")


def _parquet(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    import pyarrow
    import pyarrow.parquet

    try:
        _insist_on_distinct(str(path), pyarrow.parquet.read_schema(path).names)
        rows = pyarrow.parquet.read_table(path).to_pylist()
    except (OSError, ValueError, OverflowError, pyarrow.ArrowException) as problem:  # also a date that Python lacks
        reason = next(iter(str(problem).splitlines()), type(problem).__name__)
        raise InputError(f"{path} cannot be read as Parquet ({reason}); check that it is whole.") from problem
    for number, cells in enumerate(rows, 1):
        yield f"{path}, row {number}", cells


def split_of(where: str, cells: dict[str, Any]) -> str:
    """The split that a record's own column names; without one: test."""
    split = cells.get("split", "test")
    if not isinstance(split, str) or not split.strip():
        raise InputError(f"{where}: the split is {shown(split)}; write train, dev or test, or leave the column out.")
    return SPLITS.get(split.strip().lower(), split.strip())


def row_of(
    where: str,
    cells: dict[str, Any],
    columns: Mapping[str, str | None],
    *,
    unlabelled: bool = False,
    in_python: bool = False,
) -> Row:
    """A record by its columns. With `unlabelled` a column `label` may be missing, though not another that was named;
    `in_python` it is of an object, which has no name to write options after."""
    has = ", ".join(map(str, cells)) or "none"
    optional = {"context": None} | ({"label": "label"} if unlabelled else {})
    for field in ("text", "label", "context"):
        by_call = f"load_data(..., {field}=COLUMN)"
        way = f"by {by_call}" if in_python else f"by writing :{field}=COLUMN after the name, in Python {by_call}"
        if columns[field] not in cells and (field not in optional or columns[field] != optional[field]):
            raise InputError(
                f"{where}: there is no column {columns[field]!r} (it has: {has}); rename one, or say which it is {way}."
            )
    context = columns["context"] or ("context" if "context" in cells else "text_pair")
    return Row(
        where,
        text=cells[columns["text"] or ""],
        label=_listed(where, "label", cells.get(columns["label"] or "")),
        id=cells.get(columns["id"] or ""),
        context=cells.get(context),
        rationale=_listed(where, "rationale", cells.get(columns["rationale"] or "")),
        document=cells.get("document"),
    )


def insist_on_named(where: str, seen: set[str], columns: Mapping[str, str | None]) -> None:
    """Refuse a column of ids or rationales that was named and that no row has; some rows may lack it."""
    for field in ("id", "rationale"):
        column = columns[field]
        if seen and column not in (None, field, *seen):
            raise InputError(
                f"{where}: no row has a column {column!r} (there are: {', '.join(sorted(seen))}); name one of them, or "
                f"leave {field}={column} out."
            )


def _listed(where: str, field: str, value: Any) -> Any:
    """A list is JSON in a table: `[[0, 4]]`, `[0, 1]`, `["joy", "fear"]`; an empty cell is nothing."""
    if not isinstance(value, str):
        return value
    if not value.strip().startswith("["):
        return value.strip() or None
    try:
        return parse_json(value)
    except UnreadableError as problem:
        raise InputError(f"{where}: the {field} {value[:50]!r} is no JSON list; mend it.") from problem
