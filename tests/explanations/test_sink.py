"""The token that decoders attend to when they look for nothing is named where a method gives it most."""

from __future__ import annotations

import warnings

import pytest

import veridical
from tiny import TEXTS, tiny
from veridical.core.errors import Caution
from veridical.model.classifier import Classifier


def cautions(clf: Classifier, method: str, texts: list[str]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        veridical.explain(clf, texts, method)
    return [str(w.message) for w in caught if issubclass(w.category, Caution) and "attention sink" in str(w.message)]


def test_rollout_gives_the_first_token_most_and_that_is_said_once() -> None:
    clf = Classifier(*tiny("llama", num_hidden_layers=12))
    (said,) = cautions(clf, "rollout", [TEXTS[2], TEXTS[4], TEXTS[0]])
    assert "In 2 of 2 texts rollout gives the first token up to" in said  # the third has too few tokens to tell
    assert not cautions(clf, "input_x_gradient", [TEXTS[2], TEXTS[4]])


def test_encoders_have_none_and_tensors_are_told_too() -> None:
    assert not cautions(Classifier(*tiny("bert")), "rollout", [TEXTS[2]])
    clf = Classifier(*tiny("llama", num_hidden_layers=12))
    batch = clf.collate(clf.encode([veridical.Example("0", TEXTS[4])]))
    with pytest.warns(Caution, match="attention sink"):
        veridical.attribute(clf.model, batch.ids, batch.mask, "rollout")
