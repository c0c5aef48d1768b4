"""How often the sequential rule of an audit errs, and what it saves, in audits simulated from real scores.

`simulated` says how. Errors are family-wise: the share of audits with at least one false claim of a kind, in worlds in
which it is false by construction. What is saved is counted against one look at 200 texts with the same three metrics.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np

from benchmarks.results import markdown, show, write_json, write_text
from benchmarks.simulated import (
    CLAIMS,
    Audit,
    Truth,
    World,
    ahead_by,
    audit,
    easy,
    equals,
    false_claims,
    hybrids,
    ignorant,
    only,
    real,
    truth_of,
    without_costly,
    worlds,
)
from veridical.audits.sequential import Rule
from veridical.audits.wins import p_means_above
from veridical.core.seed import generator

FIXED = Rule.fixed(200)
RULES = {"24 48 96": Rule(), "24 48 96 192": Rule.thorough(), "200": FIXED}
Change = Callable[[World, np.random.Generator], World]


# -- what is claimed wrongly --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trap:
    """A world in which claims are false by construction."""

    name: str
    change: Change
    truth: Callable[[World], Truth]
    claims: tuple[str, ...]  # that are false there


def traps(margin: float) -> tuple[Trap, ...]:
    """Margins are met exactly, so that a claim of more or of less is just false."""

    def flat(world: World, chance: float = margin) -> Truth:
        count = len(world.methods)
        return Truth(world.methods, np.zeros((count, count)), np.full(count, chance))

    def first_ahead(world: World) -> Truth:
        truth = flat(world)
        truth.wins[0, 1:], truth.wins[1:, 0] = margin, -margin
        return truth

    return (
        Trap("methods are equals", equals, flat, ("behind",)),
        Trap("one is ahead by the margin", partial(ahead_by, margin=margin), first_ahead, ("as good", "clearly")),
        Trap("methods are random orders", ignorant, partial(flat, chance=0.0), ("better than chance",)),
        Trap("ahead of chance by the margin", partial(ignorant, margin=margin), flat, ("no better than chance",)),
        Trap("random orders of easy texts", easy, partial(flat, chance=0.0), ("better than chance",)),
    )


def error_rates(world: World, rule: Rule, trap: Trap, count: int) -> dict[str, float]:
    """The share of audits in such a world that make each claim that is false in it."""
    wrong = []
    for sample in worlds(world, count, rule.looks[-1], trap.change):
        wrong.append(false_claims(audit(rule, sample), trap.truth(sample), rule.margin))
    return {claim: float(np.mean([each[claim] for each in wrong])) for claim in trap.claims}


# -- what is saved ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Saving:
    """A rule in audits of a world, beside one look at 200 texts of the same audits."""

    best_kept: float  # shares of the audits
    near_best: float  # the first is within 0.1 of the best
    in_group: float  # the first is among those that 200 texts do not show to be behind
    in_other_group: float  # the same, with the 200 texts of another audit
    agreement: float  # methods that both call behind, or neither
    believed: float
    texts: float
    explanations: float  # over those of 200 texts
    passes: float
    false: dict[str, float]  # claims


def saving(world: World, rule: Rule, count: int) -> Saving:
    """Of `count` audits that draw their texts from the world."""
    truth = truth_of(world)
    samples = list(worlds(world, count, FIXED.looks[0]))
    short, long = ([audit(each, sample) for sample in samples] for each in (rule, FIXED))
    groups = [set(each.state.alive) for each in long]

    def share(holds: Callable[[Audit, set[str]], float], shift: int = 0) -> float:
        return float(np.mean([holds(each, groups[(at + shift) % count]) for at, each in enumerate(short)]))

    def agree(each: Audit, group: set[str]) -> float:
        return float(np.mean([(name in each.state.alive) == (name in group) for name in world.methods]))

    wrong = [false_claims(each, truth, rule.margin) for each in short]
    return Saving(
        best_kept=share(lambda each, _: truth.best in each.state.alive),
        near_best=share(lambda each, _: truth.over(truth.best, each.first) <= 0.1),
        in_group=share(lambda each, group: each.first in group),
        in_other_group=share(lambda each, group: each.first in group, shift=1),
        agreement=share(agree),
        believed=share(lambda each, _: each.standings[0].list == "believe"),
        texts=share(lambda each, _: each.texts),
        explanations=sum(each.explanations for each in short) / sum(each.explanations for each in long),
        passes=sum(each.passes for each in short) / sum(each.passes for each in long),
        false={claim: float(np.mean([each[claim] for each in wrong])) for claim in CLAIMS},
    )


# -- skew ---------------------------------------------------------------------------------------------------


def pair_errors(world: World, rule: Rule, count: int) -> list[float]:
    """Of two methods alone: how often each is called behind though net wins are 0 in the mean, for every real pair.

    Texts of a pair are weighed so that its mean is 0, which keeps its skew. Pairs of which one hardly ever wins are
    left out.
    """
    wins, draw, rates = world.wins()[0], generator("pairs"), []
    for b, a in combinations(range(len(world.methods)), 2):
        if abs(wins[b, a].mean()) < 0.45:
            rates += [*_behind(draw.choice(wins[b, a], (count, rule.looks[-1]), p=_balanced(wins[b, a])), rule)]
    return rates


def skewed_pair_error(rule: Rule, count: int) -> float:
    """The same of a pair made to be skewed: a third won on three quarters of the texts, all lost on the others."""
    rows = generator("skewed").choice([1 / 3, -1.0], (count, rule.looks[-1]), p=[0.75, 0.25])
    return max(_behind(rows, rule))


def asymmetry(world: World, rule: Rule, count: int) -> dict[str, float]:
    rates = pair_errors(world, rule, count)
    return {
        "real pairs": float(np.mean(rates)),
        "the worst of them": max(rates),
        "a pair made to be skewed": skewed_pair_error(rule, count),
    }


def _balanced(values: np.ndarray) -> np.ndarray:
    """Weights of texts by which the mean is 0: exponential in the values."""
    from scipy.optimize import brentq

    tilt = brentq(lambda by: float(values @ np.exp(by * values)), -20, 20)
    weights = np.exp(tilt * values)
    return weights / weights.sum()


def _behind(rows: np.ndarray, rule: Rule) -> tuple[float, float]:
    """How often rows of net wins say that the second of two is behind, and the first."""
    claims = np.zeros((2, len(rows)), dtype=bool)
    for texts in rule.looks:
        for side, seen in enumerate((rows[:, :texts], -rows[:, :texts])):
            claims[side] |= (p_means_above(seen) <= rule.alpha / 2) & (seen.mean(1) > 0)
    first, second = claims.mean(1).tolist()
    return first, second


# -- tables -------------------------------------------------------------------------------------------------


def saving_row(name: str, looks: str, false_drop: float, found: Saving) -> list[str]:
    shares = (found.best_kept, found.near_best, found.in_group, found.in_other_group, found.agreement, found.believed)
    costs = [f"1/{1 / cost:.1f}" for cost in (found.explanations, found.passes)]
    false = max(found.false.values())
    return [name, looks, *(f"{x:.3f}" for x in (false_drop, *shares)), f"{found.texts:.0f}", *costs, f"{false:.3f}"]


SAVING_HEAD = [
    "scores",
    "looks",
    "false drop (equals)",
    "best kept",
    "first within 0.1 of best",
    "first in fixed-200's best group",
    "in that of other texts",
    "in/out agreement",
    "believed",
    "texts",
    "explanations",
    "passes",
    "most false claims",
]


def named(world: World) -> list[tuple[str, World]]:
    """The world as it is, without the rule for costly methods, without these, and with hybrids to 20 methods."""
    count = len(world.methods)
    return [
        (f"{count} methods", world),
        (f"{count} methods, none entering late", replace(world, costly=())),
        ("its cheap methods", without_costly(world)),
        ("20 methods", hybrids(world, 20 - count)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=300, help="to see what is saved (default: %(default)s)")
    parser.add_argument("--traps", type=int, default=1000, help="audits where claims are false (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="(default: %(default)s)")
    given = parser.parse_args()
    world = real()
    savings = [
        (
            name,
            looks,
            error_rates(each, rule, traps(rule.margin)[0], given.audits)["behind"],
            saving(each, rule, given.audits),
        )
        for name, each in named(world)
        for looks, rule in RULES.items()
        if rule is not FIXED
    ]
    rows = [saving_row(*each) for each in savings]
    print(markdown(SAVING_HEAD, rows))  # too wide for a table on the screen
    errors = [
        [trap.name, claim, looks, f"{rate:.3f}"]
        for trap in traps(Rule().margin)
        for looks, rule in RULES.items()
        for claim, rate in error_rates(only(world, 10), rule, trap, given.traps).items()
    ]
    head = ["in audits where", "false claim", "looks", "share of the audits"]
    show("what is claimed wrongly", head, errors)
    pairs = asymmetry(world, Rule(), given.traps)
    print("two methods whose net wins are 0 in the mean, at 0.025:", pairs)
    record = {"savings": [[*each[:3], vars(each[3])] for each in savings], "errors": errors}
    write_json(given.out / "sequential.json", {**record, "asymmetry": pairs})
    print(write_text(given.out / "sequential.md", markdown(SAVING_HEAD, rows) + "\n\n" + markdown(head, errors) + "\n"))


if __name__ == "__main__":
    main()
