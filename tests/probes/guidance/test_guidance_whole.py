"""The analysis of guidance from trained runs to the page: what is measured where, files, going on, mistakes."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from browsing import browse, console
from guided import guided as marked_data
from toy import small_model
from veridical.audits.evaluate import evaluate
from veridical.cli.app import app
from veridical.core import store, stored
from veridical.core.errors import InputError
from veridical.probes.guidance.guidance import guidance
from veridical.probes.guidance.page import guidance_page
from veridical.probes.guidance.record import SUMMARY, GuidanceSummary, read_summary
from veridical.probes.guidance.summary import TABLES
from veridical.training.config import TrainConfig
from veridical.training.train import train

CHEAP = {"methods": "attention,decompx", "witnesses": "input_x_gradient", "metrics": "auc:abs=true,comprehensiveness"}


@pytest.fixture(scope="module")
def data():
    return marked_data(32, 12, 16, every=4)


@pytest.fixture(scope="module")
def runs(data, tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    model = small_model(root / "model", num_labels=2)
    for name, objective in (("base", "cross_entropy"), ("att", "explanation:weight=2"), ("no", "explanation:weight=0")):
        for seed in (0, 1) if name != "no" else (0,):
            config = TrainConfig(epochs=1, batch=16, lr=1e-3)
            folder = root / name / f"seed{seed}"
            train(data, model, objective=objective, seed=seed, config=config, out=folder, progress=False)
    return root


def look(runs: Path, data: Any, out: Path, **how: Any):
    other = replace(marked_data(8, 0, 10, every=0), name="other")
    plain = replace(other, name="plain", splits={"test": tuple(replace(e, rationale=()) for e in other.splits["test"])})
    given = {"ood": [other, plain], "limit": 8, "ood_methods": "attention", "progress": False, **CHEAP, **how}
    return guidance(runs / "base", {"att": runs / "att"}, data, out=out, **given)


def test_a_page_says_where_epochs_were_chosen_by_different_scores(runs, data, found, tmp_path):
    assert found.summary.selection == ""
    config = TrainConfig(epochs=1, batch=16, lr=1e-3, select="loss")
    model = str(runs / "model")
    train(data, model, objective="explanation:weight=2", config=config, out=tmp_path / "by-loss", progress=False)
    how: dict[str, Any] = {"limit": 4, "progress": False, **CHEAP}
    other = guidance(runs / "base", {"att": tmp_path / "by-loss"}, data, out=tmp_path / "g", **how)
    assert "chosen by different scores on dev (baseline by macro_f1, att by loss)" in other.summary.selection
    assert "chosen by different scores on dev" in other.page.read_text()
    assert "chosen by different scores" not in found.page.read_text()


@pytest.fixture(scope="module")
def found(runs, data, tmp_path_factory):
    return look(runs, data, tmp_path_factory.mktemp("out") / "g")


def over(page: Path, tmp_path: Path, width: int) -> int:
    """By how many pixels the page is wider than a window of that width."""
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text(encoding="utf-8"))
    measure = "<script>document.title=document.documentElement.scrollWidth-innerWidth</script></body>"
    (tmp_path / "inner.html").write_text(text.replace("</body>", measure), encoding="utf-8")
    frame = f'<iframe id="f" style="width:{width}px;height:900px;border:0" src="inner.html"></iframe>'
    tell = "<script>onload=()=>{document.body.dataset.over=f.contentDocument.title}</script>"
    (tmp_path / "outer.html").write_text(f"<body>{frame}{tell}</body>")
    done = browse(tmp_path / "outer.html", tmp_path, "--dump-dom", "--allow-file-access-from-files")
    found = re.search(r'data-over="(-?\d+)"', done.stdout)
    assert found, done.stdout[:300]
    return int(found[1])


def rows(summary: GuidanceSummary, table: str, **wanted: Any) -> list[Any]:
    return [row for row in getattr(summary, table) if all(getattr(row, key) == wanted[key] for key in wanted)]


def test_what_is_measured_where(found):
    s = found.summary
    assert [c.name for c in s.corpora] == ["toy", "other", "plain"]
    assert {r.method for r in rows(s, "explanations", corpus="toy")} == {"attention", "decompx", "input_x_gradient"}
    assert {r.method for r in rows(s, "explanations", corpus="other")} == {"attention"}
    assert {r.metric for r in rows(s, "explanations", corpus="plain")} == {"comprehensiveness"}
    assert {r.corpus for r in s.reliance} == {r.corpus for r in s.layers} == {"toy", "other"}
    assert {r.technique for r in rows(s, "layers", corpus="toy")} == {"attention", "decompx"}
    assert {r.technique for r in rows(s, "layers", corpus="other")} == {"attention"}
    assert {(r.corpus, r.condition) for r in rows(s, "predictions", score="macro_f1")} == {
        (corpus, name) for corpus in ("toy", "other", "plain") for name in ("baseline", "att")
    }
    assert {(v.corpus, v.condition) for v in s.verdicts} == {("toy", "att"), ("other", "att")}
    assert [r.guided for r in rows(s, "explanations", corpus="other", condition="att")] == [True, True]


def test_plausibility_is_that_of_evaluate(found, runs, data):
    (row,) = rows(found.summary, "explanations", corpus="toy", metric="auc:abs=true", condition="att", method="decompx")
    place = found.folder / "runs" / "att" / "seed1" / "corpora" / "toy"
    chosen = {r["id"] for r in store.read_parts(next((place / "attributions").glob("decompx-*"))).to_pylist()}
    direct = evaluate(
        str(runs / "att" / "seed1"), [e for e in data.splits["test"] if e.id in chosen], "decompx", "auc:abs=true"
    )
    assert row.values[1] == pytest.approx(direct.mean("auc:abs=true", "decompx"), abs=1e-6)
    assert row.texts == len(direct.cells)
    top = rows(found.summary, "layers", corpus="toy", condition="att", technique="decompx")[-1]
    assert top.layer == 2
    assert top.mean == pytest.approx(row.mean, abs=1e-6)


def test_the_baselines_explanation_loss_is_what_training_would_log(runs, found):
    """A run with the term at weight 0 is the baseline, and has measured it."""
    logged = store.read_json(runs / "no" / "seed0" / "scores.json")["scores"]["dev"]["explanation"]
    (row,) = rows(found.summary, "tradeoff", condition="baseline")
    assert row.explanation.values[0] == pytest.approx(logged, abs=1e-6)
    held = store.read_json(runs / "att" / "seed0" / "scores.json")["scores"]["dev"]
    (att,) = rows(found.summary, "tradeoff", condition="att")
    assert att.explanation.values[0] == held["explanation"]
    assert att.cross_entropy.values[0] == held["loss"]


def test_files(found):
    assert read_summary(found.folder) == found.summary
    for name in TABLES:
        table = list(csv.DictReader(io.StringIO((found.folder / "tables" / f"{name}.csv").read_text())))
        assert len(table) == len(getattr(found.summary, name)), name
    assert found.page.read_text() == guidance_page(found.summary)
    assert found.verdict == found.summary.headline


def test_what_was_written_before_is_read_and_what_cannot_be_is_refused(found, tmp_path):
    plain = store.read_json(found.folder / SUMMARY)
    assert plain.pop("schema") == 2
    old = {**plain, "conditions": [{k: v for k, v in c.items() if k != "select"} for c in plain["conditions"]]}
    del old["selection"]
    store.write_json(tmp_path / SUMMARY, old)
    conditions = tuple(replace(condition, select=None) for condition in found.summary.conditions)
    assert read_summary(tmp_path) == replace(found.summary, conditions=conditions, selection="")
    assert "<td>not recorded</td>" in guidance_page(read_summary(tmp_path))
    for changed, sentence in (
        ({"schema": 3}, "has schema 3, and this version of Veridical knows 2"),
        ({"reliance": [{"corpus": "x"}]}, r"missing required field .*\$.reliance\[0\]"),
    ):
        store.write_json(tmp_path / SUMMARY, {**old, **changed})
        with pytest.raises(InputError, match=sentence):
            read_summary(tmp_path)
    with pytest.warns(FutureWarning, match=r"write summary.verdicts; summary\['verdicts'\] goes with version 0.3"):
        assert found.summary["verdicts"] == plain["verdicts"]


def test_the_page(found):
    page = found.page.read_text()
    assert found.verdict.split(":")[0][:40] in page
    assert "http" not in page.replace("http-equiv", "")
    assert "<script" not in page
    for section in ("reliance", "plausibility", "layers", "alike", "tradeoff", "f1", "foretold", "settings"):
        assert f'id="{section}"' in page
    assert "are too few to say anything" in page


def test_a_corpus_without_labels_is_said_to_be_missing(found):
    assert "is not there" not in found.page.read_text()
    corpora = tuple(replace(c, labelled=0) if c.name == "plain" else c for c in found.summary.corpora)
    assert "<code>plain</code> is not there" in guidance_page(replace(found.summary, corpora=corpora))


@pytest.mark.browser
@pytest.mark.parametrize("width", [360, 1200])
def test_the_browser_shows_it_whole(found, tmp_path, width):
    done = browse(found.page, tmp_path, "--dump-dom")
    assert console(done) == []
    assert over(found.page, tmp_path, width) <= 0


def test_names_are_escaped(found):
    shown = json.loads(json.dumps(store.plain(found.summary)).replace('"att"', '"<script>alert(1)</script>"'))
    page = guidance_page(stored.from_plain({**shown, "schema": GuidanceSummary.SCHEMA}, GuidanceSummary, where="it"))
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_going_on_gives_the_same_and_redoes_nothing(found, runs, data, tmp_path):
    """Every part of the work is removed in turn; what is left is not done again."""
    out = tmp_path / "g"
    shutil.copytree(found.folder, out)
    gone = sorted(out.rglob("part-0000.parquet"))
    assert any("reliance" in str(path) for path in gone)
    for path in gone[:: max(1, len(gone) // 6)]:
        path.unlink()
    kept = {path: path.stat().st_mtime_ns for path in out.rglob("part-*.parquet")}
    again = look(runs, data, out)
    assert replace(again.summary, created=found.summary.created, stamp=found.summary.stamp) == found.summary
    assert all(path.stat().st_mtime_ns == time for path, time in kept.items())
    with pytest.raises(InputError, match="limit is 8 there and 7 now"):
        look(runs, data, out, limit=7)


def test_conditions_can_be_added(found, runs, data, tmp_path):
    out = tmp_path / "g"
    shutil.copytree(found.folder, out)
    before = {path: path.stat().st_mtime_ns for path in out.rglob("part-*.parquet")}
    other = replace(marked_data(8, 0, 10, every=0), name="other")
    plain = replace(other, name="plain", splits={"test": tuple(replace(e, rationale=()) for e in other.splits["test"])})
    more = guidance(
        runs / "base",
        {"att": runs / "att", "no": runs / "no"},
        data,
        out=out,
        ood=[other, plain],
        limit=8,
        ood_methods="attention",
        progress=False,
        **CHEAP,
    )
    assert [c.name for c in more.summary.conditions] == ["baseline", "att", "no"]
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())
    (single,) = [v for v in more.summary.verdicts if (v.corpus, v.condition) == ("toy", "no")]
    assert single.outcome == "unclear"


def test_a_bilstm_has_no_layers_to_look_at(tmp_path):
    data = marked_data(24, 8, 8, every=0)
    for name, objective in (("base", "cross_entropy"), ("att", "explanation:weight=1")):
        config = TrainConfig(epochs=1, batch=16, lr=1e-3)
        train(data, "bilstm", objective=objective, config=config, out=tmp_path / name / "seed0", progress=False)
    made = guidance(tmp_path / "base", {"att": tmp_path / "att"}, data, out=tmp_path / "g", limit=6, progress=False)
    assert made.summary.layers == ()
    assert any("alti" in note for note in made.summary.left_out)
    assert made.summary.verdicts[0].outcome == "unclear"
    assert "1 seed a side" in made.summary.verdicts[0].sentence


def test_mistakes(runs, data, tmp_path):
    bare = replace(data, splits={"test": tuple(replace(e, rationale=()) for e in data.splits["test"])})
    for how, said in (
        ({"data": bare}, "has no rationales in its split 'test'"),
        ({"split": "tst"}, "has no rationales in its split 'tst'"),
        ({"ood": [data], "ood_split": "tst"}, "has no split 'tst'"),
        ({"margin": -1}, "margin is -1"),
        ({"f1_limit": 0}, "f1_limit is 0"),
        ({"metrics": "comprehensiveness"}, "compares with a rationale"),
        ({"guided": {}}, "no guided condition"),
        ({"guided": {"baseline": runs / "att"}}, "name it apart"),
        ({"witnesses": "oclusion"}, "Did you mean 'occlusion'"),
    ):
        given = {"base": runs / "base", "guided": {"att": runs / "att"}, "data": data, "out": tmp_path / "g", **how}
        with pytest.raises(InputError, match=said):
            guidance(given.pop("base"), given.pop("guided"), given.pop("data"), **given)


def test_the_verb(runs, data, tmp_path):
    texts = tmp_path / "texts"
    texts.mkdir()
    for split, examples in data.splits.items():
        lines = [
            {"id": e.id, "text": e.text, "label": data.labels[e.label], "rationale": [list(s) for s in e.rationale]}
            for e in examples
        ]
        (texts / f"{split}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    asked = ["guidance", "--base", str(runs / "base"), "--guided", f"att={runs / 'att'}", "--data", str(texts)]
    asked += ["--limit", "6", "--method", "attention", "--witness", "input_x_gradient", "--metric", "auc"]
    done = CliRunner().invoke(app, [*asked, "--out", str(tmp_path / "g")], catch_exceptions=False)
    assert done.exit_code == 0
    assert done.stdout.splitlines()[-1] == str(tmp_path / "g" / "report.html")
    assert "att (" in done.stdout
    done = CliRunner().invoke(app, [*asked, "--out", str(tmp_path / "g"), "--json"], catch_exceptions=False)
    assert json.loads(done.stdout)["conditions"][1]["guides"] == ["attention"]
    wrong = CliRunner().invoke(app, [*asked, "--out", str(tmp_path / "g"), "--base", str(tmp_path)])
    assert wrong.exit_code == 2
