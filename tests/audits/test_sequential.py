"""Looks, drops, levels and when an audit ends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veridical.audits.sequential import Rule, State, begin, due, leading, look
from veridical.audits.wins import BETS, chance_wins, net_wins, p_mean_above
from veridical.core.errors import InputError
from veridical.core.seed import generator

METRICS = ("higher", "higher", "higher")
SMALL = Rule(looks=(12, 24), costly_texts=18, futile_from=24)


def tables(strengths: dict[str, float], texts: int = 96, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Net wins over each other and over chance; each method's draws depend on its name alone."""
    values = np.array([generator(seed, name).normal(s, size=(3, texts)) for name, s in strengths.items()])
    orders = generator(seed, "orders").normal(size=(3, 3, texts))
    there = np.ones((len(values), texts), dtype=bool)
    weights = (1, 1, 1)
    return net_wins(values, there, METRICS, weights), chance_wins(values, there, orders, METRICS, weights)


def run(rule: Rule, state: State, wins: np.ndarray, chance: np.ndarray) -> State:
    while not state.ended:
        state = look(rule, state, wins, chance)
    return state


# -- the rule -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"looks": (24, 24, 48)}, "rising numbers"),
        ({"looks": ()}, "rising numbers"),
        ({"looks": (0, 2, 3)}, "rising numbers"),
        ({"alpha": 0.0}, "alpha is 0.0"),
        ({"margin": 1.0}, "margin is 1.0"),
    ],
)
def test_a_rule_that_cannot_be_followed_is_refused(given, words):
    with pytest.raises(InputError, match=words):
        Rule(**given)


def test_costly_methods_enter_at_the_second_look_and_stop_at_their_cap():
    assert [Rule().texts(number, costly=True) for number in range(3)] == [0, 48, 48]
    assert [SMALL.texts(number, costly=True) for number in range(2)] == [0, 18]
    uneven = Rule(looks=(16, 32, 64, 128))
    assert [uneven.texts(number, costly=True) for number in range(4)] == [0, 32, 48, 48]
    assert Rule.fixed(200).texts(0, costly=True) == 200


def test_a_rule_keeps_to_the_texts_that_there_are():
    assert Rule().within(500) == Rule()
    assert Rule().within(60).looks == (24, 48, 60)
    assert Rule().within(30).looks == (24, 30)
    assert Rule.thorough().within(24).looks == (24,)


# -- one look -----------------------------------------------------------------------------------------------


def test_what_is_due_before_each_look():
    rule = Rule(futile_from=96)
    state = begin(("a", "b", "c", "d"), {"c"})
    assert due(rule, state) == {"a": 24, "b": 24, "d": 24}
    wins, chance = tables({"a": 3.2, "b": 0.0, "c": 3.2, "d": 3.1})
    state = look(rule, state, wins, chance)
    assert state.alive == ("a", "c", "d")
    assert due(rule, state) == {"a": 48, "c": 48, "d": 48}
    state = look(rule, state, wins, chance)
    assert state.ended == ""
    assert due(rule, state) == {"a": 96, "c": 48, "d": 96}
    state = look(rule, state, wins, chance)
    assert state.ended
    assert due(rule, state) == {}
    with pytest.raises(ValueError, match="has ended"):
        look(rule, state, wins, chance)


def test_drops_and_levels_by_hand():
    wins, chance = tables({"good": 1.5, "fair": 0.7, "poor": 0.0, "bad": -1.0}, texts=24)
    rule = Rule.fixed(24)
    state = look(rule, begin(("good", "fair", "poor", "bad")), wins, chance)
    names = state.methods

    def p(b: str, a: str) -> float:
        """Nine stakes of a ninth, each bet on every text with another share of it; the most that they ever came to."""
        stakes, most = [1 / 9] * 9, 1.0
        for won in wins[names.index(b), names.index(a)]:
            stakes = [
                stake * (1 + share * won)
                for stake, share in zip(stakes, (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 0.95), strict=True)
            ]
            most = max(most, sum(stakes))
        return 1 / most

    alive = list(names)
    for drop in state.looks[0].dropped:
        smallest = min((p(b, a), a) for a in alive for b in alive if a != b)
        assert drop.p == pytest.approx(smallest[0])
        assert drop.p == pytest.approx(p(drop.by, drop.method))
        assert drop.level == pytest.approx(0.05 / (3 * len(alive)))
        assert drop.mean == pytest.approx(wins[names.index(drop.by), names.index(drop.method)].mean())
        alive.remove(drop.method)
    assert state.alive == tuple(alive)
    assert alive == ["good"]
    left = [p(b, a) for a in alive for b in alive if a != b]
    assert all(value > 0.05 / (3 * len(alive)) for value in left)


def test_a_pair_is_tested_on_one_side_at_its_level():
    """Six wins in six are worth the mean of (1 + share)^6 over the shares, 14.93; seven 26.98."""
    for texts, dropped in ((6, 0), (7, 0), (8, 1)):  # 2 / 0.05 is 40; eight wins are 49.4
        wins, chance = np.zeros((2, 2, texts)), np.ones((2, texts))
        wins[0, 1], wins[1, 0] = 1.0, -1.0
        state = look(Rule.fixed(texts), begin(("a", "b")), wins, chance)
        assert [drop.method for drop in state.looks[0].dropped] == ["b"] * dropped


def test_methods_that_a_budget_kept_out_count_in_the_levels():
    """Ten wins are worth 168.6: enough where two of three methods are left, 2 x 2 / 0.05 = 80, or one more might have
    entered, 120; not where five might have: 7 x 7 / 0.05."""
    for kept_out, left in ((0, 1), (1, 1), (5, 2)):
        names = ("a", "b", *(f"late{number}" for number in range(kept_out)))
        wins, chance = np.zeros((len(names), len(names), 10)), np.ones((len(names), 10))
        wins[0, 1], wins[1, 0] = 1.0, -1.0
        state = replace(begin(names), alive=("a", "b"), kept_out=names[2:])
        assert len(look(Rule.fixed(10), state, wins, chance).alive) == left


def test_better_than_chance_is_holm_over_all_methods():
    wins, chance = tables({"a": 1.0, "b": 0.9, "c": 0.0}, texts=24)
    state = look(Rule.fixed(24), begin(("a", "b", "c")), wins, chance)
    shown = state.looks[0].shown
    assert sorted(state.shown) == ["a", "b"]
    assert [claim.level for claim in shown] == pytest.approx([0.05 / 3, 0.05 / 2])
    assert [claim.p for claim in shown] == sorted(claim.p for claim in shown)
    assert all(claim.p <= claim.level and claim.texts == 24 for claim in shown)
    assert [claim.p for claim in shown] == [p_mean_above(chance["abc".index(claim.method)], 0.0) for claim in shown]


def test_better_than_chance_counts_those_shown_at_earlier_looks():
    """Holm goes on from look to look: who was shown is no longer counted, who was dropped is."""
    wins, chance = np.zeros((3, 3, 24)), np.zeros((3, 24))
    chance[0], chance[1, 12:] = 1.0, 1.0
    first = look(SMALL, begin(("a", "b", "c")), wins, chance)
    assert [(claim.method, claim.level) for claim in first.looks[0].shown] == [("a", pytest.approx(0.05 / 3))]
    second = look(SMALL, first, wins, chance)
    assert [(claim.method, claim.level) for claim in second.looks[1].shown] == [("b", pytest.approx(0.05 / 2))]


def test_a_few_large_losses_do_not_make_a_method_better():
    """It wins far more often, and loses in the mean: no claim."""
    row = np.array([0.1] * 38 + [-1.0] * 8)
    wins = np.zeros((2, 2, 46))
    wins[0, 1], wins[1, 0] = row, -row
    state = look(Rule.fixed(46), begin(("a", "b")), wins, np.stack([row, -row]))
    assert row.mean() < 0
    assert (state.alive, state.shown) == (("a", "b"), ())


def test_a_good_beginning_alone_does_not_make_a_method_better_than_chance():
    """The bets were won once, and the mean says otherwise by now: no claim."""
    chance = np.array([[1.0] * 14 + [-1.0] * 16])
    assert p_mean_above(chance[0], 0.0) < 0.05
    assert look(Rule.fixed(30), begin(("a",)), np.zeros((1, 1, 30)), chance).shown == ()


def test_dropped_methods_are_held_against_chance_once_more_and_never_again():
    wins, chance = tables({"a": 4.0, "b": 1.3, "c": 4.0, "d": 0.0}, texts=96)
    state = look(Rule(), begin(("a", "b", "c", "d")), wins, chance)
    assert state.alive == ("a", "c")
    assert "b" in state.shown
    later = chance.copy()
    later[3] = 1.0  # what d would have done on texts that it was never asked about
    later[3, :24] = chance[3, :24]
    assert "d" not in run(Rule(), state, wins, later).shown


# -- several looks ------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.permutations(range(5)))
def test_the_order_of_methods_does_not_matter(seed, order):
    strengths = {"a": 1.0, "b": 0.9, "c": 0.4, "d": 0.0, "e": 0.9}
    names = tuple(strengths)
    wins, chance = tables(strengths, seed=seed)
    plain = run(SMALL, begin(names, {"e"}), wins, chance)
    order = list(order)
    moved = run(SMALL, begin([names[i] for i in order], {"e"}), wins[np.ix_(order, order)], chance[order])
    assert [each.dropped for each in moved.looks] == [each.dropped for each in plain.looks]
    assert [each.shown for each in moved.looks] == [each.shown for each in plain.looks]
    assert [each.ended for each in moved.looks] == [each.ended for each in plain.looks]
    assert set(moved.alive) == set(plain.alive)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6))
def test_only_what_a_look_may_see_decides_it(seed):
    """Texts beyond the look, beyond a costly method's cap, and of methods that are gone change nothing."""
    strengths = {"a": 1.0, "b": 0.9, "c": 0.4, "d": -0.5, "e": 0.9}
    wins, chance = tables(strengths, texts=30, seed=seed)
    whole = run(SMALL, begin(tuple(strengths), {"e"}), wins, chance)
    state = begin(tuple(strengths), {"e"})
    while not state.ended:
        texts = [due(SMALL, state).get(name, 0) for name in strengths]
        there = np.arange(30) < np.array(texts)[:, None]
        hidden = np.where(there[:, None] & there[None], wins, np.nan)
        state = look(SMALL, state, hidden, np.where(there, chance, np.nan))
    assert state == whole


def test_a_look_needs_what_was_due():
    wins, chance = tables({"a": 1.0, "b": 0.0}, texts=24)
    chance[1] = np.nan
    with pytest.raises(ValueError, match="b not scored on any text of look 1"):
        look(Rule(), begin(("a", "b")), wins, chance)


def test_units_are_what_looks_count():
    """A document of two equal texts is one unit: as if each text were there once."""
    from veridical.audits.wins import by_unit

    wins, chance = tables({"a": 1.0, "b": 0.2}, texts=24)
    twice = np.repeat(np.arange(24), 2)
    state = begin(("a", "b"))
    again = look(SMALL, state, by_unit(wins[:, :, twice], twice), by_unit(chance[:, twice], twice))
    assert again == look(SMALL, state, wins, chance)


def test_an_audit_ends_when_nothing_is_open():
    wins, chance = tables({"a": 3.0, "b": 0.0, "c": -1.0})
    state = look(Rule(), begin(("a", "b", "c")), wins, chance)
    assert (state.ended, state.alive, len(state.looks)) == ("settled", ("a",), 1)
    waiting = look(Rule(), begin(("a", "b", "c"), {"c"}), wins, chance)  # c has not been heard
    assert waiting.ended == ""
    assert run(Rule(), waiting, wins, chance).alive == ("a",)


def test_an_audit_of_equals_is_futile_but_not_before_48_texts():
    wins, chance = np.zeros((2, 2, 96)), np.ones((2, 96))
    state = run(Rule(), begin(("a", "b")), wins, chance)
    assert [each.ended for each in state.looks] == ["", "futile"]
    assert state.alive == ("a", "b")


def test_futility_is_what_the_last_look_would_need_if_the_texts_are_typical():
    """Of 48 texts as many are won as the look at 96 would need, or one fewer."""

    def ended(wins_of_48: int, kept_out: tuple[str, ...] = ()) -> str:
        row, names = np.array([1.0] * wins_of_48 + [-1.0] * (48 - wins_of_48)), ("a", "b", *kept_out)
        row = np.tile(generator("mixed").permutation(row), 2)
        wins = np.zeros((len(names), len(names), 96))
        wins[0, 1], wins[1, 0] = row, -row
        state = replace(begin(names), alive=("a", "b"), kept_out=kept_out)
        return look(Rule(looks=(48, 96)), state, wins, np.ones((len(names), 96))).ended

    def stake(wins_of_48: int) -> float:
        return sum(((1 + bet) ** wins_of_48 * (1 - bet) ** (48 - wins_of_48)) ** 2 for bet in BETS) / 9

    for methods, late in ((2, ()), (3, ("late",))):
        level = 0.05 / ((methods - 1) * (2 + len(late)))
        enough = next(won for won in range(24, 49) if stake(won) * level >= 1)
        assert ended(enough, late) == ""
        assert ended(enough - 1, late) == "futile"


def test_a_fixed_design_is_one_look_at_everything():
    wins, chance = tables({"a": 0.5, "b": 0.4, "c": 0.0}, texts=60)
    rule = Rule.fixed(60)
    assert due(rule, begin(("a", "b", "c"), {"c"})) == {"a": 60, "b": 60, "c": 60}
    state = run(rule, begin(("a", "b", "c"), {"c"}), wins, chance)
    assert len(state.looks) == 1
    assert state.ended in ("settled", "last")
    assert state.looks == run(rule, begin(("a", "b", "c")), wins, chance).looks


def test_the_leader_has_most_net_wins_and_of_equals_is_the_cheapest():
    wins, _ = tables({"a": 0.0, "b": 1.0, "c": 0.5}, texts=24)
    state = begin(("a", "b", "c"))
    assert [state.methods[row] for row in leading(state, wins)] == ["b", "c", "a"]
    alike = np.zeros((3, 3, 24))
    assert leading(state, alike, [3.0, 2.0, 2.0]) == [1, 2, 0]
    alike[2] = alike[:, 2] = np.nan  # c was not scored
    assert leading(state, alike, [3.0, 2.0, 1.0]) == [1, 0, 2]


def test_an_audit_begins_with_methods_that_have_names_of_their_own():
    with pytest.raises(InputError, match="name each once"):
        begin(("a", "a"))
    with pytest.raises(InputError, match="name each once"):
        begin(())
    with pytest.raises(InputError, match="x cannot enter later"):
        begin(("a", "b"), {"x"})


def test_one_method_alone_is_held_against_chance():
    _, chance = tables({"a": 2.0}, texts=24)
    state = look(Rule(), begin(("a",)), np.zeros((1, 1, 24)), chance)
    assert (state.shown, state.ended) == (("a",), "settled")
