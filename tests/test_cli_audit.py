"""The verbs that measure, as a user types them: which random explanations, and several audits side by side."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from toy import small_model, toy
from veridical import store
from veridical.cli import app


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
    for given, expected in (([], {"", "permutation"}), (["--control", "gaussian,permutation"], None)):
        out = folder / f"one-{len(given)}"
        result = CliRunner().invoke(app, ["audit", str(folder / "one"), *same, *given, "--out", str(out)])
        assert result.exit_code == 0, result.output
        assert controls(out) == (expected or {"", "permutation", "gaussian"})
    result = CliRunner().invoke(app, ["audit", "one", *same, "--control", "uniform", "--out", "nowhere"])
    assert result.exit_code == 2
    assert result.stderr.strip() == "--control is 'uniform'; it must be permutation, gaussian, or both with a comma."


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
