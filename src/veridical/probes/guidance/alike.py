"""How alike models explain (figures 3, 9 and 10): by one method across conditions, and by two methods within one.

Across conditions only pairs of different seeds count, for two baselines always differ in theirs: how alike two seeds of
the baseline explain is what another seed does, and guidance has to do more. Sizes are ranked, whatever the sign, so
that models which predict different classes can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np

from veridical.audits.likeness import Readings, compared
from veridical.core.seed import generator
from veridical.core.spec import base_name
from veridical.core.statistics import bca, holm, signed_rank
from veridical.metric.agreement import kendall
from veridical.probes.guidance.measure import Measured
from veridical.probes.guidance.runs import Condition
from veridical.probes.guidance.tables import Found, Row, seeds_of

PAIRS = 12  # of runs, compared at most for one figure; the released code draws one per text
BINS = 20  # of the histograms, over -1 to 1
CHANCE = "random"  # never looks at the model: its draws agree by their seed

Runs = Sequence[tuple[int, Measured]]  # seed and run


def across(found: Found, base: Condition, others: Sequence[Condition], corpora: Sequence[str]) -> list[Row]:
    """Tau between a condition and the baseline, and between seeds of either, per method."""
    rows: list[Row] = []
    for corpus in corpora:
        ours = _runs(found, base, corpus)
        within = {method: _tau(_within(ours), method) for method in _methods(ours)}
        for one in others:
            theirs = _runs(found, one, corpus)
            family: list[Row] = []
            for method in within.keys() & set(_methods(theirs)):
                between = _tau(_between(ours, theirs), method)
                own = _tau(_within(theirs), method)
                family.append(
                    {"corpus": corpus, "condition": one.name, "method": method, "guided": method in one.guides}
                    | {"to_base": _mean(between), "within_base": _mean(within[method]), "within_own": _mean(own)}
                    | _compared(between, within[method])
                    | {"histogram": _histogram(between), "histogram_base": _histogram(within[method])}
                )
            order = list(within)
            family.sort(key=lambda row: order.index(row["method"]))
            p = holm([np.nan if row["p"] is None else row["p"] for row in family])
            rows += [
                row | {"p_holm": None if np.isnan(own) else float(own)} for row, own in zip(family, p, strict=True)
            ]
    return rows


def between_methods(found: Found, conditions: Sequence[Condition], corpora: Sequence[str]) -> list[Row]:
    """Tau between every two methods of one model, mean over texts and seeds."""
    rows = []
    for corpus in corpora:
        for one in conditions:
            runs = _runs(found, one, corpus)
            for a, b in combinations(_methods(runs), 2):
                values = [
                    kendall(np.abs(first.scores), np.abs(own.readings[b][key].scores))
                    for _, own in runs
                    for key, first in own.readings[a].items()
                ]
                known = [value for value in values if value is not None]
                tau = float(np.mean(known)) if known else None
                rows.append({"corpus": corpus, "condition": one.name, "a": a, "b": b, "tau": tau, "n": len(known)})
    return rows


# -- pairs of runs ------------------------------------------------------------------------------------------


def _runs(found: Found, one: Condition, corpus: str) -> Runs:
    return [(run.seed, own) for run, own in zip(one.runs, seeds_of(found, one, corpus), strict=True)]


def _methods(runs: Runs) -> list[str]:
    names = list(dict.fromkeys(name for _, own in runs for name in own.readings))
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


def _mean(values: dict[str, float]) -> float | None:
    return float(np.mean(list(values.values()))) if values else None


def _compared(between: dict[str, float], within: dict[str, float]) -> Row:
    """Whether a condition differs from the baseline more than its seeds do: the difference, paired by text."""
    common = [text for text in between if text in within]
    differences = np.array([between[text] - within[text] for text in common])
    if not common:
        return {"difference": None, "low": None, "high": None, "p": None, "texts": 0}
    low, high = (bound[0] for bound in bca(differences[None]))
    return {
        "difference": float(differences.mean()),
        "low": None if np.isnan(low) else float(low),
        "high": None if np.isnan(high) else float(high),
        "p": float(signed_rank(differences).p[0]),
        "texts": len(common),
    }


def _histogram(values: dict[str, float]) -> list[int]:
    """How many texts lie in each of 20 equal stretches from -1 to 1."""
    return np.histogram(list(values.values()), bins=BINS, range=(-1.0, 1.0))[0].tolist()
