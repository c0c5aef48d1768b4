"""Masked fine-tuning: what is masked depends on the seed, the step and the text alone; terms see whole texts only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from goldens import MEASURABLE
from tiny import tiny
from toy import small_model, toy
from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.records import Batch, Encoded, Output
from veridical.model.classifier import Classifier
from veridical.model.load import load
from veridical.model.mask import trained_ratio
from veridical.training import task as tasks
from veridical.training.config import TrainConfig
from veridical.training.masking import Masks, masks, pooled
from veridical.training.options import TrainOptions
from veridical.training.term import Term, terms
from veridical.training.train import train

FAST = TrainConfig(epochs=2, batch=8, lr=1e-3, head_lr=1e-3)


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> str:
    none: dict[str, Any] = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return small_model(tmp_path_factory.mktemp("model") / "still", **none)


def drawing(**config: Any) -> tuple[Classifier, Masks, list[Encoded]]:
    clf = Classifier(*tiny("bert"))
    drawn = masks(clf, TrainConfig(mask=1.0, **config), 3)
    assert drawn is not None
    return clf, drawn, clf.encode(toy(train=400).splits["train"])


def test_draws_are_of_seed_step_and_example_never_of_the_place() -> None:
    _, drawn, encoded = drawing()
    forwards = drawn.drawn(encoded, 5)
    assert drawn.drawn(encoded[::-1], 5)[::-1] == forwards
    assert [drawn.drawn([text], 5)[0] for text in encoded] == forwards
    assert drawn.drawn(encoded, 6) != forwards
    halves = MEASURABLE["masking_halves"]
    for size, whole in zip(halves["input"]["batch"], halves["expect"]["left_whole"], strict=True):
        assert whole == size // 2  # as released, by place; ours by a coin, so half of them over many
    assert np.mean([new is None for new in forwards]) == pytest.approx(0.5, abs=0.08)


def test_special_tokens_and_lengths_stay() -> None:
    clf, drawn, encoded = drawing(mask_rows=1.0)
    token = clf.tokenizer.mask_token_id
    for text, new in zip(encoded, drawn.drawn(encoded, 0), strict=True):
        assert new is not None
        changed = [i for i, (old, now) in enumerate(zip(text.ids, new.ids, strict=True)) if old != now]
        assert all(text.free[i] and new.ids[i] == token for i in changed)


def test_a_run_without_it_keeps_its_hash_and_its_files(still: str, tmp_path: Path) -> None:
    assert store.plain(TrainConfig()) == store.plain(TrainConfig(mask=0.0))
    assert not {"mask", "mask_rows", "mask_context"} & set(store.plain(TrainConfig()))
    run = train(toy(), still, config=FAST, out=tmp_path / "plain")
    assert trained_ratio(load(str(run.folder))) == 0.0
    assert "veridical_mask" not in (run.folder / "model" / "config.json").read_text("utf-8")
    assert "dev_masked" not in (run.folder / "train.jsonl").read_text("utf-8")


def test_a_run_logs_dev_whole_and_masked_and_keeps_the_ratio(still: str, tmp_path: Path) -> None:
    run = train(toy(), still, config=FAST, mask=0.8, out=tmp_path / "masked")
    assert trained_ratio(load(str(run.folder))) == 0.8
    rows = [row for row in store.read_jsonl(run.folder / "train.jsonl") if "dev" in row]
    for row in rows:
        assert row["dev_pooled"]["accuracy"] == pytest.approx(
            (row["dev"]["accuracy"] + row["dev_masked"]["accuracy"]) / 2
        )
        assert row["dev_pooled"]["loss"] == pytest.approx((row["dev"]["loss"] + row["dev_masked"]["loss"]) / 2)
    assert rows[0]["dev_masked"]["loss"] != rows[0]["dev"]["loss"]
    assert store.read_json(run.folder / "spec.json")["train"]["mask"] == 0.8


def test_passes_and_resumption_change_nothing(still: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def losses(folder: Path) -> list[float]:
        return [row["loss"] for row in store.read_jsonl(folder / "train.jsonl") if "loss" in row]

    same: dict[str, Any] = {"mask": 1.0, "objective": "saloss:weight=0.1:prior=uniform"}
    whole = train(toy(), still, config=FAST, out=tmp_path / "a", **same)
    narrow = TrainConfig(epochs=2, batch=8, lr=1e-3, head_lr=1e-3, budget=24)
    parts = train(toy(), still, config=narrow, out=tmp_path / "b", **same)
    assert losses(whole.folder) == pytest.approx(losses(parts.folder), abs=1e-4)

    from veridical.training import loop

    real, count = loop.step, [0]

    def dying(*args: Any) -> Any:
        count[0] += 1
        if count[0] == 7:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(loop, "step", dying)
    with pytest.raises(KeyboardInterrupt):
        train(toy(), still, config=FAST, save_steps=2, out=tmp_path / "c", **same)
    monkeypatch.setattr(loop, "step", real)
    resumed = train(toy(), still, config=FAST, save_steps=2, out=tmp_path / "c", **same)
    assert losses(resumed.folder) == losses(whole.folder)
    assert load(str(resumed.folder)).fingerprint() == load(str(whole.folder)).fingerprint()


def test_terms_see_whole_texts_and_are_divided_by_their_number(still: str, tmp_path: Path) -> None:
    seen: list[int] = []

    def watching(clf: Classifier, batch: Batch, output: Output, labels: torch.Tensor) -> torch.Tensor:
        token = clf.tokenizer.mask_token_id
        assert not (batch.ids == token).any()
        (gradient,) = torch.autograd.grad(output.logits.sum(), output.embeddings, create_graph=True)
        assert gradient.abs().sum() > 0  # the word vectors are those of the pass
        seen.append(len(batch.ids))
        return torch.ones((), requires_grad=True) * len(batch.ids)

    terms.add(Term("watching", watching))
    try:
        run = train(toy(dev=4), still, objective="watching", config=FAST, mask=1.0, out=tmp_path / "run")
    finally:
        del terms._entries["watching"]
    rows = [row for row in store.read_jsonl(run.folder / "train.jsonl") if "loss" in row]
    told = [row["watching"] for row in rows]
    assert {1.0} == {value for value in told if value is not None}  # the sum over whole texts by their number
    assert 0 < sum(seen[:5]) < 40


def test_sizes_count_whole_texts_for_all_but_cross_entropy(still: str, tmp_path: Path) -> None:
    clf = load(still)
    data = toy()
    encoded = {split: clf.encode(examples) for split, examples in data.splits.items()}
    gold = {split: torch.tensor([e.label for e in examples]) for split, examples in data.splits.items()}
    from veridical.training.term import objective

    made = tasks.prepare(
        clf,
        encoded,
        gold,
        config=TrainConfig(mask=1.0),
        seed=0,
        folder=tmp_path,
        chosen=objective("saloss:prior=uniform"),
    )
    assert made.masks is not None
    drawn = made.masks.drawn(encoded["train"], 4)
    sizes = tasks.sizes_of(made, range(40), 4)
    assert sizes == {"cross_entropy": 40.0, "saloss": float(sum(new is None for new in drawn))}


def test_pooled_scores_are_of_both() -> None:
    from veridical.core.records import Answers

    logits = np.array([[2.0, 0.0], [0.0, 2.0]], dtype=np.float32)
    right, wrong = Answers(logits, logits), Answers(logits[::-1], logits[::-1])
    assert pooled(right, wrong, torch.tensor([0, 1]), "single")["accuracy"] == 0.5


def test_settings_that_say_nothing_are_refused() -> None:
    with pytest.raises(InputError, match="set mask too"):
        TrainConfig(mask_rows=0.2)
    with pytest.raises(InputError, match="from 0 to 1"):
        TrainOptions(data="planted", mask=2.0)
    assert TrainOptions(data="planted", mask=0.5, config={"mask": 0.2}).settings().mask == 0.5


def test_the_option_goes_with_the_other_settings_of_masking() -> None:
    for given in ({"mask_rows": 0.2}, {"mask_rows": 0.2, "mask_context": True}, TrainConfig(mask=0.1, mask_rows=0.2)):
        chosen = TrainOptions(data="planted", mask=1.0, config=given).settings()
        assert (chosen.mask, chosen.mask_rows) == (1.0, 0.2)
    assert TrainOptions(data="planted", mask=1.0, config={"mask_rows": 1.0}).settings().mask_rows == 1


def test_a_term_of_whole_texts_needs_some() -> None:
    with pytest.raises(InputError, match="no text stays whole, and saloss is of whole texts; lower mask_rows"):
        TrainOptions(data="planted", mask=1.0, config={"mask_rows": 1.0}, objective="saloss:weight=0.1")
