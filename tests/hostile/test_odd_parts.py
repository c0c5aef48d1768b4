"""Parts of a user's own that break, values that say nothing, and files of our own that are not what they were."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch
from typer.testing import CliRunner

import veridical
from hostile.refusals import refusal
from tiny import tiny
from veridical.attribution import method, methods
from veridical.cli.app import app, verb
from veridical.core import plugins
from veridical.core.errors import InputError
from veridical.core.records import Score
from veridical.data import dataset, datasets, load_data
from veridical.grid.status import grids
from veridical.metric import metric, metrics
from veridical.model.classifier import Classifier
from veridical.model.load import load
from veridical.training.train import read_run


@pytest.fixture(scope="module")
def clf() -> Classifier:
    return load(*tiny("bert"))


@pytest.fixture
def own() -> Iterator[None]:
    """What a test registers as `own` is gone after it."""
    yield
    for registry in (methods, metrics, datasets):
        registry._entries.pop("own", None)


# -- what parts return --------------------------------------------------------------------------------------

LOOKERS: dict[str, Callable[[torch.Tensor], Any]] = {
    "nothing": lambda ids: None,
    "a number": lambda ids: 0,
    "a list": lambda ids: ids.tolist(),
    "one row": lambda ids: torch.zeros(ids.shape[1]),
    "a row too many": lambda ids: torch.zeros(len(ids) + 1, ids.shape[1]),
    "one number": lambda ids: torch.zeros(1),
    "a number per dimension": lambda ids: torch.zeros(*ids.shape, 2),
    "complex numbers": lambda ids: torch.zeros(ids.shape, dtype=torch.complex64),
}


@pytest.mark.parametrize("case", LOOKERS)
def test_a_method_that_looks(case: str, clf: Classifier, own: None) -> None:
    @method("own", signed=False)
    def look(clf, batch, target):
        return LOOKERS[case](batch.ids)

    for call in (
        lambda: veridical.explain(clf, ["good film", "bad"], "own"),
        lambda: veridical.attribute(clf.model, torch.tensor([[5, 6, 7]]), method="own"),
    ):
        with pytest.raises(InputError, match=r"^own returned .*; it must return a real number for every token"):
            call()


def test_an_array_will_do(clf: Classifier, own: None) -> None:
    @method("own", signed=False)
    def look(clf, batch, target):
        return batch.ids.numpy().astype(np.float32)

    (found,) = veridical.explain(clf, "good film", "own")
    assert found.scores.any()


@pytest.mark.parametrize("returned", [None, 3, np.zeros(1), np.zeros((9, 9)), "good"], ids=repr)
def test_a_method_that_asks(returned: Any, clf: Classifier, own: None) -> None:
    @method("own", needs=("questions",), signed=False)
    def ask(ex):
        yield []
        return returned

    with pytest.raises(InputError, match=r"^own returned"):
        veridical.explain(clf, "good film", "own")


@pytest.mark.parametrize(
    "returned", [None, 0.5, Score(float("nan")), Score(float("inf")), Score("x"), (1, 2)], ids=repr
)
@pytest.mark.parametrize("asks", [False, True])
def test_a_metric(returned: Any, asks: bool, clf: Classifier, own: None) -> None:
    needs = ("questions",) if asks else ()

    def measured(ex):
        return returned

    def asking(ex):
        yield []
        return returned

    metric("own", kind="faithfulness", better="higher", bounds=(-1, 1), needs=needs)(asking if asks else measured)
    with pytest.raises(InputError, match=r"^own returned .*; it must be a Score of a finite number, or of None"):
        veridical.evaluate(clf, "good film", "random", "own")


@pytest.mark.parametrize("returned", [None, ["a"], {"test": []}, 3], ids=repr)
def test_a_dataset(returned: Any, own: None) -> None:
    dataset("own", about="mine")(lambda: returned)
    with pytest.raises(InputError, match=r"^What the dataset 'own' returns is .*; it must be a Dataset"):
        load_data("own")


MODULES: dict[str, tuple[bytes, str]] = {
    "that ends": (b"import sys; sys.exit(0)", "line 1 of .* fails (SystemExit: 0)"),
    "that ends with words": (b"raise SystemExit('bye')", "fails (SystemExit: bye)"),
    "with a null byte": (b"x = 1\0", "it is not Python (SyntaxError"),
    "of Latin-1": (b"x = '\xe9'", "is not Python"),
    "that calls itself": (b"def f(): f()\nf()", "fails (RecursionError"),
}


@pytest.mark.parametrize("case", MODULES)
def test_a_module(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(plugins.WITH, "")
    content, sentence = MODULES[case]
    place = tmp_path / f"of_mine_{case.replace(' ', '_').replace('-', '')}.py"
    place.write_bytes(content)
    said = refusal(["--with", str(place), "list"])
    assert sentence.rpartition(".* ")[2] in said
    assert said.endswith("mend it, or leave it out.")


def test_a_module_of_half_a_character() -> None:
    with pytest.raises(InputError, match="The name of the module holds half a character"):
        veridical.use("\ud83d.py")


@pytest.mark.parametrize("given", ["", " ", ",", " , "])
def test_a_module_of_no_name(given: str) -> None:
    assert "names no module with parts" in refusal(["--with", given, "list"])


# -- values that say nothing, or two things ------------------------------------------------------------------

AUDITED = ("audit", "no-such-model", "--data", "planted:size=40", "--out", "out")
SAID: dict[str, tuple[list[str], str, str]] = {
    "seeds of a comma": (["train", "--seed", ","], "", "--seed names no seed; write 3"),
    "seeds of a plus": (["train", "--seed", "+"], "", "--seed names no seed; write 3"),
    "methods of a search": (["train", "--search-method", ","], "", "is named; name one, or leave it out"),
    "--method of commas": (
        ["explain", "no-such-model", "--text", "a", "--method", ",,"],
        "",
        "is named; name one, or leave it out",
    ),
    "--metric of nothing": (
        ["evaluate", "x", "--data", "planted", "--metric", ""],
        "",
        "is named; name one, or leave it out",
    ),
    "--ood of nothing": (
        ["audit", "x", "--data", "planted", "--out", "o", "--ood", ""],
        "",
        "is named; name one, or leave it out",
    ),
    "no method in a file": (
        ["explain", "x", "--text", "a"],
        "method = []",
        "method in c.toml is empty, so no method is named",
    ),
    "a number for a method": (["explain", "x", "--text", "a"], "method = 3", "There is no attribution method '3'"),
    "a table in a list": (["explain", "x", "--text", "a"], "method = [{a = 1}]", "it must be a text"),
    "a list in a list": (["explain", "x", "--text", "a"], 'method = [["random"]]', "it must be a text"),
    "a date in a list": (["train"], "seed = [1979-05-27]", "it must be a text"),
    "one option under two names": (
        ["train", "--data", "x"],
        "seed = [0]\nseeds = [1]",
        "is there twice, under two names",
    ),
    "a device of that name": (["explain", "x", "--text", "a", "--device", "none"], "", "The device is 'none'"),
    "quick and thorough": ([*AUDITED, "--quick", "--thorough"], "", "is quick or thorough, but both"),
    "thorough, on few texts": ([*AUDITED, "--thorough", "--limit", "50"], "", "at which thorough changes nothing"),
    "a fixed number of texts in a time": ([*AUDITED, "--fixed", "9", "--time", "1m"], "", "has no time"),
    "a time of 5,000 digits": ([*AUDITED, "--time", "9" * 5000], "", "write a number with s, m or h"),
    "two budgets": ([*AUDITED, "--quick", "--passes", "9"], "", "has one budget"),
    "a shard of 5,000 digits": ([*AUDITED, "--shard", f"1/{'9' * 5000}"], "", "is not one of 1/n, 2/n"),
    "a shard of parts that nobody has": ([*AUDITED, "--shard", "1/9999999"], "", "is not one of 1/n, 2/n"),
    "an objective for what is trained": (
        ["fresh", "--support", "no-such-model", "--objective", "saloss:weight=1", "--out", "out"],
        "",
        "are trained already, so --objective would count for nothing",
    ),
    "no place for a run": (["train", "--out", ""], "", "'' names no place"),
    "no place for an audit": (["audit", "x", "--data", "planted", "--out", " "], "", "names no place"),
    "no place for a page": (["explain", "x", "--text", "a", "--html", ""], "", "names no place"),
    "no name of a model": (["explain", "", "--text", "a"], "", "The name of the model is ''; name a folder"),
    "an objective of nothing": (["train", "--objective", ""], "", "so no term is named"),
    "an objective of commas": (["train", "--objective", " , "], "", "so no term is named"),
    "a seed of the data below 0": (["train", "--set", "train.data_seed=-1"], "", "data_seed is -1; it must be from 0"),
    "a billion threads": (["train", "--set", "train.threads=1e9"], "", "threads is 1e+09; it must be from 1 to 1,024"),
    "endless training": (["train", "--set", "train.epochs=1e12"], "", "epochs is 1e+12; it must be from 1 to 1,000"),
    "a billion seeds": (["fresh", "--seeds", "1e9", "--out", "out"], "", "is not a seed or a range of at most 1,000"),
    "a page and the scores": (
        ["explain", "x", "--text", "a", "--html", "a.jsonl", "--out", "./a.jsonl"],
        "",
        "one would be written over the other",
    ),
}


@pytest.mark.parametrize("case", SAID)
def test_what_is_said(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words, content, sentence = SAID[case]
    words = [*words, "--data", "planted:size=40"] if words[0] in ("train", "fresh") and "--data" not in words else words
    monkeypatch.chdir(tmp_path)
    Path("c.toml").write_text(content)
    assert sentence in refusal([*words, *(["--config", "c.toml"] if content else [])])
    assert [path.name for path in tmp_path.iterdir()] == ["c.toml"]


def test_none_is_a_word_where_nothing_is_the_default() -> None:
    arguments = verb("robustness").parse(["a", "b", "--data", "planted", "--untrained", "none"])
    assert arguments["options"].untrained == "none"
    assert verb("explain").parse(["x", "--text", "a", "--context", "none"])["context"] == "none"


PLACES: dict[str, tuple[list[str], str, str]] = {
    "a model's file": (["explain", "x", "--text", "a", "--html"], "config.json", "is there and is no page"),
    "a text": (["explain", "x", "--text", "a", "--html"], "thesis.txt", "is there and is no page"),
    "a file of the data": (["explain", "x", "--data", ".", "--out"], "test.jsonl", "over a file of ., which is read"),
    "attacked data": (["attack", "x", "--data", ".", "--out"], "train.jsonl", "over a file of ., which is read"),
}


@pytest.mark.parametrize("case", PLACES)
def test_what_is_there_is_not_written_over(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words, name, sentence = PLACES[case]
    monkeypatch.chdir(tmp_path)
    Path(name).write_text('{"text": "a", "label": 0}\n')
    assert sentence in refusal([*words, name])
    assert Path(name).read_text() == '{"text": "a", "label": 0}\n'


# -- files of our own ---------------------------------------------------------------------------------------

AUDIT = Path(__file__).parent.parent / "audits" / "audit_of_0.2"
CHANGED: dict[str, str] = {"a list": "[]", "nothing": "null", "a text": '"x"', "no field": "{}", "a number": "3"}


@pytest.fixture
def audit(tmp_path: Path) -> Path:
    folder = Path(shutil.copytree(AUDIT, tmp_path / "audit"))
    texts = dict.fromkeys(("corpus", "metric", "method", "control", "example"), pyarrow.array([], pyarrow.string()))
    values = {"value": pyarrow.array([], pyarrow.float64())}
    pyarrow.parquet.write_table(pyarrow.table({**texts, **values}), folder / "scores.parquet")
    return folder


def spec_of(folder: Path, content: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "spec.json").write_text(content)
    return folder


@pytest.mark.parametrize("case", CHANGED)
def test_specs_that_were_changed(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = spec_of(tmp_path / "x", CHANGED[case])
    said = refusal(["guidance", "--base", "x", "--guided", "a=x", "--data", "planted:size=40", "--out", "out"])
    assert "x/spec.json" in said
    done = CliRunner().invoke(app, ["status", str(folder)], prog_name="veridical")
    assert (done.exit_code, done.stderr) == (0, "")
    (folder / "scores.json").write_text(CHANGED[case])
    (folder / "spec.json").write_text('{"seed": 0}')
    with pytest.raises(InputError, match=r"scores.json (is not what Veridical wrote|has no 'scores')"):
        read_run(folder)
    (folder / "grid.json").write_text(CHANGED[case])
    with pytest.raises(InputError, match=r"grid.json (is not what Veridical wrote|has no 'cells')"):
        grids(folder)


@pytest.mark.parametrize("case", CHANGED)
def test_an_audit_whose_spec_was_changed(case: str, audit: Path) -> None:
    spec_of(audit, CHANGED[case])
    assert "audit/spec.json" in refusal(["compare", str(audit)])


SUMMARIES: dict[str, tuple[str, str]] = {
    "no corpus": ("corpora", "is not what Veridical wrote"),
    "no method": ("methods", "and does not say what these are"),
}


@pytest.mark.parametrize("case", SUMMARIES)
@pytest.mark.parametrize("verb", ["report", "compare"])
def test_a_summary_of_which_a_part_was_taken(case: str, verb: str, audit: Path) -> None:
    field, sentence = SUMMARIES[case]
    held = json.loads((audit / "summary.json").read_text())
    (audit / "summary.json").write_text(json.dumps({**held, field: []}))
    assert sentence in refusal([verb, str(audit)])


def test_scores_of_something_else(audit: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), audit / "scores.parquet")
    said = refusal(["compare", str(audit)])
    assert "scores.parquet cannot be read as Parquet (No match for FieldRef.Name(corpus)" in said
    assert "\\n" not in said
