"""Every attribution method on every family: a new file in `attribution/` is tested without a new line here."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from families import EXAMPLES, classifier, encoded

import veridical
from tiny import FAMILIES, FURTHER, tiny
from veridical.attribution import methods
from veridical.core.errors import InputError
from veridical.core.records import Dataset, Example, Variant
from veridical.explanations.explain import attributions, explain
from veridical.model.ask import predict
from veridical.model.classifier import Classifier

# Few samples: these tests are about the handling, not the estimate.
FAST = {
    "lime": "lime:samples=40",
    "kernel_shap": "kernel_shap:samples=40",
    "smoothgrad": "smoothgrad:samples=4",
}
FAST["integrated_gradients"] = "integrated_gradients:steps=8"
# Word vectors that enter a LayerNorm with nothing added: their length cannot matter, and x . gradient is 0.
NOTHING_TO_SAY = [(family, "input_x_gradient") for family in ("deberta", "deberta_v2", "modernbert", "bloom")]
# What decomposes an encoder's layers has nothing to say of an LSTM, and must say that.
REFUSED = [("bilstm", method.name) for method in methods if "layers" in method.needs]
EVERYDAY = (*FAMILIES, "llama", "gpt2")  # the others are for `make test-all`
EVERY = [
    (family, method.name)
    for family in (*FAMILIES, *FURTHER)
    for method in methods
    if (family, method.name) not in REFUSED
]


def marked(pairs: list[tuple[str, str]]) -> list:
    """Pairs of a family and something, the long tail of families marked as such."""
    return [pytest.param(*pair, marks=() if pair[0] in EVERYDAY else pytest.mark.families) for pair in pairs]


def chosen(name: str):
    return methods.choose(FAST.get(name, name))


def close(a: np.ndarray, b: np.ndarray) -> None:
    scale = max(1.0, float(np.abs(b).max()))
    np.testing.assert_allclose(a / scale, b / scale, atol=2e-5)


@pytest.fixture(autouse=True)
def _quiet(recwarn):
    """Incompleteness on purpose (8 steps) warns; what it warns of has a test of its own."""


@pytest.mark.parametrize(("family", "name"), marked(EVERY))
def test_scores_are_finite_and_only_on_free_tokens(family, name):
    for e, a in zip(encoded(family), attributions(classifier(family), encoded(family), chosen(name)), strict=True):
        assert a.scores.shape == (len(e.ids),)
        assert a.scores.dtype == np.float32
        assert np.isfinite(a.scores).all()
        assert (a.scores[~np.array(e.free)] == 0).all()
        assert np.abs(a.scores).sum() > 0 or sum(e.free) == 1  # a method that clips may leave one token nothing
        assert a.cost.seconds > 0
        assert a.cost.forward >= 1


@pytest.mark.parametrize(("family", "name"), marked(EVERY))
def test_alone_in_a_batch_and_in_another_order_are_the_same(family, name):
    clf, texts = classifier(family), encoded(family)
    together = attributions(clf, texts, chosen(name))
    again = attributions(clf, texts, chosen(name))
    reverse = attributions(clf, texts[::-1], chosen(name), budget=64)[::-1]
    for e, a, b, c in zip(texts, together, again, reverse, strict=True):
        (alone,) = attributions(clf, [e], chosen(name))
        assert (a.scores == b.scores).all()  # deterministic to the last bit
        close(a.scores, c.scores)
        close(a.scores, alone.scores)
        assert a.target == alone.target == c.target


@pytest.mark.parametrize(("family", "name"), marked(EVERY))
def test_the_model_is_left_as_it_was(family, name):
    clf = classifier(family)
    with clf.eager(), torch.no_grad():  # transformers installs its own recording hooks once
        clf.forward(clf.collate(encoded(family)[:1]), attentions=True, hidden=True)
    clf.model.train()
    try:
        state = {key: value.clone() for key, value in clf.model.state_dict().items()}
        hooks = [
            (m, len(m._forward_hooks), len(m._forward_pre_hooks), len(m._backward_hooks)) for m in clf.model.modules()
        ]
        attention = getattr(clf.model.config, "_attn_implementation", None)
        attributions(clf, encoded(family)[:2], chosen(name))
        assert all(torch.equal(value, clf.model.state_dict()[key]) for key, value in state.items())
        for module, *counts in hooks:
            assert module.training
            assert counts == [
                len(module._forward_hooks),
                len(module._forward_pre_hooks),
                len(module._backward_hooks),
            ]
        for parameter in clf.model.parameters():
            assert parameter.grad is None
            assert parameter.requires_grad
        assert getattr(clf.model.config, "_attn_implementation", None) == attention
    finally:
        clf.model.eval()


@pytest.mark.parametrize(("family", "name"), marked(EVERY))
def test_the_context_of_a_pair_is_read_and_never_scored(family, name):
    clf, pairs = classifier(family, True), encoded(family, True)
    for e, a in zip(pairs, attributions(clf, pairs, chosen(name)), strict=True):
        own = len(e.example.text.split())
        assert set(np.flatnonzero(a.scores)) <= set(np.flatnonzero(e.free))
        assert max(e.words) == own - 1
        assert sum(e.free) < len(e.ids) - len(e.example.context.split())


@pytest.mark.parametrize(("family", "name"), marked(EVERY))
def test_the_explained_class_is_the_one_asked_for(family, name):
    clf, texts = classifier(family), encoded(family)
    predicted = predict(clf, texts).logits.argmax(-1)
    method = methods[name]
    for which, expected in (
        ("predicted", predicted.tolist()),
        ("gold", [e.label for e in EXAMPLES]),
        (2, [2] * len(texts)),
    ):
        found = attributions(clf, texts, chosen(name), which)
        assert [a.target for a in found] == expected
    if method.of_target and (family, name) not in NOTHING_TO_SAY:
        zero, two = (attributions(clf, texts, chosen(name), which) for which in (0, 2))
        assert any(not np.allclose(a.scores, b.scores, atol=1e-4) for a, b in zip(zero, two, strict=True))


def change_of_logit(family: str, name: str) -> np.ndarray:
    """The explained logit on the text less that on what the method calls nothing."""
    clf, texts = classifier(family), encoded(family)
    whole = predict(clf, texts)
    target = whole.logits.argmax(-1)
    with torch.no_grad(), clf.at_rest():
        if methods[name].asks:
            empty = [
                Variant(*(tuple(x for x, f in zip(xs, e.free, strict=True) if not f) for xs in (e.ids, e.types)))
                for e in texts
            ]
            null = torch.cat([clf.forward(clf.collate_variants([v])).logits for v in empty])
        else:
            batch = clf.collate(texts)
            edit = lambda x: torch.where(batch.free[..., None], torch.zeros_like(x), x)  # noqa: E731
            null = clf.forward(batch, edit=edit).logits
    rows = np.arange(len(texts))
    return whole.logits[rows, target] - null.numpy()[rows, target]


COMPLETE = [
    (family, name if name != "integrated_gradients" else "integrated_gradients:rule=adaptive")
    for family, name in EVERY
    if methods[name].complete
]


@pytest.mark.parametrize(("family", "spec"), marked(COMPLETE))
def test_complete_methods_sum_to_the_change_of_the_logit(family, spec):
    found = attributions(classifier(family), encoded(family), methods.choose(spec))
    sums = [float(a.scores.sum(dtype=np.float64)) for a in found]
    np.testing.assert_allclose(sums, change_of_logit(family, spec.partition(":")[0]), atol=2e-5)


@pytest.mark.parametrize(("family", "name"), marked([pair for pair in EVERY if methods[pair[1]].differentiable]))
def test_differentiable_methods_guide_training(family, name):
    """The same function, called while parameters are trainable, has gradients that reach them."""
    from veridical.model.target import Target

    clf, method = classifier(family), methods[name]
    batch = clf.collate(encoded(family)[1:4])
    with clf.eager():
        scores = method.run(clf, batch, Target(torch.tensor([0, 1, 2])), **methods.choose(name).options)
        gradients = torch.autograd.grad(
            scores.square().sum(), [p for p in clf.model.parameters() if p.requires_grad], allow_unused=True
        )
    reached = [g for g in gradients if g is not None]
    assert all(torch.isfinite(g).all() for g in reached)
    assert sum(float(g.abs().sum()) for g in reached) > 0
    assert len(reached) > len(gradients) / 3


def test_every_method_says_what_it_is():
    for method in methods:
        assert method.summary.endswith((".", ")")) or len(method.summary) > 20
        assert method.needs <= {"attention", "gradient", "layers", "questions"}


@pytest.mark.parametrize(("family", "name"), REFUSED)
def test_a_method_that_needs_an_encoders_layers_is_refused_without_them(family, name):
    clf = classifier(family)
    with pytest.raises(InputError, match=r"'bilstm-attention'.*the others can"):
        attributions(clf, encoded(family), chosen(name))
    assert all(not module._forward_hooks and not module._forward_pre_hooks for module in clf.model.modules())


def test_an_audit_leaves_out_what_is_refused_and_says_why(tmp_path):
    examples = tuple(Example(f"t{i}", f"{e.text} {i}", label=i % 3) for i, e in enumerate(EXAMPLES))
    data = Dataset("some", tuple(classifier("bilstm").labels), {"test": examples})
    refused = [name for _, name in REFUSED]
    found = veridical.audit(
        classifier("bilstm"),
        data,
        out=tmp_path,
        limit=3,
        methods=["attention", *refused, "random"],
        metrics=["sufficiency"],
        progress=False,
    )
    assert {cell.method for cell in found.summary.cells} >= {"attention", "random"}
    assert not {cell.method for cell in found.summary.cells} & set(refused)
    (note,) = found.summary.left_out  # one reason, said once
    assert note.startswith(", ".join(refused) + " are left out: ")
    assert "no wiring for models of type 'bilstm-attention'" in note


def test_several_methods_at_once_and_words():
    clf = classifier("bert")
    found = explain(clf, ["An unbelievable film!"], ["attention", "input_x_gradient:aggregate=l2"])
    assert list(found) == ["attention", "input_x_gradient:aggregate=l2"]
    one = found["attention"][0]
    assert one.words == ("An", "unbelievable", "film!")
    assert len(one.word_scores) == 3
    assert one.word_scores.sum() == pytest.approx(one.scores.sum(), rel=1e-5)


@pytest.mark.parametrize(("family", "name"), NOTHING_TO_SAY)
def test_a_method_that_has_nothing_to_say_says_so(family, name):
    with pytest.warns(UserWarning, match="rounding noise"):
        attributions(classifier(family), encoded(family), chosen(name))


def test_integrated_gradients_that_do_not_add_up_say_so():
    with pytest.warns(UserWarning, match="do not add up"):
        attributions(classifier("deberta"), encoded("deberta"), methods.choose("integrated_gradients"))


@pytest.mark.parametrize("scale", [0.03, 30.0])
def test_deeplift_is_complete_whatever_the_size_of_the_word_vectors(scale):
    """Trained encoders have small ones: a rule that holds for entries near 1 only would still pass above."""
    model, tokenizer = tiny("bert")
    with torch.no_grad():
        for table in model.bert.embeddings.children():
            if isinstance(table, torch.nn.Embedding):
                table.weight *= scale
    clf = Classifier(model, tokenizer)
    texts = clf.encode(EXAMPLES)
    batch = clf.collate(texts)
    with torch.no_grad():
        whole = clf.forward(batch).logits
        null = clf.forward(batch, edit=lambda e: torch.where(batch.free[..., None], torch.zeros_like(e), e)).logits
    target = whole.argmax(-1, keepdim=True)
    found = [a.scores.sum(dtype=np.float64) for a in attributions(clf, texts, methods.choose("deeplift"))]
    np.testing.assert_allclose(found, (whole - null).gather(1, target)[:, 0], atol=2e-5)
