"""Every attribution method on every family: the pretend device gives what the CPU gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from on_device import DEVICE, both, close, texts

import veridical
from pretend import WITHOUT
from tiny import FAMILIES
from veridical.attribution import methods
from veridical.explanations.explain import attributions, explain

FAST = {
    "lime": "lime:samples=40",
    "kernel_shap": "kernel_shap:samples=40",
    "smoothgrad": "smoothgrad:samples=4",
    "integrated_gradients": "integrated_gradients:steps=8",
}
# Other paths through the code of a method.
OPTIONS = (
    "integrated_gradients:rule=adaptive:steps=9",
    "integrated_gradients:baseline=mask:aggregate=l2:steps=4",
    "smoothgrad:samples=3:aggregate=x_input",
    "gradient:over=vocabulary",
    "gradient:aggregate=mean",
    "decompx_classifier:bias=late",
    "decompx_classifier:bias=cls",
    "occlusion:by=mask",
    "lime:samples=30:by=attention",
)
SHORT = ("bert", "bilstm")  # a transformer and the other; the rest is tried less often
LAYERS = [method.name for method in methods if "layers" in method.needs]
CASES = [
    (family, FAST.get(method.name, method.name))
    for family in FAMILIES
    for method in methods
    if family != "bilstm" or method.name not in LAYERS
]
CASES += [(family, spec) for family in ("bert", "bilstm") for spec in OPTIONS]
CASES = [
    pytest.param(family, spec, marks=() if family in SHORT else pytest.mark.families)
    for family, spec in CASES
    if family != "bilstm" or not spec.startswith("decompx")
]


@pytest.fixture(autouse=True)
def _quiet(recwarn):
    """Incompleteness on purpose (8 steps) warns; what it warns of has a test of its own."""


@pytest.mark.parametrize(("family", "spec"), CASES)
def test_scores_are_those_of_the_cpu(family, spec):
    cpu, device = both(family)
    choice = methods.choose(spec)
    for here, there in zip(*(attributions(clf, texts(family), choice) for clf in (cpu, device)), strict=True):
        close(here.scores, there.scores)
        close(here.probabilities, there.probabilities)
        assert here.target == there.target
        assert there.scores.dtype == np.float32


@pytest.mark.parametrize("family", ["bert", "bilstm"])
@pytest.mark.parametrize("name", [method.name for method in methods if method.name not in LAYERS])
def test_pairs_too(family, name):
    cpu, device = both(family, True)
    choice = methods.choose(FAST.get(name, name))
    for here, there in zip(*(attributions(clf, texts(family, True), choice) for clf in (cpu, device)), strict=True):
        close(here.scores, there.scores)


@pytest.mark.parametrize("name", [method.name for method in methods if method.differentiable])
def test_guides_differentiate_there(name):
    from veridical.model.target import Target

    reached = []
    for clf in both("bert"):
        batch = clf.collate(texts("bert")[1:4])
        classes = torch.tensor([0, 1, 2], device=clf.device)
        with clf.eager():
            scores = methods[name].run(clf, batch, Target(classes), **methods.choose(name).options)
            parameters = [p for p in clf.model.parameters() if p.requires_grad]
            gradients = torch.autograd.grad(scores.square().sum(), parameters, allow_unused=True)
        reached.append([None if g is None else g.cpu().numpy() for g in gradients])
    for here, there in zip(*reached, strict=True):
        assert (here is None) == (there is None)
        if here is not None:
            np.testing.assert_allclose(there, here, atol=2e-5 * max(1.0, np.abs(here).max()))


def test_windows_of_long_texts():
    long = " ".join(["the film was not good and the book is bad"] * 12)
    here, there = (explain(clf, [long], "attention", overlap=4)[0] for clf in both("bert"))
    close(here.scores, there.scores)


@pytest.mark.parametrize("spec", ["gradient", "occlusion", "attention"])
def test_tensors_may_come_from_anywhere_and_scores_are_where_the_model_is(spec):
    cpu, device = both("bert")
    batch = cpu.collate(texts("bert"))
    here = veridical.attribute(cpu.model, batch.ids, batch.mask, spec)
    for home in (DEVICE, torch.device("cpu")):
        there = veridical.attribute(device.model, batch.ids.to(home), batch.mask.to(home), spec, target=None)
        assert there.device == DEVICE
        close(here.numpy(), there.cpu().numpy())


def test_what_the_device_is():
    x = torch.ones(2, 3, device=DEVICE)
    with pytest.raises(RuntimeError, match=r"two devices, pretend:0 and cpu"):
        x + torch.ones(2, 3)
    with pytest.raises(TypeError, match=r"Use Tensor.cpu\(\) first"):
        x.numpy()
    with pytest.raises(TypeError, match=r"Use Tensor.cpu\(\) first"):
        np.asarray(x)
    with pytest.raises(TypeError, match="float64"):
        x.double()
    assert (x + 1).device == (x + torch.tensor(1.0)).device == DEVICE  # as everywhere, a number may come from a CPU
    assert all(len(reason.split()) > 5 for reason in WITHOUT.values())
