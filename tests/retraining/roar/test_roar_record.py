"""What a benchmark stores: read as it was written, also by those before us."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest
from made_up import made_up

from veridical.core import store
from veridical.core.errors import InputError
from veridical.retraining.roar.page import audit_section
from veridical.retraining.roar.record import (
    SUMMARY,
    TIME,
    RoarSummary,
    read_copy,
    read_summary,
    read_time,
    write_copy,
)
from veridical.retraining.roar.summary import write_summary

OLD = Path(__file__).parent / "roar_of_0.1"  # one seed of two measures on planted data, written by 0.1


def test_what_is_written_is_read(tmp_path):
    summary = write_summary(tmp_path, made_up(tmp_path, seeds=2, until=60))
    assert read_summary(tmp_path) == summary
    assert store.read_json(tmp_path / SUMMARY)["schema"] == store.read_json(tmp_path / TIME)["schema"] == 1
    rows = read_time(tmp_path).rows
    assert [row.measure for row in rows][:2] == ["the two ends", "random"]


def test_a_benchmark_of_before_is_read_to_the_last_figure():
    for name, record in ((SUMMARY, read_summary(OLD)), (TIME, read_time(OLD))):
        plain = store.read_json(OLD / name)
        assert "schema" not in plain
        assert json.dumps(store.plain(record)) == json.dumps(plain)


def test_a_copy_for_an_audit_is_the_same_and_of_nothing_that_cannot_be_read(tmp_path):
    copy, broken = tmp_path / "roar.json", tmp_path / "broken"
    write_copy(copy, OLD)
    assert read_copy(copy) == (read_summary(OLD), read_time(OLD))
    assert read_summary(OLD).answer in audit_section(*read_copy(copy))
    before = copy.read_bytes()
    store.write_json(broken / SUMMARY, store.read_json(OLD / SUMMARY))
    store.write_json(broken / TIME, {"rows": 3})
    with pytest.raises(InputError, match=r"time\.json is not what Veridical wrote"):
        write_copy(copy, broken)
    assert copy.read_bytes() == before


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"schema": 2}, "has schema 2, and this version of Veridical knows 1"),
        ({"areas": [{"measure": "attention"}]}, r"missing required field .*\$.areas\[0\]"),
        ({"trainings": None}, "not what Veridical wrote"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_sentence(tmp_path, changed, sentence):
    store.write_json(tmp_path / SUMMARY, {**store.read_json(OLD / SUMMARY), **changed})
    with pytest.raises(InputError, match=sentence):
        read_summary(tmp_path)


def test_a_summary_can_still_be_asked_like_a_mapping():
    summary, plain = read_summary(OLD), store.read_json(OLD / SUMMARY)
    with pytest.warns(FutureWarning, match=r"write summary.areas; summary\['areas'\] goes with version 0.3"):
        assert summary["areas"][0]["measure"] == summary.areas[0].measure
    for field in fields(RoarSummary):
        with pytest.warns(FutureWarning):
            assert summary[field.name] == plain[field.name]
    with pytest.raises(KeyError):
        summary["area"]
