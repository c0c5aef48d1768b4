"""One term under a bound on another: the multiplier, eligible epochs, failure, and the search for a bound."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer import Exit

import goldens
from guided import guided
from launching import on_two_processes
from toy import small_model
from veridical.cli.app import verb
from veridical.cli.train import print_runs
from veridical.core import store
from veridical.core.errors import InputError
from veridical.model.load import load
from veridical.training.bound import Bound, Multiplier, climb, constrain, label
from veridical.training.bound_search import is_searched, lowest, search_bound
from veridical.training.config import TrainConfig
from veridical.training.jobs import train_all
from veridical.training.rate import rate
from veridical.training.term import objective
from veridical.training.train import Run, read_run, train

GOLDEN = goldens.GOLDEN["lagrange_multiplier_step"]
CONFIG = TrainConfig(epochs=4, batch=8, lr=5e-3, head_lr=5e-3, select="loss", threads=1)
NONE: dict[str, Any] = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_model(tmp_path_factory.mktemp("model") / "bert")


def log_of(run: Run) -> list[dict[str, Any]]:
    return store.read_jsonl(run.folder / "train.jsonl")


# -- the multiplier -----------------------------------------------------------------------------------------


def test_golden_step():
    given, expected = GOLDEN["inputs"], GOLDEN["expected"]
    violation = given["explanation_loss"] - given["bound"]
    assert violation == pytest.approx(expected["gradient_wrt_multiplier"], abs=1e-12)
    whole = given["classification_loss"] + given["multiplier"] * violation
    assert whole == pytest.approx(expected["lagrangian"], abs=1e-12)
    found = climb(Multiplier(given["multiplier"]), violation, given["learning_rate"])
    assert found.value == pytest.approx(expected["multiplier_after_one_ascent_step"], abs=1e-12)
    below = given["negative_case"]
    violation = below["explanation_loss"] - given["bound"]
    found = climb(Multiplier(below["multiplier"]), violation, given["learning_rate"])
    assert found.value == expected["negative_case"]["after_projection"] == 0
    assert found.square > 0


def test_the_multiplier_moves_as_torchs_rmsprop_does():
    weight = torch.nn.Parameter(torch.tensor(1.0, dtype=torch.float64))
    optimizer = torch.optim.RMSprop([weight], lr=1.0)
    own = Multiplier()
    for step, violation in enumerate([0.2, 0.05, -0.3, -0.3, 0.01, 0.4, -0.2]):
        lr = 0.05 * (step + 1) / 7
        optimizer.param_groups[0]["lr"] = lr
        weight.grad = torch.tensor(-violation, dtype=torch.float64)
        optimizer.step()
        weight.data.clamp_(min=0)
        own = climb(own, violation, lr)
        assert own.value == pytest.approx(float(weight.detach()), abs=1e-12)


def test_bounds_are_read():
    chosen, bounds = constrain(objective("explanation:method=rollout"), "explanation=0.035+0.031")
    assert bounds == (Bound("explanation", 0.035, 0.031, 0.1),)
    assert [one.name for one in chosen] == ["cross_entropy", "explanation"]
    chosen, bounds = constrain(objective("cross_entropy"), "explanation=0.035")  # a term that is only bounded is added
    assert bounds == (Bound("explanation", 0.035, 0.035, 0.05),)  # attention: the paper's slower rate
    assert chosen[1].choice.options["method"] == "attention"
    _, bounds = constrain(objective("explanation,saloss"), "explanation=1e-2+0.5:lr=0.2,saloss=3")
    assert bounds == (Bound("explanation", 0.01, 0.5, 0.2), Bound("saloss", 3.0, 3.0, 0.1))
    assert constrain(objective("explanation,saloss"), label(bounds))[1] == bounds
    assert constrain(objective("explanation"), None) == (objective("explanation"), ())


@pytest.mark.parametrize(
    ("spec", "bound", "said"),
    [
        ("cross_entropy", "explanation", "is not TERM=VALUE"),
        ("cross_entropy", "explanation=", "is ''; it must be a number"),
        ("cross_entropy", "explanatoin=1", "Did you mean 'explanation'"),
        ("cross_entropy", "explanation=x", "must be a number"),
        ("cross_entropy", "explanation=0", "one number above 0, or two"),
        ("cross_entropy", "explanation=1+2+3", "one number above 0, or two"),
        ("cross_entropy", "explanation=1:rate=2", "no option 'rate'; it takes lr"),
        ("cross_entropy", "explanation=1:lr=0", "lr of the bound of term 'explanation' is 0; it must be above 0"),
        ("explanation:weight=2", "explanation=1", "has the weight 2 and a bound"),
        ("cross_entropy", "explanation=1,explanation=2", "bounded twice"),
        ("cross_entropy", "cross_entropy=1", "is of what is minimised"),
        ("saloss", "cross_entropy=1", "is of what is minimised"),
        ("cross_entropy", "explanation=search", r"bound_search` finds it"),
        ("cross_entropy", "explanation=search:lr=0.2", r"bound_search` finds it"),
        ("cross_entropy", "explanation=1:looser=2", "no option 'looser'; it takes lr"),
    ],
)
def test_mistakes_in_a_bound_are_one_sentence(spec: str, bound: str, said: str):
    with pytest.raises(InputError, match=said):
        constrain(objective(spec), bound)


# -- a run under a bound ------------------------------------------------------------------------------------


def test_the_log_tells_the_multipliers_course(model: str, tmp_path: Path):
    run = train(guided(), model, bound="explanation=0.15+0.5", config=CONFIG, out=tmp_path / "run", progress=False)
    assert not run.failed
    steps = [row for row in log_of(run) if "loss" in row]
    own = Multiplier()
    for i, row in enumerate(steps):
        assert row["explanation.multiplier"] == pytest.approx(own.value, rel=1e-9)
        violation = row["explanation"] - 0.15
        assert row["loss"] == pytest.approx(row["cross_entropy"] + own.value * violation, abs=1e-9)
        own = climb(own, violation, 0.05 * rate(i, len(steps), CONFIG))
    course = [row["explanation.multiplier"] for row in steps]
    assert max(course) > 1.5  # it climbs while the bound is not met,
    assert course[-1] < max(course)  # and goes down when it is
    assert steps[-1]["explanation"] < steps[0]["explanation"]


def test_the_best_eligible_epoch_is_kept(model: str, tmp_path: Path):
    free = train(guided(), model, objective="explanation", config=CONFIG, out=tmp_path / "free", progress=False)
    falling = [row["dev"]["explanation"] for row in log_of(free) if "dev" in row]
    assert falling == sorted(falling, reverse=True)
    bound = (falling[1] + falling[2]) / 2 / 1.1  # so that not the first epochs, but some, will be eligible
    spec = f"explanation=0.001+{bound}"
    run = train(guided(), model, bound=spec, config=CONFIG, out=tmp_path / "run", progress=False)
    epochs = [row for row in log_of(run) if "dev" in row]
    assert [row["eligible"] for row in epochs] == [row["dev"]["explanation"] < 1.1 * bound for row in epochs]
    eligible = [row for row in epochs if row["eligible"]]
    assert 0 < len(eligible) < len(epochs)
    best = min(eligible, key=lambda row: row["dev"]["loss"])
    assert run.best_epoch == best["epoch"]
    assert run.scores["dev"] == pytest.approx(best["dev"], abs=1e-6)
    assert [row["epoch"] for row in epochs if row["best"]][-1] == run.best_epoch
    assert "explanation=0.001+" in store.read_json(run.folder / "spec.json")["bound"]


def test_a_run_without_an_eligible_epoch_fails_and_keeps_nothing(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    run = train(guided(), model, bound="explanation=1e-9", config=CONFIG, out=tmp_path / "run", progress=True)
    values = [row["dev"]["explanation"] for row in log_of(run) if "dev" in row]
    assert "No epoch keeps the bound, so no weights are kept" in run.failed
    assert f"was at best {min(values):.4g}. Raise it, or train on." in run.failed
    assert run.failed in capsys.readouterr().err
    assert (run.scores, run.best_epoch, run.epochs) == ({}, 0, 4)
    assert {path.name for path in run.folder.iterdir()} == {"spec.json", "stamp.json", "train.jsonl", "scores.json"}
    assert read_run(run.folder) == run
    again = train(guided(), model, bound="explanation=1e-9", config=CONFIG, out=tmp_path / "run", progress=False)
    assert again == run  # it is done, not to be tried again
    with pytest.raises(InputError, match="holds no model"):
        load(run.folder)


def test_patience_is_halved_and_counted_anew_at_the_first_eligible_epoch(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from veridical.training import selection

    dev = [(1.0, 9.0), (2.0, 9.0), (3.0, 9.0), (4.0, 0.1), (5.0, 0.1), (3.9, 9.0), (6.0, 0.1)]  # loss, explanation

    def told(task: Any, split: str, epoch: int) -> tuple[None, dict[str, float]]:
        loss, explanation = dev[epoch - 1]
        return None, {"loss": loss, "explanation": explanation}

    config = replace(CONFIG, epochs=9, patience=4)
    with monkeypatch.context() as patch:
        patch.setattr(selection, "measure", told)
        run = train(guided(), model, bound="explanation=1", config=config, out=tmp_path / "run", progress=False)
        # Not stopped by its worsening loss before epoch 4; from there on two epochs without a better eligible one.
        assert (run.epochs, run.best_epoch) == (6, 4)
        dev[:] = [(1.0 + i, 9.0) for i in range(9)]
        run = train(guided(), model, bound="explanation=1", config=config, out=tmp_path / "never", progress=False)
        assert (run.epochs, run.best_epoch, bool(run.failed)) == (5, 0, True)  # four after the best, as without a bound


def test_a_batch_without_rationales_leaves_the_multiplier_alone(model: str, tmp_path: Path):
    config = replace(CONFIG, batch=1, epochs=1)
    run = train(guided(16, 8, 8), model, bound="explanation=0.1+9", config=config, out=tmp_path / "run", progress=False)
    steps = [row for row in log_of(run) if "loss" in row]
    silent = [i for i, row in enumerate(steps) if row["explanation"] is None]
    assert len(silent) == 4
    for i in silent:
        assert steps[i]["loss"] == pytest.approx(steps[i]["cross_entropy"], abs=1e-9)
        if i + 1 < len(steps):
            assert steps[i]["explanation.multiplier"] == steps[i + 1]["explanation.multiplier"]


def test_runs_that_cannot_be_bounded_are_refused(model: str, tmp_path: Path):
    config = replace(CONFIG, select="last")
    with pytest.raises(InputError, match="set select=loss, not last"):
        train(guided(), model, bound="explanation=1", config=config, out=tmp_path / "a", progress=False)
    with pytest.raises(InputError, match="set select=loss"):
        search_bound(guided(), model, bound="explanation=search", config=config, out=tmp_path / "s", progress=False)
    assert not (tmp_path / "s").exists()
    data = guided()
    bare = tuple(replace(e, rationale=()) for e in data.splits["dev"])
    data = replace(data, splits={**data.splits, "dev": bare})
    with pytest.raises(InputError, match="says nothing of the dev split"):
        train(data, model, bound="explanation=1", config=CONFIG, out=tmp_path / "b", progress=False)


def test_a_train_bound_that_asks_nothing_is_named(model: str, tmp_path: Path):
    run = train(guided(), model, bound="explanation=9+1e-9", config=CONFIG, out=tmp_path / "run", progress=False)
    assert "is within the train bound (9), which asks no more. Lower the train bound." in run.failed


# -- the search ---------------------------------------------------------------------------------------------


def test_a_bound_is_searched_and_then_trained_under(model: str, tmp_path: Path):
    spec = "explanation:method=rollout"
    seeds, config = (0, 1), replace(CONFIG, epochs=2)
    found = search_bound(
        guided(), model, bound="explanation=search:lr=0.2", objective=spec, seeds=seeds, config=config, out=tmp_path
    )
    runs = [read_run(tmp_path / "explanation" / f"seed{seed}") for seed in seeds]
    for run in runs:
        assert store.read_json(run.folder / "spec.json")["objective"] == (
            "cross_entropy:weight=0,explanation:method=rollout"
        )
    lows = []
    for run in runs:
        rows = log_of(run)
        train_loss = [np.mean([r["explanation"] for r in rows if r.get("epoch") == e and "loss" in r]) for e in (1, 2)]
        dev_loss = [r["dev"]["explanation"] for r in rows if "dev" in r]
        lows.append((min(train_loss), min(dev_loss)))
        assert lowest(run, "explanation") == pytest.approx(lows[-1])
    _, (bound,) = constrain(objective(spec), found)
    assert bound.train == pytest.approx(1.5 * np.mean([low for low, _ in lows]), rel=1e-3)
    assert bound.dev == pytest.approx(np.mean([low for _, low in lows]), rel=1e-3)
    assert bound.lr == 0.2
    closer = search_bound(
        guided(), model, bound="explanation=search:looser=1.1", objective=spec, seeds=seeds, config=config, out=tmp_path
    )
    _, (close,) = constrain(objective(spec), closer)
    assert (close.train, close.dev) == (pytest.approx(1.1 / 1.5 * bound.train, rel=1e-3), bound.dev)
    with pytest.raises(InputError, match=r"looser, .*'explanation', is 0.5; it must be 1 or more"):
        search_bound(guided(), model, bound="explanation=search:looser=0.5", objective=spec, out=tmp_path)
    assert is_searched("explanation=search:lr=0.2")
    assert not is_searched(found)
    assert not is_searched(None)
    with pytest.raises(InputError, match="has the weight 2 and a bound"):
        search_bound(guided(), model, bound="explanation=search", objective="explanation:weight=2", out=tmp_path)


@pytest.fixture
def texts(tmp_path: Path) -> str:
    """The guided data as files."""
    data, folder = guided(16, 8, 8), tmp_path / "data"
    for split, examples in data.splits.items():
        rows = [
            {"id": e.id, "text": e.text, "label": data.labels[int(e.label)], "rationale": list(map(list, e.rationale))}  # type: ignore[arg-type]
            for e in examples
        ]
        store.write_jsonl(folder / f"{split}.jsonl", rows)
    return str(folder)


def test_one_command_searches_and_trains(model: str, texts: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    job = {"bound": "explanation=search", "seeds": (4,), "out": tmp_path / "out", "config": replace(CONFIG, epochs=1)}
    (run,) = train_all(texts, model, **job, progress=True)
    assert run.folder == tmp_path / "out" / "seed4"
    assert sorted(path.name for path in (tmp_path / "out" / "bound" / "explanation").iterdir()) == [
        "seed0",
        "seed1",
        "seed2",
    ]
    bound = store.read_json(run.folder / "spec.json")["bound"]
    assert f"bound: {bound.removesuffix(':lr=0.05')}" in capsys.readouterr().err
    assert train_all(texts, model, **job) == [run]  # all of it is reused


def test_a_seed_that_failed_is_shown_and_changes_the_exit_code(
    model: str, texts: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    how = {"bound": "explanation=1e-9", "config": {"epochs": 1}, "seeds": (0, 1), "progress": False}
    runs = train_all(texts, model, out=tmp_path / "out", **how)
    assert [run.seed for run in runs if run.failed] == [0, 1]  # the first did not keep the second from its turn
    assert all((run.folder / "scores.json").exists() for run in runs)
    fine = Run(Path("fine"), 2, {"dev": {"accuracy": 1.0}}, 1, 1, 1.0, {})
    with pytest.raises(Exit) as ended:
        print_runs([fine, *runs], as_json=False)
    assert ended.value.exit_code == 1
    shown = capsys.readouterr().out
    assert "1.000" in shown
    for run in runs:
        assert f"seed {run.seed} failed: No epoch keeps the bound" in " ".join(shown.split())
        assert str(run.folder) in shown
    with pytest.raises(Exit):
        print_runs(runs, as_json=True)
    assert [run["failed"] for run in json.loads(capsys.readouterr().out)] == [run.failed for run in runs]
    print_runs([fine], as_json=False)


def test_a_bounded_job_selects_by_loss_unless_told_otherwise(tmp_path: Path):
    def selects(*words: str) -> str:
        return verb("train").parse(words)["options"].settings().select

    assert selects("--bound", "explanation=1") == "loss"
    assert selects("--set", "bound=explanation=1", "--set", "train.select=accuracy") == "accuracy"
    assert selects("--bound", "none") == selects() == "macro_f1"
    path = tmp_path / "job.toml"
    path.write_text('bound = "explanation=0.035+0.031"\n')
    assert verb("train").parse(["--config", str(path)])["options"].bound == "explanation=0.035+0.031"


# -- several processes --------------------------------------------------------------------------------------


def main(model: str, folder: str) -> None:
    # Three texts of four have a rationale, so the shares of two processes hold different numbers of tokens.
    config = replace(CONFIG, epochs=2, lr=1e-3, head_lr=1e-3)
    objective = "explanation:method=input_x_gradient"
    train(
        guided(41, 15, 7), model, objective=objective, bound="explanation=0.1+9", config=config, out=folder,
        progress=False,
    )  # fmt: skip


def test_two_processes_follow_the_curve_of_one(tmp_path: Path):
    model = small_model(tmp_path / "model", **NONE)
    main(model, str(tmp_path / "one"))
    on_two_processes(__file__, model, str(tmp_path / "two"))
    one, two = (store.read_jsonl(tmp_path / name / "train.jsonl") for name in ("one", "two"))
    assert store.read_json(tmp_path / "two" / "stamp.json")["processes"] == 2
    steps = [(a, b) for a, b in zip(one, two, strict=True) if "loss" in a]
    assert len(steps) == 12
    for key in ("loss", "explanation", "explanation.guided", "explanation.multiplier"):
        np.testing.assert_allclose([b[key] for _, b in steps], [a[key] for a, _ in steps], rtol=1e-4, atol=1e-5)
    for a, b in ((a["dev"], b["dev"]) for a, b in zip(one, two, strict=True) if "dev" in a):
        assert math.isfinite(a["explanation"])
        np.testing.assert_allclose(list(b.values()), list(a.values()), rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    main(*sys.argv[1:])
