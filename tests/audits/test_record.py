"""What an audit stores: read as it was written, also by those before us."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_audit import fake
from typer.testing import CliRunner

from veridical.audits.record import EXAMPLES, SUMMARY, read_examples, read_summary
from veridical.cli import app as cli
from veridical.core import store, stored
from veridical.core.errors import InputError

OLD = Path(__file__).parent / "audit_of_0.1"  # of two methods and two metrics on planted data, written by 0.1
SCHEMA_2 = Path(__file__).parent / "audit_of_0.2"  # of four methods, written by 0.2; the first two of its texts


def test_what_is_written_is_read(tmp_path):
    summary, examples = fake(truth=True)
    stored.write(tmp_path / SUMMARY, summary)
    stored.write(tmp_path / EXAMPLES, examples)
    assert read_summary(tmp_path) == summary
    assert read_examples(tmp_path) == examples
    assert store.read_json(tmp_path / SUMMARY)["schema"] == 3
    assert store.read_json(tmp_path / EXAMPLES)["schema"] == 2


def kept(record: object, plain: dict[str, Any]) -> bool:
    """Whether a record says what was stored, and of what came later nothing."""
    said = store.plain(record)
    return all(said[name] == value for name, value in plain.items())


@pytest.mark.parametrize("folder", [OLD, SCHEMA_2])
def test_an_audit_of_before_is_read_to_the_last_figure(folder):
    plain, summary = store.read_json(folder / SUMMARY), read_summary(folder)
    plain.pop("schema", None)
    assert summary.truth
    for name in {*plain} - {"ranking", "verdicts"}:
        rows = plain[name]
        if isinstance(rows, list) and rows and isinstance(rows[0], dict):
            assert all(map(kept, getattr(summary, name), rows)), name
            assert len(getattr(summary, name)) == len(rows)
        elif isinstance(rows, dict):
            assert kept(getattr(summary, name), rows), name
        else:
            assert store.plain(getattr(summary, name)) == rows, name
    assert summary.looks == summary.net_curves == summary.stability == summary.spending == ()
    assert summary.settings.looks == ()


def test_the_texts_of_an_audit_of_before_are_read():
    assert store.plain(read_examples(OLD).texts) == store.read_json(OLD / EXAMPLES)
    assert store.plain(read_examples(SCHEMA_2).texts) == store.read_json(SCHEMA_2 / EXAMPLES)["texts"]


def test_mean_ranks_of_before_become_places_and_lists():
    plain, summary = store.read_json(SCHEMA_2 / SUMMARY), read_summary(SCHEMA_2)
    verdict = summary.verdicts[0]
    assert verdict.sentence == plain["verdicts"][0]["sentence"]
    assert verdict.believe == ("occlusion",)
    assert verdict.panel == ("sufficiency", "comprehensiveness")
    assert all(metric.votes for metric in summary.metrics if metric.name in verdict.panel)
    assert [(s.method, s.place, s.n) for s in summary.ranking] == [
        (row["method"], row["place"], row["n"]) for row in plain["ranking"]
    ]
    assert [s.list for s in summary.ranking] == ["believe", None, None, None]
    assert [s.better_than_chance for s in summary.ranking] == [True, True, True, False]
    assert all(s.net_chance is None and s.net_first is None and s.passes is None for s in summary.ranking)


def test_the_four_lists_of_before_are_lists_of_now(tmp_path):
    plain = store.read_json(SCHEMA_2 / SUMMARY)
    plain["verdicts"][0] |= {"tied": ["gradient"], "undecided": ["attention"], "avoid": ["random"]}
    store.write_json(tmp_path / SUMMARY, plain)
    summary = read_summary(tmp_path)
    verdict = summary.verdicts[0]
    assert (verdict.open, verdict.behind) == (("gradient", "attention"), ("random",))
    assert verdict.as_good == verdict.chance == ()
    assert [s.list for s in summary.ranking] == ["believe", "open", "open", "behind"]


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


@pytest.mark.parametrize("folder", [OLD, SCHEMA_2])
def test_an_audit_of_before_gets_its_page_and_its_place_in_a_comparison(tmp_path, folder):
    for name in (SUMMARY, EXAMPLES):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    done = CliRunner().invoke(cli.app, ["report", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert read_summary(folder).verdicts[0].sentence in (tmp_path / "report.html").read_text()
    columns = {name: ["x"] for name in ("corpus", "metric", "method", "control", "example")}
    store.write_parquet(tmp_path / "scores.parquet", {**columns, "value": [1.0]})
    done = CliRunner().invoke(cli.app, ["compare", str(tmp_path), "--format", "csv"])
    assert done.exit_code == 0, done.output
    assert "macro_f1" in done.stdout


def test_what_cannot_be_read_is_refused_in_a_sentence(tmp_path):
    plain = store.read_json(OLD / SUMMARY)
    for changed, sentence in (
        ({"schema": 4}, "has schema 4, and this version of Veridical knows 3"),
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
