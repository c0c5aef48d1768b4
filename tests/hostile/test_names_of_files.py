"""Names that a shell would have read otherwise: `~` in quotes, in files and in Python, and commas in a list."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

import veridical
from hostile.refusals import refusal
from tiny import tiny
from veridical.cli.app import app, verb
from veridical.core.errors import InputError
from veridical.core.place import at_home
from veridical.core.plugins import use
from veridical.core.spec import listed
from veridical.data import load_data
from veridical.grid.status import status
from veridical.model.load import load

ROWS = "".join(
    f'{{"text": "{text}", "label": {label}}}\n' for text, label in (("good film", 1), ("bad", 0), ("so so", 2))
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a model, data, texts and settings in it; the working directory is another, empty one."""
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)
    model, tokenizer = tiny("bert")
    model.save_pretrained(home / "model")
    tokenizer.save_pretrained(home / "model")
    (home / "d.jsonl").write_text(ROWS)
    (home / "t.txt").write_text("a good film\n")
    (home / "c.toml").write_text('method = "random"\nout = "~/by-file.jsonl"\n')
    return home


def done(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), prog_name="veridical")
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_quoted_home_on_the_command_line(home: Path) -> None:
    explain = ("explain", "~/model", "--method", "random")
    done(*explain, "--text", "good", "--out=~/a.jsonl", "--html", "~/a.html")
    done(*explain, "--file", "~/t.txt", "--out", "~/b.parquet")
    done(*explain, "--data", "~/d.jsonl", "--config", "~/c.toml")
    done(*explain, "--data", "~/d.jsonl", "--out", "~/mine.jsonl")
    mine = (home / "mine.jsonl").read_text().replace('"random"', '"mine"')
    (home / "mine.jsonl").write_text(mine)
    scored = ("--data", "~/d.jsonl", "--metric", "sparsity", "--explanations", "~/mine.jsonl", "--out", "~/scores")
    assert "mine" in done("evaluate", "~/model", "--method", "attention", *scored)
    done("status", "~")
    made = {"a.jsonl", "a.html", "b.parquet", "by-file.jsonl", "scores"}
    assert made <= {path.name for path in home.iterdir()}
    assert not os.listdir(".")
    assert "is read" in refusal([*explain, "--data", "~/d.jsonl", "--out", "~/d.jsonl"])


def test_home_in_python(home: Path) -> None:
    clf = load("~/model")
    clf.save("~/saved")
    found = veridical.explain(clf, load_data("~/d.jsonl").splits["test"], "random")
    veridical.write_explanations("~/x.jsonl", found)
    assert len(veridical.read_explanations(Path("~/x.jsonl"))) == 3
    veridical.audit(
        clf, Path("~/d.jsonl"), out="~/audit", methods="random,attention", metrics="sparsity", progress=False
    )
    assert {"saved", "x.jsonl", "audit"} <= {path.name for path in home.iterdir()}
    assert len(load_data("files:path=~/d.jsonl").splits["test"]) == 3
    assert status("~") == []
    assert not os.listdir(".")


def test_what_is_called_so_stays_what_it_is(home: Path) -> None:
    Path("~").mkdir()
    Path("~d.jsonl").write_text(ROWS)
    assert at_home("~") == "~"
    assert len(load_data("~d.jsonl").splits["test"]) == 3
    assert verb("explain").parse(["m", "--text", "~ is a tilde"])["text"] == ("~ is a tilde",)


@pytest.mark.parametrize("name", ["~nobody-here/x", "~nobody-here", "~\0"])
def test_no_such_home(name: str) -> None:
    for place in (name, Path(name)):
        with pytest.raises(InputError, match=r"begins with ~, and there is no such home; write \./~"):
            at_home(place)
    for words in (["train", "--data", "planted:size=40", "--out", name], ["explain", name, "--text", "a"]):
        assert "there is no such home" in refusal(words)


def test_a_comma_in_a_name(home: Path) -> None:
    Path("a,b.jsonl").write_text(ROWS.replace("good", "great"))
    assert listed(["a,b.jsonl", "c,d"]) == ["a,b.jsonl", "c", "d"]
    assert listed("a,b.jsonl:text=review") == ["a,b.jsonl:text=review"]
    words = ("--method", "random,attention", "--metric", "sparsity", "--out", "out")
    done("audit", "~/model", "--data", "~/d.jsonl", "--ood", "a,b.jsonl", *words)
    assert len(list(Path("out", "corpora").iterdir())) == 2
    Path("my,parts.py").write_text("")
    with pytest.raises(InputError, match="has a comma in its path, at which a list of modules is cut; rename it"):
        use("my,parts.py")
