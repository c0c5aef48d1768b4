"""What an auditor asks of the page: who was measured by whom, is the model any good, and is every word true."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from fake_audit import METRICS, SCRIPT, fake
from page_reader import Reader
from test_audit_page_branches import planted

from veridical.audits.page import audit_page
from veridical.audits.page_provenance import page_foot
from veridical.audits.record import ModelFacts, read_examples, read_summary
from veridical.core import provenance, store
from veridical.page.words import prose


@pytest.fixture(scope="module")
def generated() -> str:
    return audit_page(*planted())


def test_fingerprints_the_command_and_versions_stand_on_the_page(generated):
    settings = generated[generated.index('id="settings"') : generated.index('id="numbers"')]
    for known in ("a" * 64, "b" * 16, f"{'c' * 64}  model.safetensors", "d" * 64, "eeeeeeee  parts"):
        assert known in settings
    for known in ("veridical audit x", "2.13.0", "<dt>seed</dt><dd>0</dd>", "2026-01-31"):
        assert known in settings
    head = generated[: generated.index("<main>")]
    assert all(f"<code>{letter * 12}</code>" in head for letter in "abd")
    assert 'content: "Veridical audit, model bbbbbbbbbbbb, data aaaaaaaaaaaa, code dddddddddddd"' in head


@pytest.mark.parametrize("version", ["0.1", "0.2"])
def test_an_audit_from_before_says_what_was_not_kept(version):
    folder = Path(__file__).parent / f"audit_of_{version}"
    page = audit_page(read_summary(folder), read_examples(folder))
    assert page.count("not kept: the audit is from before it was") >= 3


def test_the_foot_of_a_page_ends_no_style_sheet():
    summary, _ = planted()
    hostile = replace(summary, model=ModelFacts("x", "bert", ("a",), "single", f'"}} </style>{SCRIPT}'))
    assert re.fullmatch("[0-9A-Za-z ,]+", page_foot(hostile))


def test_a_model_no_better_than_guessing_is_said_to_be(generated):
    assert "not shown to be better than guessing" in generated
    assert "is right on 52%: not shown to know more." in generated
    assert "better than guessing" not in audit_page(*fake())


def test_the_legend_is_true_of_methods_without_a_sign(generated):
    assert "speaks for" not in generated  # gradient and attention have no sign
    assert "does not say for or against" in generated
    signed = audit_page(*fake(("lime", "occlusion"), METRICS[:2], ()))
    assert "speaks for" in signed
    assert "does not say for or against" not in signed


def test_nobody_marked_generated_data(generated):
    assert "by people" not in generated
    assert "Likeness to people" not in generated
    assert "marked by the rule that the data was made by" in generated
    assert "Likeness to people" in audit_page(*fake())


@pytest.mark.parametrize(
    ("methods", "metrics", "reason"),
    [
        (("lime", "occlusion"), METRICS[:2], "no metric of it was asked for (agreement, jaccard)"),
        (("lime",), (*METRICS[:2], ("agreement", "agreement", "higher", (-1, 1))), "it takes two methods"),
        (
            ("lime", "occlusion"),
            (*METRICS[:2], ("agreement", "agreement", "higher", (-1, 1))),
            "no text was explained by two methods",
        ),
    ],
)
def test_why_there_is_no_agreement_is_true(methods, metrics, reason):
    summary, examples = fake(methods, metrics, ())
    page = audit_page(replace(summary, agreement=()), examples)
    assert f"Agreement was not measured on movies: {reason}." in page


def test_backticks_are_code_and_everything_else_is_text():
    assert prose("as `a<b` & `c`") == "as <code>a&lt;b</code> &amp; <code>c</code>"
    assert prose("a lone ` stays") == "a lone ` stays"


def test_methods_of_one_sentence_have_one_entry():
    summary, examples = fake(("lime:samples=9", "lime:samples=99", "occlusion"), METRICS[:2], ())
    twins = [replace(m, summary="The same." if m.name.startswith("lime") else m.summary) for m in summary.methods]
    page = audit_page(replace(summary, methods=tuple(twins)), examples)
    assert page.count("<dd>The same.</dd>") == 1
    assert Reader(page)


def test_a_summary_with_parts_of_one_s_own_is_read_again(tmp_path):
    summary, _ = planted()
    store.write_json(tmp_path / "summary.json", {"schema": 3, **store.plain(summary)})
    assert read_summary(tmp_path) == summary


# -- where fingerprints come from -----------------------------------------------------------------------------


def test_files_of_a_model_are_hashed_as_sha256sum_does(tmp_path):
    model = tmp_path / "run" / "model"
    model.mkdir(parents=True)
    (model / "model.safetensors").write_bytes(b"abc")
    (model / "notes.md").write_bytes(b"not of the model")
    known = {"model.safetensors": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}
    assert provenance.file_hashes(tmp_path / "run") == provenance.file_hashes(str(model)) == known
    assert provenance.file_hashes("owner/name") == provenance.file_hashes(object()) == {}


def test_texts_are_told_apart_by_any_change():
    rows = [("1", "a text", None, 0, ((0, 1),))]
    assert len({provenance.rows_hash(each) for each in (rows, [("1", "a text", None, 1, ((0, 1),))], rows * 2)}) == 3


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["/opt/bin/veridical", "audit", "my model"], "veridical audit 'my model'"),
        (["/lib/veridical/__main__.py", "audit"], "veridical audit"),
        (["/usr/bin/pytest", "-q"], ""),
        ([], ""),
    ],
)
def test_the_command_is_what_was_typed(monkeypatch, argv, said):
    monkeypatch.setattr("sys.argv", argv)
    assert provenance.typed_command() == said


def test_a_call_is_said_as_it_would_be_typed():
    said = provenance.python_call(
        "veridical.audit", {"data": "planted", "out": Path("x"), "model": object(), "limit": 3}
    )
    assert said == "veridical.audit(data='planted', out='x', model=<object>, limit=3)"
    assert re.fullmatch("[0-9a-f]{64}", provenance.code_hash())
