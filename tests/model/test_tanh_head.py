"""BigBird with the head that explanation regularisation trains: dense, tanh, dense, no dropout."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification

import veridical
from tiny import TEXTS
from toy import small_model, toy
from veridical.core.errors import InputError
from veridical.core.records import Example
from veridical.model.classifier import Classifier
from veridical.model.decompose.rebuild import check
from veridical.model.load import create, load
from veridical.training.config import TrainConfig
from veridical.training.train import train


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_model(tmp_path_factory.mktemp("bigbird"), "big_bird")


def logits(clf: Classifier) -> torch.Tensor:
    with torch.no_grad():
        return clf.forward(clf.collate(clf.encode([Example(str(i), text) for i, text in enumerate(TEXTS)]))).logits


def test_the_head_is_dense_tanh_dense_over_the_first_state(folder: str):
    clf = load(f"{folder}:head=tanh")
    batch = clf.collate(clf.encode([Example("a", TEXTS[0]), Example("b", TEXTS[1])]))
    with torch.no_grad():
        state = clf.forward(batch, hidden=True).hidden[-1][:, 0]
        head = clf.model.classifier
        expected = head.out_proj(torch.tanh(head.dense(state)))
        torch.testing.assert_close(clf.forward(batch).logits, expected)
    assert not [module for module in head.modules() if isinstance(module, torch.nn.Dropout)]


def test_only_the_head_differs_from_the_usual_one(folder: str):
    usual, tanh = load(folder), load(f"{folder}:head=tanh")
    mine, theirs = usual.model.state_dict(), tanh.model.state_dict()
    assert set(mine) == set(theirs)
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)
    assert not torch.allclose(logits(usual), logits(tanh))
    assert usual.model.config.hidden_act == tanh.model.config.hidden_act != "tanh"


def test_it_comes_back_with_its_head_and_as_no_other(folder: str, tmp_path: Path):
    config = TrainConfig(epochs=1, batch=8)
    run = train(toy(24, 8, 8), f"{folder}:head=tanh", config=config, out=tmp_path / "run", progress=False)
    clf = load(run.folder)
    assert clf.family == AutoConfig.from_pretrained(run.folder / "model").model_type == "big_bird_tanh"
    again = AutoModelForSequenceClassification.from_pretrained(run.folder / "model")
    assert type(again) is type(clf.model)
    clf.save(tmp_path / "copy")
    torch.testing.assert_close(logits(load(str(tmp_path / "copy"))), logits(clf))


@pytest.mark.parametrize("method", ["attention", "rollout", "alti", "decompx_classifier", "deeplift", "attnlrp"])
def test_every_kind_of_method_explains_it(folder: str, method: str):
    clf = load(f"{folder}:head=tanh")
    check(clf.model)
    (found,) = veridical.explain(clf, [TEXTS[0]], method)
    assert any(score != 0 for score in found.scores)


def test_the_head_is_drawn_from_the_seed(folder: str):
    first, same, other = (create(f"{folder}:head=tanh", toy(8, 8, 8), seed=seed) for seed in (0, 0, 1))
    weight = first.model.classifier.out_proj.weight
    assert torch.equal(weight, same.model.classifier.out_proj.weight)
    assert not torch.equal(weight, other.model.classifier.out_proj.weight)


def test_other_heads_and_families_are_refused(folder: str, tmp_path: Path):
    with pytest.raises(InputError, match="the one there is to choose is head=tanh, of BigBird"):
        load(f"{folder}:head=gelu")
    bert = small_model(tmp_path / "bert")
    with pytest.raises(InputError, match="the one there is to choose is head=tanh, of BigBird"):
        load(f"{bert}:head=tanh")
