from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import goldens
from guided import guided
from tiny import TRANSFORMERS, tiny
from toy import small_model, toy
from veridical.attribution import methods
from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.records import Example
from veridical.core.text import marked
from veridical.explanations.explain import attributions
from veridical.model.classifier import Classifier
from veridical.training.config import TrainConfig
from veridical.training.term import Ready, objective, ready
from veridical.training.term.explanation import absolute_error, sharpened, unit
from veridical.training.train import train

GOLDEN = goldens.GOLDEN["explanation_loss_mae"]
GUIDES = [method.name for method in methods if method.differentiable]
EXAMPLES = guided(12, 1, 1).splits["train"]
LABELS = torch.tensor([e.label for e in EXAMPLES])


def still(family: str = "bert", **config: Any) -> Classifier:
    """A tiny classifier without dropout, its parameters trainable."""
    clf = Classifier(*tiny(family, **config))
    clf.model.eval()
    return clf


def prepared(clf: Classifier, spec: str, examples: Any = EXAMPLES, labels: torch.Tensor = LABELS) -> Ready:
    return ready(objective(spec), clf, clf.encode(examples), labels)[1]


def loss_of(
    clf: Classifier, one: Ready, examples: Any = EXAMPLES, labels: torch.Tensor = LABELS
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """The term's sum over the examples and its figures, as the loop asks for them."""
    batch = clf.collate(clf.encode(examples))
    with clf.eager():
        return one.loss(clf, batch, clf.forward(batch, attentions=True), labels)


def value(found: tuple[torch.Tensor, dict[str, torch.Tensor]]) -> float:
    return float(found[0].detach())


# -- the formula --------------------------------------------------------------------------------------------


def test_golden_errors():
    given, expected = GOLDEN["inputs"], GOLDEN["expected"]
    row = torch.tensor([given["attention_row"]], dtype=torch.float64)
    rationale = torch.tensor([given["rationale"]], dtype=torch.float64)
    every = torch.ones(1, 5, dtype=torch.bool)
    target = rationale / rationale.sum()
    assert target[0].tolist() == expected["target_normalised"]
    assert float(absolute_error(row, target, every)) / 5 == pytest.approx(expected["mae_plain"], abs=1e-12)
    sharp = sharpened(row, every)
    np.testing.assert_allclose(sharp[0], expected["scaled_by_100_softmax"], rtol=1e-9)
    assert float(absolute_error(sharp, target, every)) / 5 == pytest.approx(expected["mae_scaled"], abs=1e-12)
    products = unit(torch.tensor([given["input_x_gradient_summed"]], dtype=torch.float64), every)
    np.testing.assert_allclose(products[0], expected["ixg_l2_normalised_abs"], atol=1e-12)
    mae = float(absolute_error(products, rationale, every)) / 5
    assert mae == pytest.approx(expected["ixg_mae_binary_target"], abs=1e-12)


def test_golden_averages(monkeypatch: pytest.MonkeyPatch):
    """Through the term itself: three texts of 5, 3 and 4 positions, the last without a rationale."""
    batch, expected = GOLDEN["inputs"]["batch"], GOLDEN["expected"]
    clf = still()
    texts = [("the film was", ((4, 12),)), ("film", ((0, 4),)), ("the film", ())]
    examples = [Example(str(i), text, 0, rationale=spans) for i, (text, spans) in enumerate(texts)]
    encoded = clf.encode(examples)
    assert [len(e.ids) for e in encoded] == batch["lengths"]
    assert [int(marked(e).any()) for e in encoded] == batch["has_rationale"]
    labels = torch.zeros(3, dtype=torch.long)
    rows = torch.zeros(3, 5)
    rows[0] = torch.tensor(GOLDEN["inputs"]["attention_row"])
    rows[1, :3] = torch.tensor(batch["second_attention"])
    rows[2, :4] = 0.25
    # The golden row's second mark is on its third token, ours on what the tokenizer makes of "film was".
    assert marked(encoded[0]).tolist() == [False, False, True, True, False]
    rows[0] = rows[0][[0, 3, 1, 2, 4]]

    def loss(spec: str) -> float:
        one = prepared(clf, spec, examples, labels)
        guide = type(one.prepared)
        with monkeypatch.context() as patch:
            patch.setattr(guide, "scores", lambda self, *_: rows)
            return value(loss_of(clf, one, examples, labels)) / one.size(encoded, labels)

    assert loss("explanation:specials=true") == pytest.approx(expected["batch_token_micro_average"], abs=1e-6)
    macro = loss("explanation:specials=true:instance_macro=true")
    assert macro == pytest.approx(expected["batch_instance_macro_average"], abs=1e-6)
    free = 2 * (0.5 - 0.2 / 0.8) / 4  # 0.2, 0.4, 0.2 become 1/4, 1/2, 1/4 against 0, 1/2, 1/2; the second is right
    assert loss("explanation") == pytest.approx(free, abs=1e-6)


@pytest.mark.parametrize("guide", ["attention", "rollout", "alti", "input_x_gradient", "gradient", "frozen_gradient"])
def test_the_loss_is_that_of_the_methods_own_explanations(guide: str):
    """Against NumPy, from what `veridical explain --target gold` says of the same model."""
    clf = still()
    encoded = clf.encode(EXAMPLES)
    found = attributions(clf, encoded, methods.choose(guide), "gold")
    errors, tokens = 0.0, 0
    for one, e in zip(found, encoded, strict=True):
        free, marks = np.array(e.free), marked(e)
        if marks.any():
            scores = np.asarray(one.scores, dtype=np.float64)[free]
            if guide in ("attention", "rollout", "alti"):
                errors += np.abs(scores / scores.sum() - marks[free] / marks.sum()).sum()
            else:
                errors += np.abs(np.abs(scores) / np.linalg.norm(scores) - marks[free]).sum()
            tokens += free.sum()
    term = prepared(clf, f"explanation:method={guide}")
    assert value(loss_of(clf, term)) == pytest.approx(errors, rel=1e-4)
    assert term.size(encoded, LABELS) == tokens


def test_released_counts_every_position_and_sharpens_attention():
    clf = still()
    encoded = clf.encode(EXAMPLES)
    has = [bool(e.example.rationale) for e in encoded]
    term = prepared(clf, "explanation:released=true")
    assert term.size(encoded, LABELS) == sum(len(e.ids) for e, h in zip(encoded, has, strict=True) if h)
    batch = clf.collate(encoded)
    with clf.eager(), torch.no_grad():
        row = clf.forward(batch, attentions=True).attentions[-1].mean(1)[:, 0]
    expected = 0.0
    for i, e in enumerate(encoded):
        if has[i]:
            sharp = (100 * row[i, : len(e.ids)]).softmax(0).numpy()
            expected += np.abs(sharp - marked(e) / marked(e).sum()).sum()
    assert value(loss_of(clf, term)) == pytest.approx(expected, rel=1e-4)
    # For input x gradient a text without a rationale is one with an empty one.
    term = prepared(clf, "explanation:released=true:method=input_x_gradient")
    assert term.size(encoded, LABELS) == sum(len(e.ids) for e in encoded)
    silent = [i for i, h in enumerate(has) if not h]
    without, labels = [EXAMPLES[i] for i in silent], LABELS[silent]
    assert value(loss_of(clf, term, without, labels)) > 0


def test_texts_without_a_rationale_add_nothing_and_are_counted():
    clf = still()
    for guide in ("attention", "input_x_gradient"):
        term = prepared(clf, f"explanation:method={guide}")
        whole, figures = loss_of(clf, term)
        has = [i for i, e in enumerate(EXAMPLES) if e.rationale]
        assert int(figures["guided"]) == len(has) < len(EXAMPLES)
        part, _ = loss_of(clf, term, [EXAMPLES[i] for i in has], LABELS[has])
        assert float(whole.detach()) == pytest.approx(float(part.detach()), rel=1e-5)
        silent = [i for i in range(len(EXAMPLES)) if i not in has]
        nothing, _ = loss_of(clf, term, [EXAMPLES[i] for i in silent], LABELS[silent])
        assert float(nothing.detach()) == 0
        nothing.backward()
        assert all(p.grad is None or not p.grad.abs().max() for p in clf.model.parameters())
        assert term.size(clf.encode([EXAMPLES[i] for i in silent]), LABELS[silent]) == 0


def test_attention_parked_on_special_tokens_shows_in_the_log():
    clf = still()
    _, figures = loss_of(clf, prepared(clf, "explanation"))
    shares = []
    for one in attributions(clf, clf.encode(EXAMPLES), methods.choose("attention")):
        shares.append(1 - float(np.sum(one.scores)))  # of a row that sums to 1, without special tokens
    assert float(figures["specials"]) == pytest.approx(sum(shares), rel=1e-4)
    _, figures = loss_of(clf, prepared(clf, "explanation:method=input_x_gradient"))
    assert set(figures) == {"guided"}


# -- as a term ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("guide", GUIDES)
def test_every_differentiable_method_guides(guide: str, tmp_path: Path):
    config = TrainConfig(epochs=4, batch=8, lr=5e-3, head_lr=5e-3, select="objective")
    spec = f"cross_entropy:weight=0,explanation:method={guide}"
    model = small_model(tmp_path / "model")
    run = train(guided(32, 8, 8), model, objective=spec, config=config, out=tmp_path / "run", progress=False)
    rows = store.read_jsonl(run.folder / "train.jsonl")
    values = [row["explanation"] for row in rows if "loss" in row]
    assert np.isfinite(values).all()
    dev = [row["dev"]["explanation"] for row in rows if "dev" in row]
    assert min(dev) == run.scores["dev"]["explanation"] < 0.8 * values[0]
    assert [row["loss"] for row in rows if "loss" in row] == pytest.approx(values)


@pytest.mark.parametrize("family", [*TRANSFORMERS, "bilstm"])
@pytest.mark.parametrize(
    "guide", ["attention", "rollout", "input_x_gradient", "gradient/over=vocabulary", "frozen_gradient"]
)
def test_every_family_can_be_guided(family: str, guide: str):
    clf = still(family)
    spec = f"explanation:method={guide}"
    if family == "bilstm" and "layers" in methods[guide.partition("/")[0]].needs:
        with pytest.raises(InputError):
            prepared(clf, spec)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # input x gradient is 0 in DeBERTa and ModernBERT, and says so
        one = prepared(clf, spec)
    loss, _ = loss_of(clf, one)
    loss.backward()
    gradients = [p.grad for p in clf.model.parameters() if p.grad is not None]
    assert all(bool(g.isfinite().all()) for g in gradients)
    assert sum(float(g.abs().sum()) for g in gradients) > 0


@pytest.mark.parametrize("guide", ["attention", "input_x_gradient", "frozen_gradient", "alti"])
def test_the_gradient_by_parameters_is_that_of_finite_differences(guide: str):
    clf = still()
    clf.model.double()
    term = prepared(clf, f"explanation:method={guide}")
    weight = next(p for n, p in clf.model.named_parameters() if n.endswith("layer.0.attention.self.value.weight"))
    loss, _ = loss_of(clf, term)
    (exact,) = torch.autograd.grad(loss, [weight])
    way = torch.randn(weight.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    ends = []
    for step in (1e-6, -1e-6):
        with torch.no_grad():
            weight += step * way
        ends.append(value(loss_of(clf, term)))
        with torch.no_grad():
            weight -= step * way
    assert float((exact * way).sum()) == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-4, abs=1e-7)


def test_padding_and_company_do_not_change_a_loss():
    clf = still()
    for guide in ("attention", "rollout", "input_x_gradient", "alti"):
        term = prepared(clf, f"explanation:method={guide}")
        alone = sum(value(loss_of(clf, term, EXAMPLES[i : i + 1], LABELS[i : i + 1])) for i in range(len(EXAMPLES)))
        assert value(loss_of(clf, term)) == pytest.approx(alone, rel=1e-4)


def test_guides_that_can_use_the_loops_pass_cost_no_other():
    clf = still()
    batch = clf.collate(clf.encode(EXAMPLES))
    costs = {}
    for guide in ("attention", "rollout", "gradient", "input_x_gradient", "attention_x_gradient", "frozen_gradient"):
        term = prepared(clf, f"explanation:method={guide}")
        with clf.eager():
            output = clf.forward(batch, attentions=True, hidden=True)
            before = clf.forwards
            term.loss(clf, batch, output, LABELS)
        costs[guide] = (clf.forwards - before) // len(EXAMPLES)
    assert costs.pop("frozen_gradient") == 1  # it listens to the layers
    assert set(costs.values()) == {0}


def test_decompositions_are_guided_without_dropout():
    clf = Classifier(*tiny("bert", hidden_dropout_prob=0.5, attention_probs_dropout_prob=0.5))
    clf.model.train()
    same = {}
    for guide in ("frozen_gradient", "alti", "input_x_gradient"):
        term = prepared(clf, f"explanation:method={guide}")
        first, second = (value(loss_of(clf, term)) for _ in range(2))
        same[guide] = first == second
        assert clf.model.training
    assert same == {"frozen_gradient": True, "alti": True, "input_x_gradient": False}


def test_a_prior_takes_the_place_of_rationales():
    clf = still()
    plain = [replace(e, rationale=()) for e in EXAMPLES]
    term = prepared(clf, "explanation:source=uniform", plain)
    loss, figures = loss_of(clf, term, plain)
    assert int(figures["guided"]) == len(plain)
    expected = 0.0
    encoded = clf.encode(plain)
    for one, e in zip(attributions(clf, encoded, methods.choose("attention")), encoded, strict=True):
        scores = np.asarray(one.scores)[np.array(e.free)]
        expected += np.abs(scores / scores.sum() - 1 / len(scores)).sum()
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-4)
    # A graded prior is a graded target: at most 1 for methods that are compared with 0 and 1.
    graded = prepared(clf, "explanation:source=textrank/window=3:method=input_x_gradient", plain)
    assert value(loss_of(clf, graded, plain)) > 0


@pytest.mark.asset
def test_the_lexicon_guides_where_there_are_no_rationales():
    clf = still()
    plain = [replace(e, rationale=()) for e in EXAMPLES]
    _, figures = loss_of(clf, prepared(clf, "explanation:source=lexicon", plain), plain)
    assert 0 < int(figures["guided"]) <= len(plain)  # good, bad and boring are in it


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("explanation:method=occlusion", "'occlusion' cannot be differentiated, so it cannot guide; take .*attention"),
        ("explanation:method=integrated_gradients/steps=5", "'integrated_gradients' cannot be differentiated"),
        ("explanation:method=atention", "Did you mean 'attention'"),
        ("explanation:method=alti/layer=99", "99"),
        ("explanation:source=textrnk", "Did you mean 'textrank'"),
    ],
)
def test_guides_that_cannot_be_are_refused(spec: str, said: str):
    with pytest.raises(InputError, match=said):
        prepared(still(), spec)


def test_data_that_cannot_guide_is_refused(tmp_path: Path):
    model = small_model(tmp_path / "model")
    with pytest.raises(InputError, match="None of the 40 train texts has anything to guide by"):
        train(toy(), model, objective="explanation", out=tmp_path / "a", progress=False)
    many = guided(classes=3, multilabel=True)
    with pytest.raises(InputError, match="explains one class, and a multi-label text may have several"):
        train(many, model, objective="explanation:method=gradient", out=tmp_path / "b", progress=False)
    config = TrainConfig(epochs=1, batch=8)
    run = train(many, model, objective="explanation", config=config, out=tmp_path / "c", progress=False)
    assert run.scores["dev"]["explanation"] is not None


def test_a_guide_that_says_nothing_warns_before_training():
    with pytest.warns(UserWarning, match="Input x gradient is 0 for every token"):
        prepared(still("modernbert"), "explanation:method=input_x_gradient")
