"""Terms inside transformers.Trainer: its own loss is untouched, terms are scaled, datasets are as users have them."""

from __future__ import annotations

import csv
import json
import os
import runpy
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from transformers import BertForSequenceClassification, Trainer, TrainingArguments

from launching import free_port
from tiny import FAMILIES, PAIRS, TEXTS, tiny
from toy import small_model, toy
from veridical import load
from veridical.core.errors import Caution, InputError
from veridical.core.records import Batch, Encoded, Example, Output
from veridical.core.text import marked
from veridical.model.classifier import Classifier
from veridical.training.collator import CARRIED, Carrier
from veridical.training.term import objective as read_objective
from veridical.training.term import ready, terms, virtual_adversarial
from veridical.training.term.cross_entropy import losses
from veridical.training.trainer import VeridicalTrainer

EXAMPLE = Path(__file__).parents[2] / "examples" / "trainer_saloss.py"
# The tiny BERT's head does, as BERT's does; one test insists on the caution, the others need not repeat it.
pytestmark = pytest.mark.filterwarnings("ignore:.* ignores num_items_in_batch:veridical.core.errors.Caution")


# -- terms of the test's own --------------------------------------------------------------------------------


def twin(clf: Classifier, batch: Batch, output: Output, labels: torch.Tensor) -> Any:
    """Cross-entropy as a term, with the number of right answers for a figure."""
    right = (output.logits.argmax(-1) == labels).sum()
    return losses(output.logits, labels, clf.kind).sum(), {"right": right}


def vectors(clf: Classifier, batch: Batch, output: Output, labels: torch.Tensor, prepared: int) -> torch.Tensor:
    """The mean square of a free token's word vector, over tokens and not over texts."""
    assert prepared == 42
    return (output.embeddings.square().mean(-1) * batch.free).sum()


def tokens(encoded: list[Encoded], labels: torch.Tensor, prepared: int) -> float:
    return float(sum(sum(e.free) for e in encoded))


def told(clf: Classifier, batch: Batch, output: Output, labels: torch.Tensor) -> torch.Tensor:
    """Attention that human rationales do not cover, where there are any."""
    wanted = torch.zeros_like(batch.free)
    for row, e in enumerate(batch.encoded):
        wanted[row, : len(e.ids)] = torch.from_numpy(marked(e))
    row = output.attentions[-1].mean(1)[:, 0]
    return ((1 - (row * wanted).sum(-1)) * wanted.any(-1)).sum()


@pytest.fixture(autouse=True)
def own_terms() -> Iterator[None]:
    from veridical.training.term import Term

    own = [
        Term("twin", twin),
        Term("vectors", vectors, prepare=lambda clf, encoded, labels: len(encoded), size=tokens),
        Term("told", told, needs=frozenset({"attention"})),
    ]
    assert "saloss" in terms
    for one in own:
        terms.add(one)
    yield
    for one in own:
        del terms._entries[one.name]


# -- data and trainers --------------------------------------------------------------------------------------


def rows(tokenizer: Any, size: int = 42, **more: Any) -> Dataset:
    """A tokenised dataset without its text."""
    examples = toy(train=size).splits["train"]
    found = tokenizer([e.text for e in examples], **more)
    return Dataset.from_dict({**found, "label": [e.label for e in examples]})


def trainer(folder: Path, kind: Any = VeridicalTrainer, *, args: Any = None, **more: Any) -> Any:
    torch.manual_seed(0)
    network, tokenizer = tiny("bert", num_labels=2)
    settings: dict[str, Any] = {
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 3,  # 42 texts: 11 batches, the last of 2, in updates of 3, 3, 3 and 2
        "num_train_epochs": 2,
        "learning_rate": 1e-3,
        "logging_steps": 1,
        "report_to": [],
        "use_cpu": True,
        "disable_tqdm": True,
        "save_strategy": "no",
        **(args or {}),
    }
    given = {"model": network, "train_dataset": rows(tokenizer), "processing_class": tokenizer, **more}
    return kind(args=TrainingArguments(output_dir=str(folder), **settings), **given)


def trained(folder: Path, kind: Any = VeridicalTrainer, **more: Any) -> Any:
    """Trained at once: the trainer seeds the random numbers when it is made."""
    one = trainer(folder, kind, **more)
    one.train()
    return one


def curve(one: Trainer, name: str = "loss") -> list[float]:
    return [row[name] for row in one.state.log_history if name in row]


def weights(one: Any) -> dict[str, torch.Tensor]:
    return {name: t.detach().clone() for name, t in one.model.state_dict().items()}


def same(a: Any, b: Any, atol: float = 0.0) -> None:
    np.testing.assert_allclose(curve(a), curve(b), rtol=0, atol=atol)
    for name, tensor in weights(a).items():
        # Adam makes a step of the gradient's sign: where that is rounding alone (keys' biases), so is the weight.
        if atol == 0 or "key.bias" not in name:
            torch.testing.assert_close(tensor, b.model.state_dict()[name], rtol=0.0, atol=100 * atol)


# -- encodings from ids -------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_encodings_from_ids_are_those_from_text(family: str):
    network, tokenizer = tiny(family, pair=True)
    clf = load(network, tokenizer)
    examples = [Example(str(i), text) for i, text in enumerate(TEXTS)]
    examples += [Example(f"p{i}", text, context=context) for i, (text, context) in enumerate(PAIRS)]
    carrier = Carrier(tokenizer)
    for expected in clf.encode(examples):
        for pad in (0, 3):  # as left, or padded when the dataset was tokenised
            row = {
                "input_ids": [*expected.ids, *[tokenizer.pad_token_id] * pad],
                "attention_mask": [1] * len(expected.ids) + [0] * pad,
                "token_type_ids": [*expected.types, *[0] * pad],
            }
            found = carrier.encode(row)
            assert (found.ids, found.types, found.free) == (expected.ids, expected.types, expected.free)
        assert [w >= 0 for w in found.words] == list(found.free)
        if expected.example.context is not None:
            other = Carrier(tokenizer, segment=1).encode(row)
            assert not any(a and b for a, b in zip(other.free, expected.free, strict=True))
            assert any(other.free)


def test_words_are_spelt_from_their_tokens():
    _, tokenizer = tiny("bert")
    carrier = Carrier(tokenizer)
    found = carrier.encode(tokenizer("An unbelievable film!"))
    assert found.example.text == "an unbelievable film!"
    assert [found.example.text[a:b] for a, b in found.spans[1:-1]] == [
        *("an", "un", "believ", "able", "film", "!")
    ]  # fmt: skip
    assert found.words[1:-1] == (0, 1, 1, 1, 2, 2)
    again = carrier.encode(tokenizer("An unbelievable film!"))
    assert again == found  # what a term has prepared for a text is found again
    assert hash(again) == hash(found)


def test_a_mask_of_special_tokens_wins_over_the_template():
    _, tokenizer = tiny("bert")
    ids = tokenizer("good film")["input_ids"]
    found = Carrier(tokenizer).encode({"input_ids": ids, "special_tokens_mask": [1, 1, 0, 1]})
    assert found.free == (False, False, True, False)
    unknown = tokenizer("good \U0001f600 film")
    assert tokenizer.unk_token_id in unknown["input_ids"]
    assert Carrier(tokenizer).encode(unknown).free == (False, True, True, True, False)


def test_the_collator_carries_encodings_beside_what_the_inner_one_makes():
    _, tokenizer = tiny("bert")
    found = [
        {**tokenizer(text), "rationale": torch.tensor([0] * 4 + [1] * (len(tokenizer(text)["input_ids"]) - 4))}
        for text in TEXTS[1:3]
    ]
    batch = Carrier(tokenizer)(found)
    assert set(batch) == {"input_ids", "token_type_ids", "attention_mask", CARRIED}
    assert [e.ids for e in batch[CARRIED]] == [tuple(row["input_ids"]) for row in found]
    assert marked(batch[CARRIED][0]).tolist() == [False] * 4 + [True] * 3 + [False]


# -- the trainer's own loss ---------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["cross_entropy", "twin:weight=0,vectors:weight=0"])
@pytest.mark.parametrize("args", [{}, {"label_smoothing_factor": 0.1}, {"gradient_accumulation_steps": 1}])
def test_the_stock_trainer_is_matched_to_the_last_bit(tmp_path: Path, objective: str, args: dict[str, Any]):
    stock, ours = trained(tmp_path, Trainer, args=args), trained(tmp_path, args=args, objective=objective)
    assert len(curve(ours)) == (22 if args.get("gradient_accumulation_steps") == 1 else 8)
    same(ours, stock)
    assert (
        ours.evaluate(rows(ours.processing_class))["eval_loss"]
        == stock.evaluate(rows(stock.processing_class))["eval_loss"]
    )


def test_own_loss_functions_are_kept(tmp_path: Path):
    def weighted(outputs: Any, labels: torch.Tensor, num_items_in_batch: Any = None) -> torch.Tensor:
        classes = torch.tensor([1.0, 3.0])
        return torch.nn.functional.cross_entropy(outputs.logits, labels, classes, reduction="sum") / num_items_in_batch

    same_loss: dict[str, Any] = {"compute_loss_func": weighted}
    stock, ours = trained(tmp_path, Trainer, **same_loss), trained(tmp_path, objective="twin:weight=0", **same_loss)
    same(ours, stock)


def test_eager_attention_differs_by_rounding_only(tmp_path: Path):
    # Without dropout, which the two draw differently.
    still = {"num_labels": 2, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    stock = trained(tmp_path, Trainer, model=tiny("bert", **still)[0])
    ours = trained(tmp_path, model=tiny("bert", **still)[0], objective="saloss:weight=0")
    assert stock.model.config._attn_implementation == "sdpa"
    assert ours.model.config._attn_implementation == "eager"
    np.testing.assert_allclose(curve(ours), curve(stock), atol=1e-4)


# -- how terms are scaled -----------------------------------------------------------------------------------


class Honest(BertForSequenceClassification):
    """A head that divides its loss by the number of examples it is told, as transformers' own rule would have it."""

    def forward(  # type: ignore[override]
        self,
        input_ids: Any = None,
        attention_mask: Any = None,
        token_type_ids: Any = None,
        labels: Any = None,
        num_items_in_batch: Any = None,
        **kwargs: Any,
    ) -> Any:
        output: Any = super().forward(input_ids, attention_mask, token_type_ids, **kwargs)
        if labels is not None:
            count = len(labels) if num_items_in_batch is None else num_items_in_batch
            output["loss"] = torch.nn.functional.cross_entropy(output.logits, labels, reduction="sum") / count
        return output


def honest(**settings: Any) -> Any:
    network, _ = tiny("bert", num_labels=2, **settings)
    made = Honest(network.config)
    made.load_state_dict(network.state_dict())
    return made


@pytest.mark.parametrize("batches", [1, 3, 4])
def test_a_term_that_is_cross_entropy_trains_as_cross_entropy(tmp_path: Path, batches: int):
    """The last update of an epoch has fewer batches, the last batch fewer texts: a mean of means would show."""
    args = {"gradient_accumulation_steps": batches}
    stock = trained(tmp_path, Trainer, args=args, model=honest())
    with warnings.catch_warnings():
        warnings.simplefilter("error", Caution)
        ours = trained(tmp_path, args=args, objective="cross_entropy:weight=0,twin", model=honest())
    same(ours, stock, atol=1e-6)
    np.testing.assert_allclose(curve(ours, "twin"), curve(stock), atol=1e-6)
    np.testing.assert_allclose(curve(ours, "cross_entropy"), curve(stock), atol=1e-6)


def test_terms_grow_with_a_loss_that_grows_with_accumulation(tmp_path: Path):
    """Most heads ignore the count; what the trainer then does to cross-entropy is done to the terms."""
    even = {"train_dataset": rows(tiny("bert")[1], 40)}  # 10 batches, in updates of 3, 3, 3 and 1
    stock = trained(tmp_path, Trainer, **even)
    with pytest.warns(Caution, match="BertForSequenceClassification ignores num_items_in_batch"):
        ours = trained(tmp_path, objective="cross_entropy:weight=0,twin", **even)
    same(ours, stock, atol=2e-6)
    means = np.array(curve(stock)) / [3, 3, 3, 1, 3, 3, 3, 1]
    np.testing.assert_allclose(curve(ours, "twin"), means, atol=1e-6)
    np.testing.assert_allclose(curve(ours, "cross_entropy"), means, atol=1e-6)


def test_a_model_that_takes_no_count_gets_terms_that_are_scaled(tmp_path: Path):
    """There the trainer divides by the number of accumulated batches, which must not touch the terms."""
    found = []
    for kind, more in ((Trainer, {}), (VeridicalTrainer, {"objective": "cross_entropy:weight=0,twin"})):
        one = trainer(tmp_path, kind, train_dataset=rows(tiny("bert")[1], 40), **more)
        one.model_accepts_loss_kwargs = False
        one.train()
        found.append(one)
    same(found[1], found[0], atol=1e-6)
    np.testing.assert_allclose(curve(found[1], "cross_entropy"), curve(found[0]), atol=1e-6)


@pytest.mark.parametrize("more", [{"args": {"label_smoothing_factor": 0.1}}, {"compute_loss_func": "own"}])
def test_losses_that_are_not_the_models_are_taken_at_their_word(tmp_path: Path, more: dict[str, Any]):
    def own(outputs: Any, labels: torch.Tensor, num_items_in_batch: Any = None) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(outputs.logits, labels, reduction="sum") / num_items_in_batch

    more = {"compute_loss_func": own} if "compute_loss_func" in more else more
    with warnings.catch_warnings():
        warnings.simplefilter("error", Caution)
        ours = trained(tmp_path, objective="twin", **more)
    for loss, base, term in zip(curve(ours), curve(ours, "cross_entropy"), curve(ours, "twin"), strict=True):
        assert loss == pytest.approx(base + term, rel=1e-5)
        assert base == pytest.approx(term, rel=0.2)


def test_sizes_are_those_of_the_whole_update(tmp_path: Path):
    """One update over the whole data: the logged term is the mean over all its tokens, whatever the batches."""
    args = {"gradient_accumulation_steps": 11, "num_train_epochs": 1}
    ours = trainer(tmp_path, args=args, objective="vectors:weight=0.5,twin", model=honest())
    table = ours.model.get_input_embeddings().weight.detach().clone()
    ours.train()
    carrier = ours.data_collator
    free = [
        i
        for row in ours.train_dataset
        for i, own in zip(row["input_ids"], carrier.encode(row).free, strict=True)
        if own
    ]
    (row,) = [row for row in ours.state.log_history if "loss" in row]
    assert row["vectors"] == pytest.approx(float(table[free].square().mean()), rel=1e-5)
    assert 0 <= row["twin.right"] <= 1
    assert round(row["twin.right"] * 42) == pytest.approx(row["twin.right"] * 42, abs=1e-3)
    assert row["loss"] == pytest.approx(row["cross_entropy"] + 0.5 * row["vectors"] + row["twin"], rel=1e-5)


def test_the_log_averages_over_its_updates(tmp_path: Path):
    fine = trained(tmp_path, objective="twin")
    coarse = trained(tmp_path, args={"logging_steps": 4}, objective="twin")
    np.testing.assert_allclose(curve(coarse, "twin"), np.array(curve(fine, "twin")).reshape(2, 4).mean(1), rtol=1e-5)


def test_evaluation_measures_the_terms_and_leaves_its_loss_and_predictions_alone(tmp_path: Path):
    stock, ours = trainer(tmp_path, Trainer), trainer(tmp_path, objective="vectors:weight=0.5,twin,saloss:weight=0.1")
    data = rows(ours.processing_class, 21)
    before, found = stock.evaluate(data), ours.evaluate(data)
    assert found["eval_loss"] == pytest.approx(before["eval_loss"], abs=1e-6)
    assert found["eval_twin"] == pytest.approx(found["eval_loss"], abs=1e-6)
    whole = found["eval_loss"] + 0.5 * found["eval_vectors"] + found["eval_twin"] + 0.1 * found["eval_saloss"]
    assert found["eval_objective"] == pytest.approx(whole, abs=1e-5)
    assert "eval_twin.right" in found
    labelled, bare = ours.predict(data), ours.predict(data.remove_columns("label"))
    assert labelled.predictions.shape == (21, 2)
    np.testing.assert_array_equal(labelled.predictions, bare.predictions)
    assert bare.metrics is not None
    assert "test_twin" not in bare.metrics
    assert not ours.model.get_input_embeddings()._forward_hooks


# -- real terms ---------------------------------------------------------------------------------------------


def test_saloss_is_what_it_is_in_our_own_loop(tmp_path: Path):
    ours = trainer(tmp_path, objective="saloss:prior=tfidf")
    found = ours.evaluate(ours.train_dataset)["eval_saloss"]
    clf = Classifier(ours.model, ours.processing_class)
    examples = toy(train=42).splits["train"]
    encoded, gold = clf.encode(examples), torch.tensor([e.label for e in examples])
    _, term = ready(read_objective("saloss:prior=tfidf"), clf, encoded, gold)
    with clf.still(), clf.eager(), torch.no_grad():
        batch = clf.collate(encoded)
        loss, _ = term.loss(clf, batch, clf.forward(batch, attentions=True), gold)
    assert found == pytest.approx(float(loss) / 42, rel=1e-4)


def test_saloss_falls_when_it_weighs(tmp_path: Path):
    means = {}
    for weight in (0, 10):
        ours = trainer(tmp_path, args={"num_train_epochs": 4}, objective=f"saloss:weight={weight}")
        ours.train()
        means[weight] = ours.evaluate(ours.train_dataset)["eval_saloss"]
    assert means[10] < 0.8 * means[0]


@pytest.mark.parametrize(
    "objective", ["input_gradient:weight=0.01", "virtual_adversarial:weight=0.5", "explanation_guided:weight=0.01"]
)
def test_the_other_terms_train_and_are_evaluated(tmp_path: Path, objective: str):
    ours = trainer(tmp_path, args={"max_steps": 2, "eval_strategy": "steps", "eval_steps": 2}, objective=objective,
                   eval_dataset=rows(tiny("bert")[1], 6))  # fmt: skip
    ours.train()
    name = objective.partition(":")[0]
    assert all(np.isfinite(curve(ours, name)))
    assert np.isfinite(curve(ours, f"eval_{name}")[0])


@pytest.mark.parametrize(("args", "seed"), [({"seed": 4}, 4), ({"seed": 4, "data_seed": 9}, 9)])
def test_terms_draw_from_the_data_seed_and_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: dict[str, Any], seed: int
):
    drawn: list[Any] = []
    real = virtual_adversarial._draws

    def watch(batch: Any, like: Any, draw: Any) -> Any:
        drawn.append(draw)
        return real(batch, like, draw)

    monkeypatch.setattr(virtual_adversarial, "_draws", watch)
    trainer(tmp_path, args={"max_steps": 2, **args}, objective="virtual_adversarial").train()
    assert {(draw.seed, draw.step) for draw in drawn} == {(seed, 0), (seed, 1)}


@pytest.mark.parametrize("frozen", [False, True])
def test_a_gradient_guide_is_measured_before_training_and_on_frozen_word_vectors(tmp_path: Path, frozen: bool):
    network, tokenizer = tiny("bert", num_labels=2)
    network.get_input_embeddings().requires_grad_(not frozen)
    guide = "explanation:method=input_x_gradient:source=lexicon"
    more = {"train_dataset": rows(tokenizer, 8), "eval_dataset": rows(tokenizer, 6)}
    ours = trainer(tmp_path, model=network, objective=guide, args={"max_steps": 1}, **more)
    try:
        before = ours.evaluate()["eval_explanation"]
    except InputError as nothing:  # no word of these texts is in the lexicon
        pytest.fail(str(nothing))
    ours.train()
    assert np.isfinite([before, *curve(ours, "explanation")]).all()


def test_rationales_travel_as_a_column(tmp_path: Path):
    _, tokenizer = tiny("bert")
    data = rows(tokenizer, return_special_tokens_mask=True)
    wanted = [tokenizer.convert_tokens_to_ids(word) for word in ("good", "bad")]
    data = data.map(lambda row: {"rationale": [int(i in wanted) for i in row["input_ids"]]})
    network = tiny("bert", num_labels=2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)[0]
    args = {"num_train_epochs": 8, "gradient_accumulation_steps": 1, "learning_rate": 5e-3}
    ours = trained(tmp_path, model=network, objective="told:weight=5", train_dataset=data, args=args)
    share = curve(ours, "told")
    assert 0 < np.mean(share[-11:]) < 0.7 * np.mean(share[:11])


@pytest.mark.families
def test_every_family_trains(tmp_path: Path):
    for family in ("roberta", "distilbert", "modernbert", "bilstm"):
        network, tokenizer = tiny(family, num_labels=2)
        ours = trainer(tmp_path, model=network, processing_class=tokenizer, train_dataset=rows(tokenizer, 12),
                       objective="saloss:weight=0.1", args={"max_steps": 2})  # fmt: skip
        ours.train()
        assert all(np.isfinite(curve(ours, "saloss"))), family


def test_several_labels_and_datasets_padded_beforehand(tmp_path: Path):
    network, tokenizer = tiny("bert", num_labels=3, problem_type="multi_label_classification")
    examples = toy(train=12, classes=3, multilabel=True).splits["train"]
    found = tokenizer([e.text for e in examples], padding="max_length", max_length=24, truncation=True)
    labels = [[float(i in e.label) for i in range(3)] for e in examples]  # type: ignore[operator]
    data = Dataset.from_dict({**found, "labels": labels})
    args = {"max_steps": 3, "gradient_accumulation_steps": 1}
    ours = trained(tmp_path, model=network, train_dataset=data, objective="saloss", args=args)
    assert all(np.isfinite(curve(ours, "saloss")))


def test_a_new_model_from_model_init_is_followed(tmp_path: Path):
    init = {"model": None, "model_init": lambda: tiny("bert", num_labels=2)[0]}
    ours = trained(tmp_path, **init, objective="saloss:weight=0.1", args={"max_steps": 2})
    assert ours._terms()[0].model is ours.model
    assert ours.model.config._attn_implementation == "eager"


def test_a_checkpoint_is_gone_on_from(tmp_path: Path):
    args = {"save_strategy": "epoch"}
    whole = trained(tmp_path / "whole", objective="saloss:weight=0.1", args=args)
    part = trainer(tmp_path / "part", objective="saloss:weight=0.1", args=args)
    part.train(resume_from_checkpoint=str(tmp_path / "whole" / "checkpoint-4"))
    assert curve(part, "saloss") == curve(whole, "saloss")  # the log comes with the checkpoint
    same(part, whole)


def test_the_saved_model_is_an_ordinary_one(tmp_path: Path):
    ours = trainer(tmp_path / "out", objective="saloss:weight=0.1", args={"max_steps": 1})
    ours.train()
    ours.save_model(str(tmp_path / "saved"))
    assert "attn" not in json.dumps(json.loads((tmp_path / "saved" / "config.json").read_text()))
    assert load(str(tmp_path / "saved")).model.config._attn_implementation == "sdpa"


def test_the_example_runs(tmp_path: Path):
    data = toy(train=24, dev=8)
    for split in ("train", "dev"):
        with (tmp_path / f"{split}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["text", "label"])
            writer.writerows([e.text, e.label] for e in data.splits[split])
    model = small_model(tmp_path / "model", num_labels=2)
    main = runpy.run_path(str(EXAMPLE))["main"]
    paths = ["--train", str(tmp_path / "train.csv"), "--dev", str(tmp_path / "dev.csv"), "--out", str(tmp_path / "out")]
    found = main(["--model", model, *paths, "--epochs", "1"])
    assert found["eval_objective"] == pytest.approx(found["eval_loss"] + 1e-3 * found["eval_saloss"])
    assert load(tmp_path / "out").labels
    added = [line for line in EXAMPLE.read_text(encoding="utf-8").splitlines() if "# veridical" in line]
    assert len(added) == 3


# -- several processes --------------------------------------------------------------------------------------


def test_two_processes_follow_the_curve_of_one(tmp_path: Path):
    launch = ["--nproc_per_node", "2", "--master_port", str(free_port())]
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", *launch, __file__, str(tmp_path / "two")],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    two = json.loads((tmp_path / "two.json").read_text())
    one = distributed(str(tmp_path / "one"), 1)
    for name in ("loss", "cross_entropy", "saloss", "eval_saloss", "eval_objective", "stock"):
        np.testing.assert_allclose(two[name], one[name], atol=2e-5, err_msg=name)


def distributed(folder: str, processes: int) -> dict[str, list[float]]:
    torch.manual_seed(0)
    tokenizer = tiny("bert")[1]
    ours = VeridicalTrainer(
        model=honest(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0),
        args=TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=8 // processes,
            gradient_accumulation_steps=2,
            num_train_epochs=2,
            learning_rate=1e-3,
            logging_steps=1,
            eval_strategy="epoch",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            save_strategy="no",
        ),
        train_dataset=rows(tokenizer, 32),
        eval_dataset=rows(tokenizer, 16),
        processing_class=tokenizer,
        objective="saloss",
    )
    ours.train()
    found = {name: curve(ours, name) for name in ("loss", "cross_entropy", "saloss", "eval_saloss", "eval_objective")}
    # A head that ignores num_items_in_batch: the trainer's evaluation loss grows with the processes, the objective not.
    plain = VeridicalTrainer(
        model=tiny("bert", num_labels=2)[0],
        args=TrainingArguments(output_dir=folder, report_to=[], use_cpu=True, disable_tqdm=True),
        train_dataset=rows(tokenizer, 16),
        eval_dataset=rows(tokenizer, 16),
        processing_class=tokenizer,
        objective="saloss",
    )
    return {**found, "stock": [plain.evaluate()["eval_objective"]]}


# -- mistakes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"objective": "salos"}, "There is no term 'salos'. Did you mean 'saloss'"),
        ({"processing_class": None}, "pass processing_class=tokenizer"),
        ({"segment": 2}, "segment is 2; it is 0 or 1"),
        ({"args": {"torch_compile": True}}, "which torch_compile hides"),
        ({"args": {"bf16_full_eval": True}}, "leave bf16_full_eval out"),
    ],
)
def test_mistakes_are_named_at_once(tmp_path: Path, change: dict[str, Any], said: str):
    with pytest.raises(InputError, match=said):
        trainer(tmp_path, **{"objective": "saloss", **change})


def test_mistakes_in_the_data_are_named(tmp_path: Path):
    _, tokenizer = tiny("bert", num_labels=2)
    data = rows(tokenizer, 8)
    for change, said in (
        (data.remove_columns("label"), "Row 0 of train_dataset has no labels"),
        (data.remove_columns("input_ids"), "has no input_ids"),
        (None, "give a train_dataset that has a length"),
        (data.map(lambda row: {"rationale": [1, 0]}), "has 2 entries; give 0 or 1 for each token"),
        (data.map(lambda row: {"input_ids": row["input_ids"][:1], "attention_mask": [1]}), "only special tokens"),
    ):
        with pytest.raises(InputError, match=said):
            trainer(tmp_path, objective="saloss", train_dataset=change)._terms()
    left = {"input_ids": [0, 2, 30, 3], "attention_mask": [0, 1, 1, 1]}
    with pytest.raises(InputError, match="padded on the left"):
        Carrier(tokenizer).encode(left)
    half, _ = tiny("bert", num_labels=2)
    with pytest.raises(InputError, match=r"The weights are torch\.float16"):
        trainer(tmp_path, model=half.half(), objective="saloss")._terms()
    regressor, _ = tiny("bert", num_labels=1)
    with pytest.raises(InputError, match="learns by regression"):
        trainer(tmp_path, model=regressor, objective="saloss")._terms()
    one = trainer(tmp_path, objective="twin")
    batch = one.data_collator([one.train_dataset[i] for i in range(2)])
    with pytest.raises(InputError, match="problem_type='multi_label_classification'"):
        one.compute_loss(one.model, {**batch, "labels": torch.zeros(2, 2)})
    with pytest.raises(InputError, match="The batch has no labels"):
        one.compute_loss(one.model, {key: value for key, value in batch.items() if key != "labels"})
    with pytest.raises(InputError, match="padded on the left, or the data collator changes tokens"):
        one.compute_loss(one.model, {**batch, "input_ids": batch["input_ids"].roll(1, 1)})
    with pytest.raises(InputError, match="A batch has no labels"):
        one.get_batch_samples(
            iter([{key: value for key, value in batch.items() if key != "labels"}]), 1, one.args.device
        )
    with pytest.raises(InputError, match="made 2 rows of 1 examples"):
        one.compute_loss(one.model, {**batch, CARRIED: batch[CARRIED][:1]})


if __name__ == "__main__":
    found = distributed(sys.argv[1], 2)
    if int(os.environ["RANK"]) == 0:
        Path(f"{sys.argv[1]}.json").write_text(json.dumps(found))
    torch.distributed.destroy_process_group()  # at the interpreter's end its threads may be found running, and abort


# -- masked training ----------------------------------------------------------------------------------------


def test_the_trainer_masks_by_seed_step_and_text(tmp_path: Path) -> None:
    seen: list[bool] = []

    class Watching(VeridicalTrainer):
        def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            def look(module: Any, given: Any, named: Any) -> None:
                seen.append(bool((named["input_ids"] == self.processing_class.mask_token_id).any()))

            handle = model.register_forward_pre_hook(look, with_kwargs=True)
            try:
                return super().compute_loss(model, inputs, *args, **kwargs)
            finally:
                handle.remove()

    one = trained(tmp_path / "a", Watching, mask=1.0)
    assert one.model.config.veridical_mask == 1.0
    assert any(seen)
    again = trained(tmp_path / "b", mask=1.0)
    plain = trained(tmp_path / "c")
    weights = [trainer.model.classifier.weight for trainer in (one, again, plain)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert not hasattr(plain.model.config, "veridical_mask")
    seen.clear()
    one.evaluate(one.train_dataset)
    assert seen
    assert not any(seen)  # evaluation masks nothing


def test_the_trainers_terms_see_whole_texts_only(tmp_path: Path) -> None:
    from veridical.training.term import Term

    def whole(clf: Classifier, batch: Batch, output: Output, labels: torch.Tensor) -> torch.Tensor:
        assert not (batch.ids == clf.tokenizer.mask_token_id).any()
        return torch.ones((), requires_grad=True) * len(batch.ids)

    terms.add(Term("whole", whole))
    try:
        one = trained(tmp_path, mask=1.0, objective="whole:weight=0.5")
    finally:
        del terms._entries["whole"]
    told = [row["whole"] for row in one.state.log_history if "whole" in row]
    assert told == pytest.approx([1.0] * len(told))  # by the whole texts of the update, over its batches
