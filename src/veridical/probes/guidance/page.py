"""The page of `veridical guidance`: a pure function of the stored summary, computing nothing but layout."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup

from veridical.core import store
from veridical.page import plots
from veridical.page.render import render
from veridical.page.words import figure, interval, p_value
from veridical.probes.guidance.change import State
from veridical.probes.guidance.page_plots import Spot, histogram, key, lines, spots
from veridical.probes.guidance.record import (
    AlikeRow,
    ChangeRow,
    CorpusVerdict,
    ForetoldRow,
    GuidanceSummary,
    LayerMean,
    MetricMean,
    Outcome,
    OverSeeds,
    Prediction,
    RelianceRow,
    SpecialShare,
    TradeoffRow,
)

OUTCOMES: dict[Outcome, str] = {
    "changed": "changed what the model relies on",
    "hacked": "the loss was hacked",
    "mixed": "explanations moved, reliance not shown to",
    "unmoved": "nothing moved",
    "unclear": "cannot be told",
}
STATES: dict[State, str] = {"raised": "▲", "lowered": "▼", "unchanged": "≈", "unclear": "?"}
LAYERS = {
    "attention": "attention of the layer",
    "rollout": "rollout up to the layer",
    "alti:rollout=false": "ALTI of the layer alone",
    "alti": "ALTI up to the layer",
    "decompx": "DecompX up to the layer",
}


# -- what the template shows --------------------------------------------------------------------------------


@dataclass(frozen=True)
class RelianceLine:
    row: RelianceRow
    plot: Markup
    change: ChangeRow | None  # None: of the baseline


@dataclass(frozen=True)
class RelianceTable:
    axis: Markup
    lines: list[RelianceLine]


@dataclass(frozen=True)
class MetricCell:
    row: MetricMean | None
    change: ChangeRow | None


@dataclass(frozen=True)
class MetricLine:
    """One condition."""

    name: str
    cells: list[MetricCell]  # by method


@dataclass(frozen=True)
class MetricTable:
    methods: list[str]
    lines: list[MetricLine]
    texts: list[int]  # that have a value, least first


@dataclass(frozen=True)
class Chart:
    title: str
    plot: Markup


@dataclass(frozen=True)
class AlikePanel:
    row: AlikeRow
    plot: Markup


@dataclass(frozen=True)
class AlikeGroup:
    """One condition."""

    name: str
    place: int
    panels: list[AlikePanel]


@dataclass(frozen=True)
class HeatMap:
    """One condition."""

    name: str
    place: int
    plot: Markup


@dataclass(frozen=True)
class TradeoffChart:
    guide: str
    method: str
    plot: Markup


@dataclass(frozen=True)
class ForetoldChart:
    title: str
    row: ForetoldRow
    plot: Markup


@dataclass(frozen=True)
class ForetoldView:
    rows: list[ForetoldRow]
    n: int  # runs
    charts: list[ForetoldChart]


@dataclass(frozen=True)
class F1Line:
    """One corpus."""

    corpus: str
    role: str
    cells: list[Prediction | None]  # by condition


# -- the page -----------------------------------------------------------------------------------------------


def guidance_page(summary: GuidanceSummary) -> str:
    """One self-contained HTML page."""
    return render(
        "probes/guidance/guidance.html",
        s=summary,
        page=Page(summary),
        num=figure,
        span=interval,
        p=p_value,
        behind=behind,
    )


def behind(row: OverSeeds | Prediction | MetricMean) -> str:
    """What stands under a mean: its interval, or the seeds' values."""
    if row.low is not None and row.high is not None:
        return interval(row.low, row.high)
    return "  ".join(figure(value) for value in row.values) if len(row.values) > 1 else ""


def short(spec: str) -> str:
    """A metric's name: that scores count by size is said once, not in every head."""
    return spec.replace(":abs=true", "")


class Page:
    """The summary as the template reads it."""

    def __init__(self, summary: GuidanceSummary):
        self.summary = summary
        self.names = [condition.name for condition in summary.conditions]
        self.outcomes, self.states, self.short, self.key = OUTCOMES, STATES, short, key
        self.home = summary.corpora[0].name
        self.marked = [corpus.name for corpus in summary.corpora if corpus.rationales]
        plausible = [m for m in summary.settings.metrics if any(change.what == m for change in summary.changes)]
        self.metric = plausible[0]  # the one that decides

    def place(self, name: str) -> int:
        return self.names.index(name)

    def verdicts(self, corpus: str) -> list[CorpusVerdict]:
        return [verdict for verdict in self.summary.verdicts if verdict.corpus == corpus]

    def settings(self) -> list[tuple[str, str]]:
        """Their names and values."""

        def words(value: object) -> str:
            if isinstance(value, list):
                return ", ".join(map(str, value))
            return value if isinstance(value, str) else json.dumps(value)

        return [(name, words(value)) for name, value in store.plain(self.summary.settings).items()]

    # -- reliance ------------------------------------------------------------------------------------------

    def reliance(self, corpus: str) -> RelianceTable | None:
        rows = [row for row in self.summary.reliance if row.corpus == corpus]
        if not rows:
            return None
        values = [v for row in rows for v in (*row.value.values, row.value.low, row.value.high)]
        scale = plots.linear([0.0, *values], 0, 100)
        drawn = []
        for row in rows:
            mark = plots.Mark(row.value.mean, *self._ends(row.value))
            plot = plots.row([mark], scale, f"{row.condition}: {figure(row.value.mean)}")
            drawn.append(RelianceLine(row, plot, self.change(corpus, "reliance", row.condition, "")))
        return RelianceTable(plots.axis(scale), drawn)

    def _ends(self, over: OverSeeds) -> tuple[float | None, float | None]:
        """The interval, or else from the least to the largest of the seeds' values."""
        if over.low is not None:
            return over.low, over.high
        return (min(over.values), max(over.values)) if len(over.values) > 1 else (None, None)

    def change(self, corpus: str, what: str, condition: str, method: str) -> ChangeRow | None:
        wanted = (corpus, what, condition, method)
        changes = (c for c in self.summary.changes if (c.corpus, c.what, c.condition, c.method) == wanted)
        return next(changes, None)

    # -- plausibility --------------------------------------------------------------------------------------

    def metrics(self, corpus: str) -> list[str]:
        return list(dict.fromkeys(row.metric for row in self.summary.explanations if row.corpus == corpus))

    def grid(self, corpus: str, metric: str) -> MetricTable:
        """Conditions by methods, each cell with the mean and, next to the baseline's, which way it went."""
        rows = [row for row in self.summary.explanations if (row.corpus, row.metric) == (corpus, metric)]
        methods = list(dict.fromkeys(row.method for row in rows))
        by = {(row.condition, row.method): row for row in rows}
        return MetricTable(
            methods=methods,
            lines=[
                MetricLine(
                    name,
                    [MetricCell(by.get((name, m)), self.change(corpus, metric, name, m)) for m in methods],
                )
                for name in self.names
            ],
            texts=sorted({row.texts for row in rows}),
        )

    # -- layers and special tokens -------------------------------------------------------------------------

    def layers(self, corpus: str) -> list[Chart]:
        rows = [row for row in self.summary.layers if (row.corpus, row.metric) == (corpus, self.metric)]
        charts = []
        for technique in dict.fromkeys(row.technique for row in rows):
            series = self._series([row for row in rows if row.technique == technique])
            words = f"{LAYERS[technique]}: {short(self.metric)} per layer and condition on {corpus}"
            plot = lines(series, words, x_label="layer", y_label=short(self.metric))
            charts.append(Chart(LAYERS[technique], plot))
        return charts

    def specials(self, corpus: str) -> Markup | None:
        rows = [row for row in self.summary.specials if row.corpus == corpus]
        words = f"Share of attention on tokens that are not explained, per layer and condition on {corpus}"
        return lines(self._series(rows), words, x_label="layer", y_label="share of attention") if rows else None

    def _series(self, rows: Sequence[LayerMean] | Sequence[SpecialShare]) -> list[tuple[int, list[float | None]]]:
        return [
            (self.place(name), [row.mean for row in sorted(group, key=lambda row: row.layer)])
            for name, group in groupby(rows, key=lambda row: row.condition)
        ]

    # -- how alike explanations are ------------------------------------------------------------------------

    def alike(self, corpus: str) -> list[AlikeGroup]:
        groups = []
        for name in self.names[1:]:
            panels = []
            for row in self.summary.alike:
                if (row.corpus, row.condition) == (corpus, name):
                    words = (
                        f"{row.method}: tau of {name} to the baseline {figure(row.to_base)}, between seeds of "
                        f"the baseline {figure(row.within_base)}"
                    )
                    plot = histogram(row.histogram, row.histogram_base, self.place(name), words)
                    panels.append(AlikePanel(row, plot))
            if panels:
                groups.append(AlikeGroup(name, self.place(name), panels))
        return groups

    def heat(self, corpus: str) -> list[HeatMap]:
        maps = []
        for name in self.names:
            rows = [row for row in self.summary.between_methods if (row.corpus, row.condition) == (corpus, name)]
            methods = list(dict.fromkeys(m for row in rows for m in (row.a, row.b)))
            pairs = [
                plots.Pair(
                    methods.index(row.a), methods.index(row.b), row.tau, f"{row.a} and {row.b}: {figure(row.tau)}"
                )
                for row in rows
            ]
            if pairs:
                words = f"Kendall's tau between methods in {name} on {corpus}"
                maps.append(HeatMap(name, self.place(name), plots.heat_map(methods, range(len(methods)), pairs, words)))
        return maps

    # -- over runs -----------------------------------------------------------------------------------------

    def tradeoff(self) -> list[TradeoffChart]:
        charts = []
        for guide in dict.fromkeys(row.guide for row in self.summary.tradeoff):
            rows = [row for row in self.summary.tradeoff if row.guide == guide]
            drawn = [(row, points) for row in rows if (points := self._tradeoff_points(row))]
            if drawn:
                plot = spots(
                    [point for _, points in drawn for point in points],
                    f"Cross-entropy against explanation loss on dev, {guide}",
                    x_label="explanation loss on dev",
                    y_label="cross-entropy on dev",
                    verticals=[row.dev_bound for row, _ in drawn if row.dev_bound is not None],
                )
                charts.append(TradeoffChart(guide, rows[0].method, plot))
        return charts

    def _tradeoff_points(self, row: TradeoffRow) -> list[Spot]:
        """A condition's means, and its seeds behind them; nothing where a loss is not known."""
        loss, term, place = row.cross_entropy, row.explanation, self.place(row.condition)
        if loss.mean is None or term.mean is None:
            return []
        words = f"{row.condition} ({row.setting}): cross-entropy {figure(loss.mean)}, explanation loss "
        points = [Spot(place, term.mean, loss.mean, words + figure(term.mean), row.setting)]
        if len(loss.values) == len(term.values) > 1:
            points += [
                Spot(place, x, y, f"{row.condition}, a seed", faint=True)
                for x, y in zip(term.values, loss.values, strict=True)
            ]
        return points

    def foretold(self, corpus: str) -> ForetoldView | None:
        rows = [row for row in self.summary.foretold if row.corpus == corpus]
        if not rows:
            return None
        shown = [row for row in rows if not row.method]
        shown += [row for row in rows if row.where == self.home and self._telling(row)][:1]
        shown += [row for row in rows if row.where == corpus and row.what == self.metric][-1:]
        return ForetoldView(rows, max(row.n for row in rows), [self._plane(row) for row in shown])

    def _telling(self, row: ForetoldRow) -> bool:
        """The paper takes DecompX with the head; without it the first witness."""
        witnesses = self.summary.settings.witnesses
        wanted = "decompx_classifier" if "decompx_classifier" in witnesses else next(iter(witnesses), "")
        return row.what == self.metric and row.method == wanted

    def named(self, row: ForetoldRow) -> str:
        of = f" of {row.method}" if row.method else ""
        what = {"macro_f1": "macro-F1", "reliance": "reliance"}.get(row.what, short(row.what))
        return f"{what}{of} on {row.where}"

    def _plane(self, row: ForetoldRow) -> ForetoldChart:
        points = [
            Spot(self.place(point.condition), point.x, point.y, f"{point.condition} seed {point.seed}")
            for point in row.points
        ]
        title = self.named(row)
        plot = spots(points, f"{title} against macro-F1 on {row.corpus}", x_label=title, y_label="macro-F1")
        return ForetoldChart(title, row, plot)

    def f1(self) -> list[F1Line]:
        by = {(row.corpus, row.condition): row for row in self.summary.predictions if row.score == "macro_f1"}
        return [
            F1Line(corpus.name, corpus.role, cells)
            for corpus in self.summary.corpora
            if any(cells := [by.get((corpus.name, name)) for name in self.names])
        ]
