"""Figures of two tiny decoders, computed in float64 without transformers or Veridical, one unpadded text at a time."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification

import veridical
from veridical.attribution.alti import alti_matrix
from veridical.core.records import Batch
from veridical.model.classifier import Classifier
from veridical.model.decompose.adjoint import adjoint, one_hot
from veridical.model.decompose.decompose import decompose, head_shares
from veridical.model.decompose.share import How
from veridical.model.decompose.trace import Trace, trace

GOLDEN = Path(__file__).parent.parent / "golden" / "decoders"
METHODS = {
    "frozen_gradient": "frozen_gradient",
    "decompx:bias=token:rules=paper": "decompx_token_paper",
    "attnlrp": "attnlrp",
    "input_x_gradient": "input_x_gradient",
    "attention": "attention",
    "rollout": "rollout",
    "alti": "alti_rollout",
}
FAMILIES = ("llama", "gpt2")


@functools.cache
def golden(family: str) -> tuple[Any, dict[str, Any], torch.Tensor, torch.Tensor]:
    model = AutoModelForSequenceClassification.from_pretrained(GOLDEN / family).eval()
    figures = json.loads((GOLDEN / family / "figures.json").read_text("utf-8"))
    return model, figures, *(torch.tensor(figures[key]) for key in ("input_ids", "attention_mask"))


@functools.cache
def seen_by(family: str) -> Trace:
    model, _, ids, mask = golden(family)
    clf = Classifier(model)
    with torch.no_grad(), clf.eager(), clf.at_rest():
        return trace(clf, Batch((), ids, torch.zeros_like(ids), mask.bool(), mask.bool()))


def close(found: Any, figures: Any, tolerance: float = 1e-4) -> None:
    found, figures = np.asarray(found, dtype=np.float64), np.asarray(figures, dtype=np.float64)
    assert np.abs(found[: len(figures)] - figures).max() < tolerance * np.abs(figures).max()


@pytest.mark.parametrize("spec", METHODS)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_figures(family: str, spec: str) -> None:
    model, figures, ids, mask = golden(family)
    targets = torch.tensor(figures["target"])
    for method in (spec, *([spec.replace("alti", "alti:memory=1e-6")] if spec == "alti" else [])):
        scores = veridical.attribute(model, ids, mask, method, target=targets)
        for row, expected in enumerate(figures[METHODS[spec]]):
            count = int(mask[row].sum())
            close(scores[row, :count], expected[:count])
            assert (scores[row, count:] == 0).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_where_they_are_read_and_what_biases_give(family: str) -> None:
    _, figures, _, _ = golden(family)
    seen = seen_by(family)
    close(seen.logits, figures["logits"], 1e-5)
    assert seen.read.argmax(-1).tolist() == figures["read_position"]
    targets = torch.tensor(figures["target"])
    with torch.no_grad():
        found = adjoint(seen, one_hot(targets, seen.logits.shape[-1], seen.last)).biases
    np.testing.assert_allclose(found, figures["frozen_biases"], atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_contributions_of_every_layer(family: str) -> None:
    _, figures, _, mask = golden(family)
    seen = seen_by(family)
    for layer in range(len(seen.layers)):
        with torch.no_grad():
            found = alti_matrix(seen, layer)
        for row, layers in enumerate(figures["alti_layers"]):
            count = int(mask[row].sum())
            close(found[row, :count, :count], np.array(layers[layer])[:count, :count])
            assert (found[row].triu(1) == 0).all()  # nothing from tokens to come


@pytest.mark.parametrize("family", FAMILIES)
def test_explicit_vectors_give_the_same_as_gradients(family: str) -> None:
    _, figures, _, mask = golden(family)
    seen, how = seen_by(family), How(bias="token", rules="paper")
    for row, target in enumerate(figures["target"]):
        *_, last = decompose(seen, row, how)
        count = int(mask[row].sum())
        close(head_shares(seen, row, how, last).logits[:count, target], figures["frozen_gradient"][row][:count])
