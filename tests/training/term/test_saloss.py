from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import veridical
from goldens import GOLDEN
from tiny import FAMILIES, TEXTS, tiny
from toy import small_model, toy
from veridical.attribution import methods
from veridical.core.errors import InputError
from veridical.core.records import Batch, Example, Output
from veridical.core.store import read_jsonl
from veridical.explanations.explain import attributions
from veridical.model.classifier import Classifier
from veridical.training.config import TrainConfig
from veridical.training.prior import Salience, lexicon, priors
from veridical.training.term import objective, ready
from veridical.training.term.saloss import divergence, over, prepare, released, saloss
from veridical.training.train import train

LABELS = torch.tensor([i % 2 for i in range(len(TEXTS))])
EXAMPLES = [Example(f"t{i}", text, i % 2) for i, text in enumerate(TEXTS)]


def rows(*values: list[float]) -> torch.Tensor:
    """Rows padded with zeros, in double precision."""
    width = max(map(len, values))
    return torch.tensor([[*row, *[0.0] * (width - len(row))] for row in values], dtype=torch.float64)


def loss_of(clf: Classifier, spec: str, examples=EXAMPLES, labels=LABELS) -> torch.Tensor:
    """The term's sum over the examples, as the loop asks for it."""
    encoded = clf.encode(examples)
    one = ready(objective(spec), clf, encoded, labels)[1]
    batch = clf.collate(encoded)
    with clf.eager():
        output = clf.forward(batch, attentions=True)
        return one.loss(clf, batch, output, labels)[0]


# -- the formula --------------------------------------------------------------------------------------------


def test_golden_divergence():
    given, expected = GOLDEN["salience_loss_kl"]["inputs"], GOLDEN["salience_loss_kl"]["expected"]
    attention = rows(given["attention"], given["second_instance"]["attention"])
    salience = rows(given["salience"], given["second_instance"]["salience"])
    found = divergence(attention, salience)
    assert float(found[0]) == pytest.approx(expected["kl_attention_to_salience"], abs=1e-9)
    assert float(divergence(salience, attention)[0]) == pytest.approx(expected["kl_reverse"], abs=1e-9)
    assert float(found.mean()) == pytest.approx(expected["batch_mean"], abs=1e-9)
    assert float(found.sum() ** 2) == pytest.approx(expected["released_code_squared_batch_sum"], abs=1e-9)


def test_golden_second_softmax():
    given, expected = GOLDEN["salience_loss_kl"]["inputs"], GOLDEN["salience_loss_kl"]["expected"]
    attention, salience = rows(given["attention"]), rows(given["salience"])
    again = attention.softmax(-1)
    np.testing.assert_allclose(again[0], expected["attention_after_second_softmax"], rtol=0, atol=1e-9)
    found = released(attention, salience, torch.ones_like(attention, dtype=torch.bool))
    assert float(found) == pytest.approx(expected["kl_after_second_softmax"], abs=1e-9)
    padded = torch.cat([attention, torch.zeros(1, 2, dtype=torch.float64)], -1)
    mask = torch.tensor([[True, True, True, False, False]])
    beside = released(padded, torch.cat([salience, torch.zeros(1, 2, dtype=torch.float64)], -1), mask)
    assert float(beside) == pytest.approx(float(found), abs=1e-12)


def test_golden_direction():
    given, expected = GOLDEN["kl_direction"]["inputs"], GOLDEN["kl_direction"]["expected"]
    p, q = rows(given["p"]), rows(given["q"])
    assert float(divergence(p, q)[0]) == pytest.approx(expected["kl_p_q"], abs=1e-9)
    assert float(divergence(q, p)[0]) == pytest.approx(expected["kl_q_p"], abs=1e-9)


class Fixed(Salience):
    """The same salience whatever the text."""

    def of_batch(self, batch: Batch) -> torch.Tensor:
        return rows([0.0, 0.2, 0.3, 0.5, 0.0], [0.0, 0.5, 0.5, 0.0, 0.0])


def hand_made() -> tuple[Classifier, Batch, Output]:
    """Two texts between [CLS] and [SEP] whose attention, over the free tokens, is the golden entry's."""
    clf = veridical.load(*tiny("bert"))
    batch = Batch(
        (),
        torch.zeros(2, 5, dtype=torch.long),
        torch.zeros(2, 5, dtype=torch.long),
        torch.tensor([[True] * 5, [True] * 4 + [False]]),
        torch.tensor([[False, True, True, True, False], [False, True, True, False, False]]),
    )
    first = rows([0.1, 0.25, 0.15, 0.1, 0.4], [0.5, 0.3, 0.2, 0.0, 0.0])
    other = 2 * first  # two heads, and dropout: rows need not sum to 1
    weights = torch.zeros(2, 2, 5, 5, dtype=torch.float64)
    weights[:, 0, 0], weights[:, 1, 0] = first, other
    logits = torch.zeros(2, 3)
    return clf, batch, Output(logits, logits, attentions=(torch.zeros_like(weights), weights))


def test_the_last_layers_first_row_averaged_over_heads_renormalised_over_free_tokens():
    clf, batch, output = hand_made()
    expected = GOLDEN["salience_loss_kl"]["expected"]["batch_mean"] * 2
    found = saloss(clf, batch, output, LABELS[:2], Fixed(priors.choose("uniform")))
    assert float(found) == pytest.approx(expected, abs=1e-9)


def test_released_squares_the_sum_over_the_batch():
    clf, batch, output = hand_made()
    prepared = Fixed(priors.choose("uniform"))
    row = output.attentions[-1].mean(1)[:, 0]
    total = float(released(row, prepared.of_batch(batch), batch.mask))
    found = saloss(clf, batch, output, LABELS[:2], prepared, preset="released")
    assert float(found) / len(batch.ids) == pytest.approx(total**2)  # the loop divides by the number of examples


@pytest.fixture
def small_lexicon(monkeypatch):
    monkeypatch.setattr(lexicon, "valences", lambda: {"good": 1.9, "boring": -1.3, "unbelievable": 0.8})


PRIORS = ["textrank", "textrank/window=5", "textrank/preset=released", "tfidf", "chi2", "uniform", "lexicon", "gold"]


@pytest.mark.parametrize("prior", PRIORS)
def test_released_gives_special_tokens_their_share_of_every_prior(prior, small_lexicon):
    """Else they would be held against log 1e-10, and the loss is hundreds of nats."""
    clf = veridical.load(*tiny("bert"))
    examples = [replace(e, rationale=((0, 4),) if i else ()) for i, e in enumerate(EXAMPLES)]
    encoded = clf.encode(examples)
    salience = prepare(clf, encoded, LABELS, prior=prior, preset="released")
    for one in encoded:
        share = salience.of(one)
        assert not share.any() or ((share > 0).all() and share.sum() == pytest.approx(1, abs=1e-5))
    spec = f"saloss:preset=released:prior={prior}"
    loss = loss_of(clf, spec, examples).detach()
    per_text = float(loss) / len(EXAMPLES)  # the loop divides: the squared sum of a batch
    assert 0 < per_text < (0.5 * len(EXAMPLES)) ** 2


def test_released_priors_are_softmaxes_of_their_raw_scores():
    clf = veridical.load(*tiny("bert"))
    encoded = clf.encode(EXAMPLES)
    uniform = prepare(clf, encoded, LABELS, prior="uniform", preset="released")
    one = encoded[0]
    np.testing.assert_allclose(uniform.of(one), 1 / len(one.ids), rtol=1e-6)
    tfidf = prepare(clf, encoded, LABELS, prior="tfidf", preset="released")
    raw = prepare(clf, encoded, LABELS, prior="tfidf/normalise=softmax").of(one)
    found, free = tfidf.of(one), np.array(one.free)
    np.testing.assert_allclose(found[free] / found[free].sum(), raw[free], rtol=1e-5)
    # Special tokens enter with 0, all else with its tf-idf, which is more.
    assert len(set(found[~free].tolist())) == 1
    assert found[~free].max() < found[free].min()


def test_under_released_a_prior_that_says_nothing_adds_nothing(small_lexicon):
    clf = veridical.load(*tiny("bert"))
    silent = [Example("a", "the film was", 0), Example("b", "it is this", 1)]
    assert loss_of(clf, "saloss:preset=released:prior=lexicon", silent, LABELS[:2]).item() == 0


def test_released_refuses_another_normalisation():
    clf = veridical.load(*tiny("bert"))
    with pytest.raises(InputError, match="preset=released and the prior normalise=sum"):
        loss_of(clf, "saloss:preset=released:prior=tfidf/normalise=sum")


# -- on models ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("options", ["", ":reverse=true", ":specials=true", ":preset=released"])
def test_a_finite_loss_with_a_gradient_in_training(family, options):
    """Dropout on, as in the loop; in one family so much of it that whole rows of attention are 0."""
    clf = veridical.load(*tiny(family))
    clf.model.train()
    torch.manual_seed(0)
    if family == "bert":
        for module in clf.model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.9
    loss = loss_of(clf, f"saloss{options}")
    loss.backward()
    gradients = [p.grad for p in clf.model.parameters() if p.grad is not None]
    assert torch.isfinite(loss)
    assert gradients
    assert all(torch.isfinite(g).all() for g in gradients)
    assert any(g.abs().max() > 0 for g in gradients)


@pytest.mark.parametrize("family", ["bert", "modernbert", "bilstm"])
def test_it_is_the_divergence_of_what_the_method_attention_shows(family):
    clf = veridical.load(*tiny(family))
    encoded = clf.encode(EXAMPLES)
    expected = 0.0
    for one, shown in zip(encoded, attributions(clf, encoded, methods.choose("attention")), strict=True):
        free = np.array(one.free)
        alpha = shown.scores[free].astype(np.float64) / shown.scores[free].sum(dtype=np.float64)
        sigma = priors["textrank"].run(one)[free].astype(np.float64)
        expected += float((alpha * (np.log(np.maximum(alpha, 1e-8)) - np.log(sigma))).sum())
    with torch.no_grad():
        found = float(loss_of(clf, "saloss"))
    assert found == pytest.approx(expected, rel=1e-4)
    assert found > 0


@pytest.mark.parametrize("family", ["bert", "bilstm"])
@pytest.mark.parametrize("options", ["", ":reverse=true", ":specials=true"])
def test_the_sum_does_not_depend_on_padding_or_batch_mates(family, options):
    clf = veridical.load(*tiny(family))
    with torch.no_grad():
        together = float(loss_of(clf, f"saloss{options}"))
        alone = sum(float(loss_of(clf, f"saloss{options}", [one], LABELS[i : i + 1])) for i, one in enumerate(EXAMPLES))
    assert together == pytest.approx(alone, rel=1e-4)


def test_an_attention_that_is_the_prior_costs_nothing():
    weights = torch.tensor([[0.9, 0.2, 0.3, 0.5, 0.0]])
    kept = torch.tensor([[False, True, True, True, False]])
    assert float(divergence(over(weights, kept), over(weights, kept))) == 0
    assert not over(torch.zeros(1, 5), kept).any()


def test_a_text_of_which_the_prior_says_nothing_adds_nothing():
    clf = veridical.load(*tiny("bert"))
    marked = Example("m", "the plot was good", 0, rationale=((4, 8),))
    plain = Example("n", "the plot was bad", 1)
    with torch.no_grad():
        both = float(loss_of(clf, "saloss:prior=gold", [marked, plain], LABELS[:2]))
        alone = float(loss_of(clf, "saloss:prior=gold", [marked], LABELS[:1]))
    assert both == pytest.approx(alone, rel=1e-5)
    assert both > 0


def test_options_of_the_prior_follow_a_slash():
    clf = veridical.load(*tiny("bert"))
    with torch.no_grad():
        narrow, wide = (float(loss_of(clf, f"saloss:prior=textrank/window={w}")) for w in (2, 8))
    assert narrow != wide
    with pytest.raises(InputError, match=r"no prior 'textrnk'\. Did you mean 'textrank'"):
        loss_of(clf, "saloss:prior=textrnk")
    with pytest.raises(InputError, match=r"The prior 'textrank' has no option 'windw'\. Did you mean 'window'"):
        loss_of(clf, "saloss:prior=textrank/windw=3")


# -- in training --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["bert", "bilstm"])
@pytest.mark.parametrize("prior", ["textrank", "chi2"])
def test_training_brings_attention_to_the_prior(family, prior, tmp_path):
    """And the dev split, whose priors were not worked out in advance, is measured too."""
    model = "bilstm" if family == "bilstm" else small_model(tmp_path / "model", family)
    settings: dict[str, Any] = {"epochs": 3, "batch": 8, "lr": 3e-3, "head_lr": 3e-3, "select": "last"}
    run = train(
        toy(),
        model,
        objective=f"saloss:weight=5:prior={prior}",
        config=TrainConfig(**settings),
        out=tmp_path / "run",
        progress=False,
    )
    log = read_jsonl(run.folder / "train.jsonl")
    steps = [row["saloss"] for row in log if "saloss" in row]
    assert np.mean(steps[-5:]) < 0.7 * np.mean(steps[:3])
    assert run.scores["dev"]["saloss"] is not None
    assert run.scores["dev"]["saloss"] < steps[0]
