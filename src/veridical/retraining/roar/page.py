"""The page of `veridical roar`, and its sections for other pages: pure functions of what is stored, layout alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from markupsafe import Markup, escape

from veridical.core.statistics import mean
from veridical.page import plots
from veridical.page.plots import Mark, Scale, Values
from veridical.page.render import render
from veridical.page.words import figure, said, short_names
from veridical.retraining.roar.curve import Side
from veridical.retraining.roar.record import SCORE, Gap, MeanArea, MeanCurve, RoarSummary, TimeSpent

# Of five normal values, two thousand times over.
NARROW = "; of five values they hold the truth in about 84 of 100 cases, where Student's hold it in 95"
INTERVAL = {
    "bca": f"bias-corrected bootstraps (BCa, 9,999 resamples), as in the paper{NARROW}",
    "percentile": f"plain bootstraps (9,999 resamples){NARROW}",
    "t": "Student's",
}
SIGNS: dict[Side | None, str] = {"below": "✓", "none": "≈", "above": "✗", None: "·"}
WIDTH, HEIGHT = 312, 196  # of a panel


# -- what the templates show --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdicts:
    """The measures of one side."""

    style: str
    sign: str
    words: str
    areas: list[MeanArea]


@dataclass(frozen=True)
class AreaRow:
    area: MeanArea
    plot: str
    seeds: str  # each one's area


@dataclass(frozen=True)
class AreaTable:
    rows: list[AreaRow]
    axis: str
    zero: float  # where on the axis, as a share of it


@dataclass(frozen=True)
class Panel:
    """The curve of one measure."""

    measure: str
    name: str
    plot: Markup


@dataclass(frozen=True)
class GapRow:
    """One measure at every amount."""

    name: str
    gaps: list[Gap]


@dataclass(frozen=True)
class SparsityPanel:
    name: str
    plot: Markup
    means: list[float | None]


@dataclass(frozen=True)
class SparsityView:
    back: Markup  # what all panels have behind their curve
    panels: list[SparsityPanel]
    tops: list[str]
    undefined: int


@dataclass(frozen=True)
class LeakRow:
    """One measure, over the seeds that were checked."""

    name: str
    recursive: bool
    seeds: int
    at: str
    above_random: float | None
    positions_alone: float | None
    everything_masked: float | None


# -- pages --------------------------------------------------------------------------------------------------


def roar_page(summary: RoarSummary, spent: TimeSpent, stamp: Mapping[str, Any]) -> str:
    """One self-contained HTML page, from summary.json, time.json and stamp.json."""
    view = View(summary)
    begun = f"{datetime.fromisoformat(stamp['time']):%d %B %Y, %H:%M} UTC"
    return render("retraining/roar/roar.html", s=summary, v=view, spent=spent, stamp=stamp, begun=begun, **_words())


def roar_section(summary: RoarSummary, spent: TimeSpent) -> Markup:
    """The figures and tables of the page, with their styles, for a page that has a place for them."""
    return Markup(render("retraining/roar/roar_section.html", s=summary, v=View(summary), spent=spent, **_words()))


def audit_section(summary: RoarSummary, spent: TimeSpent) -> str:
    """The same with a heading and the answer, as a section of an audit's page."""
    return render("retraining/roar/audit_section.html", s=summary, v=View(summary), spent=spent, **_words())


def _words() -> dict[str, Any]:
    return {"num": figure, "percent": percent, "clock": clock, "signs": SIGNS}


def percent(value: float | None) -> str:
    """Areas are given in per cent, as in table 2."""
    return "–" if value is None else f"{100 * value:.1f}".replace("-", "−")


def clock(seconds: float | None) -> str:
    """`1:02:03`, as tables of compute time have it; below a minute in seconds."""
    if seconds is None:
        return "–"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, left = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{left:02d}"


class View:
    """What the templates ask of a summary."""

    def __init__(self, summary: RoarSummary):
        self.summary = summary
        self.score = SCORE[summary.settings.score]
        self.interval = INTERVAL[summary.settings.interval]
        self.percent = summary.settings.unit == "percent"
        self.kinds = sorted({area.recursive for area in summary.areas}, reverse=True)
        self.ranked = [area.measure for area in summary.areas if area.recursive]
        self.names = dict(zip(self.ranked, short_names(self.ranked, 34), strict=True))
        self.curves = {(curve.measure, curve.recursive): curve for curve in summary.curves}

    def amount(self, value: int) -> str:
        return f"{value}%" if self.percent else f"{value} token{'' if value == 1 else 's'}"

    @property
    def seeds(self) -> int:
        """Seeds with a whole curve."""
        return max((area.n for area in self.summary.areas), default=0)

    def sides(self) -> list[Verdicts]:
        """The measures by verdict."""
        kinds: tuple[tuple[str, Side | None, str], ...] = (
            ("believe", "below", "Below random: faithful to some degree"),
            ("undecided", "none", "Not distinguishable from random"),
            ("avoid", "above", "Above random: the class may leak"),
            ("tied", None, "No verdict yet"),
        )
        recursive = [area for area in self.summary.areas if area.recursive]
        sides = [
            Verdicts(style, SIGNS[side], words, [area for area in recursive if area.side == side])
            for style, side, words in kinds
        ]
        return [side for side in sides if side.areas]

    # -- areas

    def areas(self, recursive: bool) -> AreaTable:
        ends = [end for area in self.summary.areas for end in (area.mean, area.low, area.high)]
        scale = plots.linear([*ends, 0.0], 3, 97)
        rows = []
        for area in self.summary.areas:
            if area.recursive is recursive:
                mark = Mark(area.mean, area.low, area.high)
                words = f"{area.measure}: {said(mark.value, mark.low, mark.high)}"
                plot = plots.row([mark], scale, words) if mark.value is not None else ""
                rows.append(AreaRow(area, plot, ", ".join(percent(value) for value in area.values.values())))
        return AreaTable(rows, plots.axis(scale, [percent_tick(t) for t in scale.ticks]), scale(0.0) / 100)

    # -- curves

    def panels(self) -> list[Panel]:
        """A panel per measure: its curve and the baseline's with their bands, all others faint behind."""
        xs = self.summary.settings.amounts
        shown = [v for curve in self.summary.curves for part in (curve.mean, curve.low, curve.high) for v in part]
        x, y = Scale(xs[0], max(xs[-1], xs[0] + 1), 34, WIDTH - 8), plots.linear(shown, HEIGHT - 22, 8, (0, 1), 4)
        floor = self.curves[("random", False)]
        faint = "".join(f'<path d="{_line(curve.mean, xs, x, y)}"/>' for key, curve in self.curves.items() if key[1])
        back = [
            _grid(x, y, xs, "%" if self.percent else ""),
            f'<g class="faint">{faint}</g>',
            f'<path class="floorband" d="{_band(floor.low, floor.high, xs, x, y)}"/>',
            f'<path class="floor" d="{_line(floor.mean, xs, x, y)}"/>',
        ]
        return [
            Panel(measure, self.names[measure], _svg(self._words(measure, floor), [*back, *self._front(measure, x, y)]))
            for measure in self.ranked
        ]

    def _front(self, measure: str, x: Scale, y: Scale) -> list[str]:
        """The measure's curve, over that without recursion."""
        xs, parts = self.summary.settings.amounts, []
        curve, other = self.curves[(measure, True)], self.curves.get((measure, False))
        if other is not None and other.mean != curve.mean:
            parts.append(f'<path class="plainline" d="{_line(other.mean, xs, x, y)}"/>')
        parts.append(f'<path class="band" d="{_band(curve.low, curve.high, xs, x, y)}"/>')
        parts.append(f'<path class="line" d="{_line(curve.mean, xs, x, y)}"/>')
        for at, value in zip(xs, curve.mean, strict=True):
            if value is not None and len(xs) <= 12:
                parts.append(f'<circle cx="{x(at)}" cy="{y(value)}" r="2"/>')
        return parts

    def _words(self, measure: str, floor: MeanCurve) -> str:
        rows = zip(self.summary.settings.amounts, self.curves[(measure, True)].mean, floor.mean, strict=True)
        return f"{measure}: {self.score} by amount masked: " + "; ".join(
            f"{self.amount(at)} {figure(value)} (random {figure(base)})"
            for at, value, base in rows
            if value is not None and base is not None
        )

    def points(self, recursive: bool) -> list[GapRow]:
        """Per measure, the verdict at every amount."""
        gaps = [gap for gap in self.summary.points if gap.recursive is recursive]
        return [GapRow(self.names[measure], [gap for gap in gaps if gap.measure == measure]) for measure in self.ranked]

    def inner(self) -> list[int]:
        """The amounts between the ends."""
        return list(dict.fromkeys(gap.masked for gap in self.summary.points))

    # -- sparsity and leakage

    def sparsity(self, unit: str) -> SparsityView | None:
        rows = [row for row in self.summary.sparsity if row.unit == unit and row.mean is not None]
        measures = [m for m in self.ranked if any(row.measure == m for row in rows)]
        if not measures:
            return None
        by = {m: [row for row in rows if row.measure == m] for m in measures}
        xs = [row.top for row in by[measures[0]]]
        curves = [
            plots.Curve([row.mean for row in held], [row.low for row in held], [row.high for row in held])
            for held in by.values()
        ]
        words = [
            f"{m}: share held by the top tokens: {', '.join(figure(v) for v in c.values)}"
            for m, c in zip(by, curves, strict=True)
        ]
        back, drawn = _multiples(curves, xs, words, unit)
        return SparsityView(
            back=back,
            panels=[
                SparsityPanel(self.names[m], plot, [row.mean for row in by[m]])
                for m, plot in zip(measures, drawn, strict=True)
            ],
            tops=[f"{top:.0%}" if unit == "share" else f"{top}" for top in xs],
            undefined=max(row.undefined_texts for row in rows),
        )

    def leaks(self) -> list[LeakRow]:
        """Per measure: where the curve was checked, and what the positions of the masks told, over seeds."""
        return [row for kind in self.kinds for m in self.ranked if (row := self._leak(m, kind)) is not None]

    def _leak(self, measure: str, recursive: bool) -> LeakRow | None:
        leaks = [leak for leak in self.summary.leakage if leak.measure == measure and leak.recursive is recursive]
        if not leaks:
            return None
        amounts = {self.amount(leak.masked) for leak in leaks}
        return LeakRow(
            name=self.names[measure],
            recursive=recursive,
            seeds=len(leaks),
            at=", ".join(sorted(amounts, key=lambda text: (len(text), text))),
            above_random=mean(leak.above_random for leak in leaks),
            positions_alone=mean(leak.positions_alone for leak in leaks),
            everything_masked=mean(leak.everything_masked for leak in leaks),
        )


def percent_tick(value: float) -> str:
    return plots.tick(round(100 * value, 6))


def _multiples(
    curves: Sequence[plots.Curve], xs: Sequence[float], words: Sequence[str], unit: str
) -> tuple[Markup, list[Markup]]:
    """Small multiples over shares of tokens; over numbers of tokens with the same marks and another axis."""
    if unit == "share":
        return plots.small_multiples(curves, xs, words, f"roar-{unit}", (0, 1), diagonal=True)
    width, height = plots.PANEL
    x, y = Scale(xs[0], xs[-1], 28, width - 6), Scale(0, 1, height - 18, 8, (0, 0.5, 1))
    grid = [f'<line class="grid" x1="28" x2="{width - 6}" y1="{y(t)}" y2="{y(t)}"/>' for t in y.ticks]
    grid += [f'<text x="24" y="{y(t) + 3:.1f}" text-anchor="end">{plots.tick(t)}</text>' for t in (0, 1)]
    grid += [f'<text x="{x(xs[0])}" y="{height - 4}">{xs[0]}</text>']
    grid += [f'<text x="{x(xs[-1])}" y="{height - 4}" text-anchor="end">{xs[-1]} tokens</text>']
    faint = "".join(f'<path d="{_line(curve.values, xs, x, y)}"/>' for curve in curves)
    back = f'<g id="roar-{unit}">{"".join(grid)}<g class="faint">{faint}</g></g>'
    panels = []
    for curve, sentence in zip(curves, words, strict=True):
        parts = [f'<use href="#roar-{unit}"/>']
        parts.append(f'<path class="band" d="{_band(curve.low, curve.high, xs, x, y)}"/>')
        parts.append(f'<path class="line" d="{_line(curve.values, xs, x, y)}"/>')
        panels.append(_svg(sentence, parts, plots.PANEL))
    return Markup(f'<svg class="defs" width="0" height="0" aria-hidden="true">{back}</svg>'), panels


def _svg(words: str, parts: Sequence[str], size: tuple[int, int] = (WIDTH, HEIGHT)) -> Markup:
    box = f'viewBox="0 0 {size[0]} {size[1]}" width="{size[0]}" height="{size[1]}"'
    return Markup(f'<svg class="panel" {box} role="img" aria-label="{escape(words)}">{"".join(parts)}</svg>')


def _grid(x: Scale, y: Scale, xs: Sequence[int], unit: str) -> str:
    parts = []
    for value in y.ticks:
        parts.append(f'<line class="grid" x1="34" x2="{WIDTH - 8}" y1="{y(value)}" y2="{y(value)}"/>')
        parts.append(f'<text x="29" y="{y(value) + 3.5:.1f}" text-anchor="end">{plots.tick(value)}</text>')
    every = 1 if len(xs) <= 6 else 2
    for k, value in enumerate(xs):
        if k % every == 0 or value == xs[-1]:
            anchor = "end" if value == xs[-1] else "middle"
            parts.append(f'<text x="{x(value)}" y="{HEIGHT - 6}" text-anchor="{anchor}">{value}{unit}</text>')
    return "".join(parts)


def _line(values: Values, xs: Sequence[float], x: Scale, y: Scale) -> str:
    """A path through the values that breaks where one is missing."""
    parts, pen = [], "M"
    for at, value in zip(xs, values, strict=True):
        if value is not None:
            parts.append(f"{pen}{x(at)} {y(value)}")
        pen = "M" if value is None else "L"
    return "".join(parts)


def _band(lows: Values, highs: Values, xs: Sequence[float], x: Scale, y: Scale) -> str:
    rows = zip(xs, lows, highs, strict=True)
    known = [(at, low, high) for at, low, high in rows if low is not None and high is not None]
    if len(known) < 2:
        return ""
    there = "L".join(f"{x(at)} {y(high)}" for at, _, high in known)
    back = "L".join(f"{x(at)} {y(low)}" for at, low, _ in reversed(known))
    return f"M{there}L{back}z"
