"""Gold labels of one dataset in a model trained on another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from veridical.core.errors import Caution
from veridical.core.records import Example
from veridical.data.labels import of_kind, relabel

EXAMPLES = [Example("a", "x", label=0), Example("b", "y", label=1), Example("c", "z", label=None)]


def labels(own: tuple[str, ...], model: tuple[str, ...]) -> list:
    return [e.label for e in relabel(EXAMPLES, own, model)]


def test_names_are_matched_whatever_their_order_and_case():
    assert labels(("negative", "positive"), ("Positive", "Negative")) == [1, 0, None]


@pytest.mark.parametrize("model", [("LABEL_0", "LABEL_1"), ("0", "1")])
def test_a_model_without_names_is_matched_by_place(model):
    assert labels(("negative", "positive"), model) == [0, 1, None]


def test_data_without_names_are_matched_by_place():
    assert labels(("0", "1"), ("negative", "positive")) == [0, 1, None]


def test_what_fits_neither_way_is_left_out_and_said():
    with pytest.warns(Caution, match="gold labels are left out"):
        assert labels(("sad", "glad"), ("negative", "positive")) == [None, None, None]
    with pytest.warns(Caution, match="gold labels are left out"):
        assert labels(("negative", "positive"), ("0", "1", "2")) == [None, None, None]


def test_labels_are_fitted_to_the_kind_of_model():
    one, two, none = Example("a", "a text", 1), Example("b", "a text", (0, 2)), Example("c", "a text", None)
    assert [e.label for e in of_kind([one, two, none], True)] == [(1,), (0, 2), None]
    with pytest.warns(UserWarning, match="1 of 3 texts have several labels"):
        assert [e.label for e in of_kind([replace(one, label=(1,)), two, none], False)] == [1, None, None]
