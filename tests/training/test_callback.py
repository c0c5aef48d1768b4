"""Faithfulness during a training: figures in the log, and a training that is the same with and without them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from transformers import Trainer, TrainingArguments

import veridical
from tiny import tiny
from toy import toy
from veridical.attribution import method, methods
from veridical.core.errors import Caution, InputError
from veridical.model.lora import has_adapters
from veridical.training.callback import FaithfulnessCallback, undisturbed

TEXTS = [example.text for example in toy(dev=4).splits["dev"]]


def rude(clf: Any, batch: Any, target: Any) -> torch.Tensor:
    """A method that draws from every generator and puts gradients and modes in disorder."""
    target(clf.forward(batch).logits)
    clf.model.train()
    for parameter in clf.model.parameters():
        parameter.requires_grad_(True)
        parameter.grad = torch.ones_like(parameter)
    return torch.rand(batch.ids.shape) + random.random() + float(np.random.rand())


@pytest.fixture(autouse=True)
def own_method() -> Iterator[None]:
    assert "attention" in methods
    method("rude", signed=False)(rude)
    yield
    del methods._entries["rude"]


def trainer(folder: Path, **more: Any) -> Trainer:
    torch.manual_seed(0)
    network, tokenizer = tiny("bert", num_labels=2, hidden_dropout_prob=0.2)
    examples = toy(train=24).splits["train"]
    rows = Dataset.from_dict({**tokenizer([e.text for e in examples]), "label": [e.label for e in examples]})
    settings: dict[str, Any] = {
        "per_device_train_batch_size": 4,
        "num_train_epochs": 2,  # 6 steps each
        "learning_rate": 1e-3,
        "logging_steps": 2,
        "report_to": [],
        "use_cpu": True,
        "disable_tqdm": True,
        "save_strategy": "no",
        **more,
    }
    args = TrainingArguments(output_dir=str(folder), **settings)
    return Trainer(network, args, train_dataset=rows, processing_class=tokenizer)


def logged(one: Trainer, name: str) -> dict[int, float]:
    return {row["step"]: row[name] for row in one.state.log_history if name in row}


def trained(one: Trainer) -> Trainer:
    one.train()
    return one


@pytest.mark.parametrize(("every", "steps"), [(4, [0, 4, 8, 12]), (5, [0, 5, 10, 12]), (None, [0, 6, 12])])
def test_the_training_is_the_same_with_and_without_it(tmp_path: Path, every: int | None, steps: list[int]):
    plain = trained(trainer(tmp_path))
    watched = trainer(tmp_path)
    names = ("rude", "gradient", "attention")
    watched.add_callback(veridical.FaithfulnessCallback(watched, TEXTS, names, "decision_flip,agreement", every=every))
    trained(watched)
    for name, tensor in plain.model.state_dict().items():
        assert torch.equal(tensor, watched.model.state_dict()[name]), name
    for name in ("loss", "grad_norm", "learning_rate"):
        assert len(logged(plain, name)) == 6
        assert logged(plain, name) == logged(watched, name)
    for name in names:
        flips = logged(watched, f"eval_decision_flip/{name}")
        assert list(flips) == steps
        assert all(0 <= value <= 1 for value in flips.values())
    assert list(logged(watched, "eval_agreement/gradient ~ attention")) == steps


def test_the_figures_are_those_of_evaluate(tmp_path: Path):
    one = trainer(tmp_path, max_steps=1)
    callback = FaithfulnessCallback(one, TEXTS, ["gradient"], ["sufficiency"], every=1, prefix="held")
    one.add_callback(callback)
    one.train()
    assert one.model is not None
    scored = veridical.evaluate(veridical.load(one.model, one.processing_class), TEXTS, ["gradient"], ["sufficiency"])
    assert logged(one, "held_sufficiency/gradient")[1] == scored.mean("sufficiency", "gradient")
    assert callback.measure() == {"held_sufficiency/gradient": scored.mean("sufficiency", "gradient")}


# peft asks transformers for something by its old name.
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")
@pytest.mark.parametrize("wrapped", [False, True], ids=["injected", "peft's wrapper"])
def test_adapters_are_folded_into_what_is_measured_and_stay_in_what_is_trained(tmp_path: Path, wrapped: bool):
    peft = pytest.importorskip("peft")
    one = trainer(tmp_path, max_steps=3)
    how = peft.LoraConfig(r=4, target_modules=["query", "value"], init_lora_weights=False)
    one.model = peft.get_peft_model(one.model, how) if wrapped else peft.inject_adapter_in_model(how, one.model)
    one.model_wrapped = one.model
    callback = FaithfulnessCallback(one, TEXTS, ["alti", "gradient"], ["comprehensiveness"], every=3)
    one.add_callback(callback)
    one.train()
    with pytest.warns(Caution, match="adapters"):
        folded = veridical.load(one.model, one.processing_class)
    scored = veridical.evaluate(folded, TEXTS, ["alti", "gradient"], ["comprehensiveness"])
    for name in ("alti", "gradient"):
        figures = logged(one, f"eval_comprehensiveness/{name}")
        assert figures[3] == scored.mean("comprehensiveness", name)
        assert figures[0] != figures[3]  # adapters are trained, and that is seen
    assert has_adapters(one.model)


def test_modes_gradients_and_random_states_come_back():
    network, tokenizer = tiny("bert")
    clf = veridical.load(network, tokenizer)
    network.train()
    network.classifier.eval()
    frozen = next(iter(network.parameters())).requires_grad_(False)
    gradient = network.classifier.weight.grad = torch.full_like(network.classifier.weight, 3.0)
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
    with undisturbed(clf):
        batch = clf.collate(clf.encode([veridical.Example("0", "a good film")]))
        rude(clf, batch, lambda logits: logits)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before[1:]
    assert network.training
    assert not network.classifier.training
    assert not frozen.requires_grad
    assert network.classifier.weight.grad is gradient
    assert bool((gradient == 3.0).all())
    assert frozen.grad is None


def test_mistakes_are_told_before_the_first_step(tmp_path: Path):
    one = trainer(tmp_path)
    with pytest.raises(InputError, match="There is no attribution method 'atention'"):
        FaithfulnessCallback(one, TEXTS, "atention")
    with pytest.raises(InputError, match="every is 0; it must be a number of steps"):
        FaithfulnessCallback(one, TEXTS, every=0)
    with pytest.raises(InputError, match=r"logs through its trainer, but was given list"):
        FaithfulnessCallback(TEXTS, one)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="not a class of this model"):
        FaithfulnessCallback(one, TEXTS, target="happy")
    one.processing_class = None
    with pytest.raises(InputError, match="processing_class=tokenizer"):
        FaithfulnessCallback(one, TEXTS)


def test_tensorboard_has_the_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "events"))
    one = trainer(tmp_path, report_to=["tensorboard"], max_steps=4)
    one.add_callback(FaithfulnessCallback(one, TEXTS, "attention", "decision_flip", every=2))
    one.train()
    events = EventAccumulator(str(tmp_path / "events")).Reload()
    shown = {event.step: event.value for event in events.Scalars("eval/decision_flip/attention")}
    assert shown == pytest.approx(logged(one, "eval_decision_flip/attention"))
    assert list(shown) == [0, 2, 4]


def test_a_metric_that_no_text_allows_is_refused_when_the_callback_is_made(tmp_path):
    with pytest.raises(InputError, match="auc cannot be computed"):
        FaithfulnessCallback(trainer(tmp_path), TEXTS, "attention", ["auc"])
    with pytest.warns(Caution, match="auc cannot be computed"):
        made = FaithfulnessCallback(trainer(tmp_path), TEXTS, "attention", ["auc", "sparsity"])
    assert made.metrics == ["sparsity"]
