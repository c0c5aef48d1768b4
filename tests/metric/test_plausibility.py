"""Plausibility, known truth and sparsity: worked figures, degenerate texts, and agreement with scikit-learn."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from goldens import GOLDEN
from veridical.core.errors import InputError
from veridical.core.records import Encoded, Example, Explained
from veridical.metric import metrics
from veridical.metric.plausibility import (
    area,
    hits,
    intersection_over_union,
    precision_recall_f1,
    recall,
    step_precision,
)

NAMES = ("auc", "average_precision", "recall_at_k", "token_f1", "iou")


def explained(scores, rationale, *, words=None, specials=(0.0, 0.0)) -> Explained:
    """An explanation between two special tokens; a token is two characters, words are groups of tokens."""
    words = list(range(len(scores))) if words is None else words
    text, spans = "", []
    for i, word in enumerate(words):
        text += " " if i and word != words[i - 1] else ""
        spans.append((len(text), len(text) + 2))
        text += "ab"
    example = Example("one", text, 1, rationale=tuple(s for s, r in zip(spans, rationale, strict=True) if r))
    n = len(scores)
    encoded = Encoded(
        example,
        ids=tuple(range(100, 102 + n)),
        types=(0,) * (n + 2),
        spans=((0, 0), *spans, (0, 0)),
        words=(-1, *words, -1),
        free=(False, *[True] * n, False),
    )
    full = np.array([specials[0], *scores, specials[1]], dtype=np.float32)
    return Explained(encoded, 1, np.array([0.2, 0.8]), np.array([0.0, 1.4]), full)


def value(name: str, ex: Explained, **options):
    choice = metrics.choose(name, **options)
    return choice.entry.run(ex, **choice.options).value


def test_golden_plausibility():
    given, expected = (GOLDEN["plausibility_auc_ap_recall"][key] for key in ("inputs", "expected"))
    ex = explained(given["scores"], given["rationale"])
    assert value("auc", ex) == pytest.approx(expected["auc"], abs=1e-9)
    assert value("average_precision", ex) == pytest.approx(expected["average_precision"], abs=1e-9)
    assert value("recall_at_k", ex) == pytest.approx(expected["recall_at_k"], abs=1e-9)
    assert value("token_f1", ex) == pytest.approx(expected["token_f1_at_k"], abs=1e-9)
    assert value("iou", ex) == pytest.approx(expected["token_iou_at_k"], abs=1e-9)
    assert value("truth", ex) == pytest.approx(expected["recall_at_k"], abs=1e-9)
    assert value("average_precision", ex) != pytest.approx(expected["auprc_trapezoid"], abs=1e-3)


def test_golden_specials_count_as_unmarked_when_asked():
    given, expected = (GOLDEN["plausibility_auc_ap_recall"][key]["with_specials"] for key in ("inputs", "expected"))
    scores = given["scores"]
    ex = explained(scores[1:-1], given["rationale"][1:-1], specials=(scores[0], scores[-1]))
    for name in ("auc", "average_precision", "recall_at_k"):
        assert value(name, ex, include_specials=True) == pytest.approx(expected[name], abs=1e-9)
        assert value(name, ex) != pytest.approx(expected[name], abs=1e-3)


def test_golden_degenerate_rationales():
    given = GOLDEN["plausibility_degenerate"]["inputs"]
    whole = explained([0.3, 0.1, 0.2], given["all_ones"])
    empty = explained([0.3, 0.1, 0.2], given["all_zeros"])
    assert value("auc", whole) is None
    assert value("average_precision", whole) == value("recall_at_k", whole) == 1.0
    assert value("token_f1", whole) == value("iou", whole) == 1.0
    for name in (*NAMES, "truth"):
        assert value(name, empty) is None


def test_golden_sets_of_tokens():
    given, expected = (GOLDEN["eraser_hard_f1_iou"][key] for key in ("inputs", "expected"))
    found, counts = [], np.zeros(3)
    for one, name in zip(given["instances"], ("first", "second"), strict=True):
        truth, said = set(one["truth"]), set(one["pred"])
        numbers = len(truth & said), len(said), len(truth)
        p, r, f1 = precision_recall_f1(*numbers)
        assert (p, r, f1) == pytest.approx([expected[name][key] for key in ("p", "r", "f1")], abs=1e-9)
        assert intersection_over_union(*numbers) == pytest.approx(expected[name]["iou"], abs=1e-9)
        found.append(f1)
        counts += numbers
    assert np.mean(found) == pytest.approx(expected["macro_f1"], abs=1e-9)
    assert precision_recall_f1(*counts) == pytest.approx([expected["micro"][key] for key in ("p", "r", "f1")], abs=1e-9)


marked_scores = st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=1, max_size=12)


@settings(deadline=None)
@given(marked_scores)
def test_areas_equal_scikit_learn(rows):
    scores, truth = np.array([float(s) for s, _ in rows]), np.array([t for _, t in rows])
    if truth.any() and not truth.all():
        assert area(scores, truth) == pytest.approx(roc_auc_score(truth, scores), abs=1e-12)
    else:
        assert area(scores, truth) is None
    if truth.any():
        assert step_precision(scores, truth) == pytest.approx(average_precision_score(truth, scores), abs=1e-12)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=6))
def test_expected_ties_are_the_mean_over_all_orders(rows):
    scores, truth = np.array([float(s) for s, _ in rows]), np.array([t for _, t in rows])
    k = int(truth.sum())
    if not k:
        assert recall(scores, truth, "expected") is None
        return
    orders = list(permutations(range(len(rows))))
    shuffled = [int(truth[list(o)][np.argsort(-scores[list(o)], kind="stable")[:k]].sum()) for o in orders]
    found = hits(scores, truth, "expected")
    assert sum(p for _, p in found) == pytest.approx(1)
    assert sum(n * p for n, p in found) == pytest.approx(np.mean(shuffled))
    iou = sum(p * intersection_over_union(n, k, k) for n, p in found)
    assert iou == pytest.approx(np.mean([n / (2 * k - n) for n in shuffled]))


def test_ties_go_to_the_earlier_token_or_are_averaged():
    ex = explained([0.5, 0.5, 0.5, 0.1], [0, 0, 1, 0])
    assert value("recall_at_k", ex) == 0.0
    assert value("recall_at_k", ex, ties="expected") == pytest.approx(1 / 3)
    assert value("token_f1", ex, ties="expected") == pytest.approx(1 / 3)
    assert value("iou", ex, ties="expected") == pytest.approx(1 / 3)
    assert value("truth", ex, ties="expected") == pytest.approx(1 / 3)


def test_a_word_is_the_sum_of_its_tokens_and_marked_by_any_of_them():
    # Tokens 0 and 1 are one word, 0.3 + 0.3; alone neither beats token 2.
    ex = explained([0.3, 0.3, 0.5], [1, 0, 0], words=[0, 0, 1])
    assert value("recall_at_k", ex) == 0.0
    assert value("recall_at_k", ex, level="word") == 1.0
    assert value("auc", ex) == 0.25
    assert value("auc", ex, level="word") == 1.0


def test_absolute_values_on_request():
    ex = explained([-0.9, 0.1, 0.2], [1, 0, 0])
    assert [value(name, ex) for name in NAMES] == [0.0, pytest.approx(1 / 3), 0.0, 0.0, 0.0]
    assert [value(name, ex, abs=True) for name in NAMES] == [1.0] * 5


def test_a_score_that_is_no_number_is_refused():
    ex = explained([0.1, float("nan")], [1, 0])
    for name in NAMES:
        with pytest.raises(InputError, match="'one' is not a finite number"):
            value(name, ex)


def test_sparsity_is_the_mass_of_the_top_tokens():
    ex = explained([-4.0, 1.0, 3.0, 2.0], [0, 0, 0, 0])
    choice = metrics.choose("sparsity", ratios=(0.25, 0.5, 1.0))
    score = choice.entry.run(ex, **choice.options)
    assert score.curve == pytest.approx((0.4, 0.7, 1.0))
    assert score.value == pytest.approx(0.7)


@settings(deadline=None)
@given(st.lists(st.floats(-5, 5, width=32), min_size=1, max_size=20))
def test_sparsity_rises_within_bounds(scores):
    choice = metrics.choose("sparsity")
    score = choice.entry.run(explained(scores, [0] * len(scores)), **choice.options)
    if not np.any(scores):
        assert score.value is None
        assert set(score.curve) == {None}
        return
    assert all(0 <= a <= b <= 1 for a, b in zip(score.curve, score.curve[1:], strict=False))
    # Nothing is less sparse than equal scores.
    flat = choice.entry.run(explained([1.0] * len(scores), [0] * len(scores)), **choice.options)
    assert score.value >= flat.value - 1e-6


def test_what_is_registered():
    for name in NAMES:
        entry = metrics[name]
        assert (entry.kind, entry.better, entry.bounds) == ("plausibility", "higher", (0, 1))
        assert entry.needs == {"rationale"}
        assert not entry.asks
    assert metrics["truth"].needs == {"rationale", "planted"}
    assert metrics["truth"].kind == "truth"
    assert metrics["sparsity"].kind == "shape"
