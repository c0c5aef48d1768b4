"""Gradient methods agree with Captum's, given the same function of the word vectors."""

from __future__ import annotations

import captum.attr
import numpy as np
import pytest
import torch

from tiny import FAMILIES, TEXTS, tiny
from veridical.attribution import methods
from veridical.core.records import Example
from veridical.explanations.explain import attributions
from veridical.model.ask import predict
from veridical.model.classifier import Classifier


class Setting:
    """One text at a time: Captum repeats rows, and a text alone needs no padding."""

    def __init__(self, family: str):
        self.clf = Classifier(*tiny(family))
        self.encoded = self.clf.encode([Example(str(i), text) for i, text in enumerate(TEXTS)])
        self.targets = predict(self.clf, self.encoded).logits.argmax(-1)

    def function(self, index: int):
        batch = self.clf.collate([self.encoded[index]])

        def logits(embeddings: torch.Tensor) -> torch.Tensor:
            rows = type(batch)(
                (), *(t.repeat(len(embeddings), 1) for t in (batch.ids, batch.types, batch.mask, batch.free))
            )
            return self.clf.forward(rows, edit=lambda _: embeddings).logits

        with torch.no_grad():
            text = self.clf.forward(batch).embeddings.detach()
        return logits, text, torch.where(batch.free[..., None], torch.zeros_like(text), text)

    def ours(self, spec: str) -> list[np.ndarray]:
        return [a.scores for a in attributions(self.clf, self.encoded, methods.choose(spec))]

    def free(self, index: int) -> np.ndarray:
        return np.array(self.encoded[index].free)


@pytest.fixture(scope="module", params=FAMILIES)
def setting(request) -> Setting:
    return Setting(request.param)


def compare(setting: Setting, spec: str, theirs) -> None:
    for index, scores in enumerate(setting.ours(spec)):
        logits, text, baseline = setting.function(index)
        expected = theirs(logits, text, baseline, int(setting.targets[index])).detach().numpy()[0]
        free = setting.free(index)
        scale = max(1.0, float(np.abs(expected[free]).max()))
        np.testing.assert_allclose(scores[free] / scale, expected[free] / scale, atol=1e-5)


@pytest.mark.filterwarnings("ignore:Input x gradient is 0", "ignore:Input Tensor")
def test_input_x_gradient(setting):
    compare(
        setting,
        "input_x_gradient",
        lambda f, x, b, t: captum.attr.InputXGradient(f).attribute(x.requires_grad_(), target=t).sum(-1),
    )


@pytest.mark.filterwarnings("ignore:Input Tensor")
def test_gradient(setting):
    compare(
        setting,
        "gradient",
        lambda f, x, b, t: captum.attr.Saliency(f).attribute(x.requires_grad_(), target=t, abs=False).norm(dim=-1),
    )


RULES = {"right": "riemann_right", "mid": "riemann_middle", "gauss": "gausslegendre"}


@pytest.mark.filterwarnings("ignore:Integrated gradients with", "ignore:Input Tensor")
def test_integrated_gradients(setting):
    # Where a LayerNorm reads bare word vectors, Gauss's first node lies in a jump: both are rounding noise there.
    jump = setting.clf.family in ("deberta", "deberta-v2", "modernbert")
    for rule, theirs in list(RULES.items())[: 2 if jump else 3]:
        compare(
            setting,
            f"integrated_gradients:steps=20:rule={rule}",
            lambda f, x, b, t, theirs=theirs: (
                captum.attr.IntegratedGradients(f)
                .attribute(x, b, target=t, n_steps=20, method=theirs, internal_batch_size=20)
                .sum(-1)
            ),
        )


def test_deeplift_is_not_captums_and_captums_is_on_offer():
    """On a transformer Captum's DeepLift misses completeness; ours does not (see the conformance tests)."""
    setting = Setting("bert")
    ours, captums, plain = (setting.ours(s) for s in ("deeplift", "deeplift:rule=captum", "input_x_gradient"))
    gaps = []
    for index in range(len(TEXTS)):
        logits, text, baseline = setting.function(index)
        target = int(setting.targets[index])
        with torch.no_grad():
            due = float(logits(text)[0, target] - logits(baseline)[0, target])
        gaps.append((abs(ours[index].sum() - due), abs(captums[index].sum() - due)))
        assert np.corrcoef(captums[index], plain[index])[0, 1] > np.corrcoef(ours[index], plain[index])[0, 1] - 1e-6
    assert max(gap for gap, _ in gaps) < 1e-5
    assert max(gap for _, gap in gaps) > 0.1
