"""The verbs that measure, as a user types them: which random explanations, and several audits side by side."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from toy import small_model, toy
from veridical.audits.compare import compare
from veridical.audits.evaluate import Evaluation
from veridical.cli import evaluate as cli_evaluate
from veridical.cli.app import app
from veridical.core import store
from veridical.core.records import Cell, Score


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with two models, and the arguments that audit one of them."""
    folder = tmp_path_factory.mktemp("place")
    for name in ("one", "two"):
        small_model(folder / name, initializer_range=0.3 if name == "one" else 0.5)
    (folder / "data").mkdir()
    rows = [json.dumps({"id": e.id, "text": e.text, "label": e.label}) for e in toy().splits["test"]]
    (folder / "data" / "test.jsonl").write_text("\n".join(rows))
    same = ["--data", str(folder / "data"), "--limit", "6", "--method", "attention,gradient", "--metric", "sufficiency"]
    return folder, same


def controls(folder) -> set[str]:
    return set(store.read_parquet(folder / "scores.parquet").column("control").to_pylist())


def test_the_random_explanations_can_be_chosen(place):
    folder, same = place
    for given, expected in (([], {""}), (["--control", "gaussian,permutation"], None)):
        out = folder / f"one-{len(given)}"
        result = CliRunner().invoke(app, ["audit", str(folder / "one"), *same, *given, "--out", str(out)])
        assert result.exit_code == 0, result.output
        assert controls(out) == (expected or {"", "permutation", "gaussian"})
    result = CliRunner().invoke(app, ["audit", "one", *same, "--control", "uniform", "--out", "nowhere"])
    assert result.exit_code == 2
    assert result.stderr.strip() == "--control is 'uniform'; allowed: orders, permutation, gaussian."


def test_two_audits_side_by_side(place):
    folder, same = place
    for name in ("one", "two"):
        out = ["--out", str(folder / f"audit-{name}")]
        assert CliRunner().invoke(app, ["audit", str(folder / name), *same, *out]).exit_code == 0
    audits = [str(folder / "audit-one"), str(folder / "audit-two")]
    for style, expected in (
        ("text", "data: how alike models explain: "),
        ("csv", "tau between models"),
        ("latex", "how alike models explain the same texts"),
    ):
        result = CliRunner().invoke(app, ["compare", *audits, "--format", style])
        assert result.exit_code == 0, result.output
        assert expected in result.stdout


def test_texts_with_a_small_divisor_are_counted():
    scores = [Score(0.5, room=0.02), Score(0.5, room=0.4), Score(None, room=0.0), Score(0.5)]
    cells = tuple(Cell("c", str(i), "m", "soft", score) for i, score in enumerate(scores))
    assert cli_evaluate._figure(Evaluation(cells, {}), "soft", "m") == "0.500 (1 undefined, 1 with a small D)"


def test_what_is_undefined_is_counted_and_pairs_have_rows(place):
    folder, same = place
    asked = [
        "evaluate",
        str(folder / "one"),
        *same[:-1],
        "agreement,auc,decision_flip",
        "--out",
        str(folder / "scored"),
    ]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    assert "attention ~ gradient" in result.stdout
    assert "decision_flip" in result.stdout
    none = CliRunner().invoke(app, [*asked[:2], *same[:4], "--method", ",", "--out", str(folder / "none")])
    assert (none.exit_code, none.stdout) == (2, "")
    assert "no method" in none.stderr


def test_explanations_of_a_whole_split_serve_a_sample_of_it(place):
    folder, same = place
    rows = [
        json.dumps({"id": e.id, "text": e.text, "method": "theirs", "scores": [1.0] * len(e.text.split())})
        for e in toy().splits["test"]
    ]
    (folder / "theirs.jsonl").write_text("\n".join(rows))
    asked = ["evaluate", str(folder / "one"), *same, "--explanations", str(folder / "theirs.jsonl"), "--out"]
    result = CliRunner().invoke(app, [*asked, str(folder / "sampled")])
    assert result.exit_code == 0, result.output
    assert f"{len(rows) - 6} explanations of texts that were not drawn are left out" in result.stderr
    assert "theirs" in result.stdout
    (folder / "theirs.jsonl").write_text(rows[0].replace(toy().splits["test"][0].id, "nobody"))
    result = CliRunner().invoke(app, [*asked, str(folder / "strange")])
    assert result.exit_code == 2
    assert "no example with id 'nobody'" in result.stderr


def test_gaussian_draws_are_not_called_shuffled(place):
    folder, same = place
    out = folder / "gaussian"
    asked = ["audit", str(folder / "one"), *same, "--control", "gaussian", "--out", str(out)]
    assert CliRunner().invoke(app, asked).exit_code == 0
    page = (out / "report.html").read_text()
    assert "gaussian" in page
    assert controls(out) == {"", "gaussian"}


def test_other_texts_under_the_same_ids_are_not_paired(place, tmp_path):
    folder, same = place
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        texts = [f"{e.text} {name}" for e in toy().splits["test"]]
        rows = [
            json.dumps({"text": text, "label": e.label}) for text, e in zip(texts, toy().splits["test"], strict=True)
        ]
        (tmp_path / name / "test.jsonl").write_text("\n".join(rows))
        asked = ["--data", str(tmp_path / name / "test.jsonl"), *same[2:], "--out", str(tmp_path / f"audit-{name}")]
        assert (
            CliRunner().invoke(app, ["audit", str(folder / ("one" if name == "a" else "two")), *asked]).exit_code == 0
        )
    found = compare([tmp_path / "audit-a", tmp_path / "audit-b"])
    assert any("different texts" in note for note in found.notes)
    assert all(test.p_paired is None for test in found.tests)


@pytest.mark.parametrize("verb", ["audit", "evaluate"])
@pytest.mark.parametrize(
    "wrong", [("--method", "attnetion"), ("--metric", "comprehensivness"), ("--method", "lime:n=3")]
)
def test_misspelt_names_are_found_before_the_model_is_looked_for(verb, wrong, tmp_path):
    words = [
        verb,
        str(tmp_path / "no-model"),
        "--data",
        "planted:size=30",
        "--out",
        str(tmp_path / "out"),
        *wrong,
    ]
    ended = CliRunner().invoke(app, words)
    assert ended.exit_code == 2
    assert wrong[1].partition(":")[0] in ended.output
    assert "no-model" not in ended.output
    assert not (tmp_path / "out").exists()


def test_evaluate_says_interval_and_number_of_texts_and_needs_no_labels(place, tmp_path):
    folder, _ = place
    rows = [json.dumps({"text": example.text}) for example in toy().splits["test"][:6]]
    (tmp_path / "texts.jsonl").write_text("\n".join(rows))
    asked = ["evaluate", str(folder / "one"), "--data", str(tmp_path / "texts.jsonl"), "--method", "attention"]
    result = CliRunner().invoke(app, [*asked, "--metric", "sparsity,auc"])
    assert result.exit_code == 0, result.output
    header, line = result.stdout.splitlines()
    assert header.split("  ")[0] == "metric"
    assert header.endswith(" n")
    assert " to " in line
    assert line.endswith(" 6")
    assert "auc cannot be computed" in result.stderr
    result = CliRunner().invoke(app, ["evaluate", str(tmp_path), *asked[2:], "--metric", "auc"])  # it is no model
    assert (result.exit_code, result.stdout) == (2, "")
    assert "none of the 6 texts has one" in result.stderr


def test_what_undefined_and_a_small_divisor_mean_is_said_once():
    scores = [Score(0.5, room=0.02), Score(None, room=0.0), Score(0.5)]
    cells = tuple(Cell("c", str(i), "m", "soft", score) for i, score in enumerate(scores))
    table = cli_evaluate._table(Evaluation(cells, {})).splitlines()
    assert [line.partition(":")[0] for line in table[2:]] == ["undefined", "small D"]
