"""The ERASER layout: annotations with token positions, documents in a folder or in one file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from veridical.core.errors import InputError
from veridical.data import load_data

DOCUMENT = "the plot was slow .\nthe cast was great . i liked it"


def annotation(id: str = "doc1", label: str = "POS", start: int = 5, end: int = 9, **more: object) -> dict:
    evidence = {"docid": "doc1", "start_token": start, "end_token": end, "text": "unused"}
    return {"annotation_id": id, "classification": label, "evidences": [[evidence]], "query": "", **more}


def folder(path: Path, *annotations: dict, docs: str = "files") -> str:
    if docs == "files":
        (path / "docs").mkdir()
        (path / "docs" / "doc1").write_text(DOCUMENT)
    else:
        (path / "docs.jsonl").write_text(json.dumps({"docid": "doc1", "document": DOCUMENT}))
    (path / "val.jsonl").write_text("".join(json.dumps(one) + "\n" for one in annotations))
    return f"eraser:path={path}"


@pytest.mark.parametrize("docs", ["files", "one file"])
def test_evidence_is_placed_by_its_tokens(tmp_path: Path, docs: str) -> None:
    second = annotation("doc1-b", "NEG", 0, 5, query="was it good ?")
    data = load_data(folder(tmp_path, annotation(), second, docs=docs))
    assert data.labels == ("NEG", "POS")
    first, other = data.splits["dev"]
    assert [first.text[s:e] for s, e in first.rationale] == ["the cast was great"]
    assert [other.text[s:e] for s, e in other.rationale] == ["the plot was slow ."]
    assert (first.context, other.context, first.label, other.label) == (None, "was it good ?", 1, 0)


def test_overlapping_evidence_is_one_and_no_evidence_is_none(tmp_path: Path) -> None:
    pieces = [{"docid": "doc1", "start_token": s, "end_token": e} for s, e in ((0, 3), (2, 4), (-1, -1))]
    data = load_data(
        folder(
            tmp_path,
            annotation(evidences=[pieces]),
            annotation("doc1-b", "NEG", docids=["doc1"], evidences=[]),
        )
    )
    first, other = data.splits["dev"]
    assert [first.text[s:e] for s, e in first.rationale] == ["the plot was slow"]
    assert (other.text, other.rationale) == (DOCUMENT, ())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"end": 99}, r"val.jsonl, line 1: evidence tokens 5 to 99 are outside the 13"),
        (
            {"evidences": [[{"docid": "../x", "start_token": 0, "end_token": 1}]]},
            r"'../x' is neither in docs/",
        ),
        (
            {"evidences": [[{"docid": d, "start_token": 0, "end_token": 1} for d in ("a", "b")]]},
            r"in 2 documents",
        ),
    ],
)
def test_mistakes(tmp_path: Path, change: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_data(folder(tmp_path, annotation(**change)))


def test_folders_of_another_kind(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give an ERASER folder"):
        load_data(f"eraser:path={tmp_path}")
    with pytest.raises(InputError, match="no 'annotation_id'"):
        load_data(folder(tmp_path, {"text": "x"}))
