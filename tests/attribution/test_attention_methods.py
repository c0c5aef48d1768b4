"""Attention x value norm, gradient rollout and AttCAT against their definitions, one text at a time in plain loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tiny import FAMILIES, TEXTS, TRANSFORMERS, tiny
from veridical.attribution import methods
from veridical.core.errors import InputError
from veridical.core.records import Example
from veridical.explanations.explain import attributions
from veridical.model.classifier import Classifier
from veridical.model.decompose.wiring import ROWS

MEAN = ("modernbert", {"classifier_pooling": "mean"})
EXAMPLES = [Example(str(i), text, label=i % 3) for i, text in enumerate(TEXTS)]


def setting(family: str, config: dict):
    clf = Classifier(*tiny(family, **config))
    if family != "bilstm":
        clf.model.set_attn_implementation("eager")
    return clf, clf.encode(EXAMPLES)


def passed(clf, encoded):
    """Logits, attentions and hidden states of one text alone, as the model itself hands them out."""
    inputs = {"input_ids": torch.tensor([encoded.ids])}
    if "token_type_ids" in clf._accepts:
        inputs["token_type_ids"] = torch.tensor([encoded.types])
    out = clf.model(**inputs, output_attentions=True, output_hidden_states=True)
    return out.logits[0, encoded.example.label], out.attentions, out.hidden_states


def ours(clf, encoded, spec: str) -> list[np.ndarray]:
    return [a.scores for a in attributions(clf, encoded, methods.choose(spec), "gold")]


def same(scores: np.ndarray, due: torch.Tensor, encoded) -> None:
    free = np.array(encoded.free)
    np.testing.assert_allclose(scores[free], due.detach().numpy()[free], atol=2e-5, rtol=1e-4)
    assert (scores[~free] == 0).all()


def head_row(rows: torch.Tensor, config: dict) -> torch.Tensor:
    return rows.mean(0) if config else rows[0]


def value_states(clf, encoded) -> torch.Tensor:
    """What the last layer's value module gives, heard at the module. [T, H * d]"""
    row = ROWS[clf.family]
    layer = clf.model.base_model.get_submodule(row.layers)[-1]
    heard = []
    handle = layer.get_submodule(row.value).register_forward_hook(lambda module, args, output: heard.append(output[0]))
    passed(clf, encoded)
    handle.remove()
    (states,) = heard
    if row.fused == "qkv":
        states = states.chunk(3, -1)[2]
    elif row.fused == "per head":
        states = states.unflatten(-1, (clf.model.config.num_attention_heads, 3, -1))[:, :, 2].flatten(1)
    return states if row.value_bias is None else states + layer.get_submodule("attention.self").v_bias


@pytest.mark.parametrize(("family", "config"), [*((family, {}) for family in TRANSFORMERS), MEAN])
def test_attention_x_value(family, config):
    clf, encoded = setting(family, config)
    for e, scores in zip(encoded, ours(clf, encoded, "attention_x_value"), strict=True):
        _, attentions, _ = passed(clf, e)
        weights = attentions[-1][0]  # [H, T, T]
        values = value_states(clf, e).unflatten(-1, (len(weights), -1))  # [T, H, d]
        due = torch.zeros(len(e.ids))
        for token in range(len(e.ids)):
            for head in range(len(weights)):
                due[token] += head_row(weights[head], config)[token] * values[token, head].square().sum().sqrt()
        same(scores, due, e)


@pytest.mark.parametrize(("family", "config"), [*((family, {}) for family in FAMILIES), MEAN])
def test_gradient_rollout(family, config):
    clf, encoded = setting(family, config)
    for e, scores in zip(encoded, ours(clf, encoded, "gradient_rollout"), strict=True):
        logit, attentions, _ = passed(clf, e)
        gradients = torch.autograd.grad(logit, attentions)
        relevance = torch.eye(len(e.ids))
        for weights, gradient in zip(attentions, gradients, strict=True):
            heads = [torch.relu(a * g) for a, g in zip(weights[0], gradient[0], strict=True)]
            relevance = relevance + torch.mm(sum(heads) / len(heads), relevance)
        same(scores, head_row(relevance, config), e)


@pytest.mark.parametrize("queries", ["all", "read"])
@pytest.mark.parametrize(("family", "config"), [*((family, {}) for family in FAMILIES), MEAN])
def test_attcat(family, config, queries):
    clf, encoded = setting(family, config)
    for e, scores in zip(encoded, ours(clf, encoded, f"attcat:queries={queries}"), strict=True):
        logit, attentions, hidden = passed(clf, e)
        due = torch.zeros(len(e.ids))
        for layer, weights in enumerate(attentions):  # the vectors a layer takes in, the attention it pays
            (gradient,) = torch.autograd.grad(logit, [hidden[layer]], retain_graph=True)
            paid = weights[0].mean(0)
            paid = paid.mean(0) if queries == "all" else head_row(paid, config)
            due += paid * (hidden[layer][0] * gradient[0]).sum(-1)
        same(scores, due, e)


def test_only_the_methods_that_read_the_class_depend_on_it():
    clf, encoded = setting("bert", {})
    for name, depends in (("attention_x_value", False), ("gradient_rollout", True), ("attcat", True)):
        zero, one = (attributions(clf, encoded, methods.choose(name), which) for which in (0, 1))
        assert any((a.scores != b.scores).any() for a, b in zip(zero, one, strict=True)) == depends
        assert methods[name].of_target == depends


def test_one_pass_each_way_for_a_whole_batch():
    clf, encoded = setting("bert", {})
    for name, backward in (
        ("attention_x_value", 0),
        ("gradient_rollout", 1),
        ("attcat", 1),
        ("attnlrp", 1),
        ("frozen_gradient", 1),
    ):
        attributions(clf, encoded, methods.choose(name))  # wiring is checked once
        for a in attributions(clf, encoded, methods.choose(name)):
            assert (a.cost.forward, a.cost.backward) == (1, backward)


def test_value_vectors_of_a_model_without_wiring_are_not_guessed():
    clf, encoded = setting("bilstm", {})
    with pytest.raises(InputError, match="no wiring for models of type 'bilstm-attention'"):
        attributions(clf, encoded, methods.choose("attention_x_value"))
