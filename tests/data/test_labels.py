"""Gold labels of one dataset in a model trained on another."""

from __future__ import annotations

import pytest

from veridical.data.labels import relabel
from veridical.errors import Caution
from veridical.records import Example

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
