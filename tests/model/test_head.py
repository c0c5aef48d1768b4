"""A trained head under new names: its rows go with their names, and other classes get a new one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import veridical
from tiny import FAMILIES, tiny
from veridical.core.records import Example
from veridical.model.ask import predict

SOME = (*FAMILIES, "llama", "gpt2", "gemma2", "mpnet", "albert")
TEXTS = [Example(str(i), text) for i, text in enumerate(["the film was not good", "a boring plot but a good end"])]


def saved(folder, family: str) -> None:
    model, tokenizer = tiny(family, num_labels=3)
    model.config.id2label = {0: "bad", 1: "fair", 2: "good"}
    model.config.label2id = {"bad": 0, "fair": 1, "good": 2}
    veridical.load(model, tokenizer).save(folder)


def answers(folder, labels=None) -> tuple[np.ndarray, bool]:
    clf = veridical.load(str(folder), labels=labels)
    return predict(clf, clf.encode(TEXTS)).logits, clf.trained


@pytest.mark.parametrize("family", SOME)
def test_rows_go_with_their_names(family: str, tmp_path) -> None:
    saved(tmp_path, family)
    before, _ = answers(tmp_path)
    for labels, order in ((["good", "bad", "fair"], [2, 0, 1]), (["Bad", "FAIR", "good"], [0, 1, 2])):
        after, trained = answers(tmp_path, labels)
        assert trained
        np.testing.assert_allclose(after, before[:, order], atol=1e-6)
    kept, trained = answers(tmp_path, ["0", "1", "2"])  # classes without names go by their places
    assert trained
    np.testing.assert_allclose(kept, before, atol=1e-6)


@pytest.mark.parametrize("family", SOME)
def test_other_classes_get_a_new_head(family: str, tmp_path) -> None:
    saved(tmp_path, family)
    before, _ = answers(tmp_path)
    state = torch.get_rng_state()
    after, trained = answers(tmp_path, ["red", "green", "blue"])
    assert not trained
    assert np.abs(after - before).max() > 1e-4
    assert np.array_equal(after, answers(tmp_path, ["red", "green", "blue"])[0])
    assert torch.equal(torch.get_rng_state(), state)
