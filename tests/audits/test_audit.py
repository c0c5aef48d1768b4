from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import veridical
from tiny import tiny
from toy import toy
from veridical.attribution import methods as all_methods
from veridical.audits import stability
from veridical.audits.corpora import Corpus
from veridical.audits.filing import Change, Since, read_record
from veridical.audits.looks import OutOfTimeError
from veridical.audits.options import AuditOptions
from veridical.audits.oracles import oracles
from veridical.audits.record import StabilityRow, read_examples, read_summary
from veridical.audits.selection import tried
from veridical.cli import app as cli
from veridical.cli import audit as command
from veridical.core import store
from veridical.core.errors import Caution, InputError
from veridical.core.records import Dataset, Example
from veridical.data import load_data
from veridical.model.classifier import Classifier

WORDS = "the film was not good and bad plot acting really very boring unbelievable book story end".split()


def dataset(name: str, start: int, n: int) -> Dataset:
    texts = [" ".join(WORDS[(i * k) % len(WORDS)] for k in range(1, 5 + i % 5)) for i in range(start, start + 3 * n)]
    rows = [Example(f"{name}-{i}", f"{text} {i}", label=i % 3, rationale=((0, 3),)) for i, text in enumerate(texts)]
    labels = ("LABEL_0", "LABEL_1", "LABEL_2")
    return Dataset(name, labels, {"train": tuple(rows[: 2 * n]), "test": tuple(rows[2 * n :])})


HOME = dataset("home", 0, 12)
AWAY = Dataset("away", HOME.labels, {"test": (*dataset("away", 50, 6).splits["test"], HOME.splits["train"][0])})
HOW = {"methods": ["attention", "gradient"], "metrics": ["sufficiency", "corr", "auc", "agreement"]}


@pytest.fixture(scope="module")
def clf():
    return Classifier(*tiny("bert"), name="tiny")


@pytest.fixture(scope="module")
def made(clf, tmp_path_factory):
    return veridical.audit(clf, HOME, ood=[AWAY], out=tmp_path_factory.mktemp("audit"), progress=False, **HOW)


def test_everything_is_written_and_says_the_same(made):
    folder = made.folder
    assert {"spec.json", "stamp.json", "scores.parquet", "summary.json", "examples.json", "report.html"} <= {
        path.name for path in folder.iterdir()
    }
    assert read_summary(folder) == made.summary
    assert {text.corpus for text in read_examples(folder).texts} == {"home", "away"}
    assert made.verdict.split(" ", 1)[0] in made.page.read_text()
    assert (folder / "tables" / "cells.csv").read_text().startswith("corpus,")
    corpora = {c.name: c for c in made.summary.corpora}
    assert corpora["home"].role == "in"
    assert corpora["away"].role == "ood"
    assert corpora["home"].accuracy is not None
    assert made.summary.model.hash == store.read_json(folder / "spec.json")["model"]["hash"]
    assert corpora["home"].sha256 != corpora["away"].sha256
    assert made.summary.stamp["command"].startswith("veridical.audit(model=<Classifier>, data=<Dataset>, out=")


def test_the_tables_have_every_column_of_every_row_and_unix_lines(made):
    summary = store.plain(made.summary)
    for path in (made.folder / "tables").iterdir():
        content = path.read_bytes()
        assert b"\r" not in content, path.name
        rows = list(csv.DictReader(io.StringIO(content.decode(), newline="")))
        assert len(rows) == len(summary[path.stem])
        plain = {key for row in summary[path.stem] for key, value in row.items() if not isinstance(value, dict)}
        assert plain <= rows[0].keys(), path.name


def test_texts_of_the_training_data_are_dropped_and_counted(made):
    away = next(c for c in made.summary.corpora if c.name == "away")
    assert away.dropped == 1
    assert away.texts == len(AWAY.splits["test"]) - 1


def test_the_same_call_does_nothing_again_and_another_model_is_refused(clf, made):
    before = clf.forwards
    again = veridical.audit(clf, HOME, ood=[AWAY], out=made.folder, progress=False, **HOW)
    asked = clf.forwards - before
    assert asked < 100  # facts about the corpora only
    assert again.summary.cells == made.summary.cells
    other = Classifier(*tiny("bert", seed=1), name="tiny")
    with pytest.raises(InputError, match="hash"):
        veridical.audit(other, HOME, ood=[AWAY], out=made.folder, progress=False, **HOW)


def test_a_method_that_cannot_work_is_left_out_with_its_reason(clf, tmp_path):
    """Input x gradient says of a scale-free model that it has nothing to say; the page passes it on."""
    free = Classifier(*tiny("deberta"), name="free")
    asked: dict[str, Any] = {"limit": 4, "methods": ["input_x_gradient", "random"], "metrics": ["sufficiency"]}
    with pytest.warns(Caution, match="rounding noise"):
        found = veridical.audit(free, HOME, out=tmp_path, progress=False, **asked)
    assert any("rounding noise" in note for note in found.summary.left_out)


def test_a_metric_that_repeats_a_method_has_no_say(clf, tmp_path):
    found = veridical.audit(
        clf, HOME, out=tmp_path, methods=["occlusion", "random"], metrics=["sufficiency", "corr"], progress=False
    )
    assert found.summary.verdicts[0].panel == ("sufficiency",)
    assert "Shown, and without a vote: corr." in found.summary.verdicts[0].notes


def test_raw_sufficiency_is_read_the_other_way_round(clf, tmp_path):
    found = veridical.audit(
        clf,
        HOME,
        out=tmp_path,
        methods=["gradient"],
        metrics=["sufficiency:raw=true", "comprehensiveness"],
        progress=False,
    )
    assert {m.name: m.better for m in found.summary.metrics} == {
        "sufficiency:raw=true": "lower",
        "comprehensiveness": "higher",
    }


def test_planted_data_ranks_the_truth_too(tmp_path):
    run = veridical.train("planted:size=120", "bilstm", out=tmp_path / "run", progress=False)
    found = veridical.audit(
        run.folder,
        "planted:size=120",
        out=tmp_path / "audit",
        limit=12,
        methods=["input_x_gradient", "random"],
        metrics=["sufficiency", "truth"],
        progress=False,
    )
    assert found.summary.truth
    assert "oracle" not in [row.method for row in found.summary.ranking]


def test_the_verbs(clf, tmp_path):
    clf.save(tmp_path / "model")
    data = tmp_path / "data"
    data.mkdir()
    for split, rows in HOME.splits.items():
        lines = [json.dumps({"id": e.id, "text": e.text, "label": e.label, "rationale": [[0, 3]]}) for e in rows]
        (data / f"{split}.jsonl").write_text("\n".join(lines))
    run = CliRunner().invoke
    common = ["--data", str(data), "--limit", "4", "--method", "attention,random"]
    out = str(tmp_path / "audit")
    result = run(cli.app, ["audit", str(tmp_path / "model"), *common, "--metric", "sufficiency", "--out", out])
    assert result.exit_code == 0, result.output
    assert result.stdout.strip().splitlines()[-1].endswith("report.html")
    (tmp_path / "audit" / "report.html").unlink()
    assert run(cli.app, ["report", out]).exit_code == 0
    assert (tmp_path / "audit" / "report.html").exists()
    result = run(cli.app, ["compare", out, "--format", "csv"])
    assert result.exit_code == 0, result.output
    assert "sufficiency" in result.stdout
    scores = str(tmp_path / "scores")
    result = run(cli.app, ["evaluate", str(tmp_path / "model"), *common, "--metric", "sufficiency", "--out", scores])
    assert result.exit_code == 0, result.output
    assert "sufficiency" in result.stdout
    for bad, said in (
        (["report", str(tmp_path)], "summary.json"),
        (
            ["audit", str(tmp_path / "model"), *common, "--metric", "sufficency", "--out", out],
            "Did you mean 'sufficiency'",
        ),
        (["evaluate", str(tmp_path / "model"), "--data", str(data), "--limit", "0", "--out", scores], "limit is 0"),
    ):
        result = run(cli.app, bad)
        assert result.exit_code == 2
        assert said in result.stderr


def test_a_method_that_breaks_down_does_not_take_the_others_with_it(clf, tmp_path, monkeypatch):
    def broken(*args, **options):
        raise RuntimeError("sizes 5 and 10 do not match\nat some place")

    entry = all_methods["rollout"]
    monkeypatch.setitem(all_methods._entries, "rollout", replace(entry, run=broken))
    costs, left_out = tried(clf, clf.encode([toy().splits["test"][0]])[0], "attention,rollout")
    assert costs == {"attention": pytest.approx(1, abs=0.2)}
    assert left_out == [
        "rollout is left out: on this model it breaks down (RuntimeError: sizes 5 and 10 do not match)."
    ]


def test_oracles_explain_the_class_that_is_asked_for(tmp_path):
    data = load_data("planted:size=30", limit=4)
    clf = Classifier(*tiny("bert", num_labels=2))
    corpus = Corpus(data.name, "in", data.splits["test"], 0)
    for target in (0, 1):
        assert {row.target for row in oracles(clf, corpus, target)} == {target}
    assert [row.target for row in oracles(clf, corpus, "gold")][:4] == [e.label for e in corpus.examples]


def test_a_model_and_data_of_other_kinds_are_audited_without_what_does_not_fit(tmp_path):
    many = Classifier(*tiny("bert", problem_type="multi_label_classification", num_labels=2))
    data = toy(12, 4, 6)
    found = veridical.audit(
        many, data, out=tmp_path / "a", methods="gradient,random", metrics="sufficiency", progress=False
    )
    assert found.summary.corpora[0].accuracy is not None
    one = Classifier(*tiny("bert", num_labels=2))
    several = toy(12, 4, 6, multilabel=True)
    with pytest.warns(UserWarning, match="several labels"):
        found = veridical.audit(
            one, several, out=tmp_path / "b", methods="gradient,random", metrics="sufficiency", progress=False
        )
    assert found.summary.corpora[0].accuracy is None


def test_methods_that_enter_late_are_in_one_pair_with_each_of_the_others(clf, tmp_path):
    asked: dict[str, Any] = {"methods": ["attention", "gradient", "lime:samples=200"], "by": "mask"}
    found = veridical.audit(
        clf, dataset("late", 0, 26), out=tmp_path, metrics=["sufficiency", "agreement"], progress=False, **asked
    )
    looks = found.summary.looks
    assert any(name.startswith("lime") for name in looks[1].asked)
    assert not any(name.startswith("lime") for name in looks[0].asked)
    pairs = [frozenset((row.a, row.b)) for row in found.summary.agreement]
    assert len(set(pairs)) == len(pairs)
    (spending,) = found.summary.spending
    assert spending.spent <= spending.planned


def test_other_settings_that_time_did_not_reach_stay_out_when_the_audit_is_repeated(clf, tmp_path, monkeypatch):
    """Without labels there is a verdict however little the model knows."""
    texts = tuple(replace(example, label=None) for example in dataset("timed", 0, 24).splits["test"])
    asked: dict[str, Any] = {"methods": ["attention", "gradient", "deeplift"], "time": "10m", "progress": False}
    asked |= {"data": Dataset("timed", HOME.labels, {"test": texts}), "metrics": ["sufficiency"], "out": tmp_path}

    def late(*_given: Any) -> list[StabilityRow]:
        raise OutOfTimeError

    with monkeypatch.context() as patched:
        patched.setattr(stability, "by_setting", late)
        first = veridical.audit(clf, **asked)
    assert {row.kind for row in first.summary.stability} == {"subset"}
    assert first.summary.spending[0].stability == 0
    again = veridical.audit(clf, **asked)
    assert again.summary.stability == first.summary.stability
    assert again.summary.spending == first.summary.spending


def test_that_a_model_only_guesses_is_said_before_anything_is_explained(clf, tmp_path, capsys):
    asked: dict[str, Any] = {"limit": 12, "methods": ["attention"], "metrics": ["sufficiency"], "out": tmp_path}
    made = veridical.audit(clf, HOME, progress=True, **asked)  # random weights, and three classes in turn
    assert made.verdict.startswith("No verdict: the model is right on ")
    said = capsys.readouterr().err
    assert said.index("There will be no verdict: the model is right on ") < said.index("12 of 12")


@pytest.mark.parametrize(("places", "said"), [((1, 2, 3, 5), 0), ((1, 3, 3, 5), 1), ((4, 3, 3), 1), ((), 0)])
def test_a_believed_method_that_other_settings_do_not_favour_is_told_of(places, said):
    rows = [StabilityRow("home", "a", "setting", str(at), place, 5, 24) for at, place in enumerate(places)]
    others = [StabilityRow("home", "b", "setting", "x", 9, 9, 24), StabilityRow("home", "a", "subset", "x", 9, 9, 24)]
    notes = stability.caution([*rows, *others], ["a"])
    assert len(notes) == said
    assert all(
        f"among the first two in {sum(p < 3 for p in places)} of {len(places)} settings only" in n for n in notes
    )


def test_the_record_lies_beside_the_report_and_is_held_against_an_earlier_one(clf, made, tmp_path):
    first = read_record(made.folder / "record.json")
    assert (first.model, first.corpora, first.since) == (made.summary.model, made.summary.corpora, None)
    assert [len(of.texts) for of in first.evidence] == [len(HOME.splits["test"]), len(AWAY.splits["test"]) - 1]
    assert np.mean(first.evidence[0].right) == pytest.approx(first.corpora[0].accuracy)
    again = veridical.audit(
        clf, HOME, ood=[AWAY], out=tmp_path / "again", progress=False, purpose="A gate", against=str(made.folder), **HOW
    )
    assert read_record(again.folder / "record.json").purpose == "A gate"
    assert again.since is not None
    assert again.since.regressions == ()
    assert {change.test for change in again.since.changes} >= {"sign test, paired", "signed rank, paired"}
    assert "A gate" in (again.folder / "record.html").read_text()


@pytest.mark.parametrize(("outcome", "code"), [("worse", 1), ("better", 0)])
def test_a_regression_ends_with_exit_code_1(made, monkeypatch, capsys, outcome, code):
    change = Change("home", "accuracy of the model", "90.0%", "70.0%", "sign test, paired", (9, 9), 0.01, 0.02, outcome)
    found = replace(made, since=Since("old", "yesterday", None, ("The model is another.",), (change,), 0.05))
    monkeypatch.setattr("veridical.audits.audit.audit", lambda **_: found)
    try:
        command.audit(AuditOptions(model="m", data="planted", out="out"))
        ended = 0
    except typer.Exit as stop:
        ended = stop.exit_code
    assert ended == code
    said = capsys.readouterr().out
    assert "accuracy of the model" in said
    assert ("1 regression at level 0.05" in said) == (outcome == "worse")
