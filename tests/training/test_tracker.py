"""`report_to="tensorboard"`: what TensorBoard's own reader finds is the log, however often a run was begun."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toy import small_model, toy
from veridical.core import store
from veridical.core.errors import InputError
from veridical.training import loop
from veridical.training.config import TrainConfig
from veridical.training.search import search
from veridical.training.train import train

CONFIG = TrainConfig(epochs=2, batch=8, lr=1e-3, head_lr=1e-3, threads=1)


def trained(model: str, folder: Path, **more: Any) -> None:
    train(toy(), model, config=CONFIG, out=folder, progress=False, save_steps=2, **more)


def curves(folder: Path) -> dict[str, dict[int, float]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder / "tensorboard"), size_guidance={"scalars": 0}).Reload()
    return {tag: {e.step: e.value for e in events.Scalars(tag)} for tag in events.Tags()["scalars"]}


def expect_the_log(folder: Path) -> None:
    rows = store.read_jsonl(folder / "train.jsonl")
    found = curves(folder)
    assert found["train/loss"] == pytest.approx({row["step"]: row["loss"] for row in rows if "loss" in row})
    assert found["dev/macro_f1"] == pytest.approx({row["step"]: row["dev"]["macro_f1"] for row in rows if "dev" in row})
    assert {"train/norm", "train/encoder_lr", "train/epoch", "dev/accuracy"} <= set(found)
    assert len(found["train/loss"]) == 10


def test_the_events_are_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("tensorboard")
    model, folder = small_model(tmp_path / "model"), tmp_path / "run"
    real, calls = loop.step, []

    def dying(*given: Any) -> Any:
        calls.append(given)
        if len(calls) == 4:  # after the checkpoint at step 2, and one step whose events must not stay
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(loop, "step", dying)
    with pytest.raises(KeyboardInterrupt):
        trained(model, folder, report_to="tensorboard")
    monkeypatch.setattr(loop, "step", real)
    trained(model, folder, report_to="tensorboard")
    expect_the_log(folder)

    trained(model, tmp_path / "later")  # a finished run, tracked when it is asked for
    assert not (tmp_path / "later" / "tensorboard").exists()
    trained(model, tmp_path / "later", report_to="tensorboard")
    expect_the_log(tmp_path / "later")
    for name in ("spec.json", "model/model.safetensors"):  # neither is any different for it
        assert (tmp_path / "later" / name).read_bytes() == (folder / name).read_bytes()


def test_every_candidate_of_a_search_is_tracked(tmp_path: Path):
    pytest.importorskip("tensorboard")
    model = small_model(tmp_path / "model")
    over, once = "cross_entropy.weight=1,0.5", TrainConfig(epochs=1, batch=20, threads=1)
    same: dict[str, Any] = {"select": "accuracy", "config": once, "report_to": "tensorboard", "progress": False}
    found = search(toy(), model, over=[over], out=tmp_path / "search", **same)
    assert all(curves(folder)["dev/accuracy"] for one in found.candidates for folder in one.folders)


def test_without_tensorboard_a_sentence_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("veridical.training.tracker.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"not installed; run `pip install tensorboard`"):
        trained("minilm", tmp_path / "run", report_to="tensorboard")
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match=r"report_to is 'wandb'; allowed: none, tensorboard"):
        trained("minilm", tmp_path / "run", report_to="wandb")
