"""From cells to the summary: every mean, interval, test, ranking and verdict of an audit.

The cells of a corpus become a sheet once; every table reads that. Undefined values are NaN in its arrays, None in the
summary, and counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from veridical.audits.judge import Judged, judge
from veridical.audits.looks import Course
from veridical.audits.options import Control
from veridical.audits.oracles import ORACLES
from veridical.audits.pairs import CHANCE, Comparison, compare_all
from veridical.audits.plan import ORDERS, is_reference
from veridical.audits.record import (
    AuditSummary,
    Concentration,
    MeanScore,
    MetricFacts,
    PairAgreement,
    TruthOrder,
    Verdict,
)
from veridical.audits.reference import best_shares
from veridical.audits.sheet import Sheet, gather
from veridical.core.records import Cell
from veridical.core.spec import base_name
from veridical.core.statistics import bca, mean, number, signed_rank
from veridical.metric.agreement import kendall
from veridical.metric.erasure import SMALL

Facts = Mapping[str, MetricFacts]  # by metric
HELD = ("faithfulness", "truth")  # kinds of metrics that rate an explanation against random ones
PAIR = " ~ "  # joins the two methods an agreement is between


def summarise(facts: AuditSummary, courses: Mapping[str, Course], cells: Mapping[str, Sequence[Cell]]) -> AuditSummary:
    """The facts of an audit with every table that comes from its scores; the bootstrap draws from the audit's seed.

    `courses` and `cells` are by corpus; the cells are all scores, those that the courses rest on among them.
    """
    seed = facts.settings.seed
    metrics = {metric.name: metric for metric in facts.metrics}
    alone = [metric.name for metric in facts.metrics if metric.kind != "agreement"]
    summary = facts
    home: Judged | None = None
    for corpus in facts.corpora:
        here, course = cells[corpus.name], courses[corpus.name]
        sheet = gather([cell for cell in here if cell.metric in alone], corpus.name, alone, list(course.units))
        trust = _trust(sheet, metrics, "orders" in facts.settings.controls, seed)
        judged = judge(sheet, metrics, course, corpus, seed)
        summary = replace(
            summary,
            corpora=tuple(judged.facts if c.name == corpus.name else c for c in summary.corpora),
            cells=(*summary.cells, *_means(sheet, seed)),
            diagnosticity=(*summary.diagnosticity, *trust.rows),
            metric_tests=(*summary.metric_tests, *trust.tests),
            metric_tests_by_method=(*summary.metric_tests_by_method, *trust.tests_by_method),
            comparisons=(*summary.comparisons, *_comparisons(sheet, metrics)),
            ranking=(*summary.ranking, *judged.standings),
            verdicts=(*summary.verdicts, _noted(sheet, metrics, judged, home if corpus.role == "ood" else None)),
            agreement=(*summary.agreement, *_agreement([cell for cell in here if PAIR in cell.method], sheet, metrics)),
            sparsity=(*summary.sparsity, *_sparsity(sheet, metrics)),
            truth=(*summary.truth, *_truth(sheet, metrics)),
            best_shares=(*summary.best_shares, *best_shares(sheet, metrics)),
            looks=(*summary.looks, *course.looks),
            net_curves=(*summary.net_curves, *judged.curves),
        )
        home = judged if home is None else home
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
                    small=int((rooms[defined] < SMALL).sum()) if len(errors) and not np.isnan(rooms).all() else None,
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


def _trust(sheet: Sheet, facts: Facts, orders: bool, seed: int) -> Trust:
    """Of every metric that scored random explanations too, against each kind of them."""
    rows: list[Diagnosticity] = []
    tests: list[MetricTest] = []
    by_method: list[MetricTest] = []
    pooled = [_real(method) for method in sheet.methods]
    held = [*(_against_orders(sheet, facts) if orders else ()), *_against_draws(sheet, facts)]
    for against in held:
        many = against.outcome.shape[0] // len(sheet.methods)
        rows += diagnosticity_rows(
            against.outcome,
            against.curves,
            [*sheet.methods] * many,
            against.metrics,
            pooled * many,
            corpus=sheet.corpus,
            control=against.control,
            seed=seed,
        )
    # Metrics are compared with each other by what each was first held against.
    first: dict[str, np.ndarray] = {}
    for against in held:
        for k, name in enumerate(against.metrics):
            if facts[name].kind == "faithfulness":
                credits = credit(against.outcome[:, k]).reshape(-1, len(sheet.methods), len(sheet.examples))
                first.setdefault(name, over_methods(credits))
    if first:
        credits = np.stack(list(first.values()), 1)  # [methods, metrics, texts]
        tests += metric_tests(over_methods(credits[pooled]), list(first), corpus=sheet.corpus)
        for m in np.flatnonzero(pooled):
            by_method += metric_tests(credits[m], list(first), corpus=sheet.corpus, method=sheet.methods[m])
    return Trust(tuple(rows), tuple(tests), tuple(by_method))


@dataclass(frozen=True)
class Against:
    """Outcomes of methods against random explanations of one kind, several of them one after the other."""

    control: Control
    metrics: tuple[str, ...]
    outcome: np.ndarray  # [methods x explanations, metrics, texts]
    curves: list[np.ndarray]  # per metric [methods x explanations, texts, ratios]


def _against_orders(sheet: Sheet, facts: Facts) -> list[Against]:
    """Metrics that read nothing but the order, against the random orders that all methods share."""
    orders = [m for m, method in enumerate(sheet.methods) if method in ORDERS]
    known = [k for k, name in enumerate(sheet.metrics) if facts[name].order and facts[name].kind in HELD]
    if not orders or not known:
        return []
    values, curves = sheet.values[""], sheet.curves[""]
    outcome = [
        np.stack([outcomes(values[:, k], values[order, k], facts[sheet.metrics[k]].better) for k in known], 1)
        for order in orders
    ]
    along = [
        np.concatenate([outcomes(curves[k], curves[k][order], facts[sheet.metrics[k]].better) for order in orders])
        for k in known
    ]
    return [Against("orders", tuple(sheet.metrics[k] for k in known), np.concatenate(outcome), along)]


def _against_draws(sheet: Sheet, facts: Facts) -> list[Against]:
    """Metrics against what was drawn anew in the place of every explanation."""
    held = []
    for control in sheet.controls:
        known = [k for k in range(len(sheet.metrics)) if sheet.scored[control][:, k].any()]
        ways: list[Better] = [facts[sheet.metrics[k]].better for k in known]
        outcome = [
            outcomes(sheet.values[""][:, k], sheet.values[control][:, k], way)
            for k, way in zip(known, ways, strict=True)
        ]
        curves = [
            outcomes(sheet.curves[""][k], sheet.curves[control][k], way) for k, way in zip(known, ways, strict=True)
        ]
        held.append(Against(control, tuple(sheet.metrics[k] for k in known), np.stack(outcome, 1), curves))
    return held


def _comparisons(sheet: Sheet, facts: Facts) -> list[Comparison]:
    """Every pair of methods on every metric that rates them, Holm within the metric."""
    rows: list[Comparison] = []
    for k, metric in enumerate(sheet.metrics):
        if facts[metric].kind != "shape":
            values = settled(sheet.values[""][:, k])
            rows += compare_all(values, sheet.methods, facts[metric].better, corpus=sheet.corpus, metric=metric)
    return rows


# -- what is said -------------------------------------------------------------------------------------------


def _noted(sheet: Sheet, facts: Facts, judged: Judged, home: Judged | None) -> Verdict:
    """The verdict with all its notes; out of domain `home` is what was judged in the model's own."""
    plain = judged.verdict
    notes = [*plain.notes, *_voteless(sheet, facts), *_gaps(sheet, facts), *_unmoved(judged)]
    notes += [*_small(sheet), *_at_odds(sheet, facts), *([] if home is None else _moved(home, judged))]
    return replace(plain, notes=tuple(notes))


def _unmoved(judged: Judged) -> list[str]:
    """Texts that cannot tell methods apart, because nothing that was erased makes a difference."""
    if not judged.unmoved:
        return []
    named = ", ".join(judged.unmoved[:5]) + (", ..." if len(judged.unmoved) > 5 else "")
    return [
        f"On {len(judged.unmoved)} of {judged.texts} texts no erasure tells any two methods apart; they count as ties "
        f"({named})."
    ]


def _voteless(sheet: Sheet, facts: Facts) -> list[str]:
    names = [name for name in sheet.metrics if facts[name].kind == "faithfulness" and not facts[name].votes]
    return [f"Shown, and without a vote: {', '.join(names)}."] if names else []


def _gaps(sheet: Sheet, facts: Facts) -> list[str]:
    """Which metrics are undefined on some texts."""
    gaps = []
    for k, name in enumerate(sheet.metrics):
        scored, undefined = sheet.scored[""][:, k], np.isnan(sheet.values[""][:, k])
        asked, broken = int(scored.any(0).sum()), int((scored & undefined).any(0).sum())
        if facts[name].kind == "faithfulness" and broken:
            gaps.append(f"{name} on {broken} of {asked}")
    return [f"A metric that is undefined on a text has no vote there: {', '.join(gaps)}."] if gaps else []


def _small(sheet: Sheet) -> list[str]:
    """Texts on which a soft metric divides by little, so that its draws are too few."""
    counts = []
    for k, name in enumerate(sheet.metrics):
        if np.isnan(sheet.errors[:, k]).all():  # it draws nothing, and divides by something else
            continue
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


def _at_odds(sheet: Sheet, facts: Facts) -> list[str]:
    """Pairs of metrics with a vote that order the methods (three or more, `random` apart) against each other."""
    rows = [m for m, method in enumerate(sheet.methods) if _real(method)]
    means = {}
    for k, name in enumerate(sheet.metrics):
        if facts[name].votes:
            sign = 1 if facts[name].better == "higher" else -1
            means[name] = sign * np.array([mean(sheet.values[""][m, k]) for m in rows], dtype=np.float64)
    notes = []
    for a, b in combinations(means, 2):
        both = ~np.isnan(means[a]) & ~np.isnan(means[b])
        tau = kendall(means[a][both], means[b][both]) if both.sum() >= 3 else None
        if tau is not None and tau < 0:
            notes.append((tau, f"{a} and {b} order the methods against each other (Kendall's tau {tau:.2f})."))
    return [note for _, note in sorted(notes)[:3]]


def _moved(home: Judged, judged: Judged) -> list[str]:
    """What changed out of domain: only if another method than at home comes first."""
    if not home.standings or not judged.standings:
        return []
    first, now = home.standings[0].method, judged.standings[0].method
    here = {standing.method: standing for standing in judged.standings}
    if first == now or first not in here:
        return []
    words = {"behind": "is shown to be behind", "open": "could not be told from it", "as_good": "is as good"}
    apart = words.get(here[first].list or "", f"is number {here[first].place}")
    return [f"On {home.verdict.corpus} {first} comes first; here {now} does, and {first} {apart}."]


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
    return method not in ORACLES and base_name(method) != CHANCE and not is_reference(method)


def _first(facts: Facts, name: str) -> str | None:
    """The first spec of a metric, whatever its options."""
    return next((spec for spec in facts if base_name(spec) == name), None)
