"""The frozen gradient against autograd, the authors' DecompX figures, its own biases and finite differences; AttnLRP's
relevance followed from the logit to every place it may end."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification

import veridical
from tiny import FAMILIES, FURTHER, TEXTS, TRANSFORMERS, Double, tiny
from tiny_families import WITHOUT_BIASES
from veridical.attribution import methods
from veridical.attribution.frozen_gradient import frozen_gradient
from veridical.core.errors import InputError
from veridical.core.records import Batch, Example
from veridical.explanations.explain import attributions
from veridical.model.classifier import Classifier, leaf
from veridical.model.decompose.adjoint import adjoint, one_hot
from veridical.model.decompose.trace import trace
from veridical.model.rules import opaque
from veridical.model.rules.lrp import ATTNLRP, CONSERVATIVE, Relevance
from veridical.model.rules.opaque import openly
from veridical.model.rules.rules import Rules
from veridical.model.target import Target

GOLDEN = Path(__file__).parent.parent / "golden/decompx_alti"
CLASSES = torch.arange(len(TEXTS)) % 3


def classifier(family: str, dtype: torch.dtype = torch.float32, **config) -> tuple[Classifier, Batch]:
    model, tokenizer = tiny(family, **config)
    clf = Classifier(model.to(dtype), tokenizer)
    return clf, clf.collate(clf.encode([Example(str(i), text) for i, text in enumerate(TEXTS)]))


def explained(logits: torch.Tensor) -> torch.Tensor:
    return logits.gather(1, CLASSES[:, None])[:, 0]


# -- frozen_gradient ----------------------------------------------------------------------------------------

VARIANTS = [*((family, {}) for family in TRANSFORMERS), ("modernbert", {"classifier_pooling": "mean"})]
# Activations that are no operation of their own, or not monotone, or with a gate of their own.
VARIANTS += [(family, {}) for family in FURTHER]
VARIANTS += [("bert", {"hidden_act": act}) for act in ("gelu_new", "gelu_python", "relu", "relu2", "quick_gelu")]


@pytest.mark.parametrize(("family", "config"), VARIANTS)
def test_by_hand_and_by_autograd_are_the_same(family, config):
    """Autograd through the same pass, with softmax, deviations and slopes cut from the graph operation by operation."""
    clf, batch = classifier(family, **config)
    with clf.at_rest(), clf.eager():
        with torch.no_grad():
            ours = frozen_gradient(clf, batch, Target(CLASSES))
            plain = clf.forward(batch).logits
        with openly(clf.model), Relevance(CONSERVATIVE, "a test"):
            out = clf.forward(batch, edit=leaf, hidden=True)
        torch.testing.assert_close(out.logits.detach(), plain, atol=1e-5, rtol=1e-5)
        (gradient,) = torch.autograd.grad(explained(out.logits).sum(), [out.hidden[0]])
    theirs = (gradient * out.hidden[0]).sum(-1).detach()
    assert theirs.abs().max() > 0.05
    torch.testing.assert_close(ours, torch.where(batch.mask, theirs, 0.0), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["one_logit", "multi"])
@pytest.mark.parametrize(("family", "config"), VARIANTS[:9])
def test_tokens_and_biases_add_up_to_the_logit(family, config, kind):
    settings = {"num_labels": 1} if kind == "one_logit" else {"problem_type": "multi_label_classification"}
    clf, batch = classifier(family, torch.float64, **settings, **config)
    classes = CLASSES % len(clf.labels)
    with clf.at_rest(), clf.eager(), torch.no_grad(), Double():
        seen = trace(clf, batch)
        found = adjoint(seen, one_hot(classes, len(clf.labels), seen.last))
        scores = frozen_gradient(clf, batch, Target(classes))
    due = seen.logits.gather(1, classes[:, None])[:, 0]
    assert found.biases.abs().max() > 0.05
    torch.testing.assert_close(scores.sum(-1) + found.biases, due, atol=1e-9, rtol=0)


def test_the_share_of_the_biases_is_theirs_alone():
    """Without any bias behind the embedding block it is 0, and the tokens have the whole logit."""
    clf, batch = classifier("bert", torch.float64)
    with torch.no_grad():
        for name, weight in clf.model.named_parameters():
            if name.endswith("bias") and "embeddings" not in name:
                weight.zero_()
    with clf.at_rest(), clf.eager(), torch.no_grad():
        seen = trace(clf, batch)
        found = adjoint(seen, one_hot(CLASSES, 3, seen.last))
    assert (found.biases == 0).all()
    torch.testing.assert_close((found.block * seen.layers[0].x).sum((1, 2)), explained(seen.logits), atol=1e-9, rtol=0)


@pytest.mark.parametrize("family", TRANSFORMERS)
def test_the_rules_of_decompx_that_follow_from_it(family):
    """What the page on methods says is the same is the same."""
    clf, batch = classifier(family)
    with clf.at_rest(), clf.eager(), torch.no_grad():
        seen = trace(clf, batch)
        biases = adjoint(seen, one_hot(CLASSES, 3, seen.last)).biases
        own = frozen_gradient(clf, batch, Target(CLASSES))
        first = torch.zeros_like(own)
        first[:, 0] = 1
        alike = batch.mask / batch.mask.sum(-1, keepdim=True)
        for bias, due in (
            ("token", own),
            ("none", own),
            ("equal", own + biases[:, None] * alike),
            ("cls", own + biases[:, None] * first),
        ):
            method = methods.choose(f"decompx_classifier:bias={bias}:rules=paper")
            scores = method.entry.run(clf, batch, Target(CLASSES), **method.options)
            torch.testing.assert_close(scores, due, atol=1e-5, rtol=1e-5)


@pytest.fixture(scope="module")
def golden():
    return json.loads((GOLDEN / "expected-decompx-bert.json").read_text())


@pytest.mark.parametrize(("precision", "tolerance"), [("float64", 1e-9), ("float32", 1e-5)])
def test_the_figures_of_the_authors_released_code(golden, precision, tolerance):
    """In it the value bias of the first layer goes with the attended token; the rest of the biases is a source of its
    own (`bias_token`) or left out (`no_bias`)."""
    dtype = getattr(torch, precision)
    model = AutoModelForSequenceClassification.from_pretrained(GOLDEN / "tiny-bert").to(dtype).eval()
    given = json.loads((GOLDEN / "inputs.json").read_text())["bert"]
    ids, types, mask = (torch.tensor(given[name]) for name in ("input_ids", "token_type_ids", "attention_mask"))
    clf = Classifier(model)
    batch = Batch((), ids, types, mask.bool(), mask.bool())
    largest = 0.0
    for chosen in range(3):
        with clf.at_rest(), clf.eager(), torch.no_grad():
            seen = trace(clf, batch)
            found = adjoint(seen, one_hot(torch.full((len(ids),), chosen), 3, seen.last))
            alone = frozen_gradient(clf, batch, Target(torch.full((len(ids),), chosen)))
        first = clf.model.bert.encoder.layer[0].attention.self.value.bias.detach()
        with_value = (found.first_values * first.unflatten(0, (2, 1, -1))).sum((1, 3))  # [B, T]
        scores, biases = alone + with_value, found.biases - with_value.sum(-1)
        for row, length in enumerate(given["lengths"]):
            token, none = (golden[precision][name]["examples"][row] for name in ("bias_token", "no_bias"))
            for theirs in (token, none):
                due = np.array(theirs["classifier"])[:, chosen]
                np.testing.assert_allclose(scores[row, :length], due, atol=tolerance, rtol=0)
                largest = max(largest, float(np.abs(alone[row, :length].numpy() - due).max()))
            np.testing.assert_allclose(biases[row], token["classifier_bias"][chosen], atol=tolerance, rtol=0)
            assert (alone[row, length:] == 0).all()
    assert largest > 0.05  # the quirk matters: the paper's own rule is another number


def loss_of_scores(clf: Classifier, batch: Batch) -> torch.Tensor:
    scores = frozen_gradient(clf, batch, Target(CLASSES[: len(batch.ids)]))
    weights = torch.linspace(-1, 1, scores.numel(), dtype=scores.dtype).reshape(scores.shape)
    return (weights * scores + scores.square()).sum()


@pytest.mark.parametrize("family", ["bert", "distilbert", "deberta", "modernbert"])
def test_a_loss_on_the_scores_has_the_gradient_of_finite_differences(family):
    """What is held in the first derivative moves in the second: attention, deviations and slopes depend on weights."""
    clf, _ = classifier(family, torch.float64)
    batch = clf.collate(clf.encode([Example("0", TEXTS[1]), Example("1", TEXTS[0])]))
    parameters = dict(clf.model.named_parameters())
    with clf.eager(), Double():
        gradients = torch.autograd.grad(loss_of_scores(clf, batch), list(parameters.values()), allow_unused=True)
        found = dict(zip(parameters, gradients, strict=True))
        moved = 0.0
        for number, (name, weight) in enumerate(parameters.items()):
            draw = torch.Generator().manual_seed(number)
            direction = torch.randn(weight.shape, dtype=weight.dtype, generator=draw)
            sides = []
            for step in (1e-5, -1e-5):
                with torch.no_grad():
                    weight += step * direction
                    sides.append(loss_of_scores(clf, batch))
                    weight -= step * direction
            slope = float(sides[0] - sides[1]) / 2e-5
            own = found[name]
            got = 0.0 if own is None else float((own * direction).sum())
            assert got == pytest.approx(slope, rel=1e-5, abs=1e-5), name
            moved += abs(slope) if ".query" in name or "q_lin" in name else 0
    if family in ("bert", "distilbert"):
        assert moved > 0.1  # queries act through attention alone, which the first derivative holds


# -- AttnLRP ------------------------------------------------------------------------------------------------


class Account:
    """A table whose every constant addend (biases, positions) and softmax is written down, to be differentiated by."""

    def __init__(self, table: dict):
        self.added: list[torch.Tensor] = []
        self.softmaxes: list[tuple[torch.Tensor, torch.Tensor]] = []

        def added(constant):
            if not isinstance(constant, torch.Tensor) or constant.requires_grad:
                return constant
            self.added.append(constant.detach().requires_grad_())
            return self.added[-1]

        def softmax(x, *args, **kwargs):
            y = table["softmax"](x, *args, **kwargs)
            if y.requires_grad:
                self.softmaxes.append((x, y))
            return y

        def lstm(x, state, weights, *args):
            return table["lstm"](x, state, [w if w.ndim == 2 else added(w) for w in weights], *args)

        self.table = {
            **table,
            "softmax": softmax,
            "linear": lambda x, w, b=None: torch.nn.functional.linear(x, w, added(b)),
            "add": lambda a, b: added(a) + added(b),
            "layer_norm": lambda x, shape, weight, bias, eps: table["layer_norm"](x, shape, weight, added(bias), eps),
            "lstm": lstm,
        }


def account(family: str, table: dict) -> tuple[torch.Tensor, ...]:
    """The logits, and where their relevance ended: word vectors, constant addends, constants of the softmaxes."""
    clf, batch = classifier(family, torch.float64)

    def worth(tensors: list[torch.Tensor], logits: torch.Tensor) -> torch.Tensor:
        total = torch.zeros(len(logits), dtype=logits.dtype)
        if not tensors:
            return total
        for row, logit in enumerate(explained(logits)):  # each by itself: one bias serves the whole batch
            gradients = torch.autograd.grad(logit, tensors, retain_graph=True, allow_unused=True)
            for tensor, gradient in zip(tensors, gradients, strict=True):
                if gradient is not None:
                    total[row] += torch.where(gradient == 0, 0.0, gradient * tensor.detach()).sum()  # masks are -inf
        return total

    with clf.at_rest(), clf.eager(), Double():
        kept = Account(table)
        with Relevance(kept.table, "a test"):
            out = clf.forward(batch, edit=leaf)
        before, after = ([pair[i] for pair in kept.softmaxes] for i in (0, 1))
        return (
            explained(out.logits).detach(),
            worth([out.embeddings], out.logits),
            worth(kept.added, out.logits),
            worth(after, out.logits) - worth(before, out.logits),
        )


@pytest.mark.parametrize("family", FAMILIES)
def test_no_relevance_is_lost_or_made(family):
    """Logit = word vectors + what was added on the way + the constant each softmax has besides its slope."""
    logits, words, added, constants = account(family, ATTNLRP)
    torch.testing.assert_close(words + added + constants, logits, atol=1e-9, rtol=0)
    assert words.abs().max() > 0.05
    assert added.abs().max() > 0.05
    assert constants.abs().max() > 1e-3


@pytest.mark.parametrize("family", FAMILIES)
def test_with_attention_held_only_what_is_added_takes_relevance(family):
    logits, words, added, constants = account(family, CONSERVATIVE)
    assert (constants == 0).all()
    torch.testing.assert_close(words + added, logits, atol=1e-9, rtol=0)


@pytest.mark.parametrize("family", ["deberta", "deberta_v2", "modernbert"])
def test_word_vectors_that_enter_a_norm_bare_have_relevance_all_the_same(family):
    """Input x gradient is 0 there for every token; with the deviation held it is not."""
    clf, batch = classifier(family)
    found = attributions(clf, batch.encoded, methods.choose("attnlrp"))
    assert min(np.abs(a.scores).max() for a in found) > 1e-3


def test_attention_held_is_the_frozen_gradient_one_step_earlier():
    """In ModernBERT the step between is one LayerNorm without a bias, so the two are the same."""
    clf, batch = classifier("modernbert")
    held, frozen = (
        attributions(clf, batch.encoded, methods.choose(s)) for s in ("attnlrp:attention=held", "frozen_gradient")
    )
    for a, b in zip(held, frozen, strict=True):
        np.testing.assert_allclose(a.scores, b.scores, atol=2e-5)


@pytest.mark.parametrize("family", WITHOUT_BIASES)
def test_where_nothing_is_added_words_speak_for_the_whole_logit(family):
    """No biases, no position vectors: the frozen network's scores at word vectors are those at the embedding block, sum
    to the logit, and are DecompX by every rule for biases."""
    clf, batch = classifier(family)
    specs = ["attnlrp:attention=held", *(f"decompx_classifier:bias={bias}" for bias in ("absdot", "norm", "equal"))]
    logits = explained(clf.forward(batch).logits.detach())
    frozen = veridical.attribute(clf.model, batch.ids, batch.mask, "frozen_gradient", CLASSES)
    torch.testing.assert_close(frozen.sum(-1), logits, atol=2e-5, rtol=0)
    for spec in specs:
        scores = veridical.attribute(clf.model, batch.ids, batch.mask, spec, CLASSES)
        torch.testing.assert_close(scores, frozen, atol=2e-5, rtol=0)


def test_the_rules_one_by_one():
    """Against quotients worked out by hand."""
    torch.manual_seed(0)
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    w = torch.randn(4, 4, dtype=torch.float64)

    def passed(function) -> torch.Tensor:
        with Relevance(ATTNLRP, "a test"):
            y = function(x)
        torch.testing.assert_close(y, function(x))
        return torch.autograd.grad(y.sum(), x)[0]

    gelu = torch.nn.functional.gelu
    torch.testing.assert_close(passed(gelu), gelu(x) / x)
    written_out = [
        lambda t: 0.5 * t * (1 + torch.tanh(0.8 * (t + 0.04 * torch.pow(t, 3.0)))),
        lambda t: t * 0.5 * (1.0 + torch.erf(t / 2.0)),
        lambda t: t * torch.sigmoid(1.7 * t),
        lambda t: torch.square(torch.relu(t)),
    ]
    for function in written_out:
        torch.testing.assert_close(passed(function), function(x) / x)
    # two linear functions of x: half of each one's gradient
    torch.testing.assert_close(passed(lambda t: (t @ w) * (t @ w.T)), ((x @ w.T) @ w.T + (x @ w) @ w) / 2)
    # a gate: the activation's half by its quotient
    halves = ((x @ w) * gelu(x) / x + gelu(x) @ w.T) / 2
    torch.testing.assert_close(passed(lambda t: gelu(t) * (t @ w)), halves)
    # an in-place change makes another tensor of it
    torch.testing.assert_close(
        passed(lambda t: _in_place(torch.tanh(t), t @ w) * t),
        (_in_place(torch.tanh(x), x @ w) + x * torch.tanh(x) / x + x @ w.T) / 2,
    )
    # LayerNorm and its written-out form: centred, its deviation a constant
    sd = x.var(-1, correction=0, keepdim=True).add(1e-5).sqrt().detach()
    for norm in (
        lambda t: torch.nn.functional.layer_norm(t, (4,)) @ w,
        lambda t: (
            (
                (t - t.mean(-1, keepdim=True))
                / torch.sqrt((t - t.mean(-1, keepdim=True)).pow(2).mean(-1, keepdim=True) + 1e-5)
            )
            @ w
        ),
    ):
        due = (torch.ones(3, 4, dtype=torch.float64) @ w.T) / sd
        torch.testing.assert_close(passed(norm), due - due.mean(-1, keepdim=True))
    # softmax as it is
    s = x.softmax(-1)
    g = w.sum(-1)
    torch.testing.assert_close(passed(lambda t: t.softmax(-1) @ w), s * (g - (s * g).sum(-1, keepdim=True)))


def _in_place(y: torch.Tensor, more: torch.Tensor) -> torch.Tensor:
    y = 1.0 * y
    y += more
    return y


def test_what_has_no_rule_is_refused():
    x = torch.ones(2, requires_grad=True)
    for function in (torch.exp, torch.nn.functional.softplus):
        with pytest.raises(InputError, match="attnlrp has no rule"), Rules(ATTNLRP, "attnlrp"):
            function(x)


def test_what_hides_from_the_rules_is_computed_openly_or_refused(monkeypatch):
    clf, batch = classifier("bloom")  # its GELU is an autograd function of its own
    for name in ("attnlrp", "deeplift"):
        assert attributions(clf, batch.encoded[:1], methods.choose(name))
    monkeypatch.setattr(opaque, "OPENLY", {})
    for name in ("attnlrp", "deeplift"):
        with pytest.raises(InputError, match=rf"{name} has no rule for the operation 'GeLUFunction'.*integrated"):
            attributions(clf, batch.encoded[:1], methods.choose(name))


def test_the_tensor_level_seam():
    clf, batch = classifier("bert")
    model = copy.deepcopy(clf.model)
    for name in ("frozen_gradient", "attnlrp", "attcat", "gradient_rollout", "attention_x_value"):
        scores = veridical.attribute(model, batch.ids, batch.mask.long(), method=name, token_type_ids=batch.types)
        assert scores.shape == batch.ids.shape
        assert (scores[~batch.mask] == 0).all()
        assert (scores[:, 0] != 0).all()  # special tokens are kept here
