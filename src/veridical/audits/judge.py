"""What the scores of one corpus say of its methods: the course of the audit, concluded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from veridical.audits.conclusion import conclude
from veridical.audits.looks import Course, wins_of
from veridical.audits.record import CorpusFacts, MetricFacts, NetCurve, Standing, Verdict
from veridical.audits.sheet import Sheet
from veridical.audits.verdict import standings, verdict
from veridical.core.statistics import bca, number

STEP = 8  # texts between the points of a curve


@dataclass(frozen=True)
class Judged:
    """What may be said of the methods on one corpus, and what it rests on."""

    facts: CorpusFacts
    verdict: Verdict
    standings: tuple[Standing, ...]  # best first
    curves: tuple[NetCurve, ...]
    unmoved: tuple[str, ...]  # texts on which no two methods differ
    texts: int


def judge(sheet: Sheet, metrics: Mapping[str, MetricFacts], course: Course, facts: CorpusFacts, seed: int) -> Judged:
    """The verdict on a course, with the figures behind it."""
    panel = [name for name in sheet.metrics if metrics[name].votes]
    methods = course.state.methods
    if not panel or not course.looks:
        return Judged(facts, verdict(course, None, facts, panel), (), (), (), course.texts)
    votes = sheet.only(panel)
    wins, chance = wins_of(votes, methods, metrics, course.units)
    costs = np.array([course.plan.costs[name] for name in methods])
    conclusion = conclude(course.plan.rule, course.state, wins, chance, costs, seed=seed)
    still = _unmoved(votes, metrics)
    facts = replace(facts, unmoved=len(still), documents=_documents(course, sheet))
    said = verdict(course, conclusion, facts, panel)
    rows = standings(course, conclusion, bool(said.believe or said.as_good or said.open or said.behind or said.chance))
    return Judged(
        facts=facts,
        verdict=said,
        standings=rows,
        curves=tuple(_curve(course.corpus, name, chance[m], seed) for m, name in enumerate(methods)),
        unmoved=still,
        texts=course.texts,
    )


def _documents(course: Course, sheet: Sheet) -> int | None:
    """Documents that the texts come from, if several come from one."""
    count = len({course.units[example] for example in sheet.examples})
    return count if count < len(sheet.examples) else None


def _unmoved(sheet: Sheet, metrics: Mapping[str, MetricFacts]) -> tuple[str, ...]:
    """Texts on which every metric that is defined says the same of all explanations, random orders among them."""
    values = np.round(sheet.values[""], 6)
    with np.errstate(invalid="ignore"):
        spread = np.where(np.isnan(values), -np.inf, values).max(0) - np.where(np.isnan(values), np.inf, values).min(0)
    still = ~(spread > 0).any(0)  # [texts]; a metric that is nowhere defined has a spread of minus infinity
    return tuple(example for example, quiet in zip(sheet.examples, still, strict=True) if quiet)


def _curve(corpus: str, method: str, chance: np.ndarray, seed: int) -> NetCurve:
    """Net wins over chance after every few texts, each with its 95% interval."""
    there = chance[~np.isnan(chance)]
    points = [*range(STEP, len(there), STEP), len(there)] if len(there) else []
    padded = np.full((len(points), len(there)), np.nan)
    for row, count in enumerate(points):
        padded[row, :count] = there[:count]
    low, high = bca(padded, seed=seed) if points else (np.zeros(0), np.zeros(0))
    return NetCurve(
        corpus=corpus,
        method=method,
        texts=tuple(points),
        net=tuple(float(there[:count].mean()) for count in points),
        low=tuple(map(number, low)),
        high=tuple(map(number, high)),
    )
