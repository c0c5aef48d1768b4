"""Files of the user's own: every format gives the same dataset, every mistake an error that says where."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veridical.core.errors import Caution, InputError
from veridical.core.records import Example
from veridical.core.text import words_of
from veridical.data import load_data
from veridical.data.rows import merged, spans_of_phrases, spans_of_words
from veridical.data.split import normalised

ROWS = [
    {"id": "a", "text": 'A "fine", film', "label": "pos", "text_pair": "good?", "rationale": [0, 1, 0]},
    {"id": "b", "text": "Très mauvais", "label": "neg", "text_pair": "good?", "rationale": [[5, 12]]},
    {"id": "c", "text": "Nothing to mark", "label": "neg", "text_pair": "", "rationale": None},
]
EXPECTED = (
    Example("a", 'A "fine", film', 1, "good?", ((2, 9),)),
    Example("b", "Très mauvais", 0, "good?", ((5, 12),)),
    Example("c", "Nothing to mark", 0, None, ()),
)


def write(path: Path, rows: list[dict]) -> Path:
    """The rows in the format of the file's ending."""
    kind = path.name.removesuffix(".gz").rpartition(".")[2]
    if kind == "parquet":
        marks = [json.dumps(row["rationale"]) if row.get("rationale") else None for row in rows]
        plain = [{**row, "rationale": mark} for row, mark in zip(rows, marks, strict=True)]
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(plain), path)
        return path
    file = io.StringIO(newline="")
    if kind in ("jsonl", "json"):
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    else:
        cells = [[json.dumps(v) if isinstance(v, list) else v or "" for v in row.values()] for row in rows]
        if kind == "csv":
            csv.writer(file).writerows([list(rows[0]), *cells])
        else:
            file.writelines("\t".join(line) + "\n" for line in [list(rows[0]), *cells])
    raw = file.getvalue().encode()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


@pytest.mark.parametrize(
    "name", ["x.jsonl", "x.jsonl.gz", "x.json", "x.csv", "x.csv.gz", "x.tsv", "x.tsv.gz", "x.parquet"]
)
def test_every_format_says_the_same(tmp_path: Path, name: str) -> None:
    data = load_data(str(write(tmp_path / name, ROWS)))
    assert (data.name, data.labels, data.multilabel) == ("x", ("neg", "pos"), False)
    assert data.splits == {"test": EXPECTED}


def test_nested_rationales_and_lists_of_labels_in_parquet(tmp_path: Path) -> None:
    rows = [
        {"text": "a b", "label": [0, 1], "rationale": [[0, 1]]},
        {"text": "c d", "label": [], "rationale": []},
    ]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "x.parquet")
    data = load_data(str(tmp_path / "x.parquet"))
    assert data.multilabel
    assert [(ex.label, ex.rationale) for ex in data.splits["test"]] == [((0, 1), ((0, 1),)), ((), ())]


def test_a_folder_of_splits_under_any_of_their_names_and_in_shards(tmp_path: Path) -> None:
    write(tmp_path / "train-00000-of-00002.jsonl", [{"text": "a", "label": "x"}])
    write(tmp_path / "train-00001-of-00002.jsonl", [{"text": "b", "label": "y"}])
    write(tmp_path / "validation.csv", [{"text": "c", "label": "y"}])
    write(tmp_path / "test.tsv.gz", [{"text": "d", "label": "x"}])
    write(tmp_path / "ood1.jsonl", [{"text": "e", "label": "x"}])
    (tmp_path / "notes.txt").write_text("not a split")
    data = load_data(str(tmp_path))
    assert {split: [ex.text for ex in some] for split, some in data.splits.items()} == {
        "train": ["a", "b"], "dev": ["c"], "test": ["d"], "ood1": ["e"],
    }  # fmt: skip
    assert data.name == tmp_path.name


def test_a_split_column_and_a_dev_split_set_apart_by_normalised_text(tmp_path: Path) -> None:
    texts = [f"Sentence number {n // 2}{'!' * (n % 2)}" for n in range(200)]  # each twice, nearly
    rows = [{"text": text, "label": n % 2, "split": "train"} for n, text in enumerate(texts)]
    path = write(tmp_path / "x.jsonl", [*rows, {"text": "last", "label": 0, "split": "test"}])
    data = load_data(str(path))
    assert {split: len(some) for split, some in data.splits.items()} == {"train": 180, "dev": 20, "test": 1}
    assert "10% of train" in data.about
    sides = [{normalised(ex.text) for ex in data.splits[split]} for split in ("train", "dev")]
    assert not sides[0] & sides[1]
    assert "dev" not in load_data(f"{path}:dev=0").splits
    with pytest.raises(InputError, match=r"'dev' of dataset 'files' is 1; it must be at least 0 and below 1"):
        load_data(f"{path}:dev=1")


def test_columns_by_other_names(tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.csv",
        [{"review": "good", "stars": "5", "q": "well?"}, {"review": "bad", "stars": "1", "q": "?"}],
    )
    data = load_data(f"{path}:text=review:label=stars:context=q:labels=1+2+3+4+5")
    assert data.labels == ("1", "2", "3", "4", "5")
    assert [(ex.text, ex.label, ex.context) for ex in data.splits["test"]] == [
        ("good", 4, "well?"),
        ("bad", 0, "?"),
    ]


def test_numbers_are_indices_so_that_a_class_that_is_missing_moves_no_other(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", [{"text": "a", "label": 0}, {"text": "b", "label": 2}])
    with pytest.warns(Caution, match="The labels go up to 2, but no text has class 1; they are taken as indices of 3"):
        data = load_data(str(path))
    assert data.labels == ("0", "1", "2")
    assert [ex.label for ex in data.splits["test"]] == [0, 2]
    assert load_data(f"{path}:labels=bad+fair+good").labels == ("bad", "fair", "good")


def test_ids_shared_by_two_splits_get_the_split_in_front(tmp_path: Path) -> None:
    for split in ("dev", "test"):
        write(tmp_path / f"{split}.jsonl", [{"id": 7, "text": split, "label": 0}])
    assert [ex.id for some in load_data(str(tmp_path)).splits.values() for ex in some] == ["dev/7", "test/7"]


GOOD = {"text": "two words", "label": 0}
MISTAKES = {  # what is added to or put in place of a good row, and what is said of the second row
    "empty text": ({"text": " "}, r"x.jsonl, line 2: the text is empty"),
    "no label": ({"label": None}, r"line 2: the label is missing"),
    "no kind of label": ({"label": 0.5}, r"line 2: the label is 0.5"),
    "negative label": ({"label": -1}, r"line 2: the label is -1.*starts at 0"),
    "list among single labels": ({"label": [0]}, r"line 2: the label is \[0\], but .*line 1 has 0"),
    "id twice": ({"id": "1"}, r"line 2: the id '1' was used before, at .*line 1.*id=none"),
    "span outside": ({"rationale": [[0, 10]]}, r"span \[0, 10\] is not inside the text of 9 characters"),
    "span backwards": ({"rationale": [[2, 2]]}, r"line 2: the rationale span \[2, 2\] is not inside"),
    "span of three": ({"rationale": [[0, 1, 2]]}, r"span \[0, 1, 2\] is not inside"),
    "too few marks": ({"rationale": [1]}, r"line 2: the rationale has 1 values, but the text has 2 words"),
    "other marks": ({"rationale": [0.5, 1]}, r"line 2: the rationale has the value 0.5"),
    "no list of marks": ({"rationale": 3}, r"line 2: the rationale is 3"),
    "no context": ({"context": 3}, r"line 2: the context is 3"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_row_is_named_with_its_place(tmp_path: Path, mistake: str) -> None:
    change, message = MISTAKES[mistake]
    with pytest.raises(InputError, match=message):
        load_data(str(write(tmp_path / "x.jsonl", [{**GOOD, "id": "1"}, {**GOOD, **change}])))


def test_a_missing_column_is_named_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 1: there is no column 'text' \(it has: body, label\).*:text=COL"):
        load_data(str(write(tmp_path / "x.jsonl", [{"body": "a", "label": 0}])))
    with pytest.raises(InputError, match=r"line 1: there is no column 'label' \(it has: text\)"):
        load_data(str(write(tmp_path / "x.jsonl", [{"text": "a"}])))
    with pytest.raises(InputError, match=r"there is no column 'q'"):
        load_data(f"{write(tmp_path / 'x.jsonl', [GOOD])}:context=q")


def test_numbers_that_cannot_be_indices(tmp_path: Path) -> None:
    rows = [{"text": "a", "label": 1}, {"text": "b", "label": 2}]
    with pytest.raises(InputError, match=r"1, 2 without 0.*labels=1\+2"):
        load_data(str(write(tmp_path / "x.jsonl", rows)))


def test_ids_may_be_ignored(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", [{"text": t, "label": 0, "id": 1} for t in "ab"])
    assert [ex.id for ex in load_data(f"{path}:id=none").splits["test"]] == ["test-0", "test-1"]


@pytest.mark.parametrize("unknown", ["other", 2])
def test_a_label_that_train_lacks(tmp_path: Path, unknown: object) -> None:
    known = ["neg", "pos"] if isinstance(unknown, str) else [0, 1]
    write(tmp_path / "train.jsonl", [{"text": f"t{n}", "label": label} for n, label in enumerate(known)])
    write(tmp_path / "test.jsonl", [{"text": "t", "label": known[0]}, {"text": "u", "label": unknown}])
    with pytest.raises(InputError, match=rf"test.jsonl, line 2: the label {unknown!r} does not occur in train"):
        load_data(f"{tmp_path}:dev=0")


def test_labels_against_the_given_names(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", [{"text": "a", "label": "good"}])
    with pytest.raises(InputError, match=r"line 1: the label 'good' is not one of bad, fair"):
        load_data(f"{path}:labels=bad+fair")
    with pytest.raises(InputError, match="names a class twice"):
        load_data(f"{path}:labels=bad+bad")
    numbers = write(tmp_path / "y.jsonl", [{"text": "a", "label": 2}])
    with pytest.raises(InputError, match=r"label is 2, but labels=bad\+good names only the classes 0 to 1"):
        load_data(f"{numbers}:labels=bad+good")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.jsonl", b'{"text": "a", "label": 0}\n{"text": "\xe9"}', r"line 2: byte 0xe9 is not UTF-8.*iconv"),
        ("x.jsonl", b'{"text": "ok", "label": 0}\n{"text": \n', r"line 2: this is not JSON"),
        ("x.jsonl", b"[1]\n", r"line 1: this is not a JSON object"),
        ("x.csv", b"text,label\nok,0\na,b,c\n", r"line 3: 3 fields, but the header has 2"),
        ("x.csv", b"text,label,text\nlost,0,kept\n", r"line 1: the column 'text' is there twice; rename"),
        ("x.csv", b" text,label,label \nok,0,1\n", r"line 1: the column 'label' is there twice"),
        ("x.tsv", b"text\tlabel\ttext\nlost\t0\tkept\n", r"line 1: the column 'text' is there twice"),
        ("x.jsonl", b'{"text": "lost", "label": 0, "text": "kept"}\n', r"line 1: the column 'text' is there twice"),
        ("x.csv", b'text,label\n"open,0\n', r"x.csv, line 2.*quotation marks"),
        ("x.csv", b'text,label,rationale\nok,0,"[1"\n', r"line 2: the rationale '\[1' is no JSON list"),
        ("x.csv.gz", b"no gzip", r"x.csv.gz cannot be read.*whole"),
        ("x.parquet", b"no parquet", r"cannot be read as Parquet"),
        ("x.jsonl", b"", r"'x' holds no examples"),
        ("x.docx", b"", r"no known format"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_read(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        load_data(str(tmp_path / name))


def test_folders_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no split files"):
        load_data(str(tmp_path))
    write(tmp_path / "train.csv", ROWS)
    write(tmp_path / "train.jsonl", ROWS)
    with pytest.raises(InputError, match=r"two files for train: train.csv and train.jsonl"):
        load_data(str(tmp_path))


def test_a_csv_field_may_be_a_long_document_and_hold_line_breaks(tmp_path: Path) -> None:
    document = "word\n" * 50_000
    data = load_data(str(write(tmp_path / "x.csv", [{"text": document, "label": "0"}])))
    assert data.splits["test"][0].text == document


@settings(deadline=None)
@given(st.text(max_size=60), st.data())
def test_word_marks_and_spans_say_the_same(text: str, data: st.DataObject) -> None:
    size = len(text.split())
    marks = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    words = words_of(text)
    assert [text[start:end] for start, end in words] == text.split()
    spans = spans_of_words(text, marks)
    assert [any(s <= start and end <= e for s, e in spans) for start, end in words] == marks
    assert merged(spans) == spans


def test_quoted_evidence_is_found_once_per_quote() -> None:
    assert spans_of_phrases("so so good", ["so", "so", "so", "good"]) == (((0, 2), (3, 5), (6, 10)), 0)
    assert spans_of_phrases("so so good", ["bad", "so good", "good"]) == (((3, 10),), 1)
