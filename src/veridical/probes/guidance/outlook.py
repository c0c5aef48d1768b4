"""Two questions over runs: what the explanation loss costs (figures 5 and 12), and what foretells F1 out of domain
(figures 6 and 14)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from veridical.core.statistics import LEVEL, holm, number
from veridical.probes.guidance.record import Correlation, ForetoldRow, RunPoint, TradeoffRow
from veridical.probes.guidance.reliance import relied
from veridical.probes.guidance.runs import Condition
from veridical.probes.guidance.tables import Measurements, mean_of_texts, over_seeds

ENOUGH = 8  # runs that a correlation needs: of so many, one below 0.74 is not told from none


def tradeoff(
    base: Condition, others: Sequence[Condition], baseline: Mapping[tuple[str, int], float | None]
) -> list[TradeoffRow]:
    """Cross-entropy and explanation loss on dev of every condition that was trained with the term, by guide.

    `baseline` holds the term's value for a guide and a seed of the baseline, which was trained without: weight 0.
    """
    rows: list[TradeoffRow] = []
    conditions = (base, *others)
    terms = {each.explanation.choice.label: each.explanation for each in conditions if each.explanation is not None}
    for guide, term in terms.items():
        for condition in conditions:
            if condition.explanation is not None and condition.explanation.choice.label == guide:
                values, setting = [run.dev.get("explanation") for run in condition.runs], condition.setting
            elif condition is base:
                values, setting = [baseline.get((guide, run.seed)) for run in base.runs], "weight 0"
            else:
                continue
            rows.append(
                TradeoffRow(
                    guide=guide,
                    method=str(term.choice.options["method"]),
                    condition=condition.name,
                    setting=setting,
                    dev_bound=condition.dev_bound,
                    cross_entropy=over_seeds(run.dev.get("loss") for run in condition.runs),
                    explanation=over_seeds(values),
                )
            )
    return rows


# -- what foretells F1 elsewhere ----------------------------------------------------------------------------


def foretold(
    measured: Measurements, conditions: Sequence[Condition], home: str, away: Sequence[str], metrics: Sequence[str]
) -> list[ForetoldRow]:
    """Rank correlation, over all runs, of what is known of a run with its macro-F1 on each other corpus.

    Known are its macro-F1, its reliance on the rationale and the mean of every metric of every method, in domain, and
    the latter on the other corpus itself. Runs of one condition are not independent; the interval takes them so.
    """
    runs = [(condition.name, run.seed) for condition in conditions for run in condition.runs]
    rows: list[ForetoldRow] = []
    for corpus in away:
        outcomes = [measured[run][corpus].scores.get("macro_f1") for run in runs]
        if not any(outcome is not None for outcome in outcomes):
            continue
        family: list[ForetoldRow] = []
        for (where, what, method), values in _known(measured, runs, home, corpus, metrics).items():
            points = tuple(
                RunPoint(name, seed, x, y)
                for (name, seed), x, y in zip(runs, values, outcomes, strict=True)
                if x is not None and y is not None
            )
            rho = correlation([point.x for point in points], [point.y for point in points])
            family.append(ForetoldRow(corpus, where, what, method, len(points), **vars(rho), points=points))
        corrected = holm([np.nan if row.p is None else row.p for row in family])
        rows += [replace(row, p_holm=number(p)) for row, p in zip(family, corrected, strict=True)]
    return rows


def _known(
    measured: Measurements, runs: Sequence[tuple[str, int]], home: str, corpus: str, metrics: Sequence[str]
) -> dict[tuple[str, str, str], list[float | None]]:
    known: dict[tuple[str, str, str], list[float | None]] = {
        (home, "macro_f1", ""): [measured[run][home].scores.get("macro_f1") for run in runs],
        (home, "reliance", ""): [mean_of_texts(relied(measured[run][home].reliance)) for run in runs],
    }
    for where in (home, corpus):
        for key in dict.fromkeys(key for run in runs for key in measured[run][where].values if key[0] in metrics):
            values = [mean_of_texts(measured[run][where].values.get(key, {})) for run in runs]
            if any(value is not None for value in values):
                known[where, *key] = values
    return known


def correlation(x: Sequence[float], y: Sequence[float]) -> Correlation:
    """Spearman's rho with a 95% interval (Fisher's z, variance after Bonett and Wright), or nothing of too few runs."""
    from scipy.special import ndtri
    from scipy.stats import spearmanr

    if len(x) < ENOUGH or len(set(x)) == 1 or len(set(y)) == 1:
        return Correlation()
    ranked: Any = spearmanr(x, y)
    rho = float(ranked.statistic)
    edge = min(abs(rho), 1 - 1e-12) * np.sign(rho)  # of a perfect order the interval is a point
    half = ndtri((1 + LEVEL) / 2) * np.sqrt((1 + edge**2 / 2) / (len(x) - 3))
    low, high = np.tanh(np.arctanh(edge) - half), np.tanh(np.arctanh(edge) + half)
    return Correlation(rho, float(low), float(high), float(ranked.pvalue))
