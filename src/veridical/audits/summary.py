"""From cells to the summary: every mean, interval, test, ranking and verdict of an audit.

The cells of a corpus become a sheet once; every table reads that. Undefined values are NaN in its arrays, None in the
summary, and counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import numpy as np

from veridical.audits.diagnosticity import (
    Better,
    Diagnosticity,
    MetricTest,
    credit,
    diagnosticity_rows,
    metric_tests,
    outcomes,
    over_methods,
    settled,
)
from veridical.audits.oracles import ORACLES
from veridical.audits.ranking import CHANCE, RIVALS, Comparison, Ranking, compare_all, rank
from veridical.audits.record import (
    AuditSummary,
    Concentration,
    MeanScore,
    MetricFacts,
    PairAgreement,
    TruthOrder,
)
from veridical.audits.sheet import Sheet, gather
from veridical.audits.verdict import Verdict, verdict
from veridical.core.records import Cell
from veridical.core.spec import base_name
from veridical.core.statistics import bca, mean, number, signed_rank
from veridical.metric.agreement import kendall
from veridical.metric.erasure import SMALL

Facts = Mapping[str, MetricFacts]  # by metric
PAIR = " ~ "  # joins the two methods an agreement is between


def summarise(cells: Iterable[Cell], facts: AuditSummary) -> AuditSummary:
    """The facts of an audit with every table that comes from its scores; the bootstrap draws from the audit's seed."""
    cells, seed = list(cells), facts.settings.seed
    metrics = {metric.name: metric for metric in facts.metrics}
    alone = [metric.name for metric in facts.metrics if metric.kind != "agreement"]
    summary = facts
    home: Ranking | None = None
    for corpus in facts.corpora:
        here = [cell for cell in cells if cell.corpus == corpus.name]
        sheet = gather([cell for cell in here if cell.metric in alone], corpus.name, alone)
        trust = _trust(sheet, metrics, seed)
        ranking = _rank(sheet, metrics, trust.rows, seed)
        summary = replace(
            summary,
            cells=(*summary.cells, *_means(sheet, seed)),
            diagnosticity=(*summary.diagnosticity, *trust.rows),
            metric_tests=(*summary.metric_tests, *trust.tests),
            metric_tests_by_method=(*summary.metric_tests_by_method, *trust.tests_by_method),
            comparisons=(*summary.comparisons, *ranking.comparisons, *_comparisons(sheet, metrics)),
            ranking=(*summary.ranking, *ranking.standings),
            verdicts=(*summary.verdicts, _noted(sheet, metrics, ranking, home if corpus.role == "ood" else None)),
            agreement=(*summary.agreement, *_agreement([cell for cell in here if PAIR in cell.method], sheet, metrics)),
            sparsity=(*summary.sparsity, *_sparsity(sheet, metrics)),
            truth=(*summary.truth, *_truth(sheet, metrics)),
        )
        home = ranking if home is None else home
    return summary


def _means(sheet: Sheet, seed: int) -> list[MeanScore]:
    values, scored = sheet.values[""], sheet.scored[""]
    rows: list[MeanScore] = []
    samples: list[np.ndarray] = []  # of each row the values, then those of every ratio
    for m, method in enumerate(sheet.methods):
        for k, metric in enumerate(sheet.metrics):
            if not scored[m, k].any():
                continue
            scores, curve = values[m, k], sheet.curves[""][k][m].T  # [N], [R, N]
            defined, rooms = ~np.isnan(scores), sheet.rooms[m, k]  # [N], [N]
            errors = sheet.errors[m, k][defined & ~np.isnan(sheet.errors[m, k])]
            rows.append(
                MeanScore(
                    corpus=sheet.corpus,
                    method=method,
                    metric=metric,
                    n=int(defined.sum()),
                    undefined=int((scored[m, k] & ~defined).sum()),
                    small=None if np.isnan(rooms).all() else int((rooms[defined] < SMALL).sum()),
                    mean=mean(scores),
                    # The draws of different texts are independent: their errors add in squares.
                    sampling_error=float(np.sqrt((errors**2).sum()) / len(errors)) if len(errors) else None,
                    curve=tuple(mean(point) for point in curve),
                    low=None,
                    high=None,
                    curve_low=(),
                    curve_high=(),
                )
            )
            samples += [scores, *curve]
    if not rows:
        return []
    low, high = ([number(end) for end in bound] for bound in bca(np.array(samples), seed=seed))
    starts = np.cumsum([0, *(1 + len(row.curve) for row in rows)]).tolist()
    return [
        replace(
            row,
            low=low[start],
            high=high[start],
            curve_low=tuple(low[start + 1 : end]),
            curve_high=tuple(high[start + 1 : end]),
        )
        for row, (start, end) in zip(rows, pairwise(starts), strict=True)
    ]


# -- metrics ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trust:
    """How far the metrics can be trusted on one corpus."""

    rows: tuple[Diagnosticity, ...]  # against every control
    tests: tuple[MetricTest, ...]  # with the first control only
    tests_by_method: tuple[MetricTest, ...]


def _trust(sheet: Sheet, facts: Facts, seed: int) -> Trust:
    """Of every metric that scored random explanations too, against each kind of them."""
    rows: list[Diagnosticity] = []
    tests: list[MetricTest] = []
    by_method: list[MetricTest] = []
    pooled = [_real(method) for method in sheet.methods]
    for control in sheet.controls:
        known = [k for k in range(len(sheet.metrics)) if sheet.scored[control][:, k].any()]
        names = [sheet.metrics[k] for k in known]
        better: list[Better] = [facts[name].better for name in names]
        outcome = np.stack(
            [
                outcomes(sheet.values[""][:, k], sheet.values[control][:, k], way)
                for k, way in zip(known, better, strict=True)
            ],
            1,
        )
        curves = [
            outcomes(sheet.curves[""][k], sheet.curves[control][k], way) for k, way in zip(known, better, strict=True)
        ]
        rows += diagnosticity_rows(
            outcome, curves, sheet.methods, names, pooled, corpus=sheet.corpus, control=control, seed=seed
        )
        if control != sheet.controls[0]:
            continue
        judges = [i for i, name in enumerate(names) if facts[name].kind == "faithfulness"]
        judging = [names[i] for i in judges]
        tests += metric_tests(over_methods(credit(outcome[pooled][:, judges])), judging, corpus=sheet.corpus)
        for m in np.flatnonzero(pooled):
            credits = credit(outcome[m, judges])
            by_method += metric_tests(credits, judging, corpus=sheet.corpus, method=sheet.methods[m])
    return Trust(tuple(rows), tuple(tests), tuple(by_method))


def _rank(sheet: Sheet, facts: Facts, trust: Sequence[Diagnosticity], seed: int) -> Ranking:
    """The methods by all faithfulness metrics, weighted by what they proved against the first control."""
    partial = _partial(sheet, facts)
    chosen = [k for k, name in enumerate(sheet.metrics) if facts[name].kind == "faithfulness" and name not in partial]
    rows = [m for m, method in enumerate(sheet.methods) if method not in ORACLES]
    names = [sheet.metrics[k] for k in chosen]
    control = sheet.controls[0] if sheet.controls else None
    weight = {row.metric: row.weight for row in trust if row.control == control and not row.method}
    pick = np.ix_(rows, chosen)
    return rank(
        sheet.values[""][pick],
        [sheet.methods[m] for m in rows],
        names,
        [facts[name].better for name in names],
        [1.0 if control is None else weight.get(name, 0.0) for name in names],
        None if control is None else sheet.values[control][pick],
        control=control or "permutation",
        corpus=sheet.corpus,
        seed=seed,
    )


def _partial(sheet: Sheet, facts: Facts) -> dict[str, list[str]]:
    """Metrics that ask the model what one of the methods asks it: they would crown it by definition."""
    asking = {
        name: [method for method in sheet.methods if base_name(method) in facts[name].repeats] for name in sheet.metrics
    }
    return {name: methods for name, methods in asking.items() if methods}


def _comparisons(sheet: Sheet, facts: Facts) -> list[Comparison]:
    """Every pair of methods on every metric that rates them, Holm within the metric."""
    rows: list[Comparison] = []
    for k, metric in enumerate(sheet.metrics):
        if facts[metric].kind != "shape":
            values = settled(sheet.values[""][:, k])
            rows += compare_all(values, sheet.methods, facts[metric].better, corpus=sheet.corpus, metric=metric)
    return rows


# -- what is said -------------------------------------------------------------------------------------------


def _noted(sheet: Sheet, facts: Facts, ranking: Ranking, home: Ranking | None) -> Verdict:
    """The verdict on a ranking with all its notes; out of domain `home` is the ranking in the model's own."""
    plain = verdict(ranking)
    notes = [*plain.notes, *_weights_said(sheet, ranking), *_gaps(sheet, facts)]
    notes += [*_small(sheet), *_at_odds(sheet, facts, ranking), *([] if home is None else _moved(home, ranking))]
    return replace(plain, notes=tuple(notes))


def _weights_said(sheet: Sheet, ranking: Ranking) -> list[str]:
    """What a reader of the verdict should know of the weights."""
    if not sheet.controls:
        return ["No random explanations were scored in their place, so every metric counts alike."]
    notes = []
    used = [f"{name} {weight:.2f}" for name, weight in ranking.weights.items() if weight]
    unused = [name for name, weight in ranking.weights.items() if not weight]
    rival = RIVALS[ranking.control]
    if used:
        notes.append(f"Metrics count by how reliably they rated explanations above {rival}: {', '.join(used)}.")
    if unused:
        notes.append(f"Not shown to rate explanations above {rival}, so without weight: {', '.join(unused)}.")
    return notes


def _gaps(sheet: Sheet, facts: Facts) -> list[str]:
    """Which metrics have no say, and which are undefined on some texts."""
    notes = [
        f"{name} asks the model what {' and '.join(methods)} asks it, so it has no say in the ranking."
        for name, methods in _partial(sheet, facts).items()
    ]
    gaps = []
    for k, name in enumerate(sheet.metrics):
        asked, whole = int(sheet.scored[""][:, k].any(0).sum()), int((~np.isnan(sheet.values[""][:, k])).all(0).sum())
        if facts[name].kind == "faithfulness" and whole < asked:
            gaps.append(f"{name} on {asked - whole} of {asked}")
    if gaps:
        notes.append(f"Texts on which a metric is undefined for some method are left out of it: {', '.join(gaps)}.")
    return notes


def _small(sheet: Sheet) -> list[str]:
    """Texts on which a soft metric divides by little, so that its draws are too few."""
    counts = []
    for k, name in enumerate(sheet.metrics):
        defined = ~np.isnan(sheet.values[""][:, k]).all(0)  # [texts]
        small = (sheet.rooms[:, k] < SMALL).any(0) & defined
        if small.any():
            counts.append(f"{name} on {int(small.sum())} of {int(defined.sum())}")
    if not counts:
        return []
    return [
        f"On some texts the model is hardly less sure without its tokens (D below {SMALL:g}), and ten draws of a soft "
        f"metric are too few: {', '.join(counts)}. Ask for more (samples=100)."
    ]


def _at_odds(sheet: Sheet, facts: Facts, ranking: Ranking) -> list[str]:
    """Pairs of metrics with weight that order the methods (three or more, `random` apart) against each other."""
    rows = [m for m, method in enumerate(sheet.methods) if _real(method)]
    means = {}
    for k, name in enumerate(sheet.metrics):
        if ranking.weights.get(name):
            sign = 1 if facts[name].better == "higher" else -1
            means[name] = sign * np.array([mean(sheet.values[""][m, k]) for m in rows], dtype=np.float64)
    notes = []
    for a, b in combinations(means, 2):
        both = ~np.isnan(means[a]) & ~np.isnan(means[b])
        tau = kendall(means[a][both], means[b][both]) if both.sum() >= 3 else None
        if tau is not None and tau < 0:
            notes.append((tau, f"{a} and {b} order the methods against each other (Kendall's tau {tau:.2f})."))
    return [note for _, note in sorted(notes)[:3]]


def _moved(home: Ranking, ranking: Ranking) -> list[str]:
    """What changed out of domain: only if another method than at home comes first."""
    if not home.standings or not ranking.standings:
        return []
    first, now = home.standings[0].method, ranking.standings[0].method
    place = {s.method: s.place for s in ranking.standings}
    if first == now or first not in place:
        return []
    sure = "which the texts can tell apart" if ranking.apart(first, now) else "which the texts cannot tell apart"
    return [f"On {home.corpus} {first} ranks first; here {now} does and {first} is number {place[first]}, {sure}."]


# -- other tables -------------------------------------------------------------------------------------------


def _agreement(cells: Sequence[Cell], sheet: Sheet, facts: Facts) -> list[PairAgreement]:
    """Mean rank correlation and overlap of every pair of methods."""
    tau, jaccard = _first(facts, "agreement"), _first(facts, "jaccard")
    pairs: dict[str, tuple[list[float], list[float]]] = {}
    for cell in cells:
        if cell.metric in (tau, jaccard):
            values = pairs.setdefault(cell.method, ([], []))[cell.metric == jaccard]
            if cell.score.value is not None:
                values.append(cell.score.value)
    return [
        PairAgreement(sheet.corpus, *_pair(pair), mean(taus), mean(overlaps), max(len(taus), len(overlaps)))
        for pair, (taus, overlaps) in pairs.items()
    ]


def _pair(name: str) -> tuple[str, str]:
    a, _, b = name.partition(PAIR)
    return a, b


def _sparsity(sheet: Sheet, facts: Facts) -> list[Concentration]:
    metric = _first(facts, "sparsity")
    if metric is None:
        return []
    curves = sheet.curves[""][sheet.metrics.index(metric)]  # [methods, texts, ratios]
    return [
        Concentration(sheet.corpus, method, facts[metric].ratios, tuple(mean(point) for point in curve.T))
        for method, curve in zip(sheet.methods, curves, strict=True)
    ]


def _truth(sheet: Sheet, facts: Facts) -> list[TruthOrder]:
    """How each metric ranks the oracle, the methods, random and the inverted oracle, where they were scored."""
    floor = next((method for method in sheet.methods if base_name(method) == CHANCE), None)
    if floor is None or any(name not in sheet.methods for name in ORACLES):
        return []
    rows = []
    for k, metric in enumerate(sheet.metrics):
        sign = 1 if facts[metric].better == "higher" else -1
        values = dict(zip(sheet.methods, sheet.values[""][:, k], strict=True))
        means = {name: average for name, scores in values.items() if (average := mean(scores)) is not None}
        if facts[metric].kind == "shape" or any(name not in means for name in (*ORACLES, floor)):
            continue
        order = sorted(means, key=lambda name, means=means, sign=sign: -sign * means[name])
        oracle, inverted = (values[name] for name in ORACLES)
        test = signed_rank(sign * np.array([oracle - values[floor], values[floor] - inverted]))
        rows.append(
            TruthOrder(
                corpus=sheet.corpus,
                metric=metric,
                order=tuple(order),
                values=tuple(means[name] for name in order),
                margin_oracle_random=number(test.difference[0]),
                margin_random_inverted=number(test.difference[1]),
                p_oracle_random=number(test.p[0]),
                p_random_inverted=number(test.p[1]),
                holds=bool((test.difference > 0).all()),
            )
        )
    return rows


def _real(method: str) -> bool:
    return method not in ORACLES and base_name(method) != CHANCE


def _first(facts: Facts, name: str) -> str | None:
    """The first spec of a metric, whatever its options."""
    return next((spec for spec in facts if base_name(spec) == name), None)
