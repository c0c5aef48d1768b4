"""A trace holds what the layers themselves computed, for every family, and leaves nothing behind."""

from __future__ import annotations

from dataclasses import fields

import pytest
import torch
from transformers import AutoModelForSequenceClassification, GPTNeoConfig

from tiny import FURTHER, TEXTS, TRANSFORMERS, tiny
from veridical.core.errors import InputError
from veridical.core.records import Batch, Example
from veridical.model.classifier import Classifier
from veridical.model.decompose.rebuild import layer_steps
from veridical.model.decompose.trace import LayerTrace, Trace, slope, trace, values
from veridical.model.decompose.wiring import Norm

CHUNKED = ("bert", "roberta", "distilbert", "electra", "big_bird")  # families with chunk_size_feed_forward


def classifier(family: str, **config) -> tuple[Classifier, Batch]:
    clf = Classifier(*tiny(family, **config))
    return clf, clf.collate(clf.encode([Example(str(i), text) for i, text in enumerate(TEXTS)]))


def tensors(seen: Trace) -> dict[str, torch.Tensor]:
    found = {"last": seen.last, "logits": seen.logits}
    for i, layer in enumerate(seen.layers):
        found |= {f"{i}.{f.name}": getattr(layer, f.name) for f in fields(LayerTrace) if f.name != "layer"}
    return found


def hooks(model) -> list[tuple[int, int]]:
    return [(len(m._forward_hooks), len(m._forward_pre_hooks)) for m in model.modules()]


def close(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("family", [*TRANSFORMERS, *FURTHER])
def test_a_trace_is_what_the_rebuilt_layers_compute(family):
    clf, batch = classifier(family)
    with clf.eager(), torch.no_grad():
        seen = trace(clf, batch)
        logits = clf.forward(batch).logits
    assert len(seen.layers) == clf.model.config.num_hidden_layers
    for own, following in zip(seen.layers, [*(layer.x for layer in seen.layers[1:]), None], strict=True):
        steps = layer_steps(own.layer, own.x, own.attention)
        close(own.brought, steps.brought)
        close(own.pre1, steps.pre1)
        close(own.u, steps.u)
        close(own.a, steps.a)
        close(own.fed, steps.fed)
        close(own.pre2, steps.pre2)
        close(values(own), steps.values)
        if following is None:
            following = seen.last
            output = steps.output if seen.final_norm is None else seen.final_norm(steps.output)
        else:
            output = steps.output
        close(output, following)
    assert torch.equal(seen.logits, logits)
    close(seen.steps.logits, logits)
    if seen.head.pool != "late":  # which has logits for every position
        close(seen.out(seen.steps.t), logits)
    assert torch.equal(seen.mask, batch.mask)


@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_a_head_with_one_logit_has_a_row_per_class(family):
    clf, batch = classifier(family, num_labels=1)
    with clf.eager(), torch.no_grad():
        seen = trace(clf, batch)
    assert seen.logits.shape == (len(TEXTS), 2)
    close(seen.out(seen.steps.t), seen.logits)


def test_what_the_head_reads_is_the_first_token_or_all_attended_ones():
    for pooling in ("cls", "mean"):
        clf, batch = classifier("modernbert", classifier_pooling=pooling)
        with clf.eager(), torch.no_grad():
            seen = trace(clf, batch)
        close((seen.read[..., None] * seen.last).sum(1), seen.steps.pooled)
        close(seen.read.sum(-1), torch.ones(len(TEXTS)))
        assert (seen.read[~batch.mask] == 0).all()
        assert (seen.read > 0).sum() == (len(TEXTS) if pooling == "cls" else batch.mask.sum())


@pytest.mark.parametrize("family", CHUNKED)
def test_feed_forward_in_chunks_of_positions_is_heard_whole(family):
    whole, batch = classifier(family)
    chunked, _ = classifier(family, chunk_size_feed_forward=1)
    calls = []
    chunked.model.register_forward_hook(lambda *_: calls.append(1))
    with whole.eager(), chunked.eager(), torch.no_grad():
        one, other = tensors(trace(whole, batch)), tensors(trace(chunked, batch))
    assert len(calls) == 2  # the check and the trace: no pass of its own per station
    for name, tensor in one.items():
        assert tensor.shape == other[name].shape, name
        close(tensor, other[name])


@pytest.mark.parametrize("family", TRANSFORMERS)
def test_values_keep_their_graph_while_parameters_train_and_only_then(family):
    clf, batch = classifier(family)
    with clf.eager():
        training = trace(clf, batch)
        with clf.at_rest():
            resting = trace(clf, batch)
    assert all(tensor.requires_grad for tensor in tensors(training).values())
    assert not any(tensor.requires_grad for tensor in tensors(resting).values())
    parameters = [clf.model.get_input_embeddings().weight, training.layers[0].layer.inner.module.weight]
    for gradient in torch.autograd.grad(training.layers[-1].u.square().sum(), parameters):
        assert gradient.abs().sum() > 0


@pytest.mark.parametrize("family", TRANSFORMERS)
def test_no_hook_is_left_even_if_the_pass_fails(family, monkeypatch):
    clf, batch = classifier(family)
    with clf.eager(), torch.no_grad():
        trace(clf, batch)  # transformers installs recording hooks of its own once
        before = hooks(clf.model)
        trace(clf, batch)
        assert hooks(clf.model) == before
        monkeypatch.setattr(Classifier, "_insist_on_attentions", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            trace(clf, batch)
    assert hooks(clf.model) == before


def test_models_without_wiring_are_refused_in_one_sentence_that_says_what_works():
    config = GPTNeoConfig(
        vocab_size=200, hidden_size=8, num_layers=1, attention_types=[[["global"], 1]], num_heads=2, pad_token_id=0
    )
    gpt = Classifier(AutoModelForSequenceClassification.from_config(config))
    bilstm, batch = classifier("bilstm")
    for clf, name in ((gpt, "gpt_neo"), (bilstm, "bilstm-attention")):
        before = hooks(clf.model)
        with pytest.raises(InputError, match=rf"no wiring for models of type '{name}'.*the others can"):
            trace(clf, batch)
        assert hooks(clf.model) == before


def test_a_layer_without_a_norm_is_heard_all_the_same():
    clf, batch = classifier("bert")
    clf.model.bert.encoder.layer[1].output.LayerNorm = torch.nn.Identity()
    with clf.eager(), torch.no_grad():
        seen = trace(clf, batch)
    close(seen.layers[1].pre2, seen.last)


def test_layers_that_share_their_modules_are_told_apart():
    clf, batch = classifier("albert", num_hidden_groups=1, num_hidden_layers=3, chunk_size_feed_forward=1)
    with clf.eager(), torch.no_grad():
        seen = trace(clf, batch)
    for own in seen.layers:
        close(own.a, layer_steps(own.layer, own.x, own.attention).a)
    assert not torch.allclose(seen.layers[0].a, seen.layers[1].a, atol=1e-2)


def test_deviation_and_slope():
    own = torch.nn.LayerNorm(16, eps=0.3)
    norm = Norm(own.weight, own.bias, 0.3, own)
    x = 3 * torch.randn(4, 16, generator=torch.Generator().manual_seed(0)) + 1
    close((x - x.mean(-1, keepdim=True)) / norm.deviation(x), own(x))
    u = torch.tensor([-2.0, 0.0, 1e-20, 3.0])
    gelu = torch.nn.functional.gelu
    close(slope(u, gelu(u)), torch.distributions.Normal(0, 1).cdf(u))  # what gelu(u) / u is
    u.requires_grad_()
    (gradient,) = torch.autograd.grad(slope(u, gelu(u)).sum(), u)
    assert torch.isfinite(gradient).all()
