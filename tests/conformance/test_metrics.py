"""Every faithfulness metric: a new file in `metric/` is tested without a new line here.

The yardstick is a bag of words whose every word's worth is known: the class score is the mean worth of the tokens, so
the oracle's scores are those worths. A mean, not a sum: what a token adds then depends on what is there already.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from families import classifier, encoded
from transformers.modeling_outputs import SequenceClassifierOutput

from veridical.core.records import Encoded, Example, Explained, Score
from veridical.core.seed import generator
from veridical.explanations.explain import explained
from veridical.metric import metrics
from veridical.model.ask import ask, predict
from veridical.model.classifier import Classifier

FAITHFULNESS = [metric.name for metric in metrics if metric.kind == "faithfulness"]
# Settings that change what is asked or how the answers are put together.
SPECS = [
    *FAITHFULNESS,
    "sufficiency:by=attention:divisor=plus_one:dedup=true",
    "comprehensiveness:by=mask:undefined=zero",
    "comprehensiveness:preset=ood_faith",
    "decision_flip:exact=true",
    "soft_sufficiency:mode=gaussian_sd:variance=2",
    "soft_comprehensiveness:scale=sigmoid",
    "soft_sufficiency:scale=rank",
    "soft_comprehensiveness:scale=rank",
]
CLS, SEP, MASK, FIRST, WORDS, WIDTH = 1, 2, 3, 4, 60, 8
WORTH = np.concatenate([np.zeros(FIRST), generator("worth").normal(size=WORDS)])


class Bag(torch.nn.Module):
    """The logits are plus and minus the mean worth; a word's worth is the sum of its vector's elements."""

    def __init__(self):
        super().__init__()
        self.config = SimpleNamespace(
            problem_type=None,
            num_labels=2,
            id2label={0: "for", 1: "against"},
            pad_token_id=0,
            model_type="bag",
            name_or_path="bag",
        )
        parts = generator("parts").dirichlet(np.ones(WIDTH), size=len(WORTH))  # how the worth is spread
        self.words = torch.nn.Embedding.from_pretrained(torch.tensor(WORTH[:, None] * parts, dtype=torch.float32))
        self.gain = torch.nn.Parameter(torch.tensor(6.0))

    def get_input_embeddings(self):
        return self.words

    def forward(self, input_ids, attention_mask, output_attentions=False, output_hidden_states=False):
        attended = attention_mask.to(torch.float32)
        mean = (self.words(input_ids).sum(-1) * attended).sum(1) / attended.sum(1)
        return SequenceClassifierOutput(logits=torch.stack([self.gain * mean, -self.gain * mean], -1))


BAG = Classifier(Bag())


def bag_texts(count: int) -> list[Encoded]:
    texts = []
    for number in range(count):
        draw = generator("text", number)
        n = int(draw.integers(6, 31))
        ids = (CLS, *draw.integers(FIRST, FIRST + WORDS, n).tolist(), SEP)
        spans = ((0, 0), *((2 * i, 2 * i + 1) for i in range(n)), (0, 0))
        example = Example(f"text {number}", " ".join("w" * n))
        words, free = (-1, *range(n), -1), (False, *[True] * n, False)
        texts.append(Encoded(example, ids, (0,) * (n + 2), spans, words, free))
    return texts


def with_scores(clf: Classifier, texts, scores) -> list[Explained]:
    """What a metric sees of each text, with `scores(ex)` on its free tokens."""
    full = predict(clf, texts)
    seen = [
        replace(explained(clf, e, int(z.argmax()), z, p), mask_id=MASK)
        for e, z, p in zip(texts, full.logits, full.probabilities, strict=True)
    ]
    return [replace(ex, scores=np.where(ex.encoded.free, scores(ex), 0).astype(np.float32)) for ex in seen]


def oracle(ex: Explained) -> np.ndarray:
    return (1 if ex.target == 0 else -1) * WORTH[list(ex.encoded.ids)]


def chance(ex: Explained) -> np.ndarray:
    return generator("chance", ex.encoded.example.id).normal(size=len(ex.encoded.ids))


def results(clf: Classifier, spec: str, several: list[Explained], **how) -> list[Score]:
    choice = metrics.choose(spec)
    if not choice.entry.asks:
        return [choice.entry.run(ex, **choice.options) for ex in several]
    return [score for score, _ in ask(clf, [choice.entry.run(ex, **choice.options) for ex in several], **how)]


def close(a: Score, b: Score, tolerance: float = 1e-5) -> None:
    assert (a.value is None) == (b.value is None)
    for x, y in [(a.value, b.value), (a.error, b.error), *zip(a.curve, b.curve, strict=True)]:
        assert (x is None) == (y is None)
        if x is not None:
            assert x == pytest.approx(y, abs=tolerance)


def test_there_are_metrics():
    assert {"sufficiency", "comprehensiveness", "decision_flip", "monotonicity", "corr", "loo_tau"} <= set(FAITHFULNESS)
    assert {"soft_sufficiency", "soft_comprehensiveness"} <= set(FAITHFULNESS)
    for name in FAITHFULNESS:
        assert metrics[name].summary.endswith((".", ")", ")."))


@pytest.mark.parametrize("spec", SPECS)
def test_values_are_within_bounds_and_mostly_defined(spec):
    low, high = metrics.choose(spec).entry.bounds
    for scores in (oracle, chance, lambda ex: -oracle(ex), lambda ex: np.ones(len(ex.encoded.ids))):
        for found in results(BAG, spec, with_scores(BAG, bag_texts(12), scores)):
            for value in (found.value, *found.curve):
                assert value is None or low <= value <= high
            assert found.error is None or (np.isfinite(found.error) and found.error >= 0)
    defined = [s.value is not None for s in results(BAG, spec, with_scores(BAG, bag_texts(12), oracle))]
    assert np.mean(defined) > 0.8


@pytest.mark.parametrize("name", [*FAITHFULNESS, *(spec for spec in SPECS if spec.endswith("scale=rank"))])
def test_the_oracle_beats_chance_and_chance_beats_the_oracle_turned_round(name):
    """Means over texts, the second explanation better than the first by more than two standard errors."""
    texts = bag_texts(48)
    sign = 1 if metrics.choose(name).entry.better == "higher" else -1
    worst, middle, best = (
        [sign * s.value if s.value is not None else np.nan for s in results(BAG, name, with_scores(BAG, texts, scores))]
        for scores in (lambda ex: -oracle(ex), chance, oracle)
    )
    for lower, upper in ((worst, middle), (middle, best)):
        gain = np.array(upper) - np.array(lower)
        gain = gain[~np.isnan(gain)]
        assert len(gain) > 40
        assert gain.mean() > 2 * gain.std(ddof=1) / len(gain) ** 0.5
    assert np.nanmean(best) - np.nanmean(worst) > 0.2


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("family", ["bag", "bert", "modernbert", "bilstm"])
def test_lock_step_a_loop_another_order_and_other_batches_agree(family, spec):
    clf, texts = (BAG, bag_texts(8)) if family == "bag" else (classifier(family), list(encoded(family)))
    several = with_scores(clf, texts, chance)
    together = results(clf, spec, several)
    assert together == results(clf, spec, several)  # to the last bit
    for other in (
        [found for ex in several for found in results(clf, spec, [ex])],
        results(clf, spec, several[::-1])[::-1],
        results(clf, spec, several, budget=40),
    ):
        for a, b in zip(together, other, strict=True):
            # A probability is good to 1e-7; shares of a fall of 1e-3 (random models hardly look at a text) to 1e-4.
            close(a, b, 1e-5 if family == "bag" else 1e-3)


def test_metrics_asked_together_answer_as_when_asked_alone():
    several = with_scores(BAG, bag_texts(6), chance)
    asking = [metrics.choose(spec) for spec in SPECS if metrics.choose(spec).entry.asks]
    together = ask(BAG, [choice.entry.run(ex, **choice.options) for choice in asking for ex in several])
    alone = [found for choice in asking for found in results(BAG, choice.label, several)]
    for (a, _), b in zip(together, alone, strict=True):
        close(a, b)


@pytest.mark.parametrize("spec", SPECS)
def test_a_metric_of_order_alone_sees_nothing_but_the_order(spec):
    """Scores in thirds, many of them tied, against their ranks, with the ties kept and with ties to the earlier."""
    several = with_scores(BAG, bag_texts(12), lambda ex: np.round(3 * chance(ex)) / 3)
    plain = results(BAG, spec, several)
    choice, same = metrics.choose(spec), True
    for ranks in (tied_ranks, earlier_first):
        ranked = [replace(ex, scores=ranks(ex).astype(np.float32)) for ex in several]
        pairs = zip(plain, results(BAG, spec, ranked), strict=True)
        same &= all(a.value == b.value and a.curve == b.curve for a, b in pairs)
    assert same == choice.entry.of_order(choice.options)


def tied_ranks(ex: Explained) -> np.ndarray:
    free = np.array(ex.encoded.free)
    return np.where(free, np.searchsorted(np.unique(ex.scores[free]), ex.scores), 0)


def earlier_first(ex: Explained) -> np.ndarray:
    free = np.flatnonzero(ex.encoded.free)
    ranks = np.zeros(len(ex.encoded.ids))
    ranks[free[np.argsort(-ex.scores[free], kind="stable")]] = np.arange(len(free), 0, -1)
    return ranks


def test_words_are_not_of_order_alone():
    """A word of two middling tokens may stand above a word of one high token, or below it."""
    for name in FAITHFULNESS:
        choice = metrics.choose(f"{name}:level=word") if "level" in metrics.choose(name).options else None
        assert choice is None or not choice.entry.of_order(choice.options)


@pytest.mark.parametrize("name", FAITHFULNESS)
def test_what_a_metric_asks_about_is_not_altered_by_asking(name):
    (ex,) = with_scores(BAG, bag_texts(1), chance)
    before = ex.scores.copy(), ex.probabilities.copy(), ex.logits.copy()
    results(BAG, name, [ex])
    for was, now in zip(before, (ex.scores, ex.probabilities, ex.logits), strict=True):
        assert (was == now).all()


@pytest.mark.parametrize("family", ["bag", "bert", "roberta", "bilstm"])
def test_the_ends_of_every_scale(family):
    """All tokens or none: NS and NC are 0 and 1, Soft-NS and Soft-NC too, on a real model."""
    clf, texts = (BAG, bag_texts(8)) if family == "bag" else (classifier(family), list(encoded(family)))
    several = with_scores(clf, texts, chance)
    for name in ("sufficiency", "comprehensiveness"):
        defined = [f for f in results(clf, f"{name}:ratios=0+1:rounding=floor", several) if f.value is not None]
        assert len(defined) >= 1 or family == "roberta"
        for found in defined:
            assert found.curve == pytest.approx((0, 1), abs=1e-3)
        none, every = (
            results(
                clf, f"soft_{name}:scale=none", [replace(ex, scores=np.float32(ex.encoded.free) * a) for ex in several]
            )
            for a in (0, 1)
        )
        assert [f.value for f in none] == [None if f.value is None else 0.0 for f in none]
        for found in every:
            assert found.value is None or found.value == pytest.approx(1, abs=1e-3)
        assert any(found.value is not None for found in every)
