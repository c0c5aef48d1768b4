"""Training steps with every term, of a transformer with dropout and of the BiLSTM: the same figures as on a CPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from accelerate import PartialState
from on_device import DEVICE
from transformers import TrainingArguments

import pretend
from guided import guided
from toy import small_model, toy
from veridical.core import store
from veridical.core.errors import ExhaustedError
from veridical.model import memory
from veridical.model.load import load
from veridical.training.config import TrainConfig
from veridical.training.term import terms
from veridical.training.train import train
from veridical.training.trainer import VeridicalTrainer

CONFIG = TrainConfig(epochs=2, batch=8, lr=1e-3, head_lr=1e-3)
OBJECTIVES = [
    "cross_entropy",
    "saloss:weight=0.1",
    "saloss:weight=0.1:prior=tfidf",
    "input_gradient:weight=0.1",
    "virtual_adversarial:weight=1",
    "explanation_guided:weight=1",
    *(f"explanation:weight=0.5:method={name}" for name in ("attention", "input_x_gradient", "attention_x_gradient")),
    "explanation:weight=0.5:method=globenc",
    "explanation:weight=0.5:method=gradient",
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_model(tmp_path_factory.mktemp("model") / "bert")


def figures(folder: Path) -> list[dict[str, float]]:
    rows = store.read_jsonl(folder / "train.jsonl")
    return [{k: v for k, v in row.items() if isinstance(v, float) and k != "seconds"} for row in rows]


def compare(here: Path, there: Path, tolerance: float = 2e-4) -> None:
    for a, b in zip(figures(here), figures(there), strict=True):
        assert set(a) == set(b)
        for name, value in a.items():
            assert b[name] == pytest.approx(value, rel=tolerance, abs=tolerance), name
    assert store.read_json(here / "spec.json") == store.read_json(there / "spec.json")  # the device is not in it
    assert store.read_json(there / "stamp.json")["device"] == str(DEVICE)
    weights = [load(folder, device="cpu").model.state_dict() for folder in (here, there)]
    for name, tensor in weights[0].items():
        np.testing.assert_allclose(weights[1][name].numpy(), tensor.numpy(), atol=5e-3, err_msg=name)


def test_every_term_is_here():
    assert {objective.partition(":")[0] for objective in OBJECTIVES} == {term.name for term in terms}


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_transformer_with_dropout(model, objective, tmp_path):
    data = guided(24, 12, 8)
    for name, device in (("cpu", "cpu"), ("pretend", str(DEVICE))):
        train(data, model, objective=objective, config=CONFIG, device=device, out=tmp_path / name, progress=False)
    compare(tmp_path / "cpu", tmp_path / "pretend")


@pytest.mark.parametrize(
    "objective", ["cross_entropy", "explanation:weight=0.5:method=attention", "input_gradient:weight=0.1"]
)
@pytest.mark.parametrize("pair", [False, True])
def test_the_bilstm(objective, pair, tmp_path):
    data = guided(24, 12, 8, pair=pair)
    how = {"config": {"epochs": 2, "batch": 8}, "progress": False, "objective": objective}
    for name, device in (("cpu", "cpu"), ("pretend", str(DEVICE))):
        train(data, "bilstm:hidden=8", device=device, out=tmp_path / name, **how)
    compare(tmp_path / "cpu", tmp_path / "pretend")


def test_under_a_bound(model, tmp_path):
    how = {"config": {"epochs": 2, "batch": 8}, "progress": False, "bound": "explanation=2"}
    for name, device in (("cpu", "cpu"), ("pretend", str(DEVICE))):
        train(guided(24, 12, 8), model, objective="explanation", device=device, out=tmp_path / name, **how)
    compare(tmp_path / "cpu", tmp_path / "pretend")


def test_a_step_that_does_not_fit_is_taken_in_smaller_passes(tmp_path):
    still = small_model(tmp_path / "model", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    data, how = guided(24, 12, 8), {"config": CONFIG, "objective": "input_gradient:weight=0.1", "progress": False}
    train(data, still, device="cpu", out=tmp_path / "cpu", **how)
    memory._rooms.clear()
    largest = max(p.numel() * 4 for p in load(still, device="cpu").model.parameters())
    with pretend.memory(max(largest, 3 * 14 * 48 * 4)):
        train(data, still, device=str(DEVICE), out=tmp_path / "pretend", **how)
    rooms = [room for held in memory._rooms.values() for (_, work, _), room in held.items() if work == "training"]
    assert not rooms or rooms[0].tokens < CONFIG.budget
    compare(tmp_path / "cpu", tmp_path / "pretend")


def test_a_text_that_is_too_long_for_memory_is_a_sentence(model, tmp_path):
    with (
        pretend.memory(2000),
        pytest.raises(ExhaustedError, match=r"The weights of .* do not fit into .*device=.cpu"),
    ):
        train(toy(8, 8, 0), model, device=str(DEVICE), config=CONFIG, out=tmp_path / "weights", progress=False)
    largest = max(p.numel() * 4 for p in load(model, device="cpu").model.parameters())
    narrow = {"config": {"epochs": 1, "batch": 2}, "out": tmp_path / "run", "progress": False}
    data = toy(8, 8, 0)
    long = tuple(replace(e, text=" ".join([e.text] * 12)) for e in data.splits["train"])
    data = replace(data, splits={**data.splits, "train": long})
    with pretend.memory(largest), pytest.raises(ExhaustedError, match=r"tokens does not fit .*max_length"):
        train(data, model, device=str(DEVICE), **narrow)


def test_the_trainer_of_transformers(tmp_path, monkeypatch):
    """Accelerate knows real devices only, and is told of this one."""
    still = small_model(tmp_path / "model", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    objective = "input_gradient:weight=0.1,saloss:weight=0.1,virtual_adversarial:weight=1"
    found = []
    for device in (torch.device("cpu"), DEVICE):
        how = {"use_cpu": True, "dataloader_pin_memory": False, "report_to": [], "disable_tqdm": True, "seed": 0}
        arguments = TrainingArguments(str(tmp_path / "out"), num_train_epochs=1, save_strategy="no", **how)
        monkeypatch.setattr(PartialState(cpu=True), "device", device)
        arguments.__dict__["_setup_devices"] = device
        clf = load(still, device="cpu")
        rows = [{**clf.tokenizer(e.text), "labels": e.label} for e in guided(24, 0, 0).splits["train"]]
        given = {"train_dataset": rows, "eval_dataset": rows[:8], "processing_class": clf.tokenizer}
        trainer = VeridicalTrainer(model=clf.model, args=arguments, objective=objective, **given)
        trainer.train()
        assert clf.device == device
        found.append({k: v for k, v in trainer.evaluate().items() if "runtime" not in k and "second" not in k})
    assert found[1] == pytest.approx(found[0], rel=1e-4, abs=1e-6)
