"""Datasets in the ERASER benchmark's own layout: annotations and documents (DeYoung et al., 2020)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from veridical.core.errors import InputError
from veridical.core.records import Dataset, Span
from veridical.core.text import words_of
from veridical.data import dataset
from veridical.data.files import read_records, read_text, with_dev
from veridical.data.rows import Row, build, merged


@dataset("eraser", about="a dataset folder of the ERASER benchmark (docs and annotations)", needs="path")
def eraser(*, path: str, labels: tuple[str, ...] = ()) -> Dataset:
    """A folder with train.jsonl, val.jsonl, test.jsonl and docs/ (or docs.jsonl).

    The document the evidence is in is the text, the query (if any) the context, evidence the rationale.
    """
    folder = Path(path)
    names = {"train": "train.jsonl", "dev": "val.jsonl", "test": "test.jsonl"}
    files = {split: folder / name for split, name in names.items() if (folder / name).is_file()}
    if not files:
        raise InputError(f"There is no train.jsonl, val.jsonl or test.jsonl in {path!r}; give an ERASER folder.")
    documents = _Documents(folder)
    splits = {
        split: [row_of(where, cells, documents) for where, cells in read_records(file)] for split, file in files.items()
    }
    about = f"ERASER annotations (DeYoung et al., 2020) read from {path}."
    return with_dev(build(folder.resolve().name, splits, labels=labels, about=about), 0.1)


class _Documents:
    """The documents by their id, read once each: files of docs/, or the lines of docs.jsonl."""

    def __init__(self, folder: Path):
        self._folder = folder / "docs"
        self._known: dict[str, str] = {}
        if (folder / "docs.jsonl").is_file():
            for _, cells in read_records(folder / "docs.jsonl"):
                self._known[cells["docid"]] = cells["document"]

    def __call__(self, where: str, id: str) -> str:
        if id not in self._known:
            file = self._folder / id
            if Path(id).name != id or not file.is_file():
                raise InputError(f"{where}: the document {id!r} is neither in docs/ nor in docs.jsonl; add it.")
            self._known[id] = read_text(file)
        return self._known[id]


def row_of(where: str, cells: dict[str, Any], documents: Any) -> Row:
    """One annotation as a row; evidence is given by token positions in the white-space split document."""
    missing = [key for key in ("annotation_id", "classification", "evidences") if key not in cells]
    if missing:
        raise InputError(f"{where}: there is no {missing[0]!r}, which ERASER annotations have; mend the file.")
    evidence = [piece for group in cells["evidences"] for piece in group]
    ids = list(dict.fromkeys([piece["docid"] for piece in evidence] or cells.get("docids") or [cells["annotation_id"]]))
    if len(ids) > 1:
        raise InputError(
            f"{where}: the evidence is in {len(ids)} documents ({', '.join(ids)}); only one can be the text. "
            f"Join them in one document first."
        )
    text = documents(where, ids[0])
    words = words_of(text)
    spans: list[Span] = []
    for piece in evidence:
        start, end = piece["start_token"], piece["end_token"]
        if start < 0:  # no position known: the quoted words count as nothing rather than as a guess
            continue
        if not start < end <= len(words):
            raise InputError(f"{where}: evidence tokens {start} to {end} are outside the {len(words)} of {ids[0]!r}.")
        spans.append((words[start][0], words[end - 1][1]))
    query = cells.get("query") or None
    context = query if query is None or isinstance(query, str) else json.dumps(query)
    return Row(
        where, text, cells["classification"], id=cells["annotation_id"], context=context,
        rationale=[list(span) for span in merged(spans)], document=ids[0],
    )  # fmt: skip
