"""The summary of an audit, indexed, and views of it for the template: layout, nothing computed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from markupsafe import Markup

from veridical.audits.page_parts import (
    AgreementMaps,
    CorpusView,
    CurvePanels,
    DomainRow,
    MassPanel,
    MassPanels,
    Panel,
    PanelRow,
    Panels,
    RankRow,
    RankTable,
    Setting,
    TrustRow,
    TrustTable,
    TruthPanel,
    TruthRow,
    UndefinedCount,
)
from veridical.audits.ranking import CHANCE, RIVALS
from veridical.audits.record import AuditSummary, CorpusFacts, MetricFacts, PairAgreement, TruthOrder
from veridical.core import store
from veridical.core.spec import base_name
from veridical.explanations.display import duration
from veridical.metric import Kind
from veridical.page import plots
from veridical.page.plots import Curve, Mark, Pair, Point, Scale
from veridical.page.words import figure, said, short_names

SHARE = Scale(0, 1, 3, 97, (0, 0.5, 1))  # of a row that shows a share
PLANTED = ("oracle", "random", "inverted oracle")  # their order is known


class InCorpus(Protocol):
    """A row that names its corpus."""

    @property
    def corpus(self) -> str: ...


Row = TypeVar("Row")
CorpusRow = TypeVar("CorpusRow", bound=InCorpus)


class View:
    """What the template asks of a summary. Methods go by their index in it, `m`, and metrics by theirs, `key`."""

    def __init__(self, summary: AuditSummary):
        self.summary = summary
        self.methods, self.metrics = summary.methods, summary.metrics
        self.specs = [method.name for method in summary.methods]
        self.names = short_names(self.specs)
        self.index = {spec: m for m, spec in enumerate(self.specs)}
        self.metric_index = {metric.name: key for key, metric in enumerate(summary.metrics)}
        self.control = next((spec for spec in self.specs if base_name(spec) == CHANCE), None)
        # The model's own domain leads; the others follow as they were given.
        self.corpora = sorted(summary.corpora, key=lambda corpus: corpus.role != "in")
        self.home = self.corpora[0].name
        self.cells = {(cell.corpus, cell.metric, cell.method): cell for cell in summary.cells}
        self.rankings = {(standing.corpus, standing.method): standing for standing in summary.ranking}
        self.verdicts = {verdict.corpus: verdict for verdict in summary.verdicts}
        controls = summary.settings.controls or ("permutation",)
        self.shuffled = "permutation" in controls  # the control that ranks, where there are several
        self.rival = RIVALS["permutation" if self.shuffled else controls[0]]

    def of_kind(self, kind: Kind) -> list[MetricFacts]:
        return [metric for metric in self.metrics if metric.kind == kind]

    def order(self, corpus: str, metric: MetricFacts | None = None) -> list[int]:
        """Methods best first, by place or by one metric; those without a value last, as they were listed."""

        def key(m: int) -> tuple[bool, float]:
            if metric is None:
                standing = self.rankings.get((corpus, self.specs[m]))
                return standing is None, standing.place if standing else 0
            cell = self.cells.get((corpus, metric.name, self.specs[m]))
            mean = cell.mean if cell else None
            return mean is None, 0 if mean is None else -mean if metric.better == "higher" else mean

        return sorted(range(len(self.specs)), key=key)

    def settings(self) -> list[Setting]:
        """What was asked for, then where it was computed."""
        asked = store.plain(self.summary.settings)
        hidden = {*asked, "veridical", "time"}
        stamp = {name: value for name, value in self.summary.stamp.items() if name not in hidden}
        return [
            Setting(name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
            for name, value in {**asked, **stamp}.items()
        ]

    def corpus(self, facts: CorpusFacts) -> CorpusView:
        """All there is to show of one corpus."""
        summary, name, index = self.summary, facts.name, self.corpora.index(facts)
        verdict = self.verdicts.get(name)
        # Metric by metric only for the own domain: over four corpora these tests would outweigh all the rest.
        comparisons = [c for c in _here(summary.comparisons, name) if not index or not c.metric]
        return CorpusView(
            index=index,
            facts=facts,
            f1=self.f1(facts, index),
            verdict=verdict,
            weights=verdict.weights if verdict else {},
            ranking=self.ranking(name),
            panels=self.panels(name),
            curves=tuple(view for metric in self.of_kind("faithfulness") if (view := self.curves(index, metric))),
            trust=self.trust(name),
            trust_by_method=_grouped(_here(summary.diagnosticity, name), lambda row: row.metric),
            comparisons=_grouped(comparisons, lambda row: row.metric),
            cells=_grouped(_here(summary.cells, name), lambda row: row.metric),
            tests=_here(summary.metric_tests, name),
            tests_by_method=() if index else _here(summary.metric_tests_by_method, name),
            agreement=self.agreement(name),
            sparsity=self.sparsity(index),
            undefined=self.undefined(name),
        )

    # -- ranking and metrics

    def rank_scale(self) -> Scale:
        count = max([2, *Counter(standing.corpus for standing in self.summary.ranking).values()])
        return Scale(1, count, 3, 97, (1, count) if count < 5 else (1, round((1 + count) / 2), count))

    def ranking(self, corpus: str) -> RankTable:
        scale, rows = self.rank_scale(), []
        keys = [(corpus, self.specs[m]) for m in self.order(corpus)]
        standings = [self.rankings[key] for key in keys if key in self.rankings]
        for k, standing in enumerate(standings):
            hollow = standing.method == self.control
            mark = Mark(standing.mean_rank, standing.low, standing.high, hollow=hollow)
            new_group = k > 0 and standings[k - 1].group != standing.group
            plot = plots.row([mark], scale, f"mean rank {said(mark.value, mark.low, mark.high)}")
            rows.append(RankRow(self.index[standing.method], standing, new_group, plot))
        return RankTable(tuple(rows), plots.axis(scale))

    def panels(self, corpus: str) -> Panels:
        def of_kind(kind: Kind) -> tuple[Panel, ...]:
            return tuple(panel for metric in self.of_kind(kind) if (panel := self.panel(corpus, metric)))

        return Panels(
            faithfulness=of_kind("faithfulness"),
            plausibility=of_kind("plausibility"),
            shape=of_kind("shape"),
            truth=of_kind("truth"),
        )

    def panel(self, corpus: str, metric: MetricFacts) -> Panel | None:
        """One metric over the methods, dots with intervals."""
        keys = {m: (corpus, metric.name, self.specs[m]) for m in self.order(corpus)}
        cells = {m: self.cells[key] for m, key in keys.items() if key in self.cells}
        if not cells:
            return None
        ends = [end for cell in cells.values() for end in (cell.mean, cell.low, cell.high)]
        scale = plots.linear(ends, 3, 97, metric.bounds)
        floor = cells.get(self.index.get(self.control or "", -1))
        rows = []
        for m, cell in cells.items():
            mark = Mark(cell.mean, cell.low, cell.high, hollow=self.specs[m] == self.control)
            rows.append(PanelRow(m, cell, plots.row([mark], scale, said(mark.value, mark.low, mark.high))))
        undefined = sum(cell.undefined for cell in cells.values())
        return Panel(
            key=self.metric_index[metric.name],
            metric=metric,
            rows=tuple(rows),
            axis=plots.axis(scale) if any(end is not None for end in ends) else None,
            undefined=undefined,
            asked=undefined + sum(cell.n for cell in cells.values()),
            weight=self.weight(corpus, metric),
            reference=None if floor is None or floor.mean is None else scale(floor.mean) / 100,
        )

    def weight(self, corpus: str, metric: MetricFacts) -> float | None:
        """What a metric counted for in the ranking."""
        verdict = self.verdicts.get(corpus)
        return verdict.weights.get(metric.name) if verdict else None

    def ranked(self) -> list[int]:
        """Methods that took part in the ranking of the own domain, best first; oracles do not."""
        order = self.order(self.home)
        return [m for m in order if (self.home, self.specs[m]) in self.rankings] or order

    def undefined(self, corpus: str) -> tuple[UndefinedCount, ...]:
        counts = []
        for key, metric in enumerate(self.metrics):
            cells = [c for spec in self.specs if (c := self.cells.get((corpus, metric.name, spec)))]
            missing = sum(cell.undefined for cell in cells)
            if missing:
                counts.append(UndefinedCount(key, missing, missing + sum(cell.n for cell in cells)))
        return tuple(counts)

    # -- curves

    def curves(self, index: int, metric: MetricFacts) -> CurvePanels | None:
        corpus, key = self.corpora[index].name, self.metric_index[metric.name]
        cells = [
            (m, cell)
            for m in self.order(corpus)
            if (cell := self.cells.get((corpus, metric.name, self.specs[m])))
            and any(value is not None for value in cell.curve)
        ]
        if not metric.ratios or not cells:
            return None
        back, drawn = plots.small_multiples(
            [Curve(cell.curve, cell.curve_low, cell.curve_high) for _, cell in cells],
            metric.ratios,
            [_curve_said(self.specs[m], metric.name, metric.ratios, cell.curve) for m, cell in cells],
            f"curves-{index}-{key}",
            metric.bounds,
        )
        panels = tuple(PanelRow(m, cell, plot) for (m, cell), plot in zip(cells, drawn, strict=True))
        return CurvePanels(key, metric, back, panels)

    def sparsity(self, index: int) -> MassPanels | None:
        corpus = self.corpora[index].name
        by_method = {self.index[row.method]: row for row in _here(self.summary.sparsity, corpus)}
        rows = [(m, by_method[m]) for m in self.order(corpus) if m in by_method]
        if not rows:
            return None
        shares = rows[0][1].shares
        back, drawn = plots.small_multiples(
            [Curve(row.mass) for _, row in rows],
            shares,
            [_curve_said(self.specs[m], "share of the total score", shares, row.mass) for m, row in rows],
            f"sparsity-{index}",
            (0, 1),
            diagonal=True,
        )
        panels = tuple(MassPanel(m, row, plot) for (m, row), plot in zip(rows, drawn, strict=True))
        return MassPanels(back, shares, panels)

    # -- how far to trust, agreement, domains, cost, truth

    def trust(self, corpus: str) -> TrustTable:
        """Diagnosticity of every metric over all methods, the controls one under the other."""
        pooled = [row for row in _here(self.summary.diagnosticity, corpus) if not row.method]
        controls = sorted({row.control for row in pooled}, key=lambda name: (name != "permutation", name))
        rows = []
        for key, metric in enumerate(self.metrics):
            of_metric = [row for row in pooled if row.metric == metric.name]
            of_metric.sort(key=lambda row: controls.index(row.control))
            if of_metric:
                marks = [Mark(d.value, d.low, d.high, hollow=controls.index(d.control) > 0) for d in of_metric]
                words = "; ".join(f"{d.control} {said(d.value, d.low, d.high)}" for d in of_metric)
                plot = plots.row(marks, SHARE, words)
                rows.append(TrustRow(key, tuple(of_metric), self.weight(corpus, metric), plot))
        rows.sort(key=lambda row: -row.controls[0].value)
        return TrustTable(tuple(rows), tuple(controls), plots.axis(SHARE, ("0", "0.5 chance", "1")))

    def agreement(self, corpus: str) -> AgreementMaps | None:
        pairs = tuple(pair for pair in _here(self.summary.agreement, corpus) if pair.a != pair.b)
        if not pairs:
            return None
        order = self.order(corpus)

        def drawn(value: Callable[[PairAgreement], float | None], title: str) -> Markup:
            cells = []
            for pair in pairs:
                a, b = self.index[pair.a], self.index[pair.b]
                words = f"tau {figure(pair.tau)}, overlap {figure(pair.jaccard)}"
                cells.append(Pair(a, b, value(pair), f"{self.names[a]}, {self.names[b]}: {words}"))
            return plots.heat_map(self.names, order, cells, f"{title} between methods on {corpus}; table below")

        tau, jaccard = drawn(lambda pair: pair.tau, "Kendall tau"), drawn(lambda pair: pair.jaccard, "Overlap")
        return AgreementMaps(pairs, tau, jaccard)

    def domains(self) -> list[DomainRow]:
        """Mean rank of every method on every corpus, a mark for each."""
        rows = []
        for m in self.ranked():
            standings = tuple(self.rankings.get((corpus.name, self.specs[m])) for corpus in self.corpora)
            marks = [
                Mark(standing.mean_rank, standing.low, standing.high, shape=k) if standing else Mark(None)
                for k, standing in enumerate(standings)
            ]
            words = "; ".join(
                f"{corpus.name} {figure(mark.value)}" for corpus, mark in zip(self.corpora, marks, strict=True)
            )
            rows.append(DomainRow(m, standings, plots.row(marks, self.rank_scale(), f"mean rank: {words}")))
        return rows

    def f1(self, facts: CorpusFacts, index: int) -> Markup | None:
        if facts.macro_f1 is None:
            return None
        return plots.row([Mark(facts.macro_f1, shape=index)], SHARE, f"macro F1 {figure(facts.macro_f1)}")

    def f1_axis(self) -> Markup:
        return plots.axis(SHARE)

    def cost(self) -> Markup | None:
        points = []
        for m, method in enumerate(self.methods):
            standing = self.rankings.get((self.home, method.name))
            if standing is not None:
                seconds = max(method.seconds, 1e-6)  # a logarithmic axis has no zero
                words = f"{method.name}: {duration(seconds)} per text, mean rank {figure(standing.mean_rank)}"
                place = (seconds, standing.mean_rank, standing.low, standing.high)
                points.append(Point(m, self.names[m], *place, words))
        if len(points) < 2:
            return None
        scale = plots.logarithmic([point.x for point in points], 0, 1)
        return plots.scatter(
            points,
            len(points),
            "time per text, logarithmic →",
            "↑ better: mean rank",
            {value: f"{value * 1e6:g} µs" if value < 1e-3 else duration(value) for value in scale.ticks},
            "Time per text against mean rank; the numbers are in the table beside",
        )

    def truth(self) -> list[TruthPanel]:
        return [self.truth_panel(order) for order in self.summary.truth]

    def truth_panel(self, order: TruthOrder) -> TruthPanel:
        key = self.metric_index.get(order.metric)
        scale = plots.linear(order.values, 3, 97, () if key is None else self.metrics[key].bounds)
        rows = tuple(
            TruthRow(self.index.get(name), name, value, name in PLANTED, plots.row([Mark(value)], scale, figure(value)))
            for name, value in zip(order.order, order.values, strict=True)
        )
        return TruthPanel(key, order, rows, plots.axis(scale))


def _curve_said(method: str, what: str, shares: Iterable[float], values: Iterable[float | None]) -> str:
    pairs = list(zip(shares, values, strict=True))
    pairs = pairs[:: 1 + len(pairs) // 8]  # some of a long curve: this is read aloud
    points = ", ".join(f"{figure(value)} at {share:.0%}" for share, value in pairs)
    return f"{method}, {what}: {points}"


def _here(rows: Sequence[CorpusRow], corpus: str) -> tuple[CorpusRow, ...]:
    return tuple(row for row in rows if row.corpus == corpus)


def _grouped(rows: Iterable[Row], key: Callable[[Row], str]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups
