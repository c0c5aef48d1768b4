"""How alike models explain (figures 3, 9 and 10): by one method across conditions, and by two methods within one.

Across conditions only pairs of different seeds count, for two baselines always differ in theirs: how alike two seeds of
the baseline explain is what another seed does, and guidance has to do more. Sizes are ranked, whatever the sign, so
that models which predict different classes can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product

import numpy as np

from veridical.audits.likeness import Readings, compared
from veridical.core.seed import generator
from veridical.core.spec import base_name
from veridical.core.statistics import Estimate, estimate, holm, mean, number, signed_rank
from veridical.probes.guidance.measure import Measured
from veridical.probes.guidance.record import AlikeRow, MethodPair
from veridical.probes.guidance.runs import Condition
from veridical.probes.guidance.tables import Measurements, seeds_of

PAIRS = 12  # of runs, compared at most for one figure; the released code draws one per text
BINS = 20  # of the histograms, over -1 to 1
CHANCE = "random"  # never looks at the model: its draws agree by their seed

Runs = Sequence[tuple[int, Measured]]  # seed and run


def across(
    measured: Measurements, base: Condition, others: Sequence[Condition], corpora: Sequence[str]
) -> list[AlikeRow]:
    """Tau between a condition and the baseline, and between seeds of either, per method."""
    rows: list[AlikeRow] = []
    for corpus in corpora:
        ours = _runs(measured, base, corpus)
        within = {method: _tau(_within(ours), method) for method in _methods(ours)}
        for condition in others:
            theirs = _runs(measured, condition, corpus)
            known = _methods(theirs)
            family = [
                _row(corpus, condition, method, _tau(_between(ours, theirs), method), within[method], theirs)
                for method in within
                if method in known
            ]
            corrected = holm([np.nan if row.p is None else row.p for row in family])
            rows += [replace(row, p_holm=number(p)) for row, p in zip(family, corrected, strict=True)]
    return rows


def _row(
    corpus: str,
    condition: Condition,
    method: str,
    between: dict[str, float],
    within: dict[str, float],
    theirs: Runs,
) -> AlikeRow:
    """Whether a condition differs from the baseline more than its seeds do: the difference, paired by text."""
    differences = np.array([between[text] - within[text] for text in between if text in within])
    over = estimate(differences) if differences.size else Estimate(None, None, None, 0, 0)
    return AlikeRow(
        corpus=corpus,
        condition=condition.name,
        method=method,
        guided=method in condition.guides,
        to_base=mean(between.values()),
        within_base=mean(within.values()),
        within_own=mean(_tau(_within(theirs), method).values()),
        difference=over.mean,
        low=over.low,
        high=over.high,
        p=number(float(signed_rank(differences).p[0])) if differences.size else None,
        texts=over.n,
        histogram=_histogram(between),
        histogram_base=_histogram(within),
    )


def between_methods(
    measured: Measurements, conditions: Sequence[Condition], corpora: Sequence[str]
) -> list[MethodPair]:
    """Tau between every two methods of one model, mean over texts and seeds."""
    rows = []
    for corpus in corpora:
        for condition in conditions:
            runs = _runs(measured, condition, corpus)
            for a, b in combinations(_methods(runs), 2):
                pairs = (compared(run.readings[a], run.readings[b], abs=True) for _, run in runs)
                known = [tau for pair in pairs for tau in pair.tau if tau is not None]
                rows.append(MethodPair(corpus, condition.name, a, b, mean(known), len(known)))
    return rows


# -- pairs of runs ------------------------------------------------------------------------------------------


def _runs(measured: Measurements, condition: Condition, corpus: str) -> Runs:
    seeds = seeds_of(measured, condition, corpus)
    return [(run.seed, seed) for run, seed in zip(condition.runs, seeds, strict=True)]


def _methods(runs: Runs) -> list[str]:
    names = list(dict.fromkeys(name for _, run in runs for name in run.readings))
    return [name for name in names if base_name(name) != CHANCE]


def _within(runs: Runs) -> list[tuple[Measured, Measured]]:
    return _some([(a, b) for (_, a), (_, b) in combinations(runs, 2)])


def _between(ours: Runs, theirs: Runs) -> list[tuple[Measured, Measured]]:
    return _some([(a, b) for (x, a), (y, b) in product(ours, theirs) if x != y])


def _some(pairs: list[tuple[Measured, Measured]]) -> list[tuple[Measured, Measured]]:
    if len(pairs) <= PAIRS:
        return pairs
    chosen = generator("pairs of runs", len(pairs)).permutation(len(pairs))[:PAIRS]
    return [pairs[i] for i in sorted(chosen)]


# -- figures ------------------------------------------------------------------------------------------------


def _tau(pairs: Sequence[tuple[Measured, Measured]], method: str) -> dict[str, float]:
    """Each text's tau, its mean over the pairs in which it has one."""
    texts: dict[str, list[float]] = {}
    for a, b in pairs:
        both: tuple[Readings, Readings] = a.readings[method], b.readings[method]
        alike = compared(*both, abs=True)
        for text, tau in zip(alike.texts, alike.tau, strict=True):
            if tau is not None:
                texts.setdefault(text, []).append(tau)
    return {text: float(np.mean(values)) for text, values in texts.items()}


def _histogram(values: dict[str, float]) -> tuple[int, ...]:
    """How many texts lie in each of 20 equal stretches from -1 to 1."""
    return tuple(np.histogram(list(values.values()), bins=BINS, range=(-1.0, 1.0))[0].tolist())
