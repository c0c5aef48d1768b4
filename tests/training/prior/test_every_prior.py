"""What holds of every prior, on every family's tokens: the contract that terms build on."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import veridical
from tiny import FAMILIES, PAIRS, TEXTS, tiny
from veridical.core.records import Example
from veridical.training.prior import fit_prior, priors
from veridical.training.prior import lexicon as lexicon_module

PLAIN = [Example(f"t{i}", text, i % 2, rationale=((0, 4),) if i else ()) for i, text in enumerate(TEXTS)]
PAIRED = [
    Example(f"p{i}", text, i % 2, context=context, rationale=((0, 1),)) for i, (text, context) in enumerate(PAIRS)
]
NAMES = [prior.name for prior in priors]


@pytest.fixture(autouse=True)
def small_lexicon(monkeypatch):
    """The tests need no package index."""
    monkeypatch.setattr(lexicon_module, "valences", lambda: {"good": 1.9, "boring": -1.3, "unbelievable": 0.8})


def fitted(name, clf, examples):
    encoded = clf.encode(examples)
    return fit_prior(name, clf, encoded, torch.tensor([e.label for e in examples])), encoded


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("pair", [False, True], ids=["single", "pair"])
def test_salience_is_a_distribution_over_the_free_tokens_or_silent(name, family, pair):
    clf = veridical.load(*tiny(family, pair=pair))
    salience, encoded = fitted(name, clf, PAIRED if pair else PLAIN)
    spoken = 0
    for one in encoded:
        found, free = salience.of(one), np.array(one.free)
        assert found.shape == (len(one.ids),)
        assert found.dtype == np.float32
        assert (found >= 0).all()
        assert not found[~free].any()
        if found.any():
            spoken += 1
            assert found.sum() == pytest.approx(1, abs=1e-5)
    assert spoken, "a prior that never speaks has not been tested"


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_holds_the_same_beside_zeros(name):
    clf = veridical.load(*tiny("bert"))
    salience, encoded = fitted(name, clf, PLAIN)
    batch = clf.collate(encoded)
    rows = salience.of_batch(batch)
    assert rows.shape == batch.ids.shape
    for row, one in zip(rows, encoded, strict=True):
        np.testing.assert_array_equal(row[: len(one.ids)].numpy(), salience.of(one))
        assert not row[len(one.ids) :].any()


@pytest.mark.parametrize("name", NAMES)
def test_a_text_of_another_split_has_its_salience_too(name):
    clf = veridical.load(*tiny("bert"))
    salience, _ = fitted(name, clf, PLAIN)
    (unseen,) = clf.encode([Example("new", "Mary took the good apple", rationale=((5, 9),))])
    assert salience.of(unseen).sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_worked_out_once(name):
    clf = veridical.load(*tiny("bert"))
    salience, encoded = fitted(name, clf, PLAIN)
    before = dict(salience.known)
    again = clf.encode(PLAIN)  # equal records, not the same ones
    for one, same in zip(encoded, again, strict=True):
        assert salience.of(same) is before[one]
