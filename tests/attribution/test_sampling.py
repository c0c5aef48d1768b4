"""The defaults of the sampling methods are enough on the conformance models: other seeds and four times the
samples tell the same story."""

from __future__ import annotations

import numpy as np
import pytest

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
