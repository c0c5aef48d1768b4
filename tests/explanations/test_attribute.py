"""The tensor-level seam agrees with the text-level one and keeps special tokens."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import veridical
from tiny import FAMILIES, TEXTS, tiny
from veridical.attribution import methods
from veridical.core.errors import InputError
from veridical.model import memory
from veridical.model.classifier import Classifier

SAME = [  # not those seeded by text; the BiLSTM has no layers to take apart
    (family, m.name)
    for family in FAMILIES
    for m in methods
    if m.name not in ("random", "smoothgrad", "lime", "kernel_shap")
    and not (family == "bilstm" and "layers" in m.needs)
]


@pytest.mark.filterwarnings("ignore:Input x gradient is 0", "ignore:Integrated gradients with")
@pytest.mark.parametrize(("family", "name"), SAME)
def test_scores_are_those_of_explain_on_free_tokens(family, name):
    model, tokenizer = tiny(family)
    options = {"steps": 4} if name == "integrated_gradients" else {}
    batch = tokenizer(list(TEXTS), padding=True, return_tensors="pt", return_special_tokens_mask=True)
    inputs = {
        k: batch[k] for k in ("input_ids", "attention_mask", "token_type_ids", "special_tokens_mask") if k in batch
    }
    scores = veridical.attribute(model, **inputs, method=name, **options)
    assert scores.shape == batch["input_ids"].shape
    assert (scores[batch["attention_mask"] == 0] == 0).all()
    for row, found in enumerate(veridical.explain((veridical.load(model, tokenizer)), TEXTS, name, **options)):
        free = np.array(found.encoded.free)
        scale = max(1.0, float(np.abs(found.scores).max()))
        np.testing.assert_allclose(
            scores[row, : len(free)].numpy()[free] / scale, found.scores[free] / scale, atol=2e-5
        )


def test_special_tokens_are_kept():
    model, tokenizer = tiny("bert")
    batch = tokenizer(list(TEXTS), padding=True, return_tensors="pt")
    scores = veridical.attribute(model, batch["input_ids"], batch["attention_mask"], method="attention")
    assert torch.allclose(scores.sum(-1), torch.ones(len(TEXTS)), atol=1e-5)
    assert (scores[:, 0] > 0).all()


@pytest.mark.parametrize("name", ["gradient", "attention", "smoothgrad", "occlusion", "random"])
def test_a_batch_that_does_not_fit_into_memory_is_halved(name, monkeypatch):
    model, tokenizer = tiny("bert")
    batch = tokenizer(list(TEXTS), padding=True, return_tensors="pt", return_special_tokens_mask=True)
    classes = torch.arange(len(TEXTS)) % 3
    whole = veridical.attribute(model, **batch, method=name, target=classes)
    forward, sizes, room = Classifier.forward, [], 2 * batch["input_ids"].shape[1]

    def small(clf, given, **how):
        sizes.append(given.ids.numel())
        if sizes[-1] > room:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return forward(clf, given, **how)

    monkeypatch.setattr(Classifier, "forward", small)
    memory._rooms.clear()
    halved = veridical.attribute(model, **batch, method=name, target=classes)
    assert max(sizes, default=room + 1) > room  # `random` never asks the model
    np.testing.assert_allclose(halved.numpy(), whole.numpy(), atol=2e-5 * max(1.0, float(whole.abs().max())))


def test_targets():
    model, tokenizer = tiny("bert")
    ids = tokenizer(TEXTS[2], return_tensors="pt")["input_ids"]
    zero, one = (veridical.attribute(model, ids, method="gradient", target=t) for t in (0, torch.tensor([1])))
    assert not torch.allclose(zero, one)
    with pytest.raises(InputError, match="allowed: 0 to 2"):
        veridical.attribute(model, ids, method="gradient", target=3)


def test_shapes_that_do_not_fit_are_named():
    model, tokenizer = tiny("bert")
    ids = tokenizer(TEXTS[2], return_tensors="pt")["input_ids"]
    with pytest.raises(InputError, match=r"attention_mask has shape \(1, 3\)"):
        veridical.attribute(model, ids, torch.ones(1, 3))
    with pytest.raises(InputError, match="must be"):
        veridical.attribute(model, ids[0])
    with pytest.raises(InputError, match="padded at the right"):
        veridical.attribute(model, ids, torch.tensor([[0, *[1] * (ids.shape[1] - 1)]]), method="occlusion")
