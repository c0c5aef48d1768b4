"""The paper's settings per dataset, and folders of before that say them otherwise."""

from __future__ import annotations

import dataclasses

import pytest
from inprocess import MODEL, TINY

from toy import toy
from veridical.core import store
from veridical.core.errors import InputError
from veridical.retraining.roar.experiment import asked, begin, make_bench, read_experiment
from veridical.retraining.roar.settings import family, training


def named(name, *, pair):
    return dataclasses.replace(toy(8, 8, 8, pair=pair), name=name)


def made(out, data, model="bilstm", config=None):
    return asked(out, data, model, config=config, limit=None, rounding="floor")


@pytest.mark.parametrize(
    ("name", "pair", "width", "epochs", "batch", "select"),
    [
        ("babi/1", True, 32, 100, 50, "accuracy"),
        ("babi/2:size=2000", True, 32, 100, 50, "accuracy"),
        ("babi/3:path=en-10k", True, 32, 100, 50, "accuracy"),
        ("snli", True, 128, 25, 128, "accuracy"),
        ("e-snli", True, 128, 25, 128, "accuracy"),
        ("hub:owner/snli", True, 128, 25, 128, "accuracy"),
        ("boolq", True, 128, 25, 128, "accuracy"),
        ("sst2", False, 128, 8, 32, "auroc"),
        ("imdb", False, 128, 8, 32, "auroc"),
        ("mimic/anemia:path=mimic", False, 128, 8, 32, "auroc"),
        ("hutto/movies", False, 128, 8, 32, "auroc"),
    ],
)
def test_the_papers_settings_are_the_default_of_a_dataset(tmp_path, name, pair, width, epochs, batch, select):
    experiment = made(tmp_path, named(name, pair=pair))
    config = make_bench(experiment, 0).clf.model.config
    assert (config.hidden_size, config.attention_size) == (width, width)
    train = experiment.config
    assert (train.epochs, train.patience, train.batch, train.select) == (epochs, None, batch, select)
    assert (train.lr, train.optimizer, train.weight_decay, train.threads) == (1e-3, "amsgrad", 1e-5, 1)
    assert train.no_decay == (() if pair else ("attention",))


def test_encoders_keep_their_settings_whatever_the_data():
    assert training("minilm", named("babi/1", pair=True)) == training("minilm", named("sst2", pair=False))


@pytest.mark.parametrize(
    ("name", "known"), [("babi_1", "babi"), ("e-snli", "snli"), ("babies", None), ("mysnli", None), ("sst2", None)]
)
def test_a_dataset_is_known_by_a_whole_word_of_its_name(name, known):
    assert family(name) == known


def test_the_width_of_babi_is_in_the_spec_and_an_explicit_one_wins(tmp_path):
    data = named("babi/1", pair=True)
    assert made(tmp_path / "a", data).spec["roar"]["model"] == "bilstm:hidden=32:attention=32"
    assert made(tmp_path / "b", data, "bilstm:embedding=8").model == "bilstm:embedding=8:hidden=32:attention=32"
    wide = make_bench(made(tmp_path / "c", data, "bilstm:hidden=128"), 0).clf.model.config
    assert (wide.hidden_size, wide.attention_size) == (128, 128)


@pytest.mark.parametrize(
    ("held", "again"),
    [
        ("bilstm", "bilstm:hidden=128"),  # on bAbI, where the default was 128
        ("bilstm:hidden=128", "bilstm:hidden=128"),
        ("bilstm:hidden=8:embedding=8", "bilstm:hidden=8:embedding=8:attention=128"),  # the attention never followed
    ],
)
def test_a_folder_of_before_goes_on_with_the_same_settings_said(tmp_path, held, again):
    """What such a folder holds: the model as it was typed, and an attention of 128 whatever the width."""
    data, settings = named("babi/1", pair=True), {**TINY, "epochs": 30, "patience": 10}
    experiment = dataclasses.replace(made(tmp_path / "new", data, again, settings), folder=tmp_path / "old", model=held)
    begin(experiment)
    before = (experiment.folder / "spec.json").read_bytes()

    begin(made(experiment.folder, data, again, settings))
    assert (experiment.folder / "spec.json").read_bytes() == before
    config = make_bench(read_experiment(experiment.folder), 0).clf.model.config
    assert config.attention_size == 128
    assert config.hidden_size == (8 if "hidden=8" in held else 128)


def test_where_the_default_has_changed_the_differing_settings_are_named(tmp_path):
    data, settings = named("babi/1", pair=True), {"epochs": 30, "patience": 10}
    begin(dataclasses.replace(made(tmp_path / "new", data, "bilstm:hidden=128", settings), folder=tmp_path / "old"))
    store.write_json(
        tmp_path / "old" / "spec.json",
        {"roar": {**store.read_json(tmp_path / "old" / "spec.json")["roar"], "model": "bilstm"}},
    )
    with pytest.raises(InputError, match=r"roar\.model is 'bilstm' there and 'bilstm:hidden=32:attention=32' now"):
        made(tmp_path / "old", data)
    with pytest.raises(InputError, match=r"epochs is 30 there and 100 now.*patience is 10 there and None now"):
        made(tmp_path / "old", data, "bilstm:hidden=128")


def test_the_tests_own_model_is_as_wide_in_its_attention(tmp_path):
    config = make_bench(made(tmp_path, toy(8, 8, 8), MODEL, TINY), 0).clf.model.config
    assert (config.hidden_size, config.attention_size) == (8, 8)
