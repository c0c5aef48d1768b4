"""Priors that read a corpus or a lexicon: tf-idf, chi-squared, VADER's words."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import veridical
from tiny import tiny
from toy import toy
from veridical.core.errors import InputError
from veridical.core.records import Example
from veridical.training.prior import fit_prior, normalised, priors
from veridical.training.prior import lexicon as lexicon_module
from veridical.training.prior.lexicon import units
from veridical.training.prior.pieces import FLOOR, pieces, vectorise

LABELS = torch.tensor([0, 1, 1])
TRAIN = [
    Example("a", "the film was good", 0),
    Example("b", "the film was bad , bad", 1),
    Example("c", "the unbelievable end", 1),
]


@pytest.fixture
def clf():
    return veridical.load(*tiny("bert"))


def by_token(clf, salience, text):
    (one,) = clf.encode([Example("x", text)])
    return dict(zip(clf.tokens(one.ids), salience.of(one).tolist(), strict=True))


def test_tfidf_by_hand(clf):
    """scikit-learn's smoothed idf, ln((1 + n) / (1 + df)) + 1, times the count; the sum undoes the L2 norm."""
    found = by_token(clf, fit_prior("tfidf", clf, clf.encode(TRAIN), LABELS), "the bad bad film")
    idf = {token: math.log(4 / (1 + df)) + 1 for token, df in {"the": 3, "film": 2, "bad": 1}.items()}
    total = idf["the"] + 2 * 2 * idf["bad"] + idf["film"]  # "bad" counts two, and stands twice
    assert found["the"] == pytest.approx(idf["the"] / total, rel=1e-5)
    assert found["film"] == pytest.approx(idf["film"] / total, rel=1e-5)
    assert found["bad"] == pytest.approx(2 * idf["bad"] / total, rel=1e-5)
    assert found["[CLS]"] == found["[SEP]"] == 0


def test_tfidf_is_scikit_learns(clf):
    """Its row of each text, unseen pieces included; under a softmax its length matters."""
    data = toy()
    train = clf.encode(data.splits["train"])
    salience = fit_prior("tfidf:normalise=softmax", clf, train, None)
    vectoriser, _ = vectorise(train)
    for one in clf.encode([*data.splits["dev"], Example("new", "the bad bad kitchen film")]):
        row = vectoriser.transform([one]).toarray()[0]
        known = vectoriser.vocabulary_
        expected = np.exp([row[known[piece]] if piece in known else 0.0 for piece in pieces(one)])
        np.testing.assert_allclose(salience.of(one)[np.array(one.free)], expected / expected.sum(), rtol=1e-5)


@pytest.mark.parametrize("name", ["tfidf", "chi2"])
def test_pieces_are_the_models_own(clf, name):
    """What the released code scores 0: continuation pieces, single characters, punctuation."""
    found = by_token(clf, fit_prior(name, clf, clf.encode(TRAIN), LABELS), "unbelievable , the")
    assert {"un", "##believ", "##able", ","} <= set(found)
    assert all(found[token] > 0.01 for token in ("un", "##believ", "##able", ","))


@pytest.mark.parametrize("name", ["tfidf", "chi2"])
def test_a_piece_the_train_split_lacks_has_the_floor_and_a_text_of_them_is_silent(clf, name):
    salience = fit_prior(name, clf, clf.encode(TRAIN), LABELS)
    found = by_token(clf, salience, "bad kitchen")
    assert 0 < found["kitchen"] <= FLOOR * 1e3
    assert found["bad"] > 0.99
    (unknown,) = clf.encode([Example("x", "kitchen apple")])
    assert not salience.of(unknown).any()


def test_chi2_finds_what_tells_the_labels_apart(clf):
    data = toy()
    train = data.splits["train"]
    salience = fit_prior("chi2", clf, clf.encode(train), torch.tensor([e.label for e in train]))
    for example in data.splits["test"]:
        found = by_token(clf, salience, example.text)
        sign = data.labels[example.label]  # type: ignore[index]
        assert found[sign] == max(found.values())


def test_chi2_takes_labels_of_many(clf):
    data = toy(classes=3, multilabel=True)
    train = data.splits["train"]
    gold = torch.zeros(len(train), 3)
    for row, example in enumerate(train):
        gold[row, list(example.label)] = 1  # type: ignore[arg-type]
    found = by_token(clf, fit_prior("chi2", clf, clf.encode(train), gold), "the boring film")
    assert found["boring"] > found["film"]


def test_chi2_needs_labels_that_differ(clf):
    with pytest.raises(InputError, match="all train texts have the same"):
        fit_prior("chi2", clf, clf.encode(TRAIN), torch.zeros(3, dtype=torch.long))


def test_statistics_need_texts(clf):
    with pytest.raises(InputError, match="it is empty"):
        fit_prior("tfidf", clf, [], torch.zeros(0))


def test_softmax_over_the_free_tokens(clf):
    (one,) = clf.encode([TRAIN[0]])
    scores = np.array([0, 1, 2, 3, 4, 0.0])
    np.testing.assert_allclose(
        normalised(one, scores, "softmax")[1:-1], np.exp([1, 2, 3, 4]) / np.exp([1, 2, 3, 4]).sum(), rtol=1e-6
    )


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf])
def test_scores_that_cannot_be(clf, wrong):
    (one,) = clf.encode([TRAIN[0]])
    with pytest.raises(InputError, match="negative or not finite"):
        normalised(one, np.array([0, 1, wrong, 3, 4, 0.0]))


# -- the lexicon --------------------------------------------------------------------------------------------


def test_words_emoticons_and_the_letters_inside_words():
    known = {"good": 1, ":)": 2, "self-confident": 3, "bad": -1, "don't": 0, "boring": -1}
    text = "Good :) self-confident (bad), semi-boring don’t! goodness"
    assert [(text[a:b], word) for (a, b), word in units(text, known)] == [
        ("Good", "good"),
        (":)", ":)"),
        ("self-confident", "self-confident"),
        ("bad", "bad"),
        ("boring", "boring"),
        ("don’t", "don't"),
    ]


def test_the_valence_of_a_word_is_shared_among_its_pieces(clf, monkeypatch):
    monkeypatch.setattr(lexicon_module, "valences", lambda: {"unbelievable": 1.5, "bad": -3.0})
    salience = fit_prior("lexicon", clf, [], None)
    found = by_token(clf, salience, "An unbelievable, bad film")
    assert found["bad"] == pytest.approx(2 / 3)
    assert found["un"] == found["##believ"] == found["##able"] == pytest.approx(1 / 9)
    assert found["film"] == found[","] == 0
    (plain,) = clf.encode([Example("x", "the film")])
    assert not salience.of(plain).any()
    choice = priors.choose("lexicon:least=2")
    (one,) = clf.encode([Example("x", "An unbelievable, bad film")])
    assert (choice.entry.run(one, None, **choice.options) > 0).sum() == 1


@pytest.mark.asset
def test_the_lexicon_itself():
    known = lexicon_module.valences()
    assert len(known) > 7000
    assert known["good"] == 1.9
    assert known["boring"] == -1.3
    assert all(-4 <= value <= 4 for value in known.values())
    assert "fed up" not in known
