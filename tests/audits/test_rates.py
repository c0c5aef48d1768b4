"""How often an audit's claims are false and what it saves: seeded simulations from a table of real scores.

`benchmarks/simulated.py` makes the worlds, `python -m benchmarks.sequential` runs more of them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.sequential import error_rates, saving, traps
from benchmarks.simulated import (
    CLAIMS,
    World,
    ahead_by,
    audit,
    equals,
    false_claims,
    hybrids,
    ignorant,
    only,
    real,
    truth_of,
    worlds,
)

from veridical.audits.sequential import Rule
from veridical.core.seed import generator

EQUALS, AHEAD, ORDERS, AHEAD_OF_CHANCE, EASY = traps(Rule().margin)


@pytest.fixture(scope="module")
def world() -> World:
    return real()


def test_the_worlds_are_what_they_say(world: World):
    """Over many texts: equals have no net wins, margins are met, random orders are chance."""
    (sample,) = worlds(world, 1, 20_000)
    draw = generator("worlds")
    near = {"abs": 0.03}
    some = only(sample, 4)
    assert truth_of(equals(some, draw)).wins == pytest.approx(np.zeros((4, 4)), **near)
    ahead = truth_of(ahead_by(some, draw, 0.2)).wins
    assert ahead[0, 1:] == pytest.approx([0.2] * 3, **near)
    assert ahead[1:, 1:] == pytest.approx(np.zeros((3, 3)), **near)
    assert truth_of(ignorant(sample, draw)).chance == pytest.approx(np.zeros(9), **near)
    assert truth_of(ignorant(sample, draw, 0.2)).chance == pytest.approx([0.2] * 9, **near)


def test_false_claims_are_seen(world: World):
    """What counts the errors finds them where the truth is turned round."""
    (sample,) = worlds(world, 1, 96)
    result, truth = audit(Rule(), sample), truth_of(world)
    turned = replace(truth, wins=np.zeros_like(truth.wins), chance=-truth.chance)
    assert not any(false_claims(result, truth, 0.2).values())
    wrong = false_claims(result, turned, 0.2)
    assert wrong["behind"]
    assert wrong["better than chance"]
    assert wrong["clearly"]


def test_at_most_one_in_twenty_audits_of_equals_drops_a_method(world: World):
    """1,000 audits of ten methods, three of which enter late."""
    some = only(world, 10)
    assert len(some.methods) == 10
    assert len(some.costly) >= 2
    rates = error_rates(some, Rule(), EQUALS, 1000)
    assert 0 < rates["behind"] <= 0.05


@pytest.mark.parametrize(
    ("trap", "rule"),
    [(AHEAD, Rule()), (AHEAD, Rule.thorough()), (ORDERS, Rule()), (AHEAD_OF_CHANCE, Rule.thorough()), (EASY, Rule())],
    ids=["margin, 96", "margin, 192", "random orders, 96", "chance by the margin, 192", "easy texts, 96"],
)
def test_at_most_one_in_twenty_audits_makes_a_false_claim_of_a_kind(world: World, trap, rule):
    """Few methods, so that levels are not out of reach."""
    rates = error_rates(only(world, 4), rule, trap, 250)
    assert set(rates) == set(trap.claims)
    assert all(rate <= 0.05 for rate in rates.values()), rates


def test_a_third_of_the_work_finds_the_same_first(world: World):
    """200 audits of 20 methods, three of which enter late and have at most 48 texts, beside 200 texts of everything."""
    many = hybrids(world, 20 - len(world.methods))
    found = saving(many, Rule(), 200)
    assert found.best_kept >= 0.99
    assert found.in_group >= 0.95
    assert found.in_other_group >= 0.95
    assert found.near_best >= 0.95
    assert found.explanations <= 1 / 3
    assert found.passes <= 1 / 3
    assert found.believed >= 0.95
    assert set(found.false) == set(CLAIMS)
    assert all(rate <= 0.05 for rate in found.false.values()), found.false
