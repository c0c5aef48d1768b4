"""Datasets of the hub through `datasets`: data files only, no loading scripts, no remote code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from veridical.core.errors import InputError
from veridical.core.records import Dataset
from veridical.data import dataset
from veridical.data.files import SPLITS, Share, row_of, with_dev
from veridical.data.rows import Row, build

PARQUET = "refs/convert/parquet"  # where the hub keeps a converted copy of what a script would load
Cells = dict[str, Any]


@dataclass(frozen=True)
class Mapped:
    """How one dataset of the hub becomes rows: a table entry, no code of its own but `rows`."""

    repo: str
    rows: Callable[[str, Cells], list[Row]]  # (where, record) -> none, one or several
    labels: tuple[str, ...]
    config: str | None = None
    revision: str | None = None
    splits: Mapping[str, str] = field(default_factory=lambda: {"train": "train", "validation": "dev", "test": "test"})
    dev: float = 0.1  # set apart from train where the hub has no validation split
    about: str = ""


READY: dict[str, Mapped] = {}  # by repository: filled by paper_mappings.py


@dataset("hub", about="any dataset of the hub: hub:owner/name[:config][@revision]", needs="hub")
def hub(
    *,
    repo: str,
    config: str | None = None,
    revision: str | None = None,
    text: str | None = None,
    label: str | None = None,
    context: str | None = None,
    labels: tuple[str, ...] = (),
    dev: Share = 0.1,
) -> Dataset:
    """The dataset by its ready mapping, or by its columns: text and label, unless others are named."""
    if repo in READY and text is label is context is None:
        mapped = READY[repo]
        return load(
            replace(mapped, config=config or mapped.config, revision=revision or mapped.revision),
            f"hub:{repo}",
        )
    columns = {"text": text or "text", "label": label or "label", "context": context, "id": "id"}
    records = open_hub(repo, config, revision)
    features = next(iter(records.values())).features
    names = labels or tuple(getattr(features.get(columns["label"]), "names", ()))

    def rows(where: str, cells: Cells) -> list[Row]:
        row = row_of(where, cells, {**columns, "rationale": "rationale"})
        return [] if row.label == -1 else [row]  # the hub's sign for "label withheld"

    splits = {split: SPLITS.get(split, split) for split in records}
    mapped = Mapped(repo, rows, names, config, revision, splits, dev)
    return assemble(mapped, records, f"hub:{repo}")


def load(mapped: Mapped, name: str) -> Dataset:
    """A mapped dataset, downloaded on first use."""
    return assemble(mapped, open_hub(mapped.repo, mapped.config, mapped.revision), name)


def assemble(mapped: Mapped, records: Mapping[str, Iterable[Cells]], name: str) -> Dataset:
    """Records by the hub's split names -> a Dataset. A split in which nothing has a label is left out."""
    splits: dict[str, list[Row]] = {}
    unlabelled = 0
    for theirs, ours in mapped.splits.items():
        rows: list[Row] = []
        for number, cells in enumerate(records.get(theirs, ()), 1):
            labelled = mapped.rows(f"{mapped.repo}, {theirs}, row {number}", cells)
            unlabelled += not labelled
            rows += labelled
        if rows:
            splits[ours] = rows
    if not splits:
        raise InputError(
            f"{mapped.repo} has no labelled rows in the splits {', '.join(mapped.splits)}; its splits are: "
            f"{', '.join(records)}."
        )
    lost = sum(row.lost for rows in splits.values() for row in rows)
    notes = [f"{mapped.about} From the hub: {mapped.repo}.".strip()]
    notes += [f"{unlabelled} rows without a (majority) label or text were left out."] * bool(unlabelled)
    notes += [f"{lost} pieces of evidence do not occur in their texts and were left out."] * bool(lost)
    return with_dev(build(name, splits, labels=mapped.labels, about=" ".join(notes)), mapped.dev)


def open_hub(repo: str, config: str | None, revision: str | None) -> Mapping[str, Any]:
    """Split name -> records."""
    from datasets import load_dataset

    return _tried(repo, config, lambda: load_dataset(repo, config, revision=revision))


def first_records(repo: str, file: str, size: int) -> list[Cells]:
    """The first records of one JSON-lines file of a repository, without downloading the rest."""
    from datasets import load_dataset

    def read() -> list[Cells]:
        stream = load_dataset("json", data_files=f"hf://datasets/{repo}/{file}", split="train", streaming=True)
        return [dict(cells) for cells in islice(stream, size)]

    return _tried(repo, None, read)


def _tried(repo: str, config: str | None, read: Callable[[], Any]) -> Any:
    from datasets.exceptions import DatasetNotFoundError

    try:
        return read()
    except DatasetNotFoundError as problem:
        raise InputError(
            f"The hub has no dataset {repo!r}, or it is private or gated; check the name, or log in with "
            f"`hf auth login`."
        ) from problem
    # The client raises errors of several libraries (sockets, HTTP, its own); nothing of ours runs in there.
    except Exception as problem:
        if "scripts are no longer supported" in str(problem):
            name = f"{repo}:{config}" if config else repo
            raise InputError(
                f"{repo!r} is only a loading script, which is never run; ask for the hub's Parquet copy: "
                f"hub:{name}@{PARQUET}."
            ) from problem
        reason = next(iter(str(problem).strip().splitlines()), type(problem).__name__).rstrip(".")
        raise InputError(
            f"{repo!r} could not be read from the hub: {reason}. Check the network and the name (and the "
            f"config after a second colon), or give a file or folder; `planted` and `babi/1` need nothing."
        ) from problem
