"""`roar` and `veridical roar`: what is asked for, what is run again, what is written and printed."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from inprocess import MODEL, TINY, run_here, small
from typer.testing import CliRunner

from toy import toy
from veridical.cli.app import app
from veridical.core import store
from veridical.core.errors import InputError
from veridical.grid.job import Job
from veridical.retraining.roar import cells
from veridical.retraining.roar.experiment import asked, begin, read_bench, read_experiment
from veridical.retraining.roar.mask import Steps
from veridical.retraining.roar.points import Request, default_score
from veridical.retraining.roar.record import read_summary
from veridical.retraining.roar.roar import PAPER, plan, roar
from veridical.retraining.roar.timing import Timing, spell

TIMING = Timing(epoch=1.0, scoring=0.5, explain={"attention": 2.0}, epochs=3, stops_early=True, texts=44)


@pytest.fixture
def _here(monkeypatch):
    monkeypatch.setattr("veridical.grid.pool.run", run_here)


def trained(monkeypatch) -> list[str]:
    """The points that are trained from now on."""
    names: list[str] = []
    real = cells.train_point

    def watched(own, folder, encoded, **how):
        if not folder.exists():
            names.append(f"{folder.parent.name}/{folder.name}")
        real(own, folder, encoded, **how)

    monkeypatch.setattr(cells, "train_point", watched)
    return names


# -- what is said ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_here")
def test_a_model_that_learns_nothing_is_told_of_at_once(tmp_path, capsys):
    said = "Seed 0: the model is no better on whole texts (50.0%) than on texts that are masked altogether (50.0%)"
    still = {**TINY, "lr": 1e-9, "head_lr": 1e-9}
    small(tmp_path / "still", config=still, score="accuracy", progress=True)
    lines = capsys.readouterr().err.replace("\n", " ")
    assert lines.count(said) == 1
    assert lines.index(said) < lines.index("attention")  # before the first measure is looked at
    small(tmp_path / "tokens", config=still, score="accuracy", progress=True, tokens=2)
    assert said not in capsys.readouterr().err.replace("\n", " ")  # its last point is not everything masked


# -- what is written ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("_here")
def test_a_run_writes_its_files_and_they_agree(tmp_path):
    found = small(tmp_path, seeds=2, plain=True)
    summary = store.read_json(tmp_path / "summary.json")
    assert read_summary(tmp_path) == found.summary
    rows = store.read_parquet(tmp_path / "curves.parquet").to_pylist()
    assert {row["masked"] for row in rows} == {0, 40, 80, 100}
    assert {(row["measure"], row["recursive"]) for row in rows} == {
        ("random", False),
        ("attention", True),
        ("attention", False),
    }
    for curve in summary["curves"]:
        for seed, values in curve["values"].items():
            own = [r for r in rows if (r["measure"], r["recursive"]) == (curve["measure"], curve["recursive"])]
            assert values == [r["macro_f1"] for r in own if r["seed"] == int(seed)]
    with (tmp_path / "tables" / "areas.csv").open() as file:
        areas = list(csv.DictReader(file))
    assert [(row["measure"], row["recursive"], row["n"]) for row in areas] == [
        (row["measure"], str(row["recursive"]), str(row["n"])) for row in summary["areas"]
    ]
    spent = store.read_json(tmp_path / "time.json")
    assert sum(row["trainings"] for row in spent["rows"]) == summary["trainings"]["done"] == 2 * (2 + 2 + 4)
    assert all(row["seconds"] >= 0 for row in spent["rows"])
    assert "seconds" not in json.dumps(summary), "what differs from run to run stands in time.json alone"
    page = (tmp_path / "report.html").read_text()
    assert summary["answer"] in page


@pytest.mark.usefixtures("_here")
def test_the_page_and_summary_are_rewritten_as_cells_end(tmp_path, monkeypatch):
    seen: list[int] = []

    def watched(cells, out, *, tick, **engine):
        def and_look(key: str) -> None:
            tick(key)
            seen.append(store.read_json(Path(out) / "summary.json")["trainings"]["done"])

        run_here(cells, out, tick=and_look)

    monkeypatch.setattr("veridical.grid.pool.run", watched)
    small(tmp_path, leakage=False)
    assert seen == [1, 3, 4, 6]


@pytest.mark.usefixtures("_here")
def test_a_run_that_breaks_down_tells_what_is_done(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "explain", lambda *a, **k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        small(tmp_path)
    summary = store.read_json(tmp_path / "summary.json")
    assert summary["trainings"] == {"done": 4, "of": 6}
    assert summary["answer"] == "No curve is whole yet: 4 of 6 trainings are done."
    assert "under way" in (tmp_path / "report.html").read_text()


@pytest.mark.usefixtures("_here")
def test_another_score_is_read_from_what_is_there(tmp_path, monkeypatch):
    small(tmp_path, data=toy(24, 8, 8), leakage=False)
    points = trained(monkeypatch)
    found = small(tmp_path, data=toy(24, 8, 8), leakage=False, score="micro_f1")
    assert points == []
    rows = store.read_parquet(tmp_path / "curves.parquet").to_pylist()
    curve = next(c for c in found.summary.curves if c.measure == "attention")
    assert list(curve.values["0"]) == [row["accuracy"] for row in rows if row["measure"] == "attention"]


# -- what is run again --------------------------------------------------------------------------------


@pytest.mark.usefixtures("_here")
def test_more_seeds_methods_and_finer_steps_add_to_what_is_there(tmp_path, monkeypatch):
    points = trained(monkeypatch)
    small(tmp_path, leakage=False)
    assert points == ["seed0/whole", "random/p40", "random/p80", "seed0/masked", "by-p40/p40", "by-p40/p80"]
    points.clear()
    small(tmp_path, leakage=False, seeds=2)
    assert len(points) == 6
    assert points[0] == "seed1/whole"
    points.clear()
    small(tmp_path, leakage=False, methods="attention,gradient")
    assert points == ["by-p40/p40", "by-p40/p80"]
    points.clear()
    # Other steps are other chains; of the baseline only the new amounts are run, and the ends never again.
    small(tmp_path, leakage=False, step=20)
    assert points == ["random/p20", "random/p60", *(f"by-p20/p{p}" for p in (20, 40, 60, 80))]
    points.clear()
    # ROAR without recursion depends on no step: its points serve any.
    small(tmp_path, leakage=False, plain=True)
    assert points == ["plain/p40", "plain/p80"]
    points.clear()
    small(tmp_path, leakage=False, step=20, plain=True)
    assert points == ["plain/p20", "plain/p60"]


@pytest.mark.usefixtures("_here")
def test_a_quick_run_is_one_seed_in_steps_that_the_full_run_shares(tmp_path, monkeypatch):
    points = trained(monkeypatch)
    found = roar(
        toy(24, 8, 8), MODEL, methods="attention", out=tmp_path, quick=True, leakage=False, config=TINY, progress=False
    )
    assert found.summary.settings.seeds == (0,)
    assert found.summary.settings.amounts == (0, 20, 40, 60, 80, 100)
    assert "After 1 of the 5 seeds" in found.summary.answer or "No area" in found.summary.answer
    points.clear()
    small(tmp_path, data=toy(24, 8, 8), step=10, leakage=False)
    assert [p for p in points if p.startswith("random")] == [f"random/p{p}" for p in (10, 30, 50, 70, 90)]


@pytest.mark.usefixtures("_here")
def test_another_training_or_other_texts_in_the_same_folder_are_refused(tmp_path):
    small(tmp_path)
    with pytest.raises(InputError, match="epochs is 2 there and 3 now"):
        small(tmp_path, config={**TINY, "epochs": 3})
    with pytest.raises(InputError, match="data"):
        small(tmp_path, data=toy(train=25, dev=8, test=12))


# -- what is asked for --------------------------------------------------------------------------------


def cells_of(tmp_path, **wanted: Any) -> list[Job]:
    experiment = asked(tmp_path, toy(24, 8, 8), MODEL, config=TINY, limit=None, rounding="floor")
    settings: dict[str, Any] = {"measures": ("attention",), "seeds": (0, 1), "steps": Steps(25), "kinds": (True,)}
    return plan(experiment, Request(**{**settings, "score": "macro_f1", **wanted}), TIMING)


def test_the_cells_of_a_grid(tmp_path):
    found = {cell.key: cell for cell in cells_of(tmp_path)}
    chain = next(key for key in found if "attention" in key and not key.endswith("leak"))
    assert list(found)[:5] == ["seed0/whole", "seed0/random-by-p25", "seed0/masked", chain, f"{chain}-leak"]
    assert found["seed0/random-by-p25"].after == found["seed0/masked"].after == ()
    assert found[chain].after == ("seed0/whole",)
    assert found[f"{chain}-leak"].after == (chain, "seed0/random-by-p25")
    assert found["seed0/whole"].weight == 3.5
    assert found[chain].weight == 3 * 3.5 + 3 * 2.0
    assert found["seed0/random-by-p25"].weight == 3 * 3.5
    for cell in found.values():
        json.dumps(store.plain(cell))
    assert all(key.startswith("seed1") for key in list(found)[5:])


def test_plain_and_fixed_curves_cost_what_they_cost(tmp_path):
    found = {cell.key: cell for cell in cells_of(tmp_path, measures=("attention", "oracle"), kinds=(True, False))}
    plain = next(cell for key, cell in found.items() if "plain" in key and "leak" not in key)
    assert plain.weight == 3 * 3.5, "it begins with the explanation that recursion begins with"
    alone = [cell for cell in cells_of(tmp_path, kinds=(False,)) if "plain" in cell.key and "leak" not in cell.key]
    assert [cell.weight for cell in alone] == [3 * 3.5 + 2.0] * 2
    oracles = [cell for key, cell in found.items() if "oracle" in key]
    assert len(oracles) == 2, "one per seed: recursion changes nothing"
    assert all(cell.after == () for cell in oracles)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"seeds": 0}, "seeds is 0"),
        ({"step": 70}, "step is 70"),
        ({"tokens": 0}, "tokens is 0"),
        ({"methods": "random"}, "no measure"),
        ({"methods": "atention"}, "Did you mean 'attention'"),
        ({"methods": "oracle"}, "has none"),
        ({"data": toy(24, 8, 8, multilabel=True)}, "several labels"),
        ({"data": toy(24, 8, 0)}, "has no test split"),
        ({"config": {"epoch": 3}}, "train.epoch"),
        ({"model": "bilstmm"}, "bilstmm"),
        ({"step": 20, "tokens": 3}, "Both step=20 and tokens=3"),
        ({"workers": 0}, "workers is 0; it must be at least 1"),
        ({"shard": "9/8"}, "--array=1-n"),
        ({"address": "auto"}, "engine=.ray"),
    ],
)
@pytest.mark.usefixtures("_here")
def test_a_mistake_is_told_before_anything_is_trained_and_costs_no_folder(tmp_path, monkeypatch, wanted, said):
    points = trained(monkeypatch)
    with pytest.raises(InputError, match=said):
        small(tmp_path / "new", **wanted)
    assert points == []
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("name", "score"),
    [
        ("babi/1:size=200", "accuracy"),
        ("babi_1", "accuracy"),
        ("snli", "micro_f1"),
        ("e-snli", "micro_f1"),
        ("sst2", "macro_f1"),
        ("planted:copies=2", "accuracy"),
    ],
)
def test_what_a_dataset_is_scored_by(name, score):
    assert default_score(name) == score


def test_the_papers_measures_are_never_negative_and_explain_the_gold_class(tmp_path):
    from veridical.attribution import methods
    from veridical.explanations.explain import attributions

    experiment = asked(tmp_path, toy(24, 8, 8), MODEL, config=TINY, limit=None, rounding="floor")
    begin(experiment)
    own = read_bench(experiment.folder, 0)
    for spec in PAPER:
        found = attributions(own.clf, own.encoded["test"], methods.choose(spec), "gold")
        assert all((a.scores >= 0).all() for a in found), spec
        assert [a.target for a in found] == [e.example.label for e in own.encoded["test"]]
    options = methods.choose(PAPER[3]).options
    assert (options["steps"], options["rule"], options["baseline"]) == (50, "right", "zero")


def test_a_job_comes_back_from_its_folder(tmp_path):
    data = toy(24, 8, 8, pair=True)
    experiment = asked(tmp_path, data, MODEL, config=TINY, limit=None, rounding="ceil")
    begin(experiment)
    assert read_experiment(tmp_path) == experiment


# -- cost ---------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_here")
def test_the_cost_is_told_before_anything_runs(tmp_path, monkeypatch):
    points = trained(monkeypatch)
    found = small(tmp_path, seeds=2, plain=True, dry_run=True)
    assert points == []
    with pytest.raises(InputError, match="dry run"):
        _ = found.summary
    cost = found.cost
    assert cost.trainings == 2 * (2 + 2 + 2 + 2 + 2)
    assert cost.explanations == 2 * 2, "both kinds begin with the same one"
    assert not list(tmp_path.iterdir()), "who asks for the cost has not chosen yet"
    assert cost.seconds == pytest.approx(cost.left)
    assert sum(row.trainings for row in cost.rows) == cost.trainings
    assert "20 trainings of 2 epochs" in cost.sentence(2)
    small(tmp_path, seeds=2, plain=True)
    assert small(tmp_path, seeds=2, plain=True, dry_run=True).cost.left == 0


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.3, "0.3 s"), (42, "42 s"), (600, "10 min"), (7200, "2.0 h"), (259_200, "3.0 days")]
)
def test_how_long_is_said(seconds, said):
    assert spell(seconds) == said


# -- the command --------------------------------------------------------------------------------------

QUICK = ["--model", MODEL, "--set", "train.epochs=2", "--set", "train.lr=0.01", "--method", "attention"]


def test_the_whole_command_in_two_shards_ends_as_one_run_in_one_process(tmp_path, monkeypatch):
    """Worker processes as a user starts them, then the same from nothing but what the folder holds."""
    asked = ["roar", "--data", "babi/1:size=40", *QUICK, "--seeds", "1", "--step", "50", "--out"]
    for shard in ("1/2", "2/2"):
        done = CliRunner().invoke(app, [*asked, str(tmp_path / "parts"), "--workers", "1", "--shard", shard])
        assert done.exit_code == 0, done.output
        assert f"report {tmp_path / 'parts' / 'report.html'}" in done.output
    assert "5 trainings of 2 epochs" in done.output
    monkeypatch.setattr("veridical.grid.pool.run", run_here)
    again = CliRunner().invoke(app, [*asked, str(tmp_path / "whole"), "--json"])
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout)["trainings"] == {"done": 4, "of": 4}
    for name in ("summary.json", "curves.parquet", "tables/areas.csv"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_dry_run_prints_a_table_and_a_wrong_setting_a_sentence(tmp_path):
    command = ["roar", "--data", "babi/1:size=20", *QUICK, "--out", str(tmp_path / "out"), "--dry-run"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "leakage checks, at most" in done.output
    assert not (tmp_path / "out").exists()
    wrong = CliRunner().invoke(app, [*command, "--set", "lr=1"])
    assert wrong.exit_code == 2
    assert "There is no setting 'lr'" in wrong.output
