"""Data that can be read and would be misunderstood, files and objects alike: refused with a sentence, or read right."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
import pytest

import veridical
from tiny import tiny
from veridical.core.errors import Caution, InputError
from veridical.core.records import Dataset, Example
from veridical.data import load_data
from veridical.data.labels import relabel
from veridical.model.classifier import Classifier
from veridical.model.load import load


def rows(*cells: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in cells)


def labels(*given: Any) -> str:
    return rows(*({"text": f"text {n}", "label": label} for n, label in enumerate(given)))


def table(*given: str) -> str:
    return "text,label\n" + "".join(f"text {n},{label}\n" for n, label in enumerate(given))


# name -> (file, content, what is written behind its name, part of the sentence)
MISREAD: dict[str, tuple[str, str, str, str]] = {
    "indices and names": ("d.csv", table("1", "good"), "", "line 3: the label is 'good', but .*line 2 has '1'"),
    "names and indices": ("d.csv", table("good", "0"), "", "line 2: the label is 'good', but .*line 3 has '0'"),
    "an index and a name in a list": ("d.jsonl", labels([0, "joy"]), "", "the label is 'joy', but .*has 0"),
    "a truth and an index": ("d.jsonl", labels(True, 0), "", "the label is 'True', but"),
    "ratings in a table": ("d.csv", table("0.5", "0.7"), "", "line 2: the label is 0.5; give a class index"),
    "an exponent in a table": ("d.csv", table("1e-3", "0"), "", "the label is 0.001; give a class index"),
    "no number in a table": ("d.csv", table("0", "nan"), "", "line 3: the label is nan; give a class index"),
    "no number in capitals": ("d.csv", table("0", "NaN"), "", "line 3: the label is nan"),
    "a 0 or 1 for each of two": ("d.jsonl", labels([0, 1], [1, 0]), "", "every text has both classes"),
    "a 0 or 1 for two names": ("d.jsonl", labels([1, 0], [0, 1]), ":labels=a+b", "no 0 or 1 for each"),
    "a 0 or 1 in a table": ("d.csv", 'text,label\na,"[1, 0]"\nb,"[0, 1]"\n', "", "no 0 or 1 for each"),
    "a class without a name": ("d.csv", table("a", "b"), ":labels=", "has a class without a name"),
    "two classes, one without": ("d.csv", table("a", "b"), ":labels=a+", "has a class without a name"),
    "dev is all of train": (
        "d.csv",
        "text,label,split\na,x,train\nb,y,train\n",
        ":dev=0.99",
        "dev=0.99 of the 2 train texts of d leaves none to train on",
    ),
}


@pytest.mark.parametrize("case", MISREAD)
def test_what_would_be_misread(case: str, tmp_path: Path) -> None:
    name, content, behind, sentence = MISREAD[case]
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=sentence):
        load_data(f"{tmp_path / name}{behind}")


# name -> (file, content, what is written behind its name, splits with the labels in them)
READ: dict[str, tuple[str, str, str, dict[str, list[Any]]]] = {
    "whole numbers as pandas writes them": ("d.csv", table("1.0", "0.0"), "", {"test": [1, 0]}),
    "a whole number with an exponent": ("d.csv", table("1e0", "0"), "", {"test": [1, 0]}),
    "ratings that are named": ("d.csv", table("0.5", "0.7"), ":labels=0.5+0.7", {"test": [0, 1]}),
    "numbers and names that are named": ("d.csv", table("1", "good"), ":labels=1+good", {"test": [0, 1]}),
    "versions are names": ("d.csv", table("1.0.1", "1_0"), "", {"test": [0, 1]}),
    "both classes for all": ("d.jsonl", labels([0, 1], [0, 1]), "", {"test": [(0, 1), (0, 1)]}),
    "splits in capitals": (
        "d.csv",
        "text,label,split\na,x,Train\nb,y,train\nc,x,TEST\nd,y,Validation\n",
        "",
        {"train": [0, 1], "dev": [1], "test": [0]},
    ),
}


@pytest.mark.parametrize("case", READ)
def test_what_is_read_right(case: str, tmp_path: Path) -> None:
    name, content, behind, expected = READ[case]
    (tmp_path / name).write_text(content)
    data = load_data(f"{tmp_path / name}{behind}")
    assert {split: [e.label for e in examples] for split, examples in data.splits.items()} == expected


@pytest.mark.parametrize(
    ("names", "model", "expected"),
    [
        (("pos", "Pos"), ("Pos", "pos"), [1, 0]),  # the very name first
        (("POS", "neg"), ("Neg", "Pos"), [1, 0]),
        (("pos", "Pos"), ("pos", "neg"), [None, None]),  # both would be one
        (("pos", "x"), ("pos", "neg"), [None, None]),
    ],
)
@pytest.mark.filterwarnings("ignore::veridical.core.errors.Caution")
def test_labels_that_differ_in_case(names: tuple[str, ...], model: tuple[str, ...], expected: list[Any]) -> None:
    examples = [Example("0", "a", 0), Example("1", "b", 1)]
    assert [e.label for e in relabel(examples, names, model)] == expected


def test_a_date_that_python_lacks(tmp_path: Path) -> None:
    when = pyarrow.array([2**61, 0], pyarrow.timestamp("us"))
    held = {"text": ["a", "b"], "label": [0, 1], "when": when}
    pyarrow.parquet.write_table(pyarrow.table(held), tmp_path / "d.parquet")
    with pytest.raises(InputError, match=r"cannot be read as Parquet .date value out of range"):
        load_data(str(tmp_path / "d.parquet"))


# -- examples -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def clf() -> Classifier:
    return load(*tiny("bert"))


def example(**changes: Any) -> Example:
    return dataclasses.replace(Example("1", "good film", 1), **changes)


EXAMPLES: dict[str, tuple[Example, str]] = {
    "a label past the classes": (example(label=7), r"has label 7, outside the 3 labels \(0 to 2\)"),
    "a label below 0": (example(label=-1), "has label -1"),
    "a label that is a text": (example(label="pos"), "has label 'pos'"),
    "half a label": (example(label=0.5), "has label 0.5"),
    "a truth for a label": (example(label=True), "has label True"),
    "a list for a label": (example(label=[1]), r"has label \[1\]"),
    "a label of an array": (example(label=np.int64(1)), "has label"),
    "labels past the classes": (example(label=(0, 9)), "has label 9"),
    "a rationale outside": (example(rationale=((0, 99),)), r"the rationale span \(0, 99\), which is not inside"),
    "a rationale of nothing": (example(rationale=((3, 3),)), r"the rationale span \(3, 3\)"),
    "a rationale from below 0": (example(rationale=((-2, 3),)), r"the rationale span \(-2, 3\)"),
    "a rationale backwards": (example(rationale=((4, 1),)), r"the rationale span \(4, 1\)"),
    "half a rationale": (example(rationale=((0.0, 2.5),)), r"the rationale span \(0.0, 2.5\)"),
    "one edge": (example(rationale=((1,),)), "the rationale span"),
    "edges without spans": (example(rationale=(0, 4)), "the rationale span 0"),
    "a text for a rationale": (example(rationale="good"), "has the rationale 'good'"),
    "texts for a rationale": (example(rationale=("ab",)), "the rationale span 'ab'"),
    "no rationale": (example(rationale=None), "has the rationale None"),
    "a context that is a number": (example(context=3), "The context of example '1'.* is 3; it must be a string"),
    "a context that is a list": (example(context=["a"]), "The context of example '1'.* is"),
    "an id that is a number": (example(id=1), "The id of example 1.* is 1; it must be a string"),
    "no id": (example(id=None), "The id of example None.* is None"),
    "a text that is bytes": (example(text=b"good"), "The text of example '1'.* is b'good'"),
}
READERS: dict[str, Callable[[Classifier, Any], Any]] = {
    "explain": lambda clf, given: veridical.explain(clf, given, "random"),
    "evaluate": lambda clf, given: veridical.evaluate(clf, given, "random", "sparsity"),
    "attack": lambda clf, given: veridical.attack(clf, given),
    "of a Dataset": lambda clf, given: load_data(Dataset("d", ("a", "b", "c"), {"test": (given,)})),
    "of a train split": lambda clf, given: load_data(
        {"train": [given, example(id="2", label=2)]}, labels=("a", "b", "c")
    ),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("case", EXAMPLES)
def test_examples_are_checked_as_files_are(case: str, reader: str, clf: Classifier) -> None:
    given, sentence = EXAMPLES[case]
    with pytest.raises(InputError, match=sentence):
        READERS[reader](clf, given)


def test_two_examples_of_one_id(clf: Classifier) -> None:
    twice = [Example("1", "good"), Example("1", "bad")]
    assert len(veridical.explain(clf, twice, "random")) == 2  # in their order
    with pytest.raises(InputError, match="Two examples have the id '1'"):
        veridical.evaluate(clf, twice, "random", "sparsity")
    with pytest.raises(InputError, match="Two examples of the test split of d have the id '1'"):
        load_data(Dataset("d", (), {"test": tuple(twice)}))


DATASETS: dict[str, tuple[Any, str]] = {
    "dicts for examples": (Dataset("d", (), {"test": ({"text": "a"},)}), "is no Example"),  # type: ignore[arg-type]
    "texts for examples": (Dataset("d", (), {"test": ("a",)}), "is no Example"),  # type: ignore[arg-type]
    "a list for splits": (Dataset("d", (), [Example("1", "a")]), "must be a Dataset"),  # type: ignore[arg-type]
    "a row with a column twice": (pandas.Series(["a", "b"], index=["text", "text"]), "has two values 'text'"),
    "splits that differ in case": ({"train": [{"text": "a"}], "Train": [{"text": "b"}]}, "two splits that mean train"),
}


@pytest.mark.parametrize("case", DATASETS)
def test_datasets_of_others(case: str) -> None:
    given, sentence = DATASETS[case]
    with pytest.raises(InputError, match=sentence):
        load_data(given)


@pytest.mark.parametrize("given", [[("a film", 0)], []], ids=["one class", "none"])
def test_too_few_classes_are_not_trained_on(given: list[tuple[str, int]], tmp_path: Path) -> None:
    train = [{"text": f"{text} {n}", "label": label} for text, label in given for n in range(20)] or [
        {"text": "a b"}
    ] * 4
    with pytest.raises(InputError, match="so there is nothing to learn"):
        veridical.train({"train": train, "dev": train}, "bilstm", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("budget", [0, -5])
def test_a_budget_of_nothing(budget: int, clf: Classifier) -> None:
    with pytest.raises(InputError, match=f"^budget is {budget}; it must be"):
        veridical.explain(clf, "good", "random", budget=budget)


def test_gold_classes_of_another_kind_are_left_out_with_a_word(clf: Classifier) -> None:
    with pytest.warns(Caution, match="gold labels are left out"):
        veridical.explain(clf, pandas.DataFrame({"text": ["a", "b"], "label": ["x", "y"]}), "random")
