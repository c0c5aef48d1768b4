"""Training by low-rank adapters: little is trained, and what is explained has it in its weights."""

from __future__ import annotations

import copy
import importlib.util

import numpy as np
import pytest
import torch

import veridical
from tiny import tiny
from veridical.core.errors import Caution, InputError
from veridical.core.records import Dataset, Example
from veridical.model import lora
from veridical.model.classifier import Classifier
from veridical.training.config import LORA_RATE, TrainConfig, defaults, settings

pytest.importorskip("peft")
FAMILIES = sorted(family for family in lora.MAPS if family not in ("xlm-roberta", "camembert"))
TEXTS = ["the film was good", "i hated this boring plot", "a great story", "the book is bad"]
DATA = Dataset(
    "four",
    ("bad", "good"),
    {
        split: tuple(Example(f"{split}{i}", text, int(i in (0, 2))) for i, text in enumerate(TEXTS))
        for split in ("train", "dev")
    },
)


def small(family: str):
    return tiny(family, num_labels=2)


def moved(model) -> None:
    """As if it had been trained: adapters begin at 0."""
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(1)
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                weight += 0.3 * torch.randn(weight.shape)


def logits(model, tokenizer) -> torch.Tensor:
    clf = Classifier(model, tokenizer)
    with torch.no_grad():
        return clf.forward(clf.collate(clf.encode([Example("1", text) for text in TEXTS]))).logits


@pytest.mark.parametrize("family", FAMILIES)
def test_adapters_and_the_head_train_and_fold_into_the_weights(family: str) -> None:
    model, tokenizer = small(family)
    before = logits(model, tokenizer)
    kept = {name: weight.clone() for name, weight in model.state_dict().items()}
    lora.add_adapters(model, 4, seed=0)
    torch.testing.assert_close(logits(model, tokenizer), before)  # they begin at 0
    encoder = {id(weight) for weight in model.base_model.parameters()}
    for name, weight in model.named_parameters():
        assert weight.requires_grad == ("lora_" in name or id(weight) not in encoder), name
    maps = {name.rpartition(".lora_A")[0] for name, _ in model.named_parameters() if "lora_A" in name}
    fused = family in ("phi3", "gpt2", "gpt_neox", "bloom")
    assert len(maps) == 2 * (2 if fused else 4)  # of two layers
    moved(model)
    trained = logits(model, tokenizer)
    assert float((trained - before).abs().max()) > 1e-3
    lora.fold_adapters(model)
    torch.testing.assert_close(logits(model, tokenizer), trained, atol=1e-5, rtol=1e-4)
    assert model.state_dict().keys() == kept.keys()
    assert not lora.has_adapters(model)
    assert all(weight.requires_grad for weight in model.parameters())


def test_the_draw_is_the_seeds() -> None:
    models = [small("llama")[0] for _ in range(3)]
    for model, seed in zip(models, (0, 0, 1), strict=True):
        lora.add_adapters(model, 2, seed=seed)
    first, same, other = (torch.cat([w.flatten() for n, w in m.named_parameters() if "lora_A" in n]) for m in models)
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("how", ["injected", "wrapped"])
def test_what_is_explained_has_the_adapters_in_its_weights(how: str) -> None:
    from peft import LoraConfig, TaskType, get_peft_model

    model, tokenizer = small("bert")
    plain = copy.deepcopy(model)
    if how == "wrapped":
        given = get_peft_model(model, LoraConfig(task_type=TaskType.SEQ_CLS, target_modules=lora.MAPS["bert"]))
    else:
        lora.add_adapters(model, 4, seed=0)
        given = model
    moved(given)
    given.eval()
    held = {name: weight.clone() for name, weight in given.state_dict().items()}
    with pytest.warns(Caution, match="has adapters"):
        clf = veridical.load(given, tokenizer)
    assert given.state_dict().keys() == held.keys()  # a copy was made
    folded = lora.fold_adapters(copy.deepcopy(given))
    for name in ("alti", "frozen_gradient", "decompx_classifier", "occlusion"):
        ours, theirs, base = (
            veridical.explain(each, TEXTS[0], name, target=1)[0].scores
            for each in (clf, Classifier(folded, tokenizer), Classifier(plain, tokenizer))
        )
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
        assert np.abs(ours - base).max() > 1e-4
    ids = tokenizer(TEXTS[:1], return_tensors="pt")["input_ids"]
    with pytest.warns(Caution, match="has adapters"):
        tensor = veridical.attribute(given, ids, method="alti")
    torch.testing.assert_close(tensor, veridical.attribute(folded, ids, method="alti"))


@pytest.mark.parametrize("wrapped", [False, True])
def test_adapters_that_are_switched_off_stay_out(wrapped: bool) -> None:
    from peft import LoraConfig, get_peft_model, inject_adapter_in_model
    from peft.tuners.tuners_utils import BaseTunerLayer

    model, tokenizer = small("bert")
    plain = copy.deepcopy(model)
    how = LoraConfig(target_modules=lora.MAPS["bert"])
    given = get_peft_model(model, how) if wrapped else inject_adapter_in_model(how, model)
    moved(given)
    for module in given.modules():
        if isinstance(module, BaseTunerLayer):
            module.enable_adapters(False)
    with pytest.warns(Caution, match="has adapters"):
        clf = veridical.load(given, tokenizer)
    ours, base = (veridical.explain(each, TEXTS[0], "alti")[0] for each in (clf, Classifier(plain, tokenizer)))
    np.testing.assert_allclose(ours.scores, base.scores, atol=1e-6)
    np.testing.assert_allclose(ours.probabilities, base.probabilities, atol=1e-6)


def saved(folder, family: str = "llama"):
    model, tokenizer = small(family)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.mark.whole
def test_a_run_saves_the_folded_model(tmp_path) -> None:
    base = saved(tmp_path / "base")
    run = veridical.train(DATA, base, config={"lora": 2, "epochs": 3, "lr": 0.05, "threads": 1}, out=tmp_path / "run")
    clf = veridical.load(str(run.folder))
    assert not lora.has_adapters(clf.model)
    before, after = veridical.load(base).model.state_dict(), clf.model.state_dict()
    assert before.keys() == after.keys()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {n for n in before if "self_attn" in n} | {"score.weight"}
    import pyarrow.parquet

    stored = pyarrow.parquet.read_table(run.folder / "predictions.parquet").to_pydict()
    rows = dict(zip(zip(stored["split"], stored["id"], strict=True), stored["probabilities"], strict=True))
    again = veridical.explain(clf, list(DATA.splits["dev"]), "random")
    for one in again:
        np.testing.assert_allclose(one.probabilities, rows["dev", one.example.id], atol=1e-5)


@pytest.mark.whole
def test_a_run_that_was_stopped_goes_on_the_same(tmp_path, monkeypatch) -> None:
    base = saved(tmp_path / "base")
    config = {"lora": 2, "epochs": 3, "batch": 2, "threads": 1}
    whole = veridical.train(DATA, base, config=config, out=tmp_path / "whole")

    from veridical.training import loop

    look, calls = loop.look, []

    def stop(task, state):
        calls.append(state)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return look(task, state)

    monkeypatch.setattr(loop, "look", stop)
    with pytest.raises(KeyboardInterrupt):
        veridical.train(DATA, base, config=config, out=tmp_path / "parts")
    monkeypatch.undo()
    resumed = veridical.train(DATA, base, config=config, out=tmp_path / "parts")
    first, second = (veridical.load(str(run.folder)).fingerprint() for run in (whole, resumed))
    assert first == second


def test_what_cannot_be_adapted_is_refused(tmp_path, monkeypatch) -> None:
    config = {"lora": 2}
    with pytest.raises(InputError, match="'bilstm' has no attention maps"):
        veridical.train(DATA, "bilstm", config=config, out=tmp_path / "a")
    with pytest.raises(InputError, match="alti reads the weights of every layer"):
        veridical.train(DATA, "minilm", objective="explanation_guided:method=alti", config=config, out=tmp_path / "b")
    with pytest.raises(InputError, match="maps of a 'deberta-v2' model"):
        lora.add_adapters(small("deberta_v2")[0], 2, seed=0)
    with pytest.raises(InputError, match="lora"):
        TrainConfig(lora=0)
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "adapter_config.json").write_text("{}")
    with pytest.raises(InputError, match="holds an adapter, not a model"):
        veridical.load(str(tmp_path / "adapter"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"needs peft.*veridical\[lora\]"):
        veridical.train(DATA, "minilm", config=config, out=tmp_path / "c")


def test_adapters_learn_at_a_rate_of_their_own() -> None:
    usual = defaults("minilm")
    assert settings({"lora": 8}, usual).lr == LORA_RATE
    assert settings({"lora": 8, "lr": 1e-3}, usual).lr == 1e-3
    assert settings({"epochs": 2}, usual).lr == usual.lr
