from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics
from transformers import AutoModelForSequenceClassification

from tiny import tiny
from toy import small_model, toy
from veridical.audits.corpora import trained_on
from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.progress import Report
from veridical.core.records import Answers, Dataset, Example
from veridical.grid.status import status
from veridical.model.accuracy import calibration_error, score, targets
from veridical.model.classifier import Classifier
from veridical.model.load import load
from veridical.training import journal, loop, task
from veridical.training.config import BILSTM, TrainConfig
from veridical.training.rate import make_optimizer, order, rate
from veridical.training.term import Term, label, objective, terms
from veridical.training.term.cross_entropy import losses
from veridical.training.train import read_run, train, train_seeds

FAST = TrainConfig(epochs=2, batch=8, lr=1e-3, head_lr=1e-3)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_model(tmp_path_factory.mktemp("model") / "bert")


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model without dropout, whose losses do not depend on random numbers."""
    none: dict[str, Any] = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return small_model(tmp_path_factory.mktemp("model") / "still", **none)


def log_of(folder: Path) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k != "seconds"} for row in store.read_jsonl(folder / "train.jsonl")]


def losses_of(folder: Path) -> list[float]:
    return [row["loss"] for row in log_of(folder) if "loss" in row]


# -- a run --------------------------------------------------------------------------------------------


def test_training_learns_and_leaves_a_readable_run(model: str, tmp_path: Path):
    data = toy(train=96)
    config = TrainConfig(epochs=5, batch=8, lr=5e-3, head_lr=5e-3)
    run = train(data, model, config=config, seed=1, out=tmp_path / "run", progress=False)
    assert run.scores["train"]["accuracy"] == 1.0
    assert (run.scores["test"]["accuracy"] or 0) > 0.85
    assert set(run.scores) == {"train", "dev", "test"}
    assert (run.seed, run.epochs, run.seconds > 0) == (1, 5, True)
    names = {"spec.json", "stamp.json", "train.jsonl", "model", "predictions.parquet", "scores.json"}
    assert {path.name for path in run.folder.iterdir()} == names

    # What is stored is what the stored model says, through Veridical and through the Auto classes alike.
    rows = store.read_parquet(run.folder / "predictions.parquet").to_pylist()
    assert trained_on(run.folder) == {row["mark"] for row in rows if row["split"] == "train"} != set()
    assert [row["id"] for row in rows] == [e.id for split in data.splits.values() for e in split]
    assert [row["label"] for row in rows] == [e.label for split in data.splits.values() for e in split]
    clf = load(run.folder)
    assert clf.labels == data.labels
    assert AutoModelForSequenceClassification.from_pretrained(run.folder / "model").config.num_labels == 2
    with torch.no_grad():
        batch = clf.collate(clf.encode(data.splits["test"]))
        again = clf.probabilities(clf.forward(batch).logits).numpy()
    stored = [row["probabilities"] for row in rows if row["split"] == "test"]
    np.testing.assert_allclose(stored, again, atol=1e-5)

    # The kept epoch is the one with the best dev score, the first of equals.
    epochs = [row for row in log_of(run.folder) if "dev" in row]
    values = [row["dev"]["macro_f1"] for row in epochs]
    assert run.best_epoch == 1 + values.index(max(values))
    assert run.scores["dev"]["macro_f1"] == max(values)
    assert [row["best"] for row in epochs] == [v > max(values[:i], default=-1) for i, v in enumerate(values)]


def test_the_same_call_gives_the_same_weights_and_another_seed_others(model: str, tmp_path: Path):
    weights = {}
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        torch.manual_seed(hash(name) % 1000)  # the caller's random state plays no part
        run = train(toy(), model, config=FAST, seed=seed, out=tmp_path / name, progress=False)
        weights[name] = (run.folder / "model" / "model.safetensors").read_bytes()
    assert weights["a"] == weights["b"] != weights["c"]
    assert log_of(tmp_path / "a") == log_of(tmp_path / "b")


def test_training_leaves_the_callers_random_numbers_and_threads_alone(model: str, tmp_path: Path):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    threads = torch.get_num_threads()
    config = replace(FAST, epochs=1, threads=threads + 1)
    train(toy(), model, config=config, out=tmp_path / "run", progress=False)
    assert torch.equal(torch.rand(3), expected)
    assert torch.get_num_threads() == threads
    assert store.read_json(tmp_path / "run" / "stamp.json")["threads"] == threads + 1


def test_a_finished_run_returns_at_once(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    first = train(toy(), model, config=FAST, out=tmp_path / "run", progress=False)
    (tmp_path / "run" / journal.CHECKPOINT).write_text("left by a kill between the last write and this removal")
    # By its module: the package's own name `train` is the function.
    monkeypatch.setattr(sys.modules[train.__module__], "create", lambda *_, **__: pytest.fail("a model was made"))
    assert train(toy(), model, config=FAST, out=tmp_path / "run", progress=False) == first
    assert not (tmp_path / "run" / journal.CHECKPOINT).exists()
    assert read_run(tmp_path / "run") == first


def test_a_folder_of_another_spec_is_refused(model: str, tmp_path: Path):
    train(toy(), model, config=FAST, out=tmp_path / "run", progress=False)
    with pytest.raises(InputError, match=r"train\.batch is 8 there and 4 now; choose another out"):
        train(toy(), model, config=replace(FAST, batch=4), out=tmp_path / "run", progress=False)
    with pytest.raises(InputError, match=r"data\.hash is"):
        train(toy(train=41), model, config=FAST, out=tmp_path / "run", progress=False)


def test_runs_name_their_own_folders_and_seeds_get_one_each(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    config = replace(FAST, epochs=1)
    run = train(toy(), model, config=config, seed=3, progress=False)
    spec = store.read_json(run.folder / "spec.json")
    assert run.folder == Path("runs/toy/bert") / f"cross_entropy-seed3-{store.stable_hash(spec)}"
    named = train_seeds(toy(), model, seeds=(3, 4), config=config, progress=False)
    assert named[0] == run
    assert named[1].folder.name.startswith("cross_entropy-seed4-")
    placed = train_seeds(toy(), model, seeds=(3, 4), config=config, out=tmp_path / "x", progress=False)
    assert [r.folder for r in placed] == [tmp_path / "x" / "seed3", tmp_path / "x" / "seed4"]
    assert placed[0].scores == run.scores


def test_early_stopping_waits_for_its_patience(model: str, tmp_path: Path):
    # With no learning no epoch is better than the first.
    config = replace(FAST, epochs=9, lr=0.0, head_lr=0.0, patience=2, select="loss")
    run = train(toy(), model, config=config, out=tmp_path / "run", progress=False)
    assert (run.epochs, run.best_epoch) == (3, 1)


def test_early_stopping_does_not_wait_where_no_epoch_can_be_better(model: str, tmp_path: Path):
    config = replace(FAST, epochs=40, lr=5e-3, head_lr=5e-3, select="accuracy")
    patient = train(toy(), model, config=config, out=tmp_path / "all", progress=False)
    early = train(toy(), model, config=replace(config, patience=30), out=tmp_path / "early", progress=False)
    assert early.scores["dev"]["accuracy"] == 1.0
    assert early.epochs == early.best_epoch == patient.best_epoch < patient.epochs == 40
    assert early.scores == patient.scores


def test_training_ends_with_the_first_epoch_that_is_good_enough(model: str, tmp_path: Path):
    config = replace(FAST, epochs=40, lr=5e-3, head_lr=5e-3, select="accuracy")
    whole = train(toy(), model, config=config, out=tmp_path / "all", progress=False)
    reached = [row["dev"]["accuracy"] for row in log_of(whole.folder) if "dev" in row]
    enough = sorted(set(reached))[-2]  # not the best: else patience would end there too
    early = train(toy(), model, config=replace(config, enough=enough), out=tmp_path / "early", progress=False)
    assert early.epochs == early.best_epoch == 1 + next(n for n, value in enumerate(reached) if value >= enough)
    with pytest.raises(InputError, match="enough is of a dev score"):
        replace(FAST, select="last", enough=0.9)


def test_dropout_is_on_again_after_every_evaluation(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    modes = []
    step = loop.step

    def watch(task: Any, *args: Any) -> dict[str, float]:
        modes.append(all(module.training for module in task.clf.model.modules()))
        return step(task, *args)

    monkeypatch.setattr(loop, "step", watch)
    train(toy(), model, config=replace(FAST, epochs=3), out=tmp_path / "run", progress=False)
    assert modes == [True] * 15


def test_passes_do_not_change_the_losses(still: str, tmp_path: Path):
    for budget in (8192, 30):
        train(toy(), still, config=replace(FAST, budget=budget), out=tmp_path / str(budget), progress=False)
    np.testing.assert_allclose(losses_of(tmp_path / "30"), losses_of(tmp_path / "8192"), atol=1e-5)


def test_texts_that_are_cut_are_counted(still: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    data = toy(train=8)
    long = Example("long", "film " * 100, 0)
    data = replace(data, splits={**data.splits, "train": (*data.splits["train"], long)})
    run = train(data, still, config=replace(FAST, epochs=1), out=tmp_path / "run", progress=True)
    assert run.cut["train"] == {"texts": 1, "tokens": 102 - 64}
    assert run.cut["dev"] == {"texts": 0, "tokens": 0}
    assert log_of(run.folder)[0]["cut"]["train"] == {"texts": 1, "tokens": 38}
    said = capsys.readouterr().err
    assert "1 of 9 train texts are longer than the 64 tokens the model takes; 38 tokens were cut." in said
    assert "epoch 1/1  dev: macro_f1" in said


@pytest.mark.parametrize("family", ["roberta", "modernbert"])
def test_other_families_train_on_pairs(family: str, tmp_path: Path):
    data = toy(train=24, pair=True)
    folder = small_model(tmp_path / family, family)
    run = train(data, folder, config=replace(FAST, epochs=1), out=tmp_path / "run", progress=False)
    assert run.scores["test"]["loss"] is not None


def test_multi_label_data_trains(model: str, tmp_path: Path):
    data = toy(train=96, classes=3, multilabel=True)
    config = TrainConfig(epochs=8, batch=8, lr=5e-3, head_lr=5e-3, select="loss")
    run = train(data, model, config=config, out=tmp_path / "run", progress=False)
    assert load(run.folder).kind == "multi"
    loss = run.scores["train"]["loss"]
    assert loss is not None
    assert loss < 0.55  # knowing nothing costs log 2 = 0.69
    rows = store.read_parquet(run.folder / "predictions.parquet").to_pylist()
    assert rows[0]["label"] == list(data.splits["train"][0].label)  # type: ignore[arg-type]


def test_the_bilstm_trains_with_its_own_defaults(tmp_path: Path):
    run = train(toy(train=300, dev=64), "bilstm:embedding=16", out=tmp_path / "run", progress=False)
    spec = store.read_json(run.folder / "spec.json")["train"]
    assert (spec["optimizer"], spec["lr"]) == ("amsgrad", BILSTM.lr)
    assert (run.scores["train"]["accuracy"] or 0) > 0.95


def test_unlabelled_texts_are_predicted_but_not_scored(model: str, tmp_path: Path):
    data = toy()
    blank = tuple(replace(e, label=None) for e in data.splits["test"])
    data = replace(data, splits={**data.splits, "test": blank})
    run = train(data, model, config=replace(FAST, epochs=1), out=tmp_path / "run", progress=False)
    assert set(run.scores) == {"train", "dev"}
    rows = store.read_parquet(run.folder / "predictions.parquet").to_pylist()
    assert [row["label"] for row in rows if row["split"] == "test"] == [None] * 16


def test_the_last_epoch_can_be_kept_without_a_dev_split(model: str, tmp_path: Path):
    config = replace(FAST, select="last")
    run = train(toy(dev=0), model, config=config, out=tmp_path / "run", progress=False)
    assert (run.best_epoch, set(run.scores)) == (2, {"train", "test"})


def changed(**example: Any) -> Dataset:
    data = toy()
    first, *rest = data.splits["train"]
    return replace(data, splits={**data.splits, "train": (replace(first, **example), *rest)})


@pytest.mark.parametrize(
    ("data", "config", "said"),
    [
        (changed(label=2), FAST, r"'train-0' of the train split of toy has label 2, outside the 2 labels"),
        (changed(label=-1), FAST, "has label -1, outside"),
        (changed(label=None), FAST, "'train-0' of the train split of toy has no label"),
        (changed(label=(1,)), FAST, r"has label \(1,\); this data needs one class index"),
        (toy(train=0), FAST, "toy has no train split"),
        (toy(dev=0), FAST, "toy has no dev split to choose the best epoch by macro_f1; .* select=last"),
    ],
)
def test_data_that_cannot_be_trained_on_is_refused(
    model: str, tmp_path: Path, data: Dataset, config: TrainConfig, said: str
):
    with pytest.raises(InputError, match=said):
        train(data, model, config=config, out=tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def test_a_score_that_is_undefined_cannot_select(model: str, tmp_path: Path):
    data = toy()
    one_class = tuple(e for e in data.splits["dev"] if e.label == 0)
    data = replace(data, splits={**data.splits, "dev": one_class})
    with pytest.raises(InputError, match="select=auroc is undefined on this dev split"):
        train(data, model, config=replace(FAST, select="auroc"), out=tmp_path / "run", progress=False)


def test_a_loss_that_is_not_finite_stops_the_run(model: str, tmp_path: Path):
    config = replace(FAST, lr=1e30, head_lr=1e30, clip=None)
    with pytest.raises(InputError, match=r"Training broke down at step \d+: .* lower lr \(1e\+30\)"):
        train(toy(), model, config=config, out=tmp_path / "run", progress=False)


def test_weights_that_are_not_finite_after_an_epochs_last_step_stop_the_run(model: str, tmp_path: Path):
    config = replace(FAST, epochs=1, batch=64, lr=1e30, head_lr=1e30, clip=None)  # one step, whose loss was finite
    with pytest.raises(InputError, match=r"Training broke down in epoch 1: \w+ on dev is .* lower lr"):
        train(toy(), model, config=config, out=tmp_path / "run", progress=False)


@pytest.mark.parametrize(
    ("change", "said"), [({"model": "nope"}, "nope"), ({"objective": "saloss:prior=textrnk"}, "textrank")]
)
def test_a_mistake_costs_no_folder(model: str, tmp_path: Path, change: dict[str, str], said: str):
    with pytest.raises(InputError, match=said):
        train(toy(), **{"model": model, **change}, config=FAST, out=tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def test_rates_are_finite():
    with pytest.raises(InputError, match="lr is inf; it must be at least 0, and finite"):
        TrainConfig(lr=float("inf"))


# -- terms --------------------------------------------------------------------------------------------


@pytest.fixture
def extra_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Terms of the kinds that later ones will be: on attention weights, and on a gradient."""

    def row_entropy(clf: Classifier, batch: Any, output: Any, labels: Any, *, layer: int = -1) -> torch.Tensor:
        first = output.attentions[layer].mean(1)[:, 0]  # [B, T]
        return -(first * (first + 1e-9).log()).sum()

    def gradient_size(clf: Classifier, batch: Any, output: Any, labels: torch.Tensor) -> torch.Tensor:
        loss = losses(output.logits, labels, clf.kind).sum()
        (gradient,) = torch.autograd.grad(loss, output.embeddings, create_graph=True)
        return gradient.pow(2).sum()

    list(terms)  # found before ours are put beside them
    added = {
        "row_entropy": Term("row_entropy", row_entropy, frozenset({"attention"})),
        "gradient_size": Term("gradient_size", gradient_size, second_order=True),
    }
    monkeypatch.setattr(terms, "_entries", {**terms._entries, **added})


def test_an_objective_is_cross_entropy_and_a_weighted_sum(extra_terms: None):
    chosen = objective("row_entropy:weight=0.01:layer=0,gradient_size")
    names = [(one.choice.entry.name, one.weight) for one in chosen]
    assert names == [("cross_entropy", 1.0), ("row_entropy", 0.01), ("gradient_size", 1.0)]
    assert chosen[1].choice.options == {"layer": 0}
    assert label(chosen) == "row_entropy:weight=0.01:layer=0,gradient_size"
    assert label(objective("cross_entropy")) == "cross_entropy"
    assert label(objective("gradient_size,cross_entropy:weight=0")) == "cross_entropy:weight=0,gradient_size"
    for spec in ("row_entropy:weight=0.01:layer=0,gradient_size", "gradient_size,cross_entropy:weight=0"):
        assert objective(label(objective(spec))) == objective(spec)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("cross_entropi", r"no term 'cross_entropi'\. Did you mean 'cross_entropy'\?"),
        ("cross_entropy:weight=x", "the weight of term 'cross_entropy' is 'x'; it must be a number"),
        ("cross_entropy:weight=-1", "it must be 0 or more"),
        ("cross_entropy:weight=inf", "and finite"),
        ("cross_entropy,cross_entropy", "named twice"),
        ("cross_entropy:smooth=1", "takes no options"),
    ],
)
def test_mistakes_in_an_objective_are_one_sentence(spec: str, said: str):
    with pytest.raises(InputError, match=said):
        objective(spec)


def test_terms_on_attention_and_on_gradients_are_trained(extra_terms: None, still: str, tmp_path: Path):
    spec = "row_entropy:weight=2,gradient_size:weight=0.5"
    run = train(toy(), still, objective=spec, config=FAST, out=tmp_path / "run", progress=False)
    for row in (row for row in log_of(run.folder) if "loss" in row):
        parts = row["cross_entropy"] + 2 * row["row_entropy"] + 0.5 * row["gradient_size"]
        assert math.isclose(row["loss"], parts, rel_tol=1e-6)
        assert row["gradient_size"] > 0
    alone = TrainConfig(epochs=4, batch=8, lr=1e-2, head_lr=1e-2)
    spec = "cross_entropy:weight=0,row_entropy"
    train(toy(), still, objective=spec, config=alone, out=tmp_path / "alone", progress=False)
    entropies = [row["row_entropy"] for row in log_of(tmp_path / "alone") if "row_entropy" in row]
    assert np.mean(entropies[-5:]) < 0.9 * np.mean(entropies[:5])


def test_cross_entropy_of_every_kind_of_head():
    torch.manual_seed(0)
    logits = torch.randn(5, 3)
    gold = torch.tensor([0, 2, 1, 1, 0])
    expected = -logits.softmax(-1)[torch.arange(5), gold].log()
    torch.testing.assert_close(losses(logits, gold, "single"), expected)

    held = torch.tensor([[0, 1, 1]] * 5).float()
    p = logits.sigmoid()
    expected = -(held * p.log() + (1 - held) * (1 - p).log()).mean(-1)
    torch.testing.assert_close(losses(logits, held, "multi"), expected)

    model, tokenizer = tiny("bert", num_labels=1)
    clf = Classifier(model, tokenizer)
    assert clf.kind == "one_logit"
    logits = clf.forward(clf.collate(clf.encode(toy(train=4).splits["train"]))).logits
    gold = torch.tensor([0, 1, 1, 0])
    expected = -clf.probabilities(logits)[torch.arange(4), gold].log()
    torch.testing.assert_close(losses(logits, gold, "one_logit"), expected)


# -- order, rate, optimiser ---------------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    lengths=st.lists(st.integers(1, 90), min_size=1, max_size=200),
    batch=st.integers(1, 9),
    seed=st.integers(0, 99),
)
def test_every_example_comes_once_an_epoch(lengths: list[int], batch: int, seed: int):
    batches = order(lengths, batch, seed=seed, epoch=1)
    assert sorted(i for rows in batches for i in rows) == list(range(len(lengths)))
    assert len(batches) == math.ceil(len(lengths) / batch)
    assert batches == order(lengths, batch, seed=seed, epoch=1)


def test_the_order_changes_by_epoch_and_seed_and_saves_padding():
    lengths = np.random.default_rng(0).geometric(0.04, size=2000).tolist()
    first = order(lengths, 16, seed=0, epoch=1)
    assert first != order(lengths, 16, seed=0, epoch=2)
    assert first != order(lengths, 16, seed=1, epoch=1)
    assert set(map(frozenset, first)).isdisjoint(map(frozenset, order(lengths, 16, seed=0, epoch=2)))
    padded = sum(len(rows) * max(lengths[i] for i in rows) for rows in first)
    assert padded < 1.2 * sum(lengths)  # in shuffled batches it would be 3.4 times
    positions = [np.mean([lengths[i] for i in rows]) for rows in first]
    assert abs(np.corrcoef(positions, np.arange(len(first)))[0, 1]) < 0.3  # short ones do not come first


def test_the_rate_warms_up_and_decays():
    config = TrainConfig(warmup=0.1)
    factors = [rate(step, 100, config) for step in range(100)]
    assert factors[:10] == pytest.approx([(i + 1) / 11 for i in range(10)])
    assert factors[10] == 1.0
    assert factors[-1] == pytest.approx(1 / 90)
    assert all(a > b for a, b in pairwise(factors[10:]))
    constant = replace(config, schedule="constant")
    assert [rate(step, 100, constant) for step in (9, 10, 99)] == [10 / 11, 1.0, 1.0]
    assert rate(0, 1, config) == 1.0


def test_encoder_and_head_have_their_own_rates_and_norms_and_biases_no_decay():
    model, _ = tiny("bert")
    optimizer = make_optimizer(model, TrainConfig(lr=1e-5, head_lr=1e-3, weight_decay=0.1))
    names = {id(p): n for n, p in model.named_parameters()}
    settings_of = {names[id(p)]: (g["lr"], g["weight_decay"]) for g in optimizer.param_groups for p in g["params"]}
    assert set(settings_of) == set(names.values())
    assert settings_of["classifier.weight"] == (1e-3, 0.1)
    assert settings_of["classifier.bias"] == (1e-3, 0.0)
    assert settings_of["bert.encoder.layer.0.attention.self.query.weight"] == (1e-5, 0.1)
    assert settings_of["bert.embeddings.LayerNorm.weight"] == (1e-5, 0.0)
    assert settings_of["bert.encoder.layer.0.attention.self.query.bias"] == (1e-5, 0.0)
    adam = make_optimizer(tiny("bilstm")[0], BILSTM)
    assert isinstance(adam, torch.optim.Adam)
    assert all(g["amsgrad"] and g["lr"] == 1e-3 for g in adam.param_groups)


# -- scores -------------------------------------------------------------------------------------------


def answers(logits: np.ndarray, kind: str) -> Answers:
    tensor = torch.from_numpy(logits)
    return Answers(logits, (tensor.softmax(-1) if kind == "single" else tensor.sigmoid()).numpy())


def test_scores_agree_with_scikit_learn():
    random = np.random.default_rng(0)
    logits = random.normal(size=(200, 3)).astype(np.float32)
    gold = random.integers(3, size=200)
    found = score(answers(logits, "single"), torch.from_numpy(gold), "single")
    said, p = logits.argmax(1), torch.from_numpy(logits).double().softmax(-1).numpy()
    assert found["macro_f1"] == pytest.approx(sklearn_metrics.f1_score(gold, said, average="macro"))
    assert found["accuracy"] == pytest.approx(sklearn_metrics.accuracy_score(gold, said))
    assert found["auroc"] == pytest.approx(sklearn_metrics.roc_auc_score(gold, p, multi_class="ovr"), abs=1e-6)
    assert found["loss"] == pytest.approx(sklearn_metrics.log_loss(gold, p), abs=1e-6)

    held = random.integers(2, size=(200, 3))
    found = score(answers(logits, "multi"), torch.from_numpy(held).float(), "multi")
    said = logits >= 0
    assert found["macro_f1"] == pytest.approx(sklearn_metrics.f1_score(held, said, average="macro"))
    assert found["accuracy"] == pytest.approx(sklearn_metrics.accuracy_score(held, said))
    assert found["auroc"] == pytest.approx(sklearn_metrics.roc_auc_score(held, logits), abs=1e-6)


def test_calibration_error_by_hand():
    # Bin (8/15, 9/15]: two at 0.6, one right: gap 0.1. Bin (14/15, 1]: 0.95 and 1.0, both right: gap 0.025.
    confidence, correct = np.array([0.6, 0.6, 0.95, 1.0]), np.array([True, False, True, True])
    assert calibration_error(confidence, correct) == pytest.approx((2 * 0.1 + 2 * 0.025) / 4)
    sure = np.full(1000, 0.8)
    assert calibration_error(sure, np.arange(1000) < 800) == pytest.approx(0.0, abs=1e-9)


def test_undefined_scores_are_none():
    logits = np.zeros((3, 2), dtype=np.float32)
    found = score(answers(logits, "single"), torch.tensor([0, 0, 0]), "single")
    assert found["auroc"] is None
    assert (found["macro_f1"], found["accuracy"]) == (1.0, 1.0)  # class 1 neither occurs nor is predicted
    assert set(score(Answers(logits[:0], logits[:0]), torch.zeros(0).long(), "single").values()) == {None}


def test_targets_of_multi_label_data():
    examples = [Example("a", "x", (0, 2)), Example("b", "x", ())]
    assert targets(examples, ("p", "q", "r"), True).tolist() == [[1, 0, 1], [0, 0, 0]]


# -- progress --------------------------------------------------------------------------------


def test_progress_is_a_bar_in_a_terminal_and_sparse_lines_elsewhere(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def shown(progress: bool | None) -> list[str]:
        with Report("work", 40, progress=progress) as report:
            for i in range(40):
                report.advance(f"loss {i}")
            report.say("the end [b]")
        out, err = capsys.readouterr()
        assert out == ""  # standard output is for results
        return err.splitlines()

    lines = shown(True)
    assert lines[0] == "work: 4 of 40  loss 3"
    assert (len(lines), lines[-1]) == (11, "the end [b]")
    assert shown(False) == shown(None) == []
    monkeypatch.setenv("FORCE_COLOR", "1")
    bar = "\n".join(shown(None))
    assert "40/40" in bar
    assert "the end [b]" in bar
    assert "4 of 40" not in bar


# -- status -------------------------------------------------------------------------------------------


def test_status_tells_done_running_and_broken_apart(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    config = replace(FAST, epochs=3)
    train(toy(), model, config=config, out=tmp_path / "a-done", progress=False)

    step, made = loop.step, []

    def dies(*args: Any) -> dict[str, float]:
        if len(made) == 7:
            raise KeyboardInterrupt
        made.append(args)
        return step(*args)

    monkeypatch.setattr(loop, "step", dies)
    with pytest.raises(KeyboardInterrupt):
        train(toy(), model, config=config, out=tmp_path / "b-half", progress=False)
    store.write_json(tmp_path / "c-new" / "spec.json", store.read_json(tmp_path / "a-done" / "spec.json"))
    store.write_text(tmp_path / "d-broken" / "spec.json", '{"train": ')
    done, half, new, broken = status(tmp_path)
    assert (done.state, done.step, done.steps, done.epoch, done.remaining) == ("done", 15, 15, 3, 0.0)
    assert (half.state, half.step, half.steps, half.epoch, half.select) == ("running", 7, 15, 1, "macro_f1")
    assert half.best == json.loads((tmp_path / "b-half" / "train.jsonl").read_text().splitlines()[6])["dev"]["macro_f1"]
    assert half.remaining == pytest.approx(half.seconds / 7 * 8)
    assert half.age >= 0
    assert (new.state, new.step, new.remaining) == ("running", 0, None)
    assert broken.state == "broken"
    assert "spec.json cannot be read as JSON" in broken.problem
    (alone,) = status(tmp_path / "a-done")
    assert replace(alone, age=0.0) == replace(done, age=0.0)
    with pytest.raises(InputError, match="There is no folder"):
        status(tmp_path / "none")


def test_splits_are_measured_in_passes_no_wider_than_a_step(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A term that differentiates holds its whole pass in memory, so dev must not be run in wider ones than train."""
    widths: dict[str, list[int]] = {}
    real = task.run_terms

    def watch(own: Any, split: str, rows: Any, step: int) -> Any:
        widths.setdefault(split, []).append(len(rows))
        return real(own, split, rows, step)

    monkeypatch.setattr(task, "run_terms", watch)
    config = replace(FAST, epochs=1, batch=4)
    run = train(
        toy(), model, objective="input_gradient:weight=0.1", config=config, out=tmp_path / "run", progress=False
    )
    assert max(widths["dev"]) == max(widths["test"]) == 4
    assert run.scores["dev"]["input_gradient"] > 0


def test_on_a_cpu_a_seed_draws_what_torch_draws_for_it():
    state = torch.get_rng_state()
    try:
        torch.manual_seed(11)
        expected = torch.rand(4)
        task.seed_torch(11, torch.device("cpu"))
        assert torch.equal(torch.rand(4), expected)
    finally:
        torch.set_rng_state(state)
