"""What a term may have: preparation, a size of its own, figures; and what is measured of it on dev."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from toy import small_model, toy
from veridical.core import store
from veridical.core.errors import InputError
from veridical.model.load import load
from veridical.training import task
from veridical.training.config import TrainConfig
from veridical.training.term import Term, terms
from veridical.training.train import Run, train

FAST = TrainConfig(epochs=2, batch=8, lr=1e-3, head_lr=1e-3)
CALLS: list[Any] = []


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> str:
    none: dict[str, Any] = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return small_model(tmp_path_factory.mktemp("model") / "still", **none)


@pytest.fixture
def add(monkeypatch: pytest.MonkeyPatch) -> Callable[[Term], None]:
    CALLS.clear()
    list(terms)  # found before ours are put beside them

    def put(one: Term) -> None:
        monkeypatch.setattr(terms, "_entries", {**terms._entries, one.name: one})

    return put


def films(encoded: Any) -> list[int]:
    """How often each text says film: what the term below is about."""
    return [e.example.text.split().count("film") for e in encoded]


def filmic(
    clf: Any, batch: Any, output: Any, labels: Any, prepared: float, *, power: float = 2.0, unused: int = 0
) -> Any:
    """The size of the gold logit, counted once for every film, less what was prepared."""
    gold = output.logits.gather(-1, labels[:, None]).squeeze(-1)
    counts = torch.tensor(films(batch.encoded), dtype=gold.dtype)
    loss = ((gold.abs() ** power - prepared) * counts).sum()
    return loss, {"films": counts.sum(), "longest": torch.tensor([float(len(e.ids)) for e in batch.encoded]).sum()}


def prepare(clf: Any, encoded: Any, labels: Any, *, power: float) -> float:
    CALLS.append((len(encoded), len(labels), power))
    return 0.25 * power


def size(encoded: Any, labels: Any, prepared: float, *, power: float) -> float:
    assert (len(encoded), prepared) == (len(labels), 0.25 * power)
    return sum(films(encoded))


FILMIC = Term("filmic", filmic, prepare=prepare, size=size)


def log_of(run: Run) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k != "seconds"} for row in store.read_jsonl(run.folder / "train.jsonl")]


def steps_of(run: Run) -> list[dict[str, Any]]:
    return [row for row in log_of(run) if "loss" in row]


def test_a_term_is_prepared_once_and_divided_by_its_own_size(add: Any, still: str, tmp_path: Path):
    add(FILMIC)
    frozen = replace(FAST, lr=0.0, head_lr=0.0, weight_decay=0.0, batch=40, epochs=1)  # one step, nothing moves
    data = toy()
    run = train(data, still, objective="filmic:power=1", config=frozen, out=tmp_path / "run", progress=False)
    assert CALLS == [(40, 40, 1.0)]
    (step,) = steps_of(run)
    clf = load(still, labels=data.labels)
    with torch.no_grad():
        for split, found in (("train", step), ("dev", log_of(run)[-1]["dev"]), ("test", run.scores["test"])):
            encoded = clf.encode(data.splits[split])
            logits = load(run.folder).forward(clf.collate(encoded)).logits
            gold = logits[range(len(encoded)), [e.label for e in data.splits[split]]].abs()
            counts = torch.tensor(films(encoded))
            assert found["filmic"] == pytest.approx(float(((gold - 0.25) * counts).sum() / counts.sum()), abs=1e-5)
            # Figures are per example, whatever the size is.
            assert found["filmic.films"] == pytest.approx(float(counts.float().mean()), abs=1e-6)
            assert found["filmic.longest"] == pytest.approx(np.mean([len(e.ids) for e in encoded]), abs=1e-5)
    assert step["loss"] == pytest.approx(step["cross_entropy"] + step["filmic"], abs=1e-6)
    assert "filmic" not in run.scores["train"]  # the log has its course


def test_passes_do_not_change_a_term_with_a_size(add: Any, still: str, tmp_path: Path):
    add(FILMIC)
    runs = [
        train(toy(), still, objective="filmic", config=replace(FAST, budget=b), out=tmp_path / str(b), progress=False)
        for b in (30, 8192)
    ]
    for key in ("loss", "filmic", "filmic.films", "norm"):
        few, one = (np.array([row[key] for row in steps_of(run)], dtype=float) for run in runs)  # none is NaN
        np.testing.assert_allclose(few, one, rtol=1e-4, atol=1e-6)
    few, one = ([row["dev"] for row in log_of(run) if "dev" in row] for run in runs)
    for a, b in zip(few, one, strict=True):
        np.testing.assert_allclose(list(a.values()), list(b.values()), rtol=1e-4, atol=1e-5)


def test_a_batch_that_a_term_is_not_about_adds_nothing(add: Any, still: str, tmp_path: Path):
    add(FILMIC)
    alone = replace(FAST, batch=1, epochs=1, select="last")
    run = train(toy(12, 4, 4), still, objective="filmic", config=alone, out=tmp_path / "run", progress=False)
    steps = steps_of(run)
    silent = [row for row in steps if row["filmic.films"] == 0]
    assert 0 < len(silent) < len(steps)
    for row in steps:
        assert (row["filmic"] is None) == (row["filmic.films"] == 0)
        assert math.isclose(row["loss"], row["cross_entropy"] + (row["filmic"] or 0.0), abs_tol=1e-6)
        assert math.isfinite(row["norm"])


def test_the_epoch_with_the_lowest_objective_can_be_kept(add: Any, still: str, tmp_path: Path):
    add(FILMIC)
    config = replace(FAST, epochs=4, lr=1e-2, head_lr=1e-2, select="objective")
    spec = "cross_entropy:weight=0.5,filmic:weight=3"
    run = train(toy(), still, objective=spec, config=config, out=tmp_path / "run", progress=False)
    epochs = [row["dev"] for row in log_of(run) if "dev" in row]
    for dev in epochs:
        assert dev["objective"] == pytest.approx(0.5 * dev["loss"] + 3 * dev["filmic"], abs=1e-6)
    assert run.best_epoch == 1 + int(np.argmin([dev["objective"] for dev in epochs]))
    assert run.scores["dev"] == pytest.approx(epochs[run.best_epoch - 1], abs=1e-6)
    plain = train(toy(), still, config=config, out=tmp_path / "plain", progress=False)
    for dev in (row["dev"] for row in log_of(plain) if "dev" in row):
        assert dev["objective"] == dev["loss"]


def test_an_objective_that_is_undefined_on_dev_cannot_select(add: Any, still: str, tmp_path: Path):
    def only_train(encoded: Any, labels: Any) -> float:
        return float(sum(e.example.id.startswith("train") for e in encoded))

    def nothing(clf: Any, batch: Any, output: Any, labels: Any) -> torch.Tensor:
        return output.logits.sum() * 0

    add(Term("nothing", nothing, size=only_train))
    run = train(toy(), still, objective="nothing", config=FAST, out=tmp_path / "a", progress=False)
    assert {row["dev"]["nothing"] for row in log_of(run) if "dev" in row} == {None}
    config = replace(FAST, select="objective")
    with pytest.raises(InputError, match="select=objective is undefined on this dev split"):
        train(toy(), still, objective="nothing", config=config, out=tmp_path / "b", progress=False)


def test_a_term_may_run_the_model_again_with_dropout_off(add: Any, tmp_path: Path):
    seen: list[tuple[bool, bool, bool]] = []

    def again(clf: Any, batch: Any, output: Any, labels: Any) -> torch.Tensor:
        before = clf.model.training
        with clf.still():
            first, second = (clf.forward(batch).logits for _ in range(2))
        assert torch.equal(first, second)
        assert first.requires_grad
        seen.append((before, clf.model.training, torch.equal(first, output.logits)))
        return first.square().sum()

    add(Term("again", again))
    model = small_model(tmp_path / "model")
    train(toy(), model, objective="again", config=FAST, out=tmp_path / "run", progress=False)
    assert (True, True, False) in seen  # training: the loop's own pass had dropout
    assert (False, False, True) in seen  # dev: all is still
    assert len(set(seen)) == 2


def test_a_figure_that_only_some_passes_have_is_kept(still: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    real, passes = task.run_terms, []

    def once(own: Any, split: str, rows: Any, step: int) -> Any:
        logits, losses, figures = real(own, split, rows, step)
        passes.append(split)
        return logits, losses, {**figures, "seen": torch.tensor(10.0)} if passes.count("dev") == 1 else figures

    monkeypatch.setattr(task, "run_terms", once)
    small = replace(FAST, batch=4, epochs=1)
    run = train(toy(), still, objective="input_gradient:weight=0.1", config=small, out=tmp_path / "run", progress=False)
    assert passes.count("dev") > 2
    assert log_of(run)[-1]["dev"]["seen"] == pytest.approx(10.0 / len(toy().splits["dev"]))
