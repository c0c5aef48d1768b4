"""Audits simulated from real scores, to count what the sequential rule claims wrongly and what it saves.

A table of real scores is taken for all texts that there are: an audit draws its texts from it with replacement, so the
truth about every pair of methods is known, the means over the table. Worlds in which a claim is false by construction
keep the scores and change who has them.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from veridical.audits.conclusion import Standing, held, judge
from veridical.audits.diagnosticity import Better
from veridical.audits.sequential import Rule, State, begin, look, within
from veridical.audits.wins import chance_wins, net_wins
from veridical.core.seed import generator

TABLE = Path(__file__).parents[1] / "tests" / "audits" / "real_scores.csv"
PANEL: dict[str, Better] = {"sufficiency": "higher", "comprehensiveness": "higher", "decision_flip": "lower"}
TOP = np.array([9.0 if way == "higher" else -9.0 for way in PANEL.values()])  # better than any score
ORDERS = 3  # random orders that stand for chance; those beyond are methods that know nothing
# Full-length passes for an explanation of 157 tokens, where it is more than a few, and for scoring one by the panel.
PASSES = {
    "occlusion": 157.0,
    "integrated_gradients": 152.0,
    "decompx_classifier": 73.0,
    "lime": 304.0,
    "kernel_shap": 493.0,
}
FEW, SCORED = 3.0, 8.5
COSTLY = ("decompx_classifier", "lime", "kernel_shap")
CLAIMS = ("behind", "better than chance", "as good", "clearly", "no better than chance")


@dataclass(frozen=True)
class World:
    """Scores of methods, of the random orders that stand for chance, and of others like them, on the same texts."""

    methods: tuple[str, ...]
    values: np.ndarray  # [M, K, N]
    orders: np.ndarray  # [R, K, N]
    others: np.ndarray  # [S, K, N]
    costly: tuple[str, ...] = ()

    @property
    def costs(self) -> np.ndarray:
        return np.array([PASSES.get(name.split(":")[0].split("+")[0], FEW) for name in self.methods])

    def wins(self) -> tuple[np.ndarray, np.ndarray]:
        """Net wins over each other and over chance."""
        there = np.ones((len(self.values), self.values.shape[2]), dtype=bool)
        better, weights = tuple(PANEL.values()), (1,) * len(PANEL)
        return net_wins(self.values, there, better, weights), chance_wins(
            self.values, there, self.orders, better, weights
        )


@dataclass(frozen=True)
class Audit:
    """One simulated audit."""

    state: State
    standings: tuple[Standing, ...]
    explanations: int  # those of the random orders too
    passes: float

    @property
    def first(self) -> str:
        return self.standings[0].method

    @property
    def texts(self) -> int:
        return self.state.looks[-1].texts


# -- worlds -------------------------------------------------------------------------------------------------


def real(path: Path = TABLE) -> World:
    """The stored table."""
    scores: dict[tuple[str, str], list[float]] = {}
    with path.open(encoding="utf-8") as lines:
        _, *rows = csv.reader(line for line in lines if not line.startswith("#"))
    for method, metric, *values in rows:
        scores[method, metric] = [float(value or "nan") for value in values]
    methods = list(dict.fromkeys(method for method, _ in scores))
    values = np.array([[scores[method, metric] for metric in PANEL] for method in methods])  # [M, K, N]
    chance = np.array([method.split(":")[0] == "random" for method in methods])
    names = tuple(method for method, is_chance in zip(methods, chance, strict=True) if not is_chance)
    costly = tuple(name for name in names if name.split(":")[0] in COSTLY)
    return World(names, values[~chance], values[chance][:ORDERS], values[chance][ORDERS:], costly)


def hybrids(world: World, count: int, seed: int = 0) -> World:
    """With methods that on each text are one of two others: so many that have a standing between real ones."""
    draw = generator("hybrids", seed)
    names, values = list(world.methods), list(world.values)
    for number in range(count):
        a, b = draw.choice(len(world.methods), 2, replace=False)
        names.append(f"{world.methods[a]}+{world.methods[b]}:{number}")
        values.append(np.where(draw.random(world.values.shape[2]) < 0.5, world.values[a], world.values[b]))
    return replace(world, methods=tuple(names), values=np.array(values))


def drawn(world: World, texts: int, draw: np.random.Generator) -> World:
    """So many texts of a world, with replacement."""
    chosen = draw.integers(0, world.values.shape[2], texts)
    values, orders, others = (scores[:, :, chosen] for scores in (world.values, world.orders, world.others))
    return replace(world, values=values, orders=orders, others=others)


def shuffled(values: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """Who has which scores is drawn anew on every text: none of [M, K, N] is better than another."""
    order = draw.random((len(values), values.shape[2])).argsort(0)
    return np.take_along_axis(values, order[:, None], axis=0)


def equals(world: World, draw: np.random.Generator) -> World:
    """No method is better than another."""
    return replace(world, values=shuffled(world.values, draw))


def ahead_by(world: World, draw: np.random.Generator, margin: float) -> World:
    """The first method beats every other by just the margin in the mean, the others are equals."""
    values = shuffled(world.values, draw)
    values[0, :, draw.random(values.shape[2]) < margin] = TOP
    return replace(world, values=values)


def ignorant(world: World, draw: np.random.Generator, margin: float = 0.0) -> World:
    """Every method is a random order, but for a share of the texts on which it beats those that stand for chance."""
    values = shuffled(np.concatenate([world.orders, world.others]), draw)
    orders, values = values[:ORDERS], values[ORDERS:]
    for row in values:
        row[:, draw.random(row.shape[1]) < margin] = TOP[:, None]
    names = tuple(f"order {number}" for number in range(len(values)))
    return World(names, values, orders, world.others[:0], names[-2:])


def easy(world: World, draw: np.random.Generator, share: float = 0.9) -> World:
    """Every method is a random order, and any order does as well as can be on this share of the texts.

    Its net wins over those that stand for chance are 0 in the mean, often a little above and rarely far below.
    """
    blind = ignorant(world, draw)
    values, orders = (
        np.where(draw.random((len(rows), 1, rows.shape[2])) < share, TOP[:, None], rows)
        for rows in (blind.values, blind.orders)
    )
    return replace(blind, values=values, orders=orders)


def only(world: World, count: int) -> World:
    """So many of its methods, costly ones among them."""
    return _rows(world, np.linspace(0, len(world.methods) - 1, count).round().astype(int))


def without_costly(world: World) -> World:
    return _rows(world, np.array([row for row, name in enumerate(world.methods) if name not in world.costly]))


def _rows(world: World, rows: np.ndarray) -> World:
    names = tuple(world.methods[row] for row in rows)
    return replace(
        world, methods=names, values=world.values[rows], costly=tuple(name for name in world.costly if name in names)
    )


# -- audits -------------------------------------------------------------------------------------------------


def audit(rule: Rule, world: World) -> Audit:
    """On the texts of a world in their order, until the rule ends it."""
    wins, chance = world.wins()
    state = begin(world.methods, world.costly)
    while not state.ended:
        state = look(rule, state, wins, chance)
    texts = held(rule, state)
    standings = judge(rule, state, *within(texts, wins, chance), world.costs)
    explanations = sum(texts) + ORDERS * state.looks[-1].texts
    passes = float(np.array(texts) @ world.costs) + explanations * SCORED
    return Audit(state, tuple(standings), explanations, passes)


def worlds(
    world: World, count: int, texts: int, change: Callable[[World, np.random.Generator], World] | None = None
) -> Iterator[World]:
    """The texts of so many audits; `change` makes of each a world in which a claim is false."""
    for number in range(count):
        draw = generator("audit", number)
        sample = drawn(world, texts, draw)
        yield sample if change is None else change(sample, draw)


# -- what is true -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Truth:
    """What holds in a world: mean net wins."""

    methods: tuple[str, ...]
    wins: np.ndarray  # [M, M]
    chance: np.ndarray  # [M]

    @property
    def best(self) -> str:
        return self.methods[int(self.wins.sum(1).argmax())]

    def over(self, b: str, a: str) -> float:
        return float(self.wins[self.methods.index(b), self.methods.index(a)])


def truth_of(world: World) -> Truth:
    wins, chance = world.wins()
    return Truth(world.methods, wins.mean(2), chance.mean(1))


def false_claims(result: Audit, truth: Truth, margin: float) -> dict[str, bool]:
    """Which kinds of claims an audit makes wrongly at least once. What holds to a millionth holds."""
    near = 1e-6
    row = {name: at for at, name in enumerate(truth.methods)}
    wrong: dict[str, bool] = dict.fromkeys(CLAIMS, False)
    for standing in result.standings:
        name, at = standing.method, row[standing.method]
        wrong["behind"] |= standing.p_behind is not None and truth.wins[:, at].max() <= near
        wrong["better than chance"] |= name in result.state.shown and truth.chance[at] <= near
        wrong["as good"] |= standing.list == "as_good" and truth.over(result.first, name) >= margin - near
        wrong["clearly"] |= standing.clearly and truth.over(standing.by, name) <= margin + near
        wrong["no better than chance"] |= standing.list == "chance" and truth.chance[at] >= margin - near
    return wrong
