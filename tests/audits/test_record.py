"""What an audit stores: read as it was written, also by those before us."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_audit import fake
from typer.testing import CliRunner

from veridical.audits.record import EXAMPLES, SUMMARY, read_examples, read_summary
from veridical.cli import app as cli
from veridical.core import store, stored
from veridical.core.errors import InputError

OLD = Path(__file__).parent / "audit_of_0.1"  # of two methods and two metrics on planted data, written by 0.1


def test_what_is_written_is_read(tmp_path):
    summary, examples = fake(truth=True)
    stored.write(tmp_path / SUMMARY, summary)
    stored.write(tmp_path / EXAMPLES, examples)
    assert read_summary(tmp_path) == summary
    assert read_examples(tmp_path) == examples
    assert store.read_json(tmp_path / SUMMARY)["schema"] == store.read_json(tmp_path / EXAMPLES)["schema"] == 2


def test_an_audit_of_before_is_read_to_the_last_figure():
    plain, summary = store.read_json(OLD / SUMMARY), read_summary(OLD)
    assert "schema" not in plain
    for name in {*plain} - {"cells", "metric_tests"}:
        assert store.plain(getattr(summary, name)) == plain[name], name
    assert store.plain(summary.cells) == [{**cell, "small": None} for cell in plain["cells"]]
    assert plain["metric_tests"] == [] == list(summary.metric_tests)  # one metric is held against none
    assert summary.truth
    assert summary.verdicts[0].weights == {"sufficiency": 0.0}
    assert store.plain(read_examples(OLD).texts) == store.read_json(OLD / EXAMPLES)


def test_what_the_first_audits_did_not_say_is_filled_in(tmp_path):
    plain = store.read_json(OLD / SUMMARY)
    plain["truth"] = None
    del plain["corpora"][0]["hash"]
    test = {"corpus": "c", "a": "x", "b": "y", "difference": 0.1, "p": 1.0, "p_holm": 1.0, "p_rank_sum": 1.0}
    plain["metric_tests"] = [{**test, "effect": 0.5, "n": 3}]
    store.write_json(tmp_path / SUMMARY, plain)
    summary = read_summary(tmp_path)
    assert summary.truth == ()
    assert summary.corpora[0].hash is None
    assert summary.metric_tests[0].method == ""


def test_an_audit_of_before_gets_its_page_and_its_place_in_a_comparison(tmp_path):
    for name in (SUMMARY, EXAMPLES):
        (tmp_path / name).write_bytes((OLD / name).read_bytes())
    done = CliRunner().invoke(cli.app, ["report", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert read_summary(OLD).verdicts[0].sentence in (tmp_path / "report.html").read_text()
    columns = {name: ["x"] for name in ("corpus", "metric", "method", "control", "example")}
    store.write_parquet(tmp_path / "scores.parquet", {**columns, "value": [1.0]})
    done = CliRunner().invoke(cli.app, ["compare", str(tmp_path), "--format", "csv"])
    assert done.exit_code == 0, done.output
    assert "macro_f1" in done.stdout


def test_what_cannot_be_read_is_refused_in_a_sentence(tmp_path):
    plain = store.read_json(OLD / SUMMARY)
    for changed, sentence in (
        ({"schema": 3}, "has schema 3, and this version of Veridical knows 2"),
        ({"cells": [{"corpus": "x"}]}, r"missing required field .*\$.cells\[0\]"),
        ({"verdicts": None}, "not what Veridical wrote"),
    ):
        store.write_json(tmp_path / SUMMARY, {**plain, **changed})
        with pytest.raises(InputError, match=sentence):
            read_summary(tmp_path)
    store.write_json(tmp_path / EXAMPLES, [{"corpus": "x"}])
    with pytest.raises(InputError, match=r"examples.json is not what Veridical wrote"):
        read_examples(tmp_path)


def test_a_summary_can_still_be_asked_like_a_mapping():
    summary = read_summary(OLD)
    with pytest.warns(FutureWarning, match=r"write summary.verdicts; summary\['verdicts'\] goes with version 0.3"):
        verdicts = summary["verdicts"]
    assert verdicts[0]["sentence"] == summary.verdicts[0].sentence
    with pytest.warns(FutureWarning):
        assert dict(summary) == store.plain(summary)
    assert "truth" in summary
    assert "verdict" not in summary
    with pytest.raises(KeyError):
        summary["verdict"]
