"""The defaults of the sampling methods are enough on the conformance models: other seeds and four times the
samples tell the same story."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import veridical
from tiny import TEXTS, tiny
from veridical.attribution import methods
from veridical.core.records import Example
from veridical.explanations.explain import attributions
from veridical.model.classifier import Classifier


@pytest.mark.parametrize("family", ["bert", "bilstm"])
@pytest.mark.parametrize(("name", "more"), [("smoothgrad", 200), ("lime", 2400), ("kernel_shap", 4096)])
def test_defaults_have_converged(family, name, more):
    """These models are rougher than trained ones: their weights are noise. 0.88 leaves no room for a wrong estimate."""
    clf = Classifier(*tiny(family))
    encoded = clf.encode([Example(str(i), text) for i, text in enumerate(TEXTS) if len(text.split()) > 2])
    few = attributions(clf, encoded, methods.choose(name))
    many = attributions(clf, encoded, methods.choose(name, samples=more, seed=1))
    agreement = [
        np.corrcoef(a.scores[np.array(e.free)], b.scores[np.array(e.free)])[0, 1]
        for a, b, e in zip(few, many, encoded, strict=True)
    ]
    assert np.mean(agreement) > 0.88


def long_texts(family: str):
    clf = Classifier(*tiny(family))
    return clf, clf.encode([Example(str(i), TEXTS[i]) for i in (2, 4)])  # 13 and 27 free tokens


@pytest.mark.parametrize("family", ["bert", "bilstm"])
@pytest.mark.parametrize(
    ("spec", "endless"),
    [
        ("smoothgrad:samples=30", 1500),
        ("smoothgrad:samples=30:aggregate=x_input", 1500),
        ("lime:samples=300", 6000),
        ("kernel_shap:samples=500", 8000),
    ],
)
def test_the_stated_error_is_the_distance_from_endless_draws(family, spec, endless):
    """Root mean square over tokens and eight seeds. With few draws for each token the jackknife rather overstates."""
    clf, texts = long_texts(family)
    goal = attributions(clf, texts, methods.choose(spec, samples=endless, seed=100, error=0))
    runs = [attributions(clf, texts, methods.choose(spec, seed=seed, error=0)) for seed in range(8)]
    for place, e in enumerate(texts):
        free = np.array(e.free)
        scores = np.array([run[place].scores[free] for run in runs], dtype=np.float64)
        off = np.sqrt(np.mean((scores - goal[place].scores[free]) ** 2, 1)) / scores.std(1)
        stated = np.mean([run[place].sampling_error for run in runs])
        assert 0.75 < stated / np.sqrt(np.mean(off**2)) < 1.5


@pytest.mark.parametrize(("spec", "samples"), [("smoothgrad", 40), ("lime", 400)])
def test_drawing_stops_at_the_first_look_whose_error_is_small(spec, samples):
    clf, texts = long_texts("bilstm")
    every = {
        count: attributions(clf, texts, methods.choose(spec, samples=count, error=0))
        for count in (samples // 4, samples // 2, 3 * samples // 4, samples)
    }
    looks = [every[count][1].sampling_error for count in every]
    assert looks == sorted(looks, reverse=True)
    enough = (looks[1] + looks[0]) / 2  # not met at the first look, met at the second
    (one,) = attributions(clf, texts[1:], methods.choose(spec, samples=samples, error=enough))
    due = every[samples // 2][1]
    np.testing.assert_allclose(one.scores, due.scores, atol=2e-5)
    assert one.sampling_error == pytest.approx(looks[1], rel=1e-3)
    assert one.cost.forward == due.cost.forward
    endless = attributions(clf, texts, methods.choose(spec, samples=samples, error=1e-6))
    for a, b in zip(endless, every[samples], strict=True):
        np.testing.assert_allclose(a.scores, b.scores, atol=2e-5)  # never small enough: all of them


def test_kernel_shap_stops_early_and_still_adds_up():
    clf, texts = long_texts("bilstm")
    every, few = (attributions(clf, texts, methods.choose("kernel_shap", error=error)) for error in (0, 0.5))
    for a, b in zip(every, few, strict=True):
        assert b.cost.forward < a.cost.forward / 2
        assert a.sampling_error < b.sampling_error <= 0.5
        assert a.scores.sum(dtype=np.float64) == pytest.approx(b.scores.sum(dtype=np.float64), abs=1e-5)


@pytest.mark.parametrize("spec", ["smoothgrad:error=0.5", "lime:error=0.4", "kernel_shap:error=0.4"])
def test_each_text_stops_by_itself(spec):
    """Some stop early and some do not; who they are with does not matter."""
    clf = Classifier(*tiny("bert"))
    texts = clf.encode([Example(str(i), text) for i, text in enumerate(TEXTS)])
    together = attributions(clf, texts, methods.choose(spec))
    reverse = attributions(clf, texts[::-1], methods.choose(spec), budget=64)[::-1]
    for e, a, b in zip(texts, together, reverse, strict=True):
        (alone,) = attributions(clf, [e], methods.choose(spec))
        for other in (alone, b):
            np.testing.assert_allclose(a.scores, other.scores, atol=2e-5 * max(1.0, np.abs(a.scores).max()))
            assert a.sampling_error == pytest.approx(other.sampling_error, abs=1e-3)


def test_errors_that_are_known_without_drawing():
    clf = Classifier(*tiny("bert"))
    short, word = clf.encode([Example("0", "not good but great"), Example("1", "good")])
    assert attributions(clf, [short], methods.choose("kernel_shap"))[0].sampling_error == 0  # every subset is asked
    assert attributions(clf, [word], methods.choose("kernel_shap"))[0].sampling_error == 0
    assert attributions(clf, [word], methods.choose("lime"))[0].sampling_error is None  # one score has no spread
    assert attributions(clf, [short], methods.choose("smoothgrad:samples=1"))[0].sampling_error is None
    assert attributions(clf, [short], methods.choose("smoothgrad:noise=0"))[0].sampling_error == pytest.approx(
        0, abs=1e-6
    )
    assert attributions(clf, [short], methods.choose("gradient"))[0].sampling_error is None


def test_windows_are_as_sure_as_the_least_sure_of_them():
    clf = Classifier(*tiny("bert"))
    text = Example("long", " ".join(TEXTS[2:5] * 2))
    windows = clf.encode([text], overlap=8)
    (whole,) = attributions(clf, windows, methods.choose("lime:samples=60"))
    classes = whole.target
    parts = [attributions(clf, [w], methods.choose("lime:samples=60"), classes)[0].sampling_error for w in windows]
    assert len(parts) > 1
    assert whole.sampling_error == pytest.approx(max(parts), rel=1e-3)


def test_tensors_have_the_scores_alone():
    clf = Classifier(*tiny("bert"))
    (e,) = clf.encode([Example("0", TEXTS[2])])
    special = torch.tensor([[not free for free in e.free]]).long()
    for spec in ("lime:samples=40", "smoothgrad:samples=8"):
        scores = veridical.attribute(clf, torch.tensor([e.ids]), method=spec, special_tokens_mask=special)
        assert scores.shape == (1, len(e.ids))
        assert float(scores.abs().sum()) > 0
