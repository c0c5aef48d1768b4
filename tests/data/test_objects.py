"""Objects that people hold in Python: every form of the same texts gives the same Examples, all else one sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import namedtuple
from collections.abc import Sequence
from pathlib import Path

import datasets
import numpy as np
import pandas
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tiny import tiny
from toy import small_model, toy
from veridical import Classifier, attack, audit, evaluate, explain, fresh, load_data, pos, roar, robustness, train
from veridical.core.errors import Caution, InputError
from veridical.core.records import Dataset, Example
from veridical.data.objects import examples_of
from veridical.probes.options import Tagged

LABELS = ("bad", "good")
ROWS = [
    {"id": "a", "text": "the film was good", "label": "good", "context": "was it?", "rationale": [[13, 17]]},
    {"id": "b", "text": "a boring plot", "label": "bad", "context": None, "rationale": None},
    {"id": "c", "text": "the book is bad", "label": "bad", "context": "is it?", "rationale": [0, 0, 0, 1]},
]
EXAMPLES = [
    Example("a", "the film was good", 1, "was it?", ((13, 17),)),
    Example("b", "a boring plot", 0),
    Example("c", "the book is bad", 0, "is it?", ((12, 15),)),
]
TEXTS = [Example("0", "the film was good"), Example("1", "the book is bad")]
PAIRS = [Example("0", "the film was good", context="was it?"), Example("1", "the book is bad")]
Named = namedtuple("Named", ["text", "label"])
# A table has one type per column: marks as spans in all rows.
TABLE = [{**row, "rationale": [list(span) for span in e.rationale]} for row, e in zip(ROWS, EXAMPLES, strict=True)]


@pytest.fixture(scope="module")
def clf() -> Classifier:
    model, tokenizer = tiny("bert", num_labels=2)
    model.config.id2label = dict(enumerate(LABELS))
    return Classifier(model, tokenizer)


def read(objects: object, **how: object) -> list[Example]:
    return examples_of(objects, "explain", labels=LABELS, **how)  # type: ignore[arg-type]


SAME = {
    "a list of dicts": lambda: ROWS,
    "a tuple of dicts": lambda: tuple(ROWS),
    "a generator of dicts": lambda: (row for row in ROWS),
    "columns": lambda: {key: [row[key] for row in ROWS] for key in ROWS[0]},
    "columns as arrays": lambda: {key: np.array([row[key] for row in ROWS], object) for key in ROWS[0]},
    "a DataFrame": lambda: pandas.DataFrame(ROWS),
    "a DataFrame with another index": lambda: pandas.DataFrame(ROWS, index=pandas.Index([7, 7, 3])),
    "a DataFrame with categories": lambda: pandas.DataFrame(ROWS).astype({"label": "category"}),
    "a DataFrame in a dict": lambda: {"validation": pandas.DataFrame(ROWS)},
    "its rows as tuples": lambda: pandas.DataFrame(ROWS).itertuples(index=False),
    "a datasets.Dataset": lambda: datasets.Dataset.from_list(TABLE),
    "its slice": lambda: datasets.Dataset.from_list(TABLE)[:],
    "a DatasetDict": lambda: datasets.DatasetDict(anything=datasets.Dataset.from_list(TABLE)),
    "Examples": lambda: EXAMPLES,
    "a generator of Examples": lambda: iter(EXAMPLES),
    "a Dataset": lambda: Dataset("x", LABELS, {"test": tuple(EXAMPLES)}),
    "a Dataset with labels in another order": lambda: load_data(pandas.DataFrame(ROWS), labels=["good", "bad"]),
}


@pytest.mark.parametrize("form", SAME)
def test_every_form_of_the_same_rows_gives_the_same_examples(form):
    assert read(SAME[form]()) == EXAMPLES


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ("the film was good", TEXTS[:1]),
        (["the film was good", "the book is bad"], TEXTS),
        ((text for text in ["the film was good", "the book is bad"]), TEXTS),
        (pandas.Series(["the film was good", "the book is bad"], index=[5, 5]), TEXTS),
        (datasets.Dataset.from_list(TABLE[:1])["text"], TEXTS[:1]),
        (("the film was good", "was it?"), PAIRS[:1]),
        ([("the film was good", "was it?")], PAIRS[:1]),
        ([("the film was good", "was it?"), ("the book is bad", None)], PAIRS),
        ([("the film was good", "was it?"), "the book is bad"], PAIRS),
        (zip(["the film was good"], ["was it?"], strict=True), PAIRS[:1]),
        (pandas.Series([("the film was good", "was it?")]), PAIRS[:1]),
        (("a", "b", "c"), [Example("0", "a"), Example("1", "b"), Example("2", "c")]),
        ({"text": "a boring plot"}, [Example("0", "a boring plot")]),
        ({"text": "a boring plot", "label": 1}, [Example("0", "a boring plot", 1)]),
        ({"text": "a boring plot", "label": np.int64(1)}, [Example("0", "a boring plot", 1)]),
        ({"text": "a boring plot", "label": "GOOD"}, [Example("0", "a boring plot", 1)]),
        (pandas.Series({"text": "a boring plot", "context": "so?"}), [Example("0", "a boring plot", None, "so?")]),
        ([Named("a boring plot", "good")], [Example("0", "a boring plot", 1)]),
        (Example("x", "a boring plot"), [Example("x", "a boring plot")]),
    ],
)
def test_texts_and_pairs(objects, expected):
    assert read(objects) == expected


def test_a_missing_label_is_none_where_none_is_needed():
    frame = pandas.DataFrame({"text": ["a", "b", "c"], "label": [1, None, 0], "context": [None, "x", float("nan")]})
    expected = [Example("0", "a", 1), Example("1", "b", None, "x"), Example("2", "c", 0)]
    assert read(frame) == expected
    assert list(load_data(frame.astype({"label": "Int64"})).splits["test"]) == expected
    assert [e.label for e in read(frame.drop(columns="label"))] == [None] * 3


def test_labels_of_a_table_of_the_hub_have_its_names_and_may_be_withheld():
    features = {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["good", "bad"])}
    table = datasets.Dataset.from_dict({"text": ["a", "b", "c"], "label": [0, 1, -1]}, datasets.Features(features))
    assert load_data(table).labels == ("good", "bad")
    assert [e.label for e in read(table)] == [1, 0, None]
    assert [e.label for e in read(table.with_format("torch"))] == [1, 0, None]
    features["label"] = datasets.List(features["label"])
    several = datasets.Dataset.from_dict({"text": ["a", "b"], "label": [[0, 1], []]}, datasets.Features(features))
    data = load_data(several)
    assert (data.labels, data.multilabel) == (("good", "bad"), True)
    assert [e.label for e in data.splits["test"]] == [(0, 1), ()]
    assert [e.label for e in read(several.select([0]), multilabel=True)] == [(0, 1)]


def test_several_labels_in_a_frame():
    frame = pandas.DataFrame({"text": ["a", "b", "c"], "label": [["good", "bad"], [], np.array(["bad"])]})
    data = load_data(frame)
    assert (data.labels, data.multilabel) == (LABELS, True)
    assert [e.label for e in data.splits["test"]] == [(0, 1), (), (0,)]


def test_labels_that_the_model_does_not_have_are_left_out_and_said():
    with pytest.warns(Caution, match="gold labels are left out"):
        assert read([{"text": "a", "label": "odd"}]) == [Example("0", "a")]


def test_columns_are_named_as_those_of_files(tmp_path):
    rows = [{"review": "a film", "stars": s, "about": "x", "key": k, "marks": [1, 0]} for s, k in ((1, "i"), (2, "j"))]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    columns = {"text": "review", "label": "stars", "context": "about", "id": "key", "rationale": "marks"}
    how = {**columns, "labels": ("1", "2")}
    expected = load_data(f"{tmp_path}/x.jsonl:labels=1+2:" + ":".join(f"{k}={v}" for k, v in columns.items()))
    assert expected.splits["test"][1] == Example("j", "a film", 1, "x", ((0, 1),))
    for same in (rows, pandas.DataFrame(rows), datasets.Dataset.from_list(rows), tmp_path / "x.jsonl"):
        data = load_data(same, **how)
        assert (data.labels, data.splits) == (expected.labels, expected.splits)


def test_splits_come_from_keys_or_a_column():
    frames = {"train": pandas.DataFrame(ROWS[:2]), "valid": pandas.DataFrame(ROWS[2:]), "test": ROWS[2:]}
    by_key = load_data(frames, name="mine", id=None)
    assert {split: len(held) for split, held in by_key.splits.items()} == {"train": 2, "dev": 1, "test": 1}
    assert (by_key.name, by_key.labels) == ("mine", LABELS)
    column = [{**row, "split": split} for row, split in zip(ROWS, ("train", "validation", "train"), strict=True)]
    by_column = load_data(pandas.DataFrame(column), splits=["dev"])
    assert by_column.splits == {"dev": (EXAMPLES[1],)}
    examples = load_data({"train": EXAMPLES, "test": EXAMPLES[:1]}, dev=0)
    assert (examples.labels, examples.splits["train"]) == (("0", "1"), tuple(EXAMPLES))


class Strange:
    def __iter__(self):
        return iter(["a"])


HOSTILE = {
    "an array": (np.array(["a"]), "explain takes a text, .*; got a numpy.ndarray"),
    "a tensor": (torch.zeros(2), "got a torch.Tensor"),
    "an index": (pandas.Index(["a"]), "got a pandas.Index"),
    "none": (None, "got None"),
    "a number": (3.4, "got a float"),
    "bytes": (b"a", "got a bytes"),
    "a set": ({"a"}, "got a set"),
    "a path": (Path("x.csv"), "got a pathlib.PosixPath"),
    "an iterable": (Strange(), "got a .*Strange"),
    "a stream": (datasets.Dataset.from_list(TABLE).to_iterable_dataset(), "got a datasets.IterableDataset"),
    "a list of none": ([None], "list, row 1 is None"),
    "a list of numbers": (["a", 3.4], "list, row 2 is a float"),
    "a list of lists": ([["a", "b"]], "list, row 1 is a list"),
    "three strings in a list": ([("a", "b", "c")], "list, row 1 is a tuple"),
    "a text and a number": ([("a", 1)], "list, row 1 is a tuple"),
    "a column with a gap": (pandas.Series(["a", float("nan")]), "Series, row 2 is"),
    "texts and dicts": (["a", {"text": "b"}], "dicts and texts in one list"),
    "an empty text": (["a", " "], "Example '1' has an empty text"),
    "an Example of no text": (Example("x", None), "The text of example 'x' is None"),  # type: ignore[arg-type]
    "a dict without text": ({"review": "a"}, r"no column 'text' \(it has: review\)"),
    "a row of words": ({"tokens": ["a", "b"]}, r"no column 'text' \(it has: tokens\)"),
    "an empty dict": ({}, r"no column 'text' \(it has: none\)"),
    "a frame without text": (pandas.DataFrame({"review": ["a"]}), r"DataFrame, row 1: there is no column 'text'"),
    "a column twice": (pandas.DataFrame([["a", "b"]], columns=["text", "text"]), "two columns 'text'"),
    "a frame with a gap": (pandas.DataFrame({"text": ["a", None]}), "DataFrame, row 2: the text is empty"),
    "a frame of numbers": (pandas.DataFrame({"text": [1.5]}), "DataFrame, row 1: the text is 1.5"),
    "columns of two lengths": ({"text": ["a", "b"], "label": [0]}, "The column 'label' is not a list of 2 values"),
    "a label past the model's": ([{"text": "a", "label": 2}], "names only the classes 0 to 1"),
    "a label that is none": ([{"text": "a", "label": 0.5}], "list, row 1: the label is 0.5"),
    "0 or 1 for each class": ([{"text": "a", "label": [1, 0, 1]}], "has a class twice"),
    "several splits": ({"train": ROWS, "test": ROWS}, r"one split, but these are several \(train, test\)"),
    "several splits of ours": (toy(), r"several \(train, dev, test\)"),
    "a split twice": ({"valid": ROWS, "dev": ROWS}, "two splits that mean dev"),
    "a split of a number": ({"test": 3}, "got an int"),
    "a wrong rationale": ([{"text": "a", "rationale": [[0, 9]]}], r"span \[0, 9\] is not inside the text"),
    "an id twice": ([{"text": "a", "id": 1}, {"text": "b", "id": 1}], "the id '1' was used before"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_anything_else_is_named_in_one_sentence(case):
    objects, sentence = HOSTILE[case]
    with pytest.raises(InputError, match=sentence):
        read(objects)


@pytest.mark.parametrize(
    ("objects", "options", "sentence"),
    [
        (np.array(["a"]), {}, "data takes .*; got a numpy.ndarray"),
        ([], {}, "The split 'test' of 'data' holds no examples"),
        (pandas.DataFrame({"text": []}), {}, "holds no examples"),
        ({"train": ROWS, "test": []}, {}, "The split 'test' of 'data' holds no examples"),
        (ROWS, {"label": "stars"}, "no column 'stars'"),
        (toy(), {"text": "review"}, "A Dataset is read already"),
        (ROWS, {"splits": ["train"]}, "'data' has no split 'train'; it has: test"),
    ],
)
def test_what_is_no_data_is_said(objects, options, sentence):
    with pytest.raises(InputError, match=sentence):
        load_data(objects, **options)


# -- the same rows in a file and in objects -----------------------------------------------------------------

_words = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12).filter(str.strip)


@st.composite
def tables(draw: st.DrawFn) -> list[dict]:
    texts = draw(st.lists(_words, min_size=1, max_size=5))
    label = draw(st.sampled_from([st.just(0) | st.just(1), st.sampled_from(["x", "y"])]))
    several = st.lists(label, unique=True, max_size=2).map(sorted)  # [1, 0] for every text is refused
    label = draw(st.sampled_from([label, several]))
    labels = [draw(label) for _ in texts]
    if all(value in (1, [1], []) for value in labels):  # an index without 0 is none
        labels = [[] if isinstance(value, list) else 0 for value in labels]
    return [
        {
            "id": f"n{number}",
            "text": text,
            "label": value,
            "context": draw(st.none() | _words),
            "rationale": draw(st.none() | st.just([[0, len(text)]])),
        }
        for number, (text, value) in enumerate(zip(texts, labels, strict=True))
    ]


@given(rows=tables())
@settings(max_examples=40, deadline=None)
def test_a_file_a_list_a_frame_and_a_table_of_the_same_rows_are_one_dataset(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "data.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    expected = load_data(str(path))
    for same in (rows, pandas.DataFrame(rows), datasets.Dataset.from_list(rows)):
        data = load_data(same)
        assert (data.name, data.labels, data.multilabel) == ("data", expected.labels, expected.multilabel)
        assert data.splits == expected.splits


# -- in the verbs -------------------------------------------------------------------------------------------


def test_explain_scores_every_form_alike(clf, tmp_path):
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    forms = [ROWS, pandas.DataFrame(ROWS), datasets.Dataset.from_list(TABLE), load_data(tmp_path / "x.jsonl")]
    first, *others = [explain(clf, form, "input_x_gradient", target="gold") for form in forms]
    assert [e.example for e in first] == EXAMPLES
    for other in others:
        for a, b in zip(first, other, strict=True):
            assert a.example == b.example
            np.testing.assert_array_equal(a.scores, b.scores)


def test_explain_reads_a_context_for_all_or_for_each(clf):
    texts = ["the film was good", "the book is bad"]
    paired = explain(clf, [(text, "was it?") for text in texts], "attention")
    for context in ("was it?", ["was it?", "was it?"], pandas.Series(["was it?"] * 2)):
        for a, b in zip(paired, explain(clf, texts, "attention", context=context), strict=True):
            assert a.example == b.example
            np.testing.assert_array_equal(a.scores, b.scores)
    for context, sentence in (
        (["was it?"], "1 contexts for 2 texts"),
        (3, "context is 3; it must be a text, a list or None"),
        ([3, 4], "context is a list"),
    ):
        with pytest.raises(InputError, match=sentence):
            explain(clf, texts, "attention", context=context)
    with pytest.raises(InputError, match="'0' has one of its own"):
        explain(clf, ("a", "b"), "attention", context="c")


def test_evaluate_attack_and_robustness_take_the_same(clf):
    frame = pandas.DataFrame(ROWS)
    for same in (evaluate(clf, frame, "attention", "auc"), evaluate(clf, EXAMPLES, "attention", "auc")):
        assert [a.example for a in same.attributions["attention"]] == EXAMPLES
    assert [r.example for r in attack(clf, frame, entities="lists").results] == EXAMPLES
    assert robustness([clf], frame, "attention", untrained="weights").texts == 3
    for verb in (
        lambda: evaluate(clf, np.array(["a"]), "attention", "sparsity"),
        lambda: attack(clf, np.array(["a"]), entities="lists"),
        lambda: robustness([clf], np.array(["a"]), "attention"),
    ):
        with pytest.raises(InputError, match=r"(evaluate|attack|robustness) takes .*; got a numpy.ndarray"):
            verb()
    with pytest.raises(InputError, match="'0' has no gold class"):
        attack(clf, frame[["text"]], entities="lists")


def as_rows(data: Dataset) -> dict[str, list[dict]]:
    return {
        split: [{"id": e.id, "text": e.text, "label": data.labels[int(str(e.label))]} for e in held]
        for split, held in data.splits.items()
    }


def test_train_reads_frames_by_split_as_it_reads_a_dataset(tmp_path):
    data = toy(12, 6, 6)
    model = small_model(tmp_path / "model", num_labels=2)
    how = {"config": {"epochs": 1, "threads": 1}, "progress": False}
    frames = {split: pandas.DataFrame(rows) for split, rows in as_rows(data).items()}
    table = datasets.DatasetDict({split: datasets.Dataset.from_list(rows) for split, rows in as_rows(data).items()})
    whole, *others = [
        train(same, model, out=tmp_path / name, **how).scores
        for name, same in (("ours", data), ("frames", frames), ("hub", table))
    ]
    assert others == [whole, whole]


@pytest.mark.parametrize("verb", [train, roar, fresh])
def test_a_table_alone_has_one_split_and_is_told_so(verb, tmp_path):
    frame = pandas.DataFrame(ROWS)
    with pytest.raises(InputError, match=r"data has no train split \(has test\).*column `split`"):
        verb(frame, "bilstm", out=tmp_path / "out")
    with pytest.raises(InputError, match=r"data takes .*; got a numpy.ndarray"):
        verb(np.array(["a"]), "bilstm", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_audit_and_pos_take_a_frame(clf, tmp_path):
    frame = pandas.DataFrame([{**row, "id": None} for row in ROWS])
    how = {"methods": ["random", "attention"], "metrics": ["sparsity"], "progress": False}
    audited = audit(clf, frame, ood=[load_data(["wow", "really"], name="other")], out=tmp_path / "audit", **how)
    assert [(c.name, c.texts) for c in audited.summary.corpora] == [("data", 3), ("other", 2)]
    with pytest.raises(InputError, match="'data' is named twice"):
        audit(clf, frame, ood=[["wow"]], out=tmp_path / "twice", **how)

    def tagger(texts: Sequence[str]) -> list[Tagged]:
        return [[((0, len(text)), "X")] for text in texts]

    assert pos({"x": clf}, frame, tagger=tagger, progress=False).texts == 3


def test_neither_library_is_imported_for_texts():
    code = (
        "import sys; from veridical.data.objects import examples_of as e;"
        "e(['a', ('b', 'c'), ], 'explain', labels=()); e({'text': 'a', 'label': 0}, 'explain', labels=('x',));"
        "print([name for name in ('pandas', 'datasets') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# -- ids ----------------------------------------------------------------------------------------------------


def test_an_index_of_ones_own_gives_the_ids_and_any_other_the_numbers_of_the_rows():
    frame = pandas.DataFrame({"text": ["a film", "a book", "a plot"]})
    numbered = ["0", "1", "2"]
    for index in (None, [7, 7, 3], pandas.MultiIndex.from_tuples([(0, 0), (0, 1), (1, 0)]), [1, float("nan"), 2]):
        same = frame if index is None else frame.set_axis(index, axis=0)
        assert [e.id for e in read(same)] == numbered
        assert [e.id for e in load_data(same).splits["test"]] == numbered
        assert [e.id for e in read(same["text"])] == numbered
    assert [e.id for e in read(frame.to_dict("records"))] == numbered
    for some in (frame[1:], frame[frame.text != "a film"]):
        assert [e.id for e in read(some)] == [e.id for e in read(some["text"])] == ["1", "2"]
    named = frame.set_axis(["x", "y", "z"], axis=0)
    assert [e.id for e in read(named)] == ["x", "y", "z"]
    assert [e.id for e in read(named.assign(id=[4, 5, 6]))] == ["4", "5", "6"]


def test_splits_of_frames_have_their_index_or_their_numbers_in_the_split():
    frame = pandas.DataFrame({"text": ["a film", "a book"], "label": [0, 1]})
    data = load_data({"train": frame, "test": frame.set_axis(["x", "y"], axis=0)}, dev=0)
    assert {split: [e.id for e in data.splits[split]] for split in data.splits} == {
        "train": ["train-0", "train-1"],
        "test": ["x", "y"],
    }
    one = load_data(pandas.concat([frame.assign(split="train"), frame.assign(split="test")], ignore_index=True), dev=0)
    assert {split: [e.id for e in one.splits[split]] for split in one.splits} == {
        "train": ["0", "1"],
        "test": ["2", "3"],
    }


def test_a_table_is_told_to_name_its_columns_as_python_does():
    with pytest.raises(InputError, match=r"say which it is by load_data\(\.\.\., text=COLUMN\)\.$"):
        read(pandas.DataFrame({"review": ["a"]}))
