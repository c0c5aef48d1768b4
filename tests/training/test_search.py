from __future__ import annotations

import csv
import importlib
import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from toy import small_model, toy
from veridical.cli import train as cli_train
from veridical.core import store
from veridical.core.errors import InputError
from veridical.model.load import load
from veridical.training.config import TrainConfig
from veridical.training.search import Search, objectives, search, to_rows
from veridical.training.train import read_run

# The modules: `veridical.train` is the verb.
TRAIN, EVALUATE = (importlib.import_module(f"veridical.{name}") for name in ("training.train", "audits.evaluate"))
FAST = TrainConfig(epochs=1, batch=8, lr=1e-3, head_lr=1e-3)
WEIGHTS = "saloss.weight=1,0.01"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_model(tmp_path_factory.mktemp("model") / "bert")


def found_in(folder: Path, model: str, **how: Any) -> Search:
    how = {"over": WEIGHTS, "methods": ("attention", "gradient"), "texts": 6, **how}
    return search(toy(train=16, dev=10, test=0), model, config=FAST, out=folder, progress=False, **how)


@pytest.fixture(scope="module")
def made(model: str, tmp_path_factory: pytest.TempPathFactory) -> Search:
    return found_in(tmp_path_factory.mktemp("search") / "out", model)


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# -- what is tried ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "over", "expected"),
    [
        ("saloss", [WEIGHTS], ["saloss", "saloss:weight=0.01"]),
        ("cross_entropy", ["saloss.weight=1e-3"], ["saloss:weight=0.001"]),  # a term not named is added
        ("saloss:weight=5:prior=tfidf", ["saloss.weight=2"], ["saloss:weight=2:prior=tfidf"]),
        ("saloss:weight=2", ["saloss.prior=chi2,tfidf"], ["saloss:weight=2:prior=chi2", "saloss:weight=2:prior=tfidf"]),
        (
            "saloss",
            ["saloss.weight=2,3", "saloss.reverse=false,true"],
            ["saloss:weight=2", "saloss:weight=2:reverse=true", "saloss:weight=3", "saloss:weight=3:reverse=true"],
        ),
        ("saloss", ["saloss.weight=0.1,1e-1"], ["saloss:weight=0.1"]),  # the same twice
        (
            "saloss:weight=2",
            ["cross_entropy.weight=0,1"],
            ["cross_entropy:weight=0,saloss:weight=2", "saloss:weight=2"],
        ),
    ],
)
def test_every_combination_is_tried(base, over, expected):
    assert objectives(base, over) == expected


@pytest.mark.parametrize(
    ("over", "said"),
    [
        (["saloss"], "'saloss' is not TERM.OPTION=value,value"),
        (["saloss.weight="], "is not TERM.OPTION"),
        (["saloss=1,2"], "is not TERM.OPTION"),
        (["salos.weight=1"], "no term 'salos'. Did you mean 'saloss'"),
        (["saloss.wait=1"], "The term 'saloss' has no option 'wait'"),
        (["saloss.weight=-1"], "must be 0 or more"),
        ([], "nothing to search"),
    ],
)
def test_mistakes_in_what_is_searched(over, said):
    with pytest.raises(InputError, match=said):
        objectives("saloss", over)


# -- a search -----------------------------------------------------------------------------------------------


def test_it_takes_the_lowest_mean_over_the_methods(made):
    assert [one.objective for one in made.candidates] == ["saloss", "saloss:weight=0.01"]
    for one in made.candidates:
        assert set(one.by_method) == {"attention", "gradient", "random"}
        assert one.value == pytest.approx((one.by_method["attention"] + one.by_method["gradient"]) / 2)
        assert 0 < one.value <= 1
        assert one.dev["macro_f1"] is not None
    assert made.winner.value == min(one.value for one in made.candidates)
    assert made.better == "lower"
    assert made.texts == 6


def test_the_table_is_written(made):
    held = json.loads((made.folder / "decision_flip.json").read_text(encoding="utf-8"))
    assert held == store.plain(made)
    assert b"\r" not in (made.folder / "decision_flip.csv").read_bytes()
    rows = list(csv.DictReader((made.folder / "decision_flip.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["objective"] for row in rows] == [one.objective for one in made.candidates]
    assert [row["best"] for row in rows].index("best") == made.best
    assert float(rows[0]["decision_flip"]) == made.candidates[0].value
    assert float(rows[1]["dev macro_f1"]) == made.candidates[1].dev["macro_f1"]


def test_the_best_run_can_be_loaded_and_the_same_call_computes_nothing(made, model, monkeypatch):
    assert load(made.winner.folders[0]).labels == ("bad", "good")
    assert read_run(made.winner.folders[0]).seed == 0
    before = files_of(made.folder)
    monkeypatch.setattr(TRAIN, "fit", lambda *a: pytest.fail("it trained again"))
    monkeypatch.setattr(EVALUATE, "attributions", lambda *a, **k: pytest.fail("it explained again"))
    assert found_in(made.folder, model) == made
    after = files_of(made.folder)
    assert before == after


def test_interrupted_it_goes_on_to_the_same_result(made, model, tmp_path, monkeypatch):
    """Killed in its second evaluation: what was done stays, the rest is done as it would have been."""
    calls, real = [], EVALUATE.attributions

    def dies(*args: Any, **how: Any) -> Any:
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return real(*args, **how)

    monkeypatch.setattr(EVALUATE, "attributions", dies)
    with pytest.raises(KeyboardInterrupt):
        found_in(tmp_path / "out", model)
    monkeypatch.setattr(EVALUATE, "attributions", real)
    again = found_in(tmp_path / "out", model)
    assert [(one.value, one.by_method, one.dev) for one in again.candidates] == [
        (one.value, one.by_method, one.dev) for one in made.candidates
    ]
    assert again.best == made.best


def test_another_judge_reuses_the_runs(made, model, monkeypatch):
    monkeypatch.setattr(TRAIN, "fit", lambda *a: pytest.fail("it trained again"))
    by_f1 = found_in(made.folder, model, select="macro_f1")
    assert (by_f1.better, by_f1.texts) == ("higher", 0)
    assert [one.by_method for one in by_f1.candidates] == [{}, {}]
    assert by_f1.winner.value == max(one.dev["macro_f1"] for one in by_f1.candidates)
    other = found_in(made.folder, model, select="sufficiency:raw=true", methods=("attention",))
    assert other.better == "lower"  # raw sufficiency is a drop
    assert other.select == "sufficiency:raw=true"
    assert (made.folder / "decision_flip.json").exists()
    assert (made.folder / "macro_f1.csv").exists()


def test_seeds_are_averaged(model, tmp_path):
    both = found_in(tmp_path / "both", model, over="saloss.weight=1", seeds=(0, 1), methods=("attention",))
    each = [
        found_in(tmp_path / f"s{s}", model, over="saloss.weight=1", seeds=(s,), methods=("attention",)) for s in (0, 1)
    ]
    (one,) = both.candidates
    assert len(one.folders) == 2
    assert one.value == pytest.approx(sum(alone.winner.value for alone in each) / 2)
    assert one.dev["macro_f1"] == pytest.approx(sum(alone.winner.dev["macro_f1"] for alone in each) / 2)


def test_the_papers_methods_are_the_default():
    assert cli_train.JobOptions().methods == (
        "attention",
        "attention_x_gradient",
        "input_x_gradient",
        "integrated_gradients",
    )


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"select": "decision_flp"}, "no metric or score to select by 'decision_flp'. Did you mean 'decision_flip'"),
        ({"select": "agreement"}, "compares two explanations"),
        ({"texts": 0}, "texts is 0"),
        ({"seeds": ()}, r"seeds is \(\), so none is named"),
        ({"select": "auc"}, "auc is undefined on the dev texts"),  # no rationales
    ],
)
def test_mistakes(model, tmp_path, how, said):
    with pytest.raises(InputError, match=said):
        found_in(tmp_path / "out", model, **how)


def test_it_needs_a_dev_split_and_one_process(model, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="no dev split to search on"):
        search(toy(dev=0), model, over=WEIGHTS, out=tmp_path)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="runs in one process"):
        search(toy(), model, over=WEIGHTS, out=tmp_path)


def test_what_the_command_line_prints(made):
    app = typer.Typer()

    @app.command()
    def show(as_json: bool = False) -> None:
        cli_train.print_search(made, as_json)

    shown = CliRunner().invoke(app, [], env={"COLUMNS": "160"}).stdout
    lines = [line.split() for line in shown.splitlines()]
    assert lines[0] == ["objective", "decision_flip", "of", "random", "macro_f1"]
    assert "the mean of attention, gradient;" in shown
    assert lines[1 + made.best][-1] == "best"
    assert lines[1][1:3] == [f"{made.candidates[0].value:.3f}", f"{made.candidates[0].by_method['random']:.3f}"]
    assert str(made.winner.folders[0]) in shown
    printed = json.loads(CliRunner().invoke(app, ["--as-json"]).stdout)
    assert printed["best"] == made.best
    assert [row["best"] for row in to_rows(made)].count("best") == 1


@pytest.mark.filterwarnings("ignore::veridical.core.errors.Caution")  # planted words are many pieces here, and are cut
def test_a_training_job_with_a_search(model, made):
    """What `veridical train --search` does with its settings."""
    found = search(
        *("planted:size=24", model),
        **{"objective": "saloss", "out": made.folder.parent / "job", "config": FAST, "over": ["saloss.weight=1,2"]},
        **{"methods": ["attention,gradient"], "texts": 4, "progress": False},
    )
    assert (found.select, found.texts) == ("decision_flip", 4)
    assert set(found.winner.by_method) == {"attention", "gradient", "random"}
    assert found.candidates[0].folders == (made.folder.parent / "job" / "saloss" / "seed0",)


@pytest.mark.parametrize(
    ("over", "how", "bound", "said"),
    [
        ((), {"select": "macro_f1"}, None, "go with --search"),
        ((), {"texts": 3}, None, "go with --search"),
        (["saloss.weight=1"], {}, "saloss=0.1", "leave one of them out"),
    ],
)
def test_options_that_do_not_go_together(over, how, bound, said):
    with pytest.raises(InputError, match=said):
        cli_train.train(cli_train.JobOptions(bound=bound, over=over, **how))


def test_long_objectives_have_folders_of_their_own(model, tmp_path):
    """Folder names are cut; two objectives that differ at the end must not meet."""
    base = "saloss:prior=textrank/window=5/damping=0.85000000000000000001/steps=4"
    found = found_in(tmp_path, model, objective=base, over="saloss.reverse=true,false", select="macro_f1")
    places = [one.folders[0].parent.name for one in found.candidates]
    assert len(set(places)) == 2
    assert all(len(place) < 80 for place in places)
