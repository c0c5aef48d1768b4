"""A training whose passes do not fit into memory takes smaller ones, to the same losses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from toy import small_model, toy
from veridical.core import store
from veridical.core.errors import ExhaustedError
from veridical.model import memory
from veridical.training import step, task
from veridical.training.config import TrainConfig
from veridical.training.train import train

CONFIG = TrainConfig(epochs=1, batch=8, lr=1e-3, head_lr=1e-3)
OBJECTIVE = "input_gradient:weight=0.1"  # a second term: splits are measured by passes too


@pytest.fixture
def still(tmp_path: Path) -> str:
    """A model without dropout, whose losses do not depend on random numbers."""
    memory._rooms.clear()
    return small_model(tmp_path / "still", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def losses(folder: Path) -> list[float]:
    rows = store.read_jsonl(folder / "train.jsonl")
    return [value for row in rows for key, value in row.items() if isinstance(value, float) and key != "seconds"]


def short_of_memory(monkeypatch: pytest.MonkeyPatch, most: int) -> list[int]:
    """Passes of more than so many examples do not fit: half a gradient is there when that shows."""
    sizes: list[int] = []
    usual = task.run_terms

    def run_terms(of: Any, split: str, rows: Any, at: int) -> Any:
        sizes.append(len(rows))
        logits, sums, figures = usual(of, split, rows, at)
        if len(rows) > most:
            if split == "train":
                sum(sums.values()).backward()
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return logits, sums, figures

    monkeypatch.setattr(task, "run_terms", run_terms)
    monkeypatch.setattr(step, "run_terms", run_terms)
    return sizes


def test_smaller_passes_give_the_same_losses(still: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    how: dict[str, Any] = {"objective": OBJECTIVE, "config": CONFIG, "progress": False}
    train(toy(), still, out=tmp_path / "whole", **how)
    memory._rooms.clear()
    sizes = short_of_memory(monkeypatch, 3)
    train(toy(), still, out=tmp_path / "short", **how)
    assert sizes[0] == 8
    assert sum(size > 3 for size in sizes) < 10  # what did not fit is not tried in every step
    assert losses(tmp_path / "short") == pytest.approx(losses(tmp_path / "whole"), abs=1e-4)


def test_dropout_is_drawn_anew_for_the_smaller_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The step that is begun anew is that of a run with the smaller budget from the start."""
    model = small_model(tmp_path / "model")
    longest = 16  # tokens
    for name, budget in (("small", 2 * longest), ("halved", 4 * longest)):
        memory._rooms.clear()
        if name == "halved":
            sizes = short_of_memory(monkeypatch, 2)
        data = toy(8, 8, 0)
        same = tuple(replace(e, text="the film was good and the plot was bad") for e in data.splits["train"])
        train(
            replace(data, splits={**data.splits, "train": same}),
            model,
            config=replace(CONFIG, budget=budget, select="last"),
            out=tmp_path / name,
            progress=False,
        )
    assert max(sizes) > 2
    (small, *_), (halved, *_) = losses(tmp_path / "small"), losses(tmp_path / "halved")
    assert halved == pytest.approx(small, abs=1e-6)


def test_one_text_that_does_not_fit_is_a_sentence(still: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    sizes = short_of_memory(monkeypatch, 0)
    with pytest.raises(ExhaustedError, match=r"A text of \d+ tokens does not fit into the memory of cpu, .*max_length"):
        train(toy(), still, config=CONFIG, out=tmp_path / "run", progress=False)
    assert sizes[-1] == 1
