"""Judging a world: what an audit by some panel would say of its methods, and what is true of them.

All of it follows from the stored scores, so any panel, rule or operator can be tried at any time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from veridical.audits.conclusion import List, held, judge
from veridical.audits.diagnosticity import Better
from veridical.audits.plan import ORDERS, entering_late
from veridical.audits.sequential import Rule, State, begin, look, within
from veridical.audits.wins import net_wins, over_chance
from veridical.core import store
from veridical.metric import metrics as all_metrics
from veridical.probes.validation.making import CONTROL, NEEDED, SCORES, TEXTS, Facts, is_dear, place
from veridical.probes.validation.panels import Panel
from veridical.probes.validation.world import Setting

NEAR = 0.1  # of the best method's truth: a method that comes so near is truly good
FEWEST = 1 / 8  # of the texts must be carried by the planted words: of fewer, nobody knows what is true


@dataclass(frozen=True)
class Scores:
    """A world's scores as arrays; NaN is a score that does not exist."""

    facts: Facts
    metrics: tuple[str, ...]
    values: np.ndarray  # [methods, metrics, texts]
    orders: np.ndarray  # the same of the random orders
    shuffled: np.ndarray  # the same of each method's own scores in random places, for metrics that see more than order
    truth: dict[str, float]  # method -> mean over the texts whose decision the planted words carry
    needed: dict[str, float]  # the same, held against the planted words that the model needs
    dear_texts: int

    @property
    def good(self) -> tuple[str, ...]:
        """The methods that are as true as any, or nearly."""
        return _near_best(self.truth)

    @property
    def good_by_need(self) -> tuple[str, ...]:
        """The same by the words that the model needs."""
        return _near_best(self.needed)


def _near_best(truth: Mapping[str, float]) -> tuple[str, ...]:
    best = max(truth.values())
    return tuple(name for name, value in truth.items() if value >= best - NEAR - 1e-9)


@dataclass(frozen=True)
class Verdict:
    """What an audit by one panel would say in one world."""

    panel: Panel
    believed: str  # "" if nothing could be
    lists: dict[str, List]  # of each method
    texts: int  # that it looked at

    def on(self, name: List, methods: Sequence[str]) -> int:
        """How many of these methods are on a list."""
        return sum(self.lists[method] == name for method in methods)


def read_scores(out: str | Path, setting: Setting, facts: Facts) -> Scores:
    """The stored scores of a world that has learnt."""
    folder = place(out, facts.world)
    carried = np.array(store.read_parquet(folder / TEXTS)["carried"].to_pylist(), dtype=bool)
    names, metrics = [*facts.methods, *ORDERS], [*setting.metrics, *setting.shaped, facts.world.truth, NEEDED]
    row, column = ({name: at for at, name in enumerate(axis)} for axis in (names, metrics))
    real = np.full((len(names), len(metrics), facts.texts), np.nan)
    shuffled = np.full_like(real, np.nan)
    table = store.read_parts(folder / SCORES)
    columns = (table[name].to_pylist() for name in ("text", "method", "metric", "control", "value"))
    for text, method, metric, control, value in zip(*columns, strict=True):
        if metric in column and value is not None:
            (shuffled if control == CONTROL else real)[row[method], column[metric], text] = value
    count = len(facts.methods)

    def mean(metric: str) -> dict[str, float]:
        values = real[:count, column[metric]][:, carried]
        return dict(zip(facts.methods, map(float, np.nanmean(values, axis=1)), strict=True)) if carried.any() else {}

    return Scores(
        facts=facts,
        metrics=tuple(metrics[:-2]),
        values=real[:count, :-2],
        orders=real[count:, :-2],
        shuffled=shuffled[:count, :-2],
        truth=mean(facts.world.truth),
        needed=mean(NEEDED),
        dear_texts=setting.dear_texts,
    )


def verdict(scores: Scores, panel: Panel, rule: Rule) -> Verdict:
    """What the sequential audit says by this panel, whose metrics have equal weights."""
    facts = scores.facts
    texts = min(facts.texts, scores.dear_texts) if all(map(is_dear, panel.metrics)) else facts.texts
    rule = rule.within(texts)
    wins, chance = net(scores, panel, rule.looks[-1])
    costs = [facts.passes[name] for name in facts.methods]
    state = begin(facts.methods, entering_late(rule, facts.passes))
    while not state.ended:
        state = look(rule, state, wins, chance)
    standings = judge(rule, state, *within(held(rule, state), wins, chance), costs)
    lists: dict[str, List] = {standing.method: standing.list for standing in standings}
    believed = next((name for name, where in lists.items() if where == "believe"), "")
    return Verdict(panel, believed, lists, _looked_at(state))


def _looked_at(state: State) -> int:
    return state.looks[-1].texts


def net(scores: Scores, panel: Panel, texts: int) -> tuple[np.ndarray, np.ndarray]:
    """Net wins among the methods [M, M, N] and over chance [M, N], on the first texts.

    Chance is what it is in an audit (`wins.over_chance`).
    """
    chosen = [scores.metrics.index(metric) for metric in panel.metrics]
    values, orders, shuffled = (a[:, chosen, :texts] for a in (scores.values, scores.orders, scores.shuffled))
    there = np.ones((len(values), texts), dtype=bool)
    better: list[Better] = [_better(metric) for metric in panel.metrics]
    weights = np.ones(len(chosen))
    chance = over_chance(values, there, orders, shuffled, better, weights)
    return net_wins(values, there, better, weights), chance


def _better(metric: str) -> Better:
    choice = all_metrics.choose(metric)
    return choice.entry.reading(choice.options)[0]
