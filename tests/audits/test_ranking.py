"""Ranking and verdict: known orders are found, noise is not believed, and every sentence keeps its promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veridical.audits.diagnosticity import diagnosticity_rows, outcomes
from veridical.audits.ranking import compare_all, rank, text_ranks
from veridical.audits.verdict import verdict
from veridical.core.seed import generator
from veridical.core.statistics import fewest

METRICS = ("one", "two", "three")


def scores(draw, strength, texts, *, metrics=3):
    """Scores of methods of given strength and of `random` [M, K, N], and of their shuffled selves (strength 0)."""
    shape = (len(strength) + 1, metrics, texts)
    text = draw.normal(size=(1, 1, texts))
    own, other = (draw.normal(size=(shape[0], 1, texts)) + draw.normal(size=shape) for _ in range(2))
    real = np.array([*strength, 0.0])[:, None, None] + text + own
    return tuple(np.clip(x / 8 + 0.5, 0, 1) for x in (real, text + other))


def audit(draw, strength, texts):
    """A verdict as an audit comes to it: weights from diagnosticity, then the ranking."""
    real, control = scores(draw, strength, texts)
    names = [*(f"m{i}" for i in range(len(strength))), "random"]
    pooled = [name != "random" for name in names]
    none = [np.zeros((len(names), texts, 0))] * 3
    rows = diagnosticity_rows(outcomes(real, control), none, names, METRICS, pooled)
    weights = [row.weight for row in rows if not row.method]
    return verdict(rank(real, names, METRICS, ["higher"] * 3, weights, control))


def test_a_better_method_is_found():
    said = audit(generator("found"), [2.0, 0.5, 0.0, -0.5], 120)
    assert said.believe == ("m0",)
    assert said.enough
    assert said.texts == 120
    assert {"m2", "m3"} <= set(said.avoid)
    assert said.sentence.startswith("For this model on this data believe m0")
    assert "do not use" in said.sentence
    assert any(note.startswith("Not shown to do better than random explanations: ") for note in said.notes)
    assert any(note.startswith("Not shown to do better than their own scores shuffled: ") for note in said.notes)


def test_equals_are_named_as_such():
    said = audit(generator("equals"), [1.5, 1.5, 0.0], 120)
    assert len(said.believe) == len(said.tied) == 1
    assert {*said.believe, *said.tied} == {"m0", "m1"}
    assert f"{said.tied[0]} cannot be told apart from it; do not use m2." in said.sentence
    assert "texts would be needed to tell" in said.notes[0]


def test_when_all_are_good_none_is_singled_out():
    said = audit(generator("all good"), [1.5, 1.5, 1.5], 80)
    assert said.believe == ()
    assert not said.enough
    assert set(said.tied) == {"m0", "m1", "m2"}
    assert said.sentence.startswith("80 texts do not single out a method")
    assert "(estimate)" in said.sentence


def test_noise_is_not_believed():
    draw = generator("noise")
    said = [audit(draw, [0.0] * 4, int(draw.choice([16, 40]))) for _ in range(200)]
    assert sum(bool(one.believe) for one in said) <= 10
    assert sum(bool(one.tied) for one in said) <= 10
    assert any("no metric was shown to rate explanations above shuffled ones" in one.sentence for one in said)


def test_noise_is_not_believed_without_shuffled_selves():
    draw = generator("noise without controls")
    believed = 0
    for _ in range(200):
        real, _ = scores(draw, [0.0] * 4, 30)
        names = ["a", "b", "c", "d", "random"]
        believed += bool(verdict(rank(real, names, METRICS, ["higher"] * 3, [1, 1, 1])).believe)
    assert believed <= 10


def test_few_texts_carry_nothing():
    strong = [4.0, 0.0, 0.0, 0.0]
    few = audit(generator("few"), strong, fewest(6) - 1)
    assert not few.enough
    assert (few.believe, few.tied, few.avoid) == ((), (), ())
    assert few.sentence == (
        "7 texts do not carry a verdict: with 4 methods no difference can be significant on fewer than 8."
    )


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.sampled_from([-1.0, 0.0, 1.0, 2.0]), min_size=1, max_size=4),
    st.sampled_from([6, 15, 40]),
    st.integers(0, 2**32 - 1),
)
def test_nobody_is_named_who_loses_to_random(strength, texts, seed):
    draw = np.random.default_rng(seed)
    real, control = scores(draw, strength, texts)
    names = [*(f"m{i}" for i in range(len(strength))), "random"]
    found = rank(real, names, METRICS, ["higher"] * 3, [0.3, 0.2, 0.5], control)
    said = verdict(found)
    place = {s.method: s for s in found.standings}
    for name in (*said.believe, *said.tied):
        assert place[name].mean_rank < place["random"].mean_rank
        assert place[name].better_than_random
        assert place[name].beats_control
    lists = [*said.believe, *said.tied, *said.undecided, *said.avoid]
    assert len(lists) == len(set(lists))
    assert "random" not in lists
    assert bool(said.believe) == said.enough
    assert all(name in said.sentence for name in (*said.believe, *said.tied, *said.avoid))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_only_the_order_of_a_metrics_scores_counts(seed):
    draw = np.random.default_rng(seed)
    values = np.round(draw.random((4, 3, 12)), 2)
    better = ["higher", "lower", "higher"]
    bent = np.stack([np.expm1(3 * values[:, 0]), 1 - values[:, 1], values[:, 2] ** 3 * 10 - 4], 1)
    first = rank(values, "abcd", METRICS, better, [0.5, 0.2, 0.3])
    second = rank(bent, "abcd", METRICS, ["higher", "higher", "higher"], [0.5, 0.2, 0.3])
    np.testing.assert_allclose(first.ranks, second.ranks)
    assert first.standings == second.standings
    assert first.comparisons == second.comparisons


def test_ranks_are_shared_by_ties_and_weighted():
    values = np.array([[[0.9], [0.1]], [[0.5], [0.9]], [[0.5], [0.5]]])  # three methods, two metrics, one text
    np.testing.assert_allclose(text_ranks(values, ["higher", "higher"], np.array([1.0, 0.0]))[:, 0], [1, 2.5, 2.5])
    np.testing.assert_allclose(text_ranks(values, ["higher", "lower"], np.array([0.5, 0.5]))[:, 0], [1, 2.75, 2.25])


def test_a_metric_ranks_a_text_only_if_it_is_defined_for_every_method():
    values = np.array([[[0.9, 0.9], [np.nan, np.nan]], [[0.5, 0.5], [0.9, 0.9]]])
    values[0, 0, 1] = np.nan
    ranks = text_ranks(values, ["higher", "higher"], np.array([1.0, 5.0]))
    np.testing.assert_allclose(ranks[:, 0], [1, 2])
    assert np.isnan(ranks[:, 1]).all()
    found = rank(values, ["a", "b"], ["one", "two"], ["higher", "higher"], [1.0, 5.0])
    assert (found.texts, found.given) == (1, 2)


def test_places_groups_and_comparisons_hang_together():
    real, control = scores(generator("groups"), [3.0, 3.0, 0.0], 100)
    found = rank(real, ["a", "b", "c", "random"], METRICS, ["higher"] * 3, [1, 1, 1], control)
    assert [s.place for s in found.standings] == [1, 2, 3, 4]
    assert [s.group for s in found.standings] == [1, 1, 2, 2]
    assert {s.method for s in found.standings[:2]} == {"a", "b"}
    assert all(s.low <= s.mean_rank <= s.high for s in found.standings)
    for c in found.comparisons:
        mean = {s.method: s.mean_rank for s in found.standings}
        assert c.difference == pytest.approx(mean[c.a] - mean[c.b])
        assert c.p_holm >= c.p
        assert not c.distinguishable or c.effect * c.difference < 0  # lower ranks are better
        same = {s.method: s.group for s in found.standings}
        assert c.distinguishable == (same[c.a] != same[c.b])
    floor = found.standings[[s.method for s in found.standings].index("random")]
    assert (floor.better_than_random, floor.beats_control, floor.p_control) == (None, None, None)


def test_a_method_must_also_beat_its_own_scores_shuffled():
    draw = generator("shuffled")
    real, control = scores(draw, [2.0, 2.0], 100)
    control[1] = real[1] + 0.001  # rated as highly when shuffled: what is rated is not where the scores lie
    said = verdict(rank(real, ["a", "b", "random"], METRICS, ["higher"] * 3, [1, 1, 1], control))
    assert "b" not in (*said.believe, *said.tied)
    assert "b" in (*said.undecided, *said.avoid)


def test_if_nobody_is_better_than_chance_nobody_is_believed():
    real, _ = scores(generator("bad"), [-3.0, 0.0], 60)
    said = verdict(rank(real, ["a", "b", "random"], METRICS, ["higher"] * 3, [1, 1, 1]))
    assert (said.believe, said.avoid, said.undecided) == ((), ("a",), ("b",))
    assert said.sentence.startswith("On these 60 texts no method did better than random explanations")
    assert "a did worse." in said.sentence
    assert "to tell b from random (estimate)" in said.sentence


def test_sentences_of_what_cannot_be_judged():
    real, _ = scores(generator("bare"), [2.0, 0.0], 40)
    alone = verdict(rank(real[:2], ["a", "b"], METRICS, ["higher"] * 3, [1, 1, 1]))
    assert "add the method random" in alone.sentence
    nothing = verdict(rank(real[:, :0], ["a", "b", "random"], [], [], []))
    assert nothing.sentence == "No verdict: no method was scored by a metric of faithfulness."
    gone = np.full_like(real, np.nan)
    undefined = verdict(rank(gone, ["a", "b", "random"], METRICS, ["higher"] * 3, [1, 1, 1]))
    assert "On 40 of 40 texts no metric was defined." in undefined.sentence
    one = verdict(rank(real[[0, 2]], ["a", "random"], METRICS, ["higher"] * 3, [1, 1, 1]))
    assert one.sentence == "For this model on this data believe a."


def test_a_metric_is_compared_in_its_own_direction():
    values = np.stack([np.linspace(0, 0.5, 20), np.linspace(0.2, 0.9, 20)])
    values[:, 0] = 0.1
    [found] = compare_all(values, ["a", "b"], "lower")
    assert (found.n, found.zeros) == (20, 1)
    assert found.difference == pytest.approx(values[0].mean() - values[1].mean())
    assert found.effect == 1.0
    assert found.distinguishable
