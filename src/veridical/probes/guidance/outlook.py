"""Two questions over runs: what the explanation loss costs (figures 5 and 12), and what foretells F1 out of domain
(figures 6 and 14)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from veridical.core.statistics import LEVEL, holm
from veridical.probes.guidance.reliance import relied
from veridical.probes.guidance.runs import Condition
from veridical.probes.guidance.tables import Found, Row, mean, over_seeds

ENOUGH = 8  # runs that a correlation needs: of so many, one below 0.74 is not told from none


def tradeoff(
    base: Condition, others: Sequence[Condition], baseline: Mapping[tuple[str, int], float | None]
) -> list[Row]:
    """Cross-entropy and explanation loss on dev of every condition that was trained with the term, by guide.

    `baseline` holds the term's value for a guide and a seed of the baseline, which was trained without: weight 0.
    """
    rows: list[Row] = []
    terms = {one.explanation.choice.label: one.explanation for one in (base, *others) if one.explanation is not None}
    for guide, term in terms.items():
        method = str(term.choice.options["method"])
        for one in (base, *others):
            losses = [run.dev.get("loss") for run in one.runs]
            if one.explanation is not None and one.explanation.choice.label == guide:
                values = [run.dev.get("explanation") for run in one.runs]
                rows.append(_row(guide, method, one, one.setting, losses, values))
            elif one is base:
                values = [baseline.get((guide, run.seed)) for run in base.runs]
                rows.append(_row(guide, method, base, "weight 0", losses, values))
    return rows


def _row(
    guide: str,
    method: str,
    one: Condition,
    setting: str,
    losses: Sequence[float | None],
    values: Sequence[float | None],
) -> Row:
    return {
        "guide": guide,
        "method": method,
        "condition": one.name,
        "setting": setting,
        "dev_bound": one.dev_bound,
        "cross_entropy": over_seeds(losses),
        "explanation": over_seeds(values),
    }


# -- what foretells F1 elsewhere ----------------------------------------------------------------------------


def foretold(
    found: Found, conditions: Sequence[Condition], home: str, away: Sequence[str], metrics: Sequence[str]
) -> list[Row]:
    """Rank correlation, over all runs, of what is known of a run with its macro-F1 on each other corpus.

    Known are its macro-F1, its reliance on the rationale and the mean of every metric of every method, in domain, and
    the latter on the other corpus itself. Runs of one condition are not independent; the interval takes them so.
    """
    runs = [(one.name, run.seed) for one in conditions for run in one.runs]
    rows: list[Row] = []
    for corpus in away:
        outcome = [found[run][corpus].scores.get("macro_f1") for run in runs]
        if not any(value is not None for value in outcome):
            continue
        family: list[Row] = []
        for (where, what, method), values in _known(found, runs, home, corpus, metrics).items():
            pairs = [
                (run, x, y) for run, x, y in zip(runs, values, outcome, strict=True) if x is not None and y is not None
            ]
            points = [{"condition": name, "seed": seed, "x": x, "y": y} for (name, seed), x, y in pairs]
            row: Row = {"corpus": corpus, "where": where, "what": what, "method": method, "n": len(points)}
            family.append(row | correlation([p["x"] for p in points], [p["y"] for p in points]) | {"points": points})
        p = holm([np.nan if row["p"] is None else row["p"] for row in family])
        rows += [row | {"p_holm": None if np.isnan(own) else float(own)} for row, own in zip(family, p, strict=True)]
    return rows


def _known(
    found: Found, runs: Sequence[tuple[str, int]], home: str, corpus: str, metrics: Sequence[str]
) -> dict[tuple[str, str, str], list[float | None]]:
    known: dict[tuple[str, str, str], list[float | None]] = {
        (home, "macro_f1", ""): [found[run][home].scores.get("macro_f1") for run in runs],
        (home, "reliance", ""): [mean(relied(found[run][home].reliance)) for run in runs],
    }
    for where in (home, corpus):
        for key in dict.fromkeys(key for run in runs for key in found[run][where].values if key[0] in metrics):
            values = [mean(found[run][where].values.get(key, {})) for run in runs]
            if any(value is not None for value in values):
                known[where, *key] = values
    return known


def correlation(x: Sequence[float], y: Sequence[float]) -> dict[str, Any]:
    """Spearman's rho with a 95% interval (Fisher's z, variance after Bonett and Wright), or nothing of too few runs."""
    from scipy.special import ndtri
    from scipy.stats import spearmanr

    nothing = {"rho": None, "low": None, "high": None, "p": None}
    if len(x) < ENOUGH or len(set(x)) == 1 or len(set(y)) == 1:
        return nothing
    found: Any = spearmanr(x, y)
    rho = float(found.statistic)
    edge = min(abs(rho), 1 - 1e-12) * np.sign(rho)  # of a perfect order the interval is a point
    half = ndtri((1 + LEVEL) / 2) * np.sqrt((1 + edge**2 / 2) / (len(x) - 3))
    low, high = np.tanh(np.arctanh(edge) - half), np.tanh(np.arctanh(edge) + half)
    return {"rho": rho, "low": float(low), "high": float(high), "p": float(found.pvalue)}
