"""The summary of an audit, indexed, and views of its metrics for the template: layout. Only the mean over the random
orders is computed, which stand as one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Protocol, TypeVar

from markupsafe import Markup

from veridical.audits.page_parts import (
    AgreementMaps,
    CurvePanels,
    MassPanel,
    MassPanels,
    Panel,
    PanelRow,
    Panels,
    Setting,
    TrustRow,
    TrustTable,
    TruthPanel,
    TruthRow,
    UndefinedCount,
)
from veridical.audits.pairs import CHANCE
from veridical.audits.record import (
    AuditSummary,
    CorpusFacts,
    MeanScore,
    MethodFacts,
    MetricFacts,
    PairAgreement,
    TruthOrder,
)
from veridical.core import store
from veridical.core.spec import base_name
from veridical.metric import Kind
from veridical.page import plots
from veridical.page.plots import Curve, Mark, Pair, Scale
from veridical.page.words import figure, said, short_names

SHARE = Scale(0, 1, 3, 97, (0, 0.5, 1))  # of a row that shows a share
PLANTED = ("oracle", "random", "inverted oracle")  # their order is known
CONTROLS = ("orders", "permutation", "gaussian")  # the first of those that there are leads


class InCorpus(Protocol):
    """A row that names its corpus."""

    @property
    def corpus(self) -> str: ...


Row = TypeVar("Row")
CorpusRow = TypeVar("CorpusRow", bound=InCorpus)


@dataclass(frozen=True)
class Signs:
    """Whether there are methods whose scores have a sign, and methods whose scores have none."""

    some: bool
    without: bool


class View:
    """What the template asks of a summary. Methods go by their index in it, `m`, and metrics by theirs, `key`."""

    def __init__(self, summary: AuditSummary):
        self.summary = summary
        self.methods, self.metrics = summary.methods, summary.metrics
        self.specs = [method.name for method in summary.methods]
        self.index = {spec: m for m, spec in enumerate(self.specs)}
        self.metric_index = {metric.name: key for key, metric in enumerate(summary.metrics)}
        self.rankings = {(standing.corpus, standing.method): standing for standing in summary.ranking}
        self.verdicts = {verdict.corpus: verdict for verdict in summary.verdicts}
        # The random orders stand as one, in the place of the first.
        orders = self._orders()
        self.chance = orders[0] if orders else None
        self.unshown = frozenset(orders[1:])
        self.shown = [m for m in range(len(self.specs)) if m not in self.unshown]
        self.names, self.titles = short_names(self.specs), list(self.specs)
        if len(orders) > 1:
            self.names[orders[0]] = self.titles[orders[0]] = "random orders"
        shown = {self.methods[m].signed for m in self.shown}
        self.signs = Signs(True in shown, False in shown)
        # The model's own domain leads; the others follow as they were given.
        self.corpora = sorted(summary.corpora, key=lambda corpus: corpus.role != "in")
        self.home = self.corpora[0].name
        self.planted = all(base_name(corpus.name) == "planted" for corpus in self.corpora)  # no person marked a word
        self.cells = {(cell.corpus, cell.metric, cell.method): cell for cell in summary.cells}
        self._pool_chance([self.specs[m] for m in orders])

    def _orders(self) -> list[int]:
        """The methods that stand for chance. They have no place; before 0.3 there was one, which had."""
        placed = {standing.method for standing in self.summary.ranking}
        random = [m for m, spec in enumerate(self.specs) if base_name(spec) == CHANCE]
        return [m for m in random if self.specs[m] not in placed] or random[:1]

    def _pool_chance(self, orders: Sequence[str]) -> None:
        """In the place of the first random order the mean over all of them."""
        for corpus, metric, method in list(self.cells):
            if orders and method == orders[0]:
                keys = [(corpus, metric, order) for order in orders]
                self.cells[keys[0]] = _pooled([self.cells[key] for key in keys if key in self.cells])

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

        return sorted(self.shown, key=key)

    def settings(self) -> list[Setting]:
        """What was asked for, then where it was computed."""
        asked = store.plain(self.summary.settings)
        hidden = {*asked, "veridical", "code", "command", "with"}
        stamp = {name: value for name, value in self.summary.stamp.items() if name not in hidden}
        given = {name: value for name, value in {**asked, **stamp}.items() if value not in ("", [])}
        return [
            Setting(name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
            for name, value in given.items()
        ]

    # -- metrics

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
        floor = cells.get(-1 if self.chance is None else self.chance)
        rows = []
        for m, cell in cells.items():
            mark = Mark(cell.mean, cell.low, cell.high, hollow=m == self.chance)
            rows.append(PanelRow(m, cell, plots.row([mark], scale, said(mark.value, mark.low, mark.high))))
        undefined = sum(cell.undefined for cell in cells.values())
        return Panel(
            key=self.metric_index[metric.name],
            metric=metric,
            rows=tuple(rows),
            axis=plots.axis(scale) if any(end is not None for end in ends) else None,
            undefined=undefined,
            asked=undefined + sum(cell.n for cell in cells.values()),
            reference=None if floor is None or floor.mean is None else scale(floor.mean) / 100,
        )

    def ranked(self) -> list[int]:
        """Methods with a place in the own domain, best first; neither random orders nor oracles have one."""
        order = self.order(self.home)
        return [m for m in order if (self.home, self.specs[m]) in self.rankings] or order

    def glossary(self) -> list[tuple[MethodFacts, list[int]]]:
        """The methods, those of which the same is true under one entry."""
        groups: dict[tuple[str, bool, tuple[str, ...]], list[int]] = {}
        for m in self.shown:
            method = self.methods[m]
            groups.setdefault((method.summary, method.signed, method.needs), []).append(m)
        return [(self.methods[group[0]], group) for group in groups.values()]

    def undefined(self, corpus: str) -> tuple[UndefinedCount, ...]:
        counts = []
        for key, metric in enumerate(self.metrics):
            cells = [cell for cell in here(self.summary.cells, corpus) if cell.metric == metric.name]
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
            [_curve_said(self.titles[m], metric.name, metric.ratios, cell.curve) for m, cell in cells],
            f"curves-{index}-{key}",
            metric.bounds,
        )
        panels = tuple(PanelRow(m, cell, plot) for (m, cell), plot in zip(cells, drawn, strict=True))
        return CurvePanels(key, metric, back, panels)

    def sparsity(self, index: int) -> MassPanels | None:
        corpus = self.corpora[index].name
        by_method = {self.index[row.method]: row for row in here(self.summary.sparsity, corpus)}
        if self.chance in by_method:
            of_orders = [by_method[m].mass for m in (self.chance, *self.unshown) if m in by_method]
            by_method[self.chance] = replace(by_method[self.chance], mass=_averages(of_orders))
        rows = [(m, by_method[m]) for m in self.order(corpus) if m in by_method]
        if not rows:
            return None
        shares = rows[0][1].shares
        back, drawn = plots.small_multiples(
            [Curve(row.mass) for _, row in rows],
            shares,
            [_curve_said(self.titles[m], "share of the total score", shares, row.mass) for m, row in rows],
            f"sparsity-{index}",
            (0, 1),
            diagonal=True,
        )
        panels = tuple(MassPanel(m, row, plot) for (m, row), plot in zip(rows, drawn, strict=True))
        return MassPanels(back, shares, panels)

    # -- how far to trust, agreement, truth

    def trust(self, corpus: str) -> TrustTable:
        """Diagnosticity of every metric over all methods, the controls one under the other."""
        pooled = [row for row in here(self.summary.diagnosticity, corpus) if not row.method]
        controls = sorted({row.control for row in pooled}, key=CONTROLS.index)
        rows = []
        for key, metric in enumerate(self.metrics):
            of_metric = [row for row in pooled if row.metric == metric.name]
            of_metric.sort(key=lambda row: controls.index(row.control))
            if of_metric:
                marks = [Mark(d.value, d.low, d.high, hollow=controls.index(d.control) > 0) for d in of_metric]
                words = "; ".join(f"{d.control} {said(d.value, d.low, d.high)}" for d in of_metric)
                plot = plots.row(marks, SHARE, words)
                rows.append(TrustRow(key, tuple(of_metric), metric.votes, plot))
        rows.sort(key=lambda row: -row.controls[0].value)
        return TrustTable(tuple(rows), tuple(controls), plots.axis(SHARE, ("0", "0.5 chance", "1")))

    def agreement(self, corpus: str) -> AgreementMaps | None:
        pairs = tuple(pair for pair in here(self.summary.agreement, corpus) if pair.a != pair.b)
        if not pairs:
            return None
        order = self.order(corpus)
        names = [CHANCE if m == self.chance else name for m, name in enumerate(self.names)]  # the first order alone

        def drawn(value: Callable[[PairAgreement], float | None], title: str) -> Markup:
            cells = []
            for pair in pairs:
                a, b = self.index[pair.a], self.index[pair.b]
                words = f"tau {figure(pair.tau)}, overlap {figure(pair.jaccard)}"
                cells.append(Pair(a, b, value(pair), f"{names[a]}, {names[b]}: {words}"))
            return plots.heat_map(names, order, cells, f"{title} between methods on {corpus}; table below")

        tau, jaccard = drawn(lambda pair: pair.tau, "Kendall tau"), drawn(lambda pair: pair.jaccard, "Overlap")
        return AgreementMaps(pairs, tau, jaccard)

    def no_agreement(self, corpus: str) -> str:
        """Why there is no agreement to show."""
        if not self.of_kind("agreement"):
            return "no metric of it was asked for (agreement, jaccard)"
        if len(self.shown) < 2:
            return "it takes two methods"
        if not here(self.summary.cells, corpus):
            return "no text of it was explained"
        return "no text was explained by two methods"

    def f1(self, facts: CorpusFacts, index: int) -> Markup | None:
        if facts.macro_f1 is None:
            return None
        return plots.row([Mark(facts.macro_f1, shape=index)], SHARE, f"macro F1 {figure(facts.macro_f1)}")

    def f1_axis(self) -> Markup:
        return plots.axis(SHARE)

    def truth(self) -> list[TruthPanel]:
        return [self.truth_panel(order) for order in self.summary.truth]

    def truth_panel(self, order: TruthOrder) -> TruthPanel:
        key = self.metric_index.get(order.metric)
        scale = plots.linear(order.values, 3, 97, () if key is None else self.metrics[key].bounds)
        rows = tuple(
            TruthRow(self.index.get(name), name, value, name in PLANTED, plots.row([Mark(value)], scale, figure(value)))
            for name, value in zip(order.order, order.values, strict=True)
            if self.index.get(name, -1) not in self.unshown
        )
        return TruthPanel(key, order, rows, plots.axis(scale))


def _pooled(cells: Sequence[MeanScore]) -> MeanScore:
    """One metric of several methods as that of one: the mean of their means, which has no interval."""
    if len(cells) == 1:
        return cells[0]
    return replace(
        cells[0],
        n=max(cell.n for cell in cells),
        undefined=max(cell.undefined for cell in cells),
        mean=_averages([[cell.mean] for cell in cells])[0],
        low=None,
        high=None,
        curve=_averages([cell.curve for cell in cells]),
        curve_low=(),
        curve_high=(),
    )


def _averages(rows: Sequence[Sequence[float | None]]) -> tuple[float | None, ...]:
    """The mean of every column, of what is defined."""
    columns = ([value for value in column if value is not None] for column in zip(*rows, strict=True))
    return tuple(fmean(known) if known else None for known in columns)


def _curve_said(method: str, what: str, shares: Iterable[float], values: Iterable[float | None]) -> str:
    pairs = list(zip(shares, values, strict=True))
    pairs = pairs[:: 1 + len(pairs) // 8]  # some of a long curve: this is read aloud
    points = ", ".join(f"{figure(value)} at {share:.0%}" for share, value in pairs)
    return f"{method}, {what}: {points}"


def here(rows: Sequence[CorpusRow], corpus: str) -> tuple[CorpusRow, ...]:
    return tuple(row for row in rows if row.corpus == corpus)


def grouped(rows: Iterable[Row], key: Callable[[Row], str]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups
