"""Five lists, each method on one, and what each claim rests on."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veridical.audits import conclusion as c
from veridical.audits.sequential import Rule, State, begin, leading, look
from veridical.audits.wins import chance_wins, net_wins
from veridical.core.seed import generator
from veridical.core.statistics import bca

LISTS = ("believe", "as_good", "open", "behind", "chance")
BETS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 0.95)


def audited(
    rule: Rule, strengths: dict[str, float], costly: tuple[str, ...] = (), seed: int = 0
) -> tuple[State, np.ndarray, np.ndarray]:
    """An audit from its first look to its last, of methods whose scores are these and noise."""
    shape, better, weights = (3, rule.looks[-1]), ("higher",) * 3, (1, 1, 1)
    values = np.array([generator(seed, name).normal(s, size=shape) for name, s in strengths.items()])
    orders = np.array([generator(seed, "order", number).normal(size=shape) for number in range(3)])
    there = np.ones((len(values), rule.looks[-1]), dtype=bool)
    wins = net_wins(values, there, better, weights)
    chance = chance_wins(values, there, orders, better, weights)
    state = begin(tuple(strengths), costly)
    while not state.ended:
        state = look(rule, state, wins, chance)
    return state, wins, chance


def concluded(rule: Rule, strengths: dict[str, float], costly: tuple[str, ...] = (), seed: int = 0) -> c.Conclusion:
    return c.conclude(rule, *audited(rule, strengths, costly, seed), [1.0] * len(strengths))


def two(row: np.ndarray, chance: np.ndarray, costs: tuple[float, float] = (1.0, 1.0)) -> c.Conclusion:
    """Of two methods `a` and `b`, from a's net wins over b and theirs over chance, at one look."""
    rule, wins = Rule.fixed(len(row)), np.zeros((2, 2, len(row)))
    wins[0, 1], wins[1, 0] = row, -row
    state = look(rule, begin(("a", "b")), wins, chance)
    return c.conclude(rule, state, wins, chance, costs)


# -- E-values -----------------------------------------------------------------------------------------------


def test_evidence_on_a_margin_by_hand():
    values, margin = [1.0, 1 / 3, -1.0, 1.0], 0.2
    best = 1.0
    for texts in range(1, 5):
        stakes = []
        for bet in BETS:
            stake = 1.0
            for value in values[:texts]:
                stake *= 1 + bet * (value - margin) / (1 + margin)
            stakes.append(stake)
        best = max(best, sum(stakes) / len(stakes))
    assert c.p_mean_above(np.array([1.0, 1 / 3, np.nan, -1.0, 1.0]), margin) == pytest.approx(1 / best)
    assert c.p_mean_above(np.array([-1.0, -1.0]), margin) == 1.0
    assert c.p_mean_above(np.array([np.nan]), margin) == 1.0


def test_no_stake_is_ever_lost_below_nothing():
    assert 0 < c.p_mean_above(np.array([-1.0] * 5 + [1.0] * 300), 0.2) < 1e-9
    assert 0 < c.p_mean_above(np.array([-1.0] * 5 + [1.0] * 300), -0.2) < 1e-9


@pytest.mark.parametrize("margin", [0.2, -0.2])
def test_a_fair_bet_pays_one_in_the_mean(margin):
    """Over all texts with this mean the stake is expected to stay 1: here both outcomes, by their chances."""
    up = (1 + margin) / 2  # the chance of 1 rather than -1 whose mean is the margin
    mean = sum(
        chance * np.mean([1 + bet * (value - margin) / (1 + abs(margin)) for bet in BETS])
        for value, chance in ((1.0, up), (-1.0, 1 - up))
    )
    assert mean == pytest.approx(1)


# -- lists --------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.permutations(range(6)))
def test_each_method_is_on_one_list_and_their_order_does_not_matter(seed, order):
    strengths = {"a": 1.2, "b": 1.2, "c": 0.5, "d": 0.0, "e": -0.5, "f": 1.0}
    rule = Rule(looks=(16, 32), costly_texts=24, futile_from=16)
    plain = concluded(rule, strengths, ("f",), seed)
    on = [name for which in LISTS for name in getattr(plain, which)]
    assert sorted(on) == sorted(strengths)
    assert [s.place for s in plain.standings] == list(range(1, 7))
    assert plain.first == plain.standings[0].method
    assert plain.believe in ((), (plain.first,))
    for which in LISTS:
        assert getattr(plain, which) == tuple(s.method for s in plain.standings if s.list == which)
    names = list(strengths)
    moved = concluded(rule, {names[i]: strengths[names[i]] for i in order}, ("f",), seed)
    assert [getattr(moved, f.name) for f in fields(moved)] == [getattr(plain, f.name) for f in fields(plain)]


def test_the_five_lists_of_an_audit():
    strengths = {"best": 3.0, "twin": 3.0, "fair": 1.5, "noise": 0.0, "wrong": -1.0}
    result = concluded(Rule.fixed(192), strengths)
    assert result.believe in (("best",), ("twin",))
    assert {*result.believe, *result.as_good, *result.open} == {"best", "twin"}
    assert result.behind == ("fair",)
    assert result.chance == ("noise", "wrong")
    by = {s.method: s for s in result.standings}
    assert all(by[name].clearly for name in ("fair", "noise", "wrong"))
    assert all(s.n == s.n_chance == 192 for s in result.standings)


def test_methods_that_nearly_always_tie_are_as_good_and_the_cheaper_is_named():
    row = np.tile([1 / 3, -1 / 3, 0.0, 0.0], 24)
    row[0] = 1.0  # a is the first
    chance = np.full((2, 96), 0.9)
    result = two(row, chance, costs=(5.0, 1.0))
    assert (result.first, result.as_good, result.open) == (
        "a",
        ("b",),
        ("a",),
    )  # nothing is behind: nothing is believed
    by = {s.method: s for s in result.standings}
    assert by["b"].cheaper
    assert not by["a"].cheaper
    assert by["b"].p_as_good == pytest.approx(c.p_mean_above(-row, -0.2))
    assert by["b"].p_as_good <= result.level_pairs == pytest.approx(0.05 / 2)
    assert not {s.method: s for s in two(row, chance, costs=(1.0, 5.0)).standings}["b"].cheaper


def test_methods_that_differ_by_less_than_the_texts_can_tell_are_open():
    row = np.tile([1.0, -1.0, 1.0, -1.0, 1.0, -1.0], 4)
    result = two(row, np.full((2, 24), 0.9))
    assert (result.believe, result.as_good, result.open) == ((), (), ("a", "b"))


def test_behind_by_little_is_not_clearly_behind():
    chance = np.full((2, 96), 0.9)
    little = {s.method: s for s in two(np.tile([1 / 3, 1 / 3, 0.0], 32), chance).standings}
    much = {s.method: s for s in two(np.tile([1.0, 1 / 3, 1.0], 32), chance).standings}
    for by, clearly in ((little, False), (much, True)):
        assert (by["a"].list, by["b"].list) == ("believe", "behind")
        assert (by["b"].by, by["b"].clearly) == ("a", clearly)
        assert by["b"].p_behind <= by["b"].level == pytest.approx(0.05 / 2)
        assert by["b"].net_first.mean < 0
        assert by["a"].p_behind is by["a"].p_as_good is by["b"].p_as_good is None


def test_claims_about_the_margin_need_their_share_of_the_level():
    """Evidence between 0.025, the level of each of two, and 0.05."""
    high = np.full((2, 33), 0.9)
    never = two(np.zeros(33), high)
    assert 0.025 < never.standings[1].p_as_good < 0.05
    assert (never.as_good, never.open) == ((), ("a", "b"))
    nothing = two(np.zeros(33), np.zeros((2, 33)))
    assert 0.025 < nothing.standings[1].p_no_better < 0.05
    assert nothing.chance == ()
    ahead = two(np.full(22, 0.5), np.full((2, 22), 0.9))
    assert 0.025 < ahead.standings[1].p_clearly < 0.05
    assert (ahead.behind, ahead.standings[1].clearly) == (("b",), False)


def test_no_better_than_chance_only_where_that_was_shown():
    row, high = np.ones(96), np.full(96, 0.9)
    draw = generator("no better")
    none = draw.choice([-1 / 3, 0.0, 1 / 3], 96)  # nothing over chance
    some = np.tile([0.1, 0.1, 0.1, -0.05], 24)  # a little, and shown to be
    few = np.where(np.arange(96) < 8, none, np.nan)  # not scored on enough texts
    assert two(row, np.stack([high, none])).chance == ("b",)
    assert two(row, np.stack([high, some])).behind == ("b",)
    assert two(row, np.stack([high, few])).behind == ("b",)
    standing = two(row, np.stack([high, none])).standings[1]
    assert standing.p_no_better == pytest.approx(c.p_mean_above(-none, -0.2))
    assert standing.p_chance > standing.level_chance


def test_a_first_that_is_no_better_than_chance_is_not_believed():
    row = np.ones(96)
    nothing = np.tile([1 / 9, -1 / 9], 48)
    result = two(row, np.stack([nothing, nothing]))
    assert (result.first, result.believe, result.chance) == ("a", (), ("a", "b"))


def test_a_first_is_sought_among_those_that_may_be_better_than_chance():
    row = np.tile([1.0, -1.0, 1.0, -1.0], 24)
    row[0] = 1 / 3
    row[1] = 1.0  # a is ahead by a little
    result = two(row, np.stack([np.tile([1 / 9, -1 / 9], 48), np.full(96, 0.9)]))
    assert (result.first, result.chance) == ("b", ("a",))


def test_dropped_and_costly_methods_keep_the_texts_they_had():
    strengths = {"a": 3.0, "b": 0.0, "c": 3.2, "d": 3.0}
    state, wins, chance = audited(Rule(), strengths, ("c",))
    result = c.conclude(Rule(), state, wins, chance, [1.0] * 4)
    n = {s.method: s.n_chance for s in result.standings}
    assert n["b"] == 24
    assert n["c"] == 48
    by = {s.method: s for s in result.standings}
    first = state.methods.index(result.first)
    (low,), (high,) = bca(wins[1, first, :24])
    assert by["b"].net_first.mean == pytest.approx(wins[1, first, :24].mean())
    assert (by["b"].net_first.low, by["b"].net_first.high) == (pytest.approx(low), pytest.approx(high))


def test_an_audit_cut_short_says_what_its_last_look_allows():
    strengths = {"a": 3.0, "b": 0.0, "late": 3.0}
    rule = Rule()
    _, wins, chance = audited(rule, strengths)
    state = look(rule, begin(tuple(strengths), ("late",)), wins, chance)
    result = c.conclude(rule, state, wins, chance, [1.0, 1.0, 200.0])
    assert (result.believe, result.open, result.behind) == (("a",), (), ("b",))
    assert [standing.method for standing in result.standings] == ["a", "b"]  # of what was never asked nothing is said


def test_every_level_is_written_down():
    state, wins, chance = audited(Rule(), {"a": 2.0, "b": 1.0, "c": 0.3, "d": 0.0, "e": 1.9}, ("e",))
    result = c.conclude(Rule(), state, wins, chance, [1.0] * 5)
    assert result.level_pairs == pytest.approx(0.05 / 20)
    assert result.level_no_better == pytest.approx(0.05 / 5)
    shown = {claim.method: claim for each in state.looks for claim in each.shown}
    for standing in result.standings:
        assert standing.level_chance is not None
        assert (standing.p_chance <= standing.level_chance) == (standing.method in shown)
        if standing.method in shown:
            assert standing.level_chance == shown[standing.method].level
            assert standing.p_chance == shown[standing.method].p


@pytest.mark.parametrize("seed", range(4))
def test_after_the_first_methods_follow_by_list_and_by_net_wins_over_it(seed):
    strengths = {"a": 2.0, "b": 1.9, "c": 1.2, "d": 0.6, "e": 0.1, "f": 0.0, "g": 1.7}
    rule = Rule.fixed(40)
    state, wins, chance = audited(rule, strengths, seed=seed)
    conclusion = c.conclude(rule, state, wins, chance, [1.0] * 7)
    first, *others = conclusion.standings
    assert first.method == state.methods[leading(state, wins, [1.0] * 7)[0]]  # who is believed is no matter of order
    keys = [(c.LISTS.index(row.list), -(row.net_first.mean or 0.0)) for row in others]
    assert keys == sorted(keys)
    assert len({row.list for row in others}) > 1
    assert [row.place for row in conclusion.standings] == list(range(1, 8))
