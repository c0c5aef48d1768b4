"""Settings that training was given later: maximal length, Adam's betas, dropout, and a seed for all but the weights."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import veridical
from tiny import FAMILIES
from toy import small_model, toy
from veridical.cli.app import verb
from veridical.core import store
from veridical.core.errors import Caution, InputError
from veridical.core.settings import build
from veridical.model.load import create
from veridical.retraining.roar.experiment import asked, make_bench
from veridical.training.config import BILSTM, TrainConfig
from veridical.training.rate import make_optimizer
from veridical.training.train import train

SHORT: dict[str, Any] = {"epochs": 1, "batch": 8}
ENCODERS = [family for family in FAMILIES if family != "bilstm"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_model(tmp_path_factory.mktemp("bert"))


def run(model: str, out: Path, *, seed: int = 0, objective: str = "cross_entropy", **settings: Any) -> Path:
    config = TrainConfig(**{**SHORT, **settings})
    data = toy(24, 8, 8, classes=3)  # as many classes as the folder's head has: it is taken over, whatever the seed
    return train(data, model, seed=seed, objective=objective, config=config, out=out, progress=False).folder


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model" / "model.safetensors")


def equal(a: Path, b: Path) -> bool:
    return all(torch.equal(tensor, weights(b)[name]) for name, tensor in weights(a).items())


# -- specs ---------------------------------------------------------------------------------------------------


def test_specs_and_hashes_of_before_stay_what_they_were():
    """Taken before the new settings were there."""
    assert [store.stable_hash(config) for config in (TrainConfig(), BILSTM)] == ["fc06896f", "2433b6d4"]
    new = {"max_length": 128, "betas": (0.9, 0.98), "dropout": 0.2, "data_seed": 3}
    assert not set(new) & set(store.plain(TrainConfig()))


@pytest.mark.parametrize(
    "said",
    [{"max_length": 128}, {"betas": (0.9, 0.98)}, {"dropout": 0.0}, {"data_seed": 0}],
    ids=lambda one: next(iter(one)),
)
def test_a_new_setting_that_is_said_is_in_the_spec_and_comes_back(said: dict[str, Any]):
    config = TrainConfig(**said)
    written = store.plain(config)
    assert set(said) <= set(written)
    assert store.stable_hash(config) != store.stable_hash(TrainConfig())
    assert build(TrainConfig, written) == config


def test_a_run_of_before_is_found_done(model: str, tmp_path: Path):
    folder = run(model, tmp_path / "run")
    assert "betas" not in store.read_json(folder / "spec.json")["train"]
    assert run(model, tmp_path / "run") == folder
    with pytest.raises(InputError, match=r"train.max_length is None there and 6 now"):
        run(model, tmp_path / "run", max_length=6)


def test_files_and_overrides_say_them():
    said = ("train.betas=0.9+0.98", "train.max_length=256", "train.dropout=none", "train.data_seed=7")
    config = verb("train").parse([part for word in said for part in ("--set", word)])["options"].settings()
    assert (config.betas, config.max_length) == ((0.9, 0.98), 256)
    assert (config.dropout, config.data_seed) == (None, 7)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"max_length": 0}, "max_length is 0"),
        ({"betas": (0.9,)}, "betas is"),
        ({"betas": (0.9, 1.0)}, "betas is"),
        ({"betas": (0.9, 0.9, 0.9)}, "betas is"),
        ({"dropout": 1.0}, "dropout is 1;"),
        ({"dropout": -0.1}, "dropout is -0.1"),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any], said: str):
    with pytest.raises(InputError, match=said):
        TrainConfig(**wrong)


# -- betas and dropout ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", ["adamw", "amsgrad"])
def test_betas_are_the_optimisers(model: str, optimizer: Any):
    clf = create(model, toy(8, 8, 8), seed=0)
    config = TrainConfig(optimizer=optimizer, betas=(0.8, 0.98))
    assert {group["betas"] for group in make_optimizer(clf.model, config).param_groups} == {(0.8, 0.98)}


def test_betas_change_what_is_learnt(model: str, tmp_path: Path):
    usual, other = (
        run(model, tmp_path / name, betas=betas) for name, betas in (("a", (0.9, 0.999)), ("b", (0.9, 0.9)))
    )
    assert not equal(usual, other)


@pytest.mark.parametrize("family", ENCODERS)
def test_dropout_is_set_throughout_every_family(family: str, tmp_path: Path):
    clf = create(small_model(tmp_path / family, family), toy(8, 8, 8), seed=0, dropout=0.25)
    rates = {module.p for module in clf.model.modules() if isinstance(module, torch.nn.Dropout)}
    assert rates == {0.25}
    clf.save(tmp_path / "saved")
    held = store.read_json(tmp_path / "saved" / "config.json")
    assert {held[name] for name in held if name.endswith(("dropout", "dropout_prob"))} == {0.25}


def test_the_bilstm_has_no_dropout_to_set():
    with pytest.raises(InputError, match="'bilstm' has no dropout to set"):
        create("bilstm:hidden=8", toy(8, 8, 8), seed=0, dropout=0.1)


# -- maximal length ------------------------------------------------------------------------------------------


def test_texts_are_cut_in_training_and_wherever_the_model_is_used(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    config = TrainConfig(**SHORT, max_length=6)
    done = train(toy(24, 8, 8), model, config=config, out=tmp_path / "run", progress=True)
    assert all(lost["texts"] for lost in done.cut.values())
    assert "train texts are longer than the 6 tokens of max_length" in capsys.readouterr().err
    clf = veridical.load(str(done.folder))
    assert clf.limit == 6
    assert max(len(e.ids) for e in clf.encode(toy(24, 8, 8).splits["test"])) == 6
    with pytest.warns(Caution, match="longer than the 6 tokens"):
        (found,) = veridical.explain(clf, ["the film was good but the plot is boring in that end"], "gradient")
    assert len(found.tokens) == 6
    # What is explained is what was trained on: the probabilities are those of the run.
    text = toy(24, 8, 8).splits["test"][0]
    held = store.read_parquet(done.folder / "predictions.parquet").to_pylist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Caution)
        (again,) = veridical.explain(clf, [text], "gradient")
    expected = next(row["probabilities"] for row in held if row["id"] == text.id)
    assert again.probabilities == pytest.approx(expected, abs=1e-6)


def test_recursive_roar_cuts_too(tmp_path: Path):
    data = toy(8, 8, 8)
    job = asked(tmp_path, data, "bilstm:hidden=8", config={"max_length": 5}, limit=None, rounding="floor")
    bench = make_bench(job, 0)
    assert max(len(e.ids) for e in bench.encoded["train"]) == 5


def test_no_more_than_the_model_takes_can_be_asked_for(model: str, tmp_path: Path):
    with pytest.raises(InputError, match=r"max_length is 100000, but .* takes \d+ tokens at most"):
        run(model, tmp_path / "run", max_length=100_000)
    with pytest.raises(InputError, match="Special tokens leave no room for the text of example"):
        run(model, tmp_path / "run", max_length=2)


# -- data seed -----------------------------------------------------------------------------------------------


def test_all_that_is_random_after_the_first_weights_is_the_data_seeds(model: str, tmp_path: Path):
    """From the same weights, with dropout and virtual adversarial noise: equal to the last bit, and else not."""
    noisy = {"objective": "virtual_adversarial:weight=0.5:noise=0.1", "dropout": 0.2}
    a, b = (run(model, tmp_path / f"fixed{seed}", seed=seed, data_seed=5, **noisy) for seed in (0, 1))
    assert equal(a, b)
    assert not equal(a, run(model, tmp_path / "other", seed=0, data_seed=6, **noisy))
    assert not equal(a, run(model, tmp_path / "usual", seed=0, **noisy))


def test_without_one_it_is_the_seed(model: str, tmp_path: Path):
    assert equal(
        run(model, tmp_path / "a", seed=5, dropout=0.2), run(model, tmp_path / "b", seed=0, data_seed=5, dropout=0.2)
    )


def test_the_data_seed_leaves_the_first_weights_to_the_seed(model: str, tmp_path: Path):
    """Two classes: the folder's head does not fit, and is drawn."""
    config = TrainConfig(**SHORT, lr=0.0, head_lr=0.0, data_seed=5)
    folders = [
        train(toy(24, 8, 8), model, seed=seed, config=config, out=tmp_path / str(seed), progress=False).folder
        for seed in (0, 1)
    ]
    assert not equal(*folders)


def test_every_setting_is_checked_before_a_folder_is_claimed(model: str, tmp_path: Path):
    with pytest.raises(InputError, match="no dropout"):
        train(toy(8, 8, 8), "bilstm", config=dataclasses.replace(BILSTM, dropout=0.1), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
