"""The three terms of REGEX: virtual adversarial training, the input gradient, attention guided by an explanation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from goldens import GOLDEN
from tiny import FAMILIES, PAIRS, TEXTS, tiny
from toy import small_model, toy
from veridical.attribution import methods
from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.records import Batch, Example, Output
from veridical.core.seed import Draw
from veridical.model.ask import predict
from veridical.model.classifier import Classifier
from veridical.training.config import TrainConfig
from veridical.training.term import Ready, objective, ready, virtual_adversarial
from veridical.training.term.cross_entropy import losses
from veridical.training.term.explanation_guided import gold_classes, importance, lowest
from veridical.training.term.virtual_adversarial import Ball, _draws, _worst, symmetric_kl
from veridical.training.train import train

TERMS = ("virtual_adversarial", "input_gradient", "explanation_guided")
REGEX = "virtual_adversarial:weight=0.5,input_gradient:weight=0.01,explanation_guided:weight=0.01"


def classifier(family: str = "bert", *, double: bool = False, pair: bool = False, **config: Any) -> Classifier:
    model, tokenizer = tiny(family, pair=pair, **config)
    clf = Classifier(model.double() if double else model, tokenizer)
    clf.model.train()
    return clf


def still(family: str = "bert", **config: Any) -> Classifier:
    """A classifier without dropout."""
    return classifier(family, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **config)


def read(clf: Classifier, texts: tuple[str, ...] = TEXTS[:4]) -> tuple[Batch, torch.Tensor]:
    batch = clf.collate(clf.encode([Example(str(i), text) for i, text in enumerate(texts)]))
    return batch, torch.arange(len(texts)) % len(clf.labels)


def only(spec: str, clf: Classifier) -> Ready:
    """A term without the cross-entropy."""
    return ready(objective(f"cross_entropy:weight=0,{spec}"), clf, [], torch.zeros(0))[1]


def loss_of(
    spec: str, clf: Classifier, batch: Batch, labels: torch.Tensor, output: Output | None = None
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    with clf.eager():
        return only(spec, clf).loss(clf, batch, output or clf.forward(batch, attentions=True), labels)


# -- all three ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_the_whole_objective_trains_every_family(family):
    clf = classifier(family)
    batch, labels = read(clf)
    before = [(module, module.training) for module in clf.model.modules()]
    with clf.eager():
        output = clf.forward(batch, attentions=True)
        found = [(one, *one.loss(clf, batch, output, labels)) for one in ready(objective(REGEX), clf, [], labels)]
        assert all(p.grad is None for p in clf.model.parameters())  # nothing was left behind on the way
        torch.stack([one.weight * loss for one, loss, _ in found]).sum().backward()
    for one, loss, figures in found:
        assert torch.isfinite(loss)
        assert loss > 0, one.name
        assert all(value >= 0 for value in figures.values())
    gradients = {name: p.grad for name, p in clf.model.named_parameters()}
    used = {name: g for name, g in gradients.items() if g is not None}
    assert all(torch.isfinite(g).all() for g in used.values())
    assert any("embedding" in name and g.abs().sum() > 0 for name, g in used.items())
    assert all(p.requires_grad for p in clf.model.parameters())
    assert all(module.training is training for module, training in before)


@pytest.mark.parametrize(
    "spec",
    [
        "virtual_adversarial",
        "virtual_adversarial:preset=mt_dnn",
        "input_gradient",
        "explanation_guided:method=input_x_gradient/aggregate=l2",
        "explanation_guided:method=occlusion",
    ],
)
def test_a_term_is_the_sum_over_texts_whatever_stands_beside_them(spec):
    # In float64, for the ascent starts at 1e-5 from the text: in float32 rounding sways its first direction a little.
    clf = still(double=True)
    batch, labels = read(clf)
    together, figures = loss_of(spec, clf, batch, labels)
    alone = [
        loss_of(spec, clf, clf.collate([e]), labels[i : i + 1])  # without padding
        for i, e in enumerate(batch.encoded)
    ]
    torch.testing.assert_close(together, torch.stack([loss for loss, _ in alone]).sum(), rtol=1e-5, atol=1e-7)
    for name, value in figures.items():
        torch.testing.assert_close(value, torch.stack([own[name] for _, own in alone]).sum(), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("spec", TERMS)
@pytest.mark.parametrize("kind", ["multi_label_classification", "one_logit", "pair"])
def test_other_heads_and_pairs(spec, kind):
    if kind == "pair":
        clf = classifier()
        examples = [Example(str(i), text, context=context) for i, (text, context) in enumerate(PAIRS)]
        batch, labels = clf.collate(clf.encode(examples)), torch.tensor([0, 1, 2])
    elif kind == "one_logit":
        clf = classifier(num_labels=1)
        batch, labels = read(clf)
    else:
        clf = classifier(problem_type=kind)
        batch, _ = read(clf)
        labels = torch.tensor([[1, 0, 1], [0, 0, 0], [0, 1, 0], [1, 1, 1]])
    loss, _ = loss_of(spec, clf, batch, labels)
    loss.backward()
    assert torch.isfinite(loss)
    assert loss > 0


@pytest.mark.parametrize("spec", [*TERMS, "virtual_adversarial:preset=mt_dnn"])
def test_some_steps_reduce_it(spec):
    clf = still()
    batch, labels = read(clf)
    optimizer = torch.optim.Adam(clf.model.parameters(), lr=2e-3)
    values = []
    for _ in range(12):
        optimizer.zero_grad()
        loss, _ = loss_of(spec, clf, batch, labels)
        loss.backward()
        optimizer.step()
        values.append(float(loss.detach()))
    assert min(values[-3:]) < 0.8 * values[0]


@pytest.mark.parametrize("spec", TERMS)
def test_it_can_be_measured_without_training(spec):
    """As the loop does on the dev split: dropout off, twice the same."""
    clf = classifier()
    clf.model.eval()
    batch, labels = read(clf)
    first, second = (loss_of(spec, clf, batch, labels)[0] for _ in range(2))
    assert torch.equal(first, second)


def test_a_run_logs_the_terms_and_their_figures(tmp_path):
    model = small_model(tmp_path / "model")
    run = train(
        toy(train=24, dev=8, test=8),
        model,
        objective=REGEX,
        config=TrainConfig(epochs=1, batch=8),
        out=tmp_path / "run",
        progress=False,
    )
    steps = [row for row in store.read_jsonl(run.folder / "train.jsonl") if "loss" in row and "epoch" in row]
    assert steps
    for row in steps:
        assert 0 <= row["virtual_adversarial.flipped"] <= 1
        assert row["explanation_guided"] == pytest.approx(
            row["explanation_guided.clean"] + row["explanation_guided.masked"], rel=1e-5
        )
        assert row["input_gradient"] > 0


# -- virtual adversarial training ---------------------------------------------------------------------------


def test_ascent_and_projection_are_the_golden_ones():
    golden = GOLDEN["vat_projection"]
    given, expected = golden["inputs"], golden["expected"]
    shift, gradient = (torch.tensor([[given[k]]], dtype=torch.float64) for k in ("noise", "gradient"))
    scale = torch.ones(1, 1, 1, dtype=torch.float64)

    def ascend(preset, radius) -> np.ndarray:
        return Ball(preset, radius, given["step_size"]).ascend(shift, gradient, scale).flatten().numpy()

    projected, printed = ascend("radius", given["radius"]), expected["projection_onto_linf_ball"]
    np.testing.assert_allclose(projected, printed, rtol=1e-9)
    np.testing.assert_allclose(ascend("radius", float("inf")), expected["before_projection"], rtol=1e-9)
    np.testing.assert_allclose(ascend("mt_dnn", given["radius"]), expected["mt_dnn_normalisation"], rtol=1e-9)


@given(st.lists(st.floats(-5, 5), min_size=6, max_size=6), st.floats(0.01, 2), st.floats(0.1, 3))
@settings(deadline=None)
def test_a_relative_step_stays_in_the_ball_and_never_fails(values, radius, step):
    gradient = torch.tensor(values).reshape(1, 2, 3)
    scale = torch.full((1, 1, 1), 0.04)
    shift = torch.zeros_like(gradient)
    for _ in range(3):
        shift = Ball("relative", radius, step).ascend(shift, gradient, scale)
    assert torch.isfinite(shift).all()
    assert (shift.abs() <= radius * 0.04 * (1 + 1e-6)).all()
    assert (shift * gradient >= 0).all()


def test_the_divergence_is_the_sum_of_both_directions():
    a, b = torch.randn(2, 5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    p, q = a.log_softmax(-1), b.log_softmax(-1)
    both = functional.kl_div(p, q.exp(), reduction="none") + functional.kl_div(q, p.exp(), reduction="none")
    torch.testing.assert_close(symmetric_kl(a, b, "single"), both.sum(-1))
    bernoulli = [torch.distributions.Bernoulli(logits=x) for x in (a, b)]
    kl = torch.distributions.kl_divergence
    expected = kl(*bernoulli) + kl(*reversed(bernoulli))
    torch.testing.assert_close(symmetric_kl(a, b, "multi"), expected.mean(-1))
    one = torch.stack([-a[:, 0], a[:, 0]], -1), torch.stack([-b[:, 0], b[:, 0]], -1)
    torch.testing.assert_close(symmetric_kl(*one, "one_logit"), expected[:, 0])
    assert not symmetric_kl(a, a, "single").any()


def test_the_ascent_beats_shifts_of_the_same_size():
    clf = still()
    batch, labels = read(clf)
    clean = clf.forward(batch)
    worst, _ = loss_of("virtual_adversarial", clf, batch, labels, clean)
    shift = _worst(clf, batch, clean, Ball("relative", 0.1, 1.0), 2, 1e-5, Draw())
    assert not shift[~batch.free].any()
    generator = torch.Generator().manual_seed(0)
    for _ in range(10):
        signs = torch.randint(0, 2, shift.shape, generator=generator) * 2 - 1
        moved = clf.forward(batch, edit=lambda e, signs=signs: e + shift.abs() * signs).logits
        assert symmetric_kl(moved, clean.logits, "single").sum() < worst


def test_a_larger_ball_is_worse_and_the_printed_one_is_nothing():
    clf = still()
    batch, labels = read(clf)
    small, large = (loss_of(f"virtual_adversarial:radius={r}", clf, batch, labels)[0] for r in (0.02, 0.2))
    printed, _ = loss_of("virtual_adversarial:preset=radius", clf, batch, labels)
    assert printed < 1e-4 * small < 1e-4 * large


def test_both_sides_of_the_divergence_are_trained():
    """The gradient is that of the loss with the shift held, the clean prediction moving too."""
    clf = still(double=True)
    batch, labels = read(clf, TEXTS[:2])
    loss, _ = loss_of("virtual_adversarial", clf, batch, labels)
    loss.backward()
    weight = clf.model.bert.encoder.layer[0].output.dense.weight
    assert weight.grad is not None
    shift = _worst(clf, batch, clf.forward(batch), Ball("relative", 0.1, 1.0), 2, 1e-5, Draw())

    def value() -> float:
        moved = clf.forward(batch, edit=lambda e: e + shift).logits
        return float(symmetric_kl(moved, clf.forward(batch).logits, "single").sum())

    with torch.no_grad():
        at, step = (3, 5), 1e-5
        weight[at] += step
        above = value()
        weight[at] -= 2 * step
        below = value()
    assert float(weight.grad[at]) == pytest.approx((above - below) / (2 * step), rel=1e-4)


def test_mt_dnn_trains_each_prediction_towards_the_other_held_still():
    """As its SymKlCriterion: kl_div(log_softmax(a), softmax(b.detach())) and the same with the sides swapped."""
    clf = still(double=True)
    batch, labels = read(clf, TEXTS[:2])
    loss, _ = loss_of("virtual_adversarial:preset=mt_dnn", clf, batch, labels)
    loss.backward()
    name = "bert.encoder.layer.0.output.dense.weight"
    gradient = clf.model.get_parameter(name).grad
    clf.model.zero_grad()
    clean = clf.forward(batch).logits
    shift = _worst(clf, batch, clf.forward(batch), Ball("mt_dnn", 1e-5, 1e-3), 2, 1e-5, Draw())
    moved = clf.forward(batch, edit=lambda e: e + shift).logits

    def half(trained: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return functional.kl_div(trained.log_softmax(-1), target.detach().softmax(-1), reduction="sum")

    expected = half(moved, clean) + half(clean, moved)
    torch.testing.assert_close(loss, expected, rtol=1e-8, atol=0)
    expected.backward()
    torch.testing.assert_close(gradient, clf.model.get_parameter(name).grad, rtol=1e-6, atol=1e-12)
    # The other presets differentiate both sides of both halves.
    both = symmetric_kl(moved.detach().requires_grad_(), clean.detach(), "single").sum()
    assert torch.isclose(both, expected.detach())


@pytest.mark.parametrize("kind", ["single", "multi"])
def test_held_targets_change_the_gradient_and_not_the_value(kind):
    a, b = torch.randn(2, 5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def found(held: bool) -> tuple[torch.Tensor, torch.Tensor]:
        logits = a.clone().requires_grad_()
        value = symmetric_kl(logits, b, kind, targets_held=held).sum()
        return value.detach(), torch.autograd.grad(value, logits)[0]

    (value, gradient), (same, other) = found(False), found(True)
    assert torch.equal(value, same)
    p, q = (a.softmax(-1), b.softmax(-1)) if kind == "single" else (a.sigmoid(), b.sigmoid())
    # Of KL(q || p) alone: p's own gradient. Both halves differentiated are more.
    torch.testing.assert_close(other, p - q if kind == "single" else (p - q) / 3)
    assert gradient.norm() > 1.2 * other.norm()


def test_the_start_noise_is_of_the_data_seed_the_step_and_the_text():
    clf = still()
    batch, _ = read(clf)
    like = clf.forward(batch).embeddings.detach()
    first = _draws(batch, like, Draw(0, 7))
    assert torch.equal(first, _draws(batch, like, Draw(0, 7)))
    assert not first[~batch.free].any()
    for other in (Draw(0, 8), Draw(1, 7)):
        drawn = _draws(batch, like, other)
        assert not torch.isclose(first[batch.free], drawn[batch.free]).any(-1).all()
    alone = clf.collate([batch.encoded[1]])
    length = int(alone.mask.sum())
    assert torch.equal(_draws(alone, like[1:2, :length], Draw(0, 7))[0], first[1, :length])
    assert not torch.equal(first[0, 1], first[1, 1])


def test_a_run_draws_it_anew_in_every_step_and_for_every_seed(tmp_path, monkeypatch):
    drawn: list[Draw] = []
    real = virtual_adversarial._draws
    monkeypatch.setattr(
        virtual_adversarial, "_draws", lambda batch, like, draw: drawn.append(draw) or real(batch, like, draw)
    )
    model = small_model(tmp_path / "model")
    for seed in (0, 1):
        train(
            toy(train=16, dev=8, test=8),
            model,
            seed=seed,
            objective="virtual_adversarial",
            config=TrainConfig(epochs=2, batch=8),
            out=tmp_path / f"run{seed}",
            progress=False,
        )
    assert {(draw.seed, draw.step) for draw in drawn} == {(seed, step) for seed in (0, 1) for step in range(5)}


@pytest.mark.parametrize(("family", "forwards"), [("bert", 4), ("bilstm", 3)])
def test_what_it_costs(family, forwards):
    """A clean pass (none where nothing drops out), two up, a final one; two gradients by word vectors alone."""
    clf = classifier(family)
    batch, labels = read(clf)
    output = clf.forward(batch)
    before = clf.forwards, clf.backwards
    loss_of("virtual_adversarial", clf, batch, labels, output)
    assert (clf.forwards - before[0], clf.backwards - before[1]) == (forwards * 4, 2 * 4)


def test_dropout_is_off():
    clf = classifier(hidden_dropout_prob=0.5)
    batch, labels = read(clf)
    values = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        values.append(loss_of("virtual_adversarial", clf, batch, labels)[0])
    assert torch.equal(*values)


def test_flipped_counts_predictions_that_moved():
    clf = still()
    batch, labels = read(clf, TEXTS)
    _, none = loss_of("virtual_adversarial:radius=1e-4", clf, batch, labels)
    _, some = loss_of("virtual_adversarial:radius=20", clf, batch, labels)
    assert none["flipped"] == 0
    assert 0 < some["flipped"] <= len(TEXTS)


@pytest.mark.parametrize("option", ["radius=0", "step=-1", "steps=0", "noise=0"])
def test_impossible_balls_are_refused(option):
    clf = still()
    batch, labels = read(clf)
    with pytest.raises(InputError, match=option.split("=")[0]):
        loss_of(f"virtual_adversarial:{option}", clf, batch, labels)


# -- the input gradient -------------------------------------------------------------------------------------


def test_the_norm_is_that_of_the_gradient_of_each_text():
    clf = still()
    batch, labels = read(clf)
    expected = []
    for i, e in enumerate(batch.encoded):
        own = clf.collate([e])
        output = clf.forward(own)
        (gradient,) = torch.autograd.grad(losses(output.logits, labels[i : i + 1], "single").sum(), output.embeddings)
        expected.append(gradient[own.free].norm())
    value, _ = loss_of("input_gradient", clf, batch, labels)
    torch.testing.assert_close(value, torch.stack(expected).sum(), rtol=1e-4, atol=1e-6)
    squared, _ = loss_of("input_gradient:squared=true", clf, batch, labels)
    torch.testing.assert_close(squared, torch.stack(expected).square().sum(), rtol=1e-4, atol=1e-6)
    with_parameters, _ = loss_of("input_gradient:parameters=true", clf, batch, labels)
    theta = torch.cat([p.detach().flatten() for p in clf.model.parameters()]).norm()
    torch.testing.assert_close(with_parameters - value, len(labels) * theta, rtol=1e-4, atol=1e-4)


def test_it_is_differentiated_twice():
    clf = still(double=True)
    batch, labels = read(clf, TEXTS[:2])
    loss, _ = loss_of("input_gradient", clf, batch, labels)
    loss.backward()
    weight = clf.model.bert.encoder.layer[0].attention.self.query.weight
    assert weight.grad is not None
    at, step = (2, 7), 1e-6
    values = []
    for move in (step, -2 * step):
        with torch.no_grad():
            weight[at] += move
        values.append(float(loss_of("input_gradient", clf, batch, labels)[0].detach()))
    assert float(weight.grad[at]) == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-4)


def test_it_takes_the_loops_own_pass_and_one_gradient():
    clf = classifier()
    batch, labels = read(clf)
    with clf.eager():
        output = clf.forward(batch, attentions=True)
    before = clf.forwards, clf.backwards
    loss_of("input_gradient", clf, batch, labels, output)
    assert (clf.forwards - before[0], clf.backwards - before[1]) == (0, 4)


def test_frozen_word_vectors_are_no_obstacle():
    clf = still()
    batch, labels = read(clf)
    expected, _ = loss_of("input_gradient", clf, batch, labels)
    clf.model.get_input_embeddings().weight.requires_grad_(False)
    found, _ = loss_of("input_gradient", clf, batch, labels)
    torch.testing.assert_close(found, expected)
    found.backward()


def test_a_text_without_gradient_costs_nothing():
    clf = still()
    with torch.no_grad():
        clf.model.classifier.weight.zero_()
        clf.model.classifier.bias.zero_()
    batch, labels = read(clf)
    loss, _ = loss_of("input_gradient", clf, batch, labels)
    loss.backward()
    assert loss == 0
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in clf.model.parameters())


# -- the explanation as guide -------------------------------------------------------------------------------


def test_the_lowest_tokens_are_the_golden_ones():
    golden = GOLDEN["regex_bottom_mask"]
    scores, expected = np.array(golden["inputs"]["scores"]), golden["expected"]
    free = np.ones(len(scores), dtype=bool)
    found = lowest(scores, free, golden["inputs"]["K"])
    assert len(found) == expected["k"]
    assert sorted(found.tolist()) == expected["masked_positions"]
    assert len(lowest(scores[:3], free[:3], expected["n3"]["K"])) == expected["n3"]["k"]


def test_special_tokens_are_never_masked():
    scores, free = np.array([0.0, 0.3, 0.1, 0.2, 0.0]), np.array([False, True, True, True, False])
    assert lowest(scores, free, 0.15).tolist() == [2]
    assert sorted(lowest(scores, free, 1.0).tolist()) == [1, 2, 3]


def test_the_loss_is_equation_7():
    clf = still()
    batch, labels = read(clf)
    loss, figures = loss_of("explanation_guided:method=input_x_gradient/aggregate=l2", clf, batch, labels)
    choice = methods.choose("input_x_gradient:aggregate=l2")
    clf.model.eval()
    expected = {"clean": 0.0, "masked": 0.0}
    with clf.eager():
        guide = importance(clf, batch, labels, choice).numpy()
        for row, e in enumerate(batch.encoded):
            free = np.array(e.free)
            target = guide[row, : len(free)][free]
            order = np.flatnonzero(free)[np.argsort(target, kind="stable")]
            ids = np.array(e.ids)
            ids[order[: max(1, int(np.ceil(0.15 * len(order))))]] = clf.tokenizer.mask_token_id
            target = target / target.sum()
            for name, own in (("clean", np.array(e.ids)), ("masked", ids)):
                output = clf.model(input_ids=torch.tensor(own[None]), output_attentions=True)
                row_ = output.attentions[-1][0].mean(0)[0].detach().numpy()[free]
                row_ = row_ / row_.sum()
                expected[name] += float((row_ * np.log(row_ / target)).sum())
    assert float(figures["clean"]) == pytest.approx(expected["clean"], rel=1e-4)
    assert float(figures["masked"]) == pytest.approx(expected["masked"], rel=1e-4)
    assert float(loss.detach()) == pytest.approx(sum(expected.values()), rel=1e-4)


@pytest.mark.parametrize(
    "guide",
    [
        "integrated_gradients/steps=3/aggregate=l2",
        "integrated_gradients/steps=2/aggregate=abs",
        "gradient",
        "deeplift/aggregate=l2",
        "frozen_gradient",
        "attention_x_gradient",
        "occlusion",
        "lime/samples=20",
    ],
)
def test_any_method_guides_and_none_is_differentiated(guide):
    clf = classifier()
    batch, labels = read(clf)
    with clf.eager():
        scores = importance(clf, batch, labels, methods.choose(guide.replace("/", ":")))
    assert not scores.requires_grad
    assert (scores >= 0).all()
    assert not scores[~batch.free].any()
    assert (scores.sum(-1) > 0).all()
    loss, _ = loss_of(f"explanation_guided:method={guide}", clf, batch, labels)
    loss.backward()
    assert torch.isfinite(loss)


def test_the_guide_explains_the_gold_class():
    clf = still()
    batch, _ = read(clf)
    choice = methods.choose("input_x_gradient")
    with clf.eager():
        one, other = (importance(clf, batch, torch.full((4,), k), choice) for k in (0, 1))
    assert not torch.allclose(one, other)
    logits = torch.tensor([[1.0, 3.0, 2.0], [5.0, 1.0, 0.0]])
    assert gold_classes(logits, torch.tensor([2, 1])).tolist() == [2, 1]
    assert gold_classes(logits, torch.tensor([[1, 0, 1], [0, 0, 0]])).tolist() == [2, 0]


def test_a_guide_with_nothing_to_say_adds_nothing(monkeypatch):
    clf = still()
    batch, labels = read(clf)
    silent = torch.zeros(batch.ids.shape)
    monkeypatch.setattr("veridical.training.term.explanation_guided.importance", lambda *_: silent)
    loss, _ = loss_of("explanation_guided", clf, batch, labels)
    loss.backward()
    assert loss == 0


def test_the_further_consistency_terms_are_off_until_asked_for():
    clf = still()
    batch, labels = read(clf)
    plain, _ = loss_of("explanation_guided", clf, batch, labels)
    attention, _ = loss_of("explanation_guided:attention_consistency=0.5", clf, batch, labels)
    twice, _ = loss_of("explanation_guided:attention_consistency=1", clf, batch, labels)
    both, _ = loss_of("explanation_guided:label_consistency=1", clf, batch, labels)
    assert attention > plain
    torch.testing.assert_close(twice - plain, 2 * (attention - plain), rtol=1e-3, atol=1e-5)
    assert both > plain


def test_models_without_a_mask_token_are_refused():
    clf = classifier()

    class Without:
        """The same tokenizer, its mask token forgotten."""

        is_fast, mask_token_id = True, None

        def __getattr__(self, name):
            return getattr(clf_tokenizer, name)

    batch, labels = read(clf)
    clf_tokenizer, clf.tokenizer = clf.tokenizer, Without()
    with pytest.raises(InputError, match="no mask token"):
        loss_of("explanation_guided", clf, batch, labels)


@pytest.mark.parametrize("ratio", [0, 1.5])
def test_impossible_ratios_are_refused(ratio):
    clf = still()
    batch, labels = read(clf)
    with pytest.raises(InputError, match="ratio"):
        loss_of(f"explanation_guided:ratio={ratio}", clf, batch, labels)


def test_an_unknown_guide_is_refused_with_a_hint():
    clf = still()
    batch, labels = read(clf)
    with pytest.raises(InputError, match="Did you mean 'integrated_gradients'"):
        loss_of("explanation_guided:method=integrated_gradient", clf, batch, labels)


def test_what_the_default_guide_costs():
    """Besides the loop's pass: the masked one, and for the guide a clean one and three with a gradient each."""
    clf = classifier()
    batch, labels = read(clf)
    with clf.eager():
        output = clf.forward(batch, attentions=True)
    before = clf.forwards, clf.backwards
    loss_of("explanation_guided", clf, batch, labels, output)
    assert (clf.forwards - before[0], clf.backwards - before[1]) == (5 * 4, 3 * 4)
    assert predict(clf, batch.encoded).logits.shape == (4, 3)  # the model is as it was
