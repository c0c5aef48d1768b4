"""Inline SVG: each function draws given numbers and returns markup; colours and type are in report.css.

Rows of tables are fluid: they have no viewBox and place by per cent, so a dot stays round at any width. The other
figures have a size of their own. Marks of one method carry `data-m`, its index, by which the page's script finds them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup, escape

Values = Sequence[float | None]
LETTER = 6.3  # width of a letter of a name, at most on average


# -- scales -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scale:
    """A stretch of numbers laid onto a stretch of the page, with the ticks to print."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...] = ()
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = self.low, self.high, value
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(value)
        share = (at - low) / (high - low) if high > low else 0.5
        share = min(1.0, max(0.0, share))  # a mark beyond the axis stands at its end, not on the next column
        return round(self.start + share * (self.end - self.start), 1)


def linear(
    values: Iterable[float | None], start: float, end: float, bounds: Sequence[float | None] = (), count: int = 3
) -> Scale:
    """A scale around the values: round ends, within the bounds a value can have, about `count` ticks."""
    known = [value for value in values if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    if high == low:
        low, high = low - 0.05, high + 0.05
    step = _round_step((high - low) / max(1, count - 1))
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    least, most = bounds or (None, None)
    low = low if least is None else max(low, least)  # a round end may not promise values that cannot be
    high = high if most is None else min(high, most)
    first = math.ceil(low / step - 1e-9)
    ticks = tuple(round(k * step, 10) for k in range(first, math.floor(high / step + 1e-9) + 1))
    return Scale(low, high, start, end, ticks)


def logarithmic(values: Iterable[float], start: float, end: float) -> Scale:
    """A scale over powers of ten, one tick each (every second or third where there are many)."""
    known = [value for value in values if value > 0] or [1.0]
    low, high = math.floor(math.log10(min(known))), math.ceil(math.log10(max(known)))
    high = max(high, low + 1)
    every = 1 + (high - low) // 6
    return Scale(10.0**low, 10.0**high, start, end, tuple(10.0**k for k in range(low, high + 1, every)), log=True)


def _round_step(step: float) -> float:
    size = 10.0 ** math.floor(math.log10(step))
    return next(size * k for k in (1, 2, 5, 10) if size * k >= step * 0.999)


def tick(value: float) -> str:
    return f"{value:.6g}".replace("-", "−")


def svg(kind: str, width: int, height: int, said: str, parts: Iterable[str]) -> Markup:
    box = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return Markup(f'<svg class="{kind}" {box} role="img" aria-label="{escape(said)}">{"".join(parts)}</svg>')


# -- rows of a table ----------------------------------------------------------------------------------------

COLOURS = 6  # in the style sheet, .c0 to .c5: those of the charts, which colour-blind people can tell apart
SHAPES = (  # one per corpus, apart without colour
    "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z",
    "M-3.2-3.2h6.4v6.4h-6.4z",
    "M0-4.4L4.2 3.2H-4.2z",
    "M0-4.8L4.2 0L0 4.8L-4.2 0z",
    "M0 4.4L4.2-3.2H-4.2z",
    "M-4-1.3h2.7V-4h2.6v2.7H4v2.6H1.3V4h-2.6V1.3H-4z",
)


@dataclass(frozen=True, slots=True)
class Mark:
    """A value with its interval on one line of a row."""

    value: float | None
    low: float | None = None
    high: float | None = None
    shape: int = 0
    hollow: bool = False
    colour: int | None = None  # which of the colours that tell series apart; None: that of all dots


def row(marks: Sequence[Mark], scale: Scale, said: str) -> Markup:
    """Dots with intervals, one under the other, in a cell of a table; `scale` runs in per cent."""
    height = 20 if len(marks) == 1 else 6 + 11 * len(marks)
    parts = []
    for k, mark in enumerate(marks):
        y = 10 if len(marks) == 1 else 8.5 + 11 * k
        if mark.low is not None and mark.high is not None:
            parts.append(
                f'<line{_classes(mark.colour)} x1="{scale(mark.low)}%" x2="{scale(mark.high)}%" y1="{y}" y2="{y}"/>'
            )
        if mark.value is not None:
            hollow = _classes(mark.colour, hollow=mark.hollow)
            if mark.shape == 0:
                parts.append(f'<circle{hollow} cx="{scale(mark.value)}%" cy="{y}" r="3.5"/>')
            else:
                d = SHAPES[mark.shape % len(SHAPES)]
                parts.append(f'<svg x="{scale(mark.value)}%" y="{y}"><path{hollow} d="{d}"/></svg>')
    label = escape(said)
    size = f' height="{height}"' if len(marks) > 1 else ""  # 20 is the style sheet's
    return Markup(f'<svg class="row"{size} role="img" aria-label="{label}">{"".join(parts)}</svg>')


def _classes(colour: int | None, *, hollow: bool = False) -> str:
    names = [*(["hollow"] if hollow else []), *([] if colour is None else [f"c{colour % COLOURS}"])]
    return f' class="{" ".join(names)}"' if names else ""


def axis(scale: Scale, labels: Sequence[str] = ()) -> Markup:
    """The ticks under (or over) such rows; long labels at the ends stay inside the cell."""
    parts = []
    for value, label in zip(scale.ticks, labels or [tick(value) for value in scale.ticks], strict=True):
        x = scale(value)
        anchor = "middle" if len(label) < 5 or 12 <= x <= 88 else "start" if x < 12 else "end"
        parts.append(f'<line x1="{x}%" x2="{x}%" y1="0" y2="4"/>')
        parts.append(f'<text x="{x}%" y="14" text-anchor="{anchor}">{escape(label)}</text>')
    return Markup(f'<svg class="row axis" height="16" aria-hidden="true">{"".join(parts)}</svg>')


def shape(index: int, colour: int | None = None) -> Markup:
    """A corpus's or a model's mark, for legends."""
    d = SHAPES[index % len(SHAPES)]
    return Markup(
        f'<svg class="mark" viewBox="-6 -6 12 12" width="12" height="12" aria-hidden="true">'
        f'<path{_classes(colour)} d="{d}"/></svg>'
    )


# -- small multiples ----------------------------------------------------------------------------------------

PANEL = (168, 104)  # of one small multiple


@dataclass(frozen=True, slots=True)
class Curve:
    values: Values
    low: Values = ()
    high: Values = ()


def small_multiples(
    curves: Sequence[Curve],
    xs: Sequence[float],
    said: Sequence[str],
    key: str,
    bounds: Sequence[float | None] = (),
    diagonal: bool = False,
) -> tuple[Markup, list[Markup]]:
    """A panel per curve, all the others faint behind it: the shared background, once, and the panels."""
    width, height = PANEL
    shown = [v for curve in curves for part in (curve.values, curve.low, curve.high) for v in part]
    y = linear([*shown, *((0.0, 1.0) if diagonal else ())], height - 18, 8, bounds)
    x = _over(xs, 28, width - 6)
    grid = []
    for value in y.ticks:
        grid.append(f'<line class="grid" x1="28" x2="{width - 6}" y1="{y(value)}" y2="{y(value)}"/>')
    for value in (y.ticks[0], y.ticks[-1]):
        grid.append(f'<text x="24" y="{y(value) + 3:.1f}" text-anchor="end">{tick(value)}</text>')
    for value, anchor in dict(zip((xs[0], xs[-1]), ("start", "end"), strict=True)).items():
        grid.append(f'<text x="{x(value)}" y="{height - 4}" text-anchor="{anchor}">{tick(value * 100)}%</text>')
    if diagonal:
        grid.append(f'<path class="even" d="M{x(xs[0])} {y(xs[0])}L{x(xs[-1])} {y(xs[-1])}"/>')
    faint = "".join(f'<path d="{line_path(curve.values, xs, x, y)}"/>' for curve in curves)
    shared = f'<g id="{key}">{"".join(grid)}<g class="faint">{faint}</g></g>'
    back = Markup(f'<svg class="defs" width="0" height="0" aria-hidden="true">{shared}</svg>')
    panels = []
    for curve, words in zip(curves, said, strict=True):
        parts = [f'<use href="#{key}"/>']
        if curve.low and curve.high:
            parts.append(f'<path class="band" d="{band_path(curve, xs, x, y)}"/>')
        parts.append(f'<path class="line" d="{line_path(curve.values, xs, x, y)}"/>')
        for at, value in zip(xs, curve.values, strict=True):
            if value is not None and len(xs) <= 8:
                parts.append(f'<circle cx="{x(at)}" cy="{y(value)}" r="1.9"/>')
        panels.append(svg("panel", width, height, words, parts))
    return back, panels


def _over(xs: Sequence[float], start: float, end: float) -> Scale:
    """Evenly spaced shares go on a linear scale; 1, 5, 10, 20, 50% would crowd at its left, so on a logarithmic."""
    steps = [b - a for a, b in pairwise(xs)]
    even = not steps or max(steps) - min(steps) < 1e-9
    return Scale(xs[0], xs[-1], start, end, log=not even and xs[0] > 0)


def line_path(values: Values, xs: Sequence[float], x: Scale, y: Scale) -> str:
    """A path through the values that breaks where one is undefined."""
    parts, pen = [], "M"
    for at, value in zip(xs, values, strict=True):
        if value is None:
            pen = "M"
        else:
            parts.append(f"{pen}{x(at)} {y(value)}")
            pen = "L"
    return "".join(parts)


def band_path(curve: Curve, xs: Sequence[float], x: Scale, y: Scale) -> str:
    known = [(at, a, b) for at, a, b in zip(xs, curve.low, curve.high, strict=True) if a is not None and b is not None]
    if len(known) < 2:
        return ""
    there = "L".join(f"{x(at)} {y(high)}" for at, _, high in known)
    back = "L".join(f"{x(at)} {y(low)}" for at, low, _ in reversed(known))
    return f"M{there}L{back}z"


# -- heat map -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pair:
    a: int
    b: int
    value: float | None
    said: str


def heat_map(names: Sequence[str], order: Sequence[int], pairs: Sequence[Pair], said: str) -> Markup:
    """A triangle of values between methods; the names stand on the diagonal, for row and column alike."""
    cell = 27
    place = {m: k for k, m in enumerate(order)}
    width = max((k * cell + 8 + math.ceil(LETTER * len(names[m])) for k, m in enumerate(order)), default=0)
    height = cell * len(order) + 2
    parts = []
    for pair in pairs:
        if pair.a not in place or pair.b not in place:
            continue
        column, line = sorted((place[pair.a], place[pair.b]))
        value = pair.value
        sign = "none" if value is None else "for" if value >= 0 else "against"
        text = "?" if value is None else _short(value)
        x, y = column * cell, line * cell
        parts.append(
            f'<g class="cell {sign}" data-pair="{pair.a} {pair.b}" style="--w:{abs(value or 0):.2f}">'
            f'<title>{escape(pair.said)}</title><rect x="{x + 1}" y="{y + 1}" width="25" height="25"/>'
            f'<text x="{x + 13.5}" y="{y + 17}">{text}</text></g>'
        )
    for k, m in enumerate(order):
        x, y = k * cell + 5, k * cell + 17.5
        parts.append(f'<text class="name" data-m="{m}" x="{x}" y="{y}">{escape(names[m])}</text>')
    return svg("heat", width, height, said, parts)


def _short(value: float) -> str:
    """Two decimals without the leading zero, to fit a cell: .41, −.07, 1"""
    text = f"{abs(value):.2f}".removeprefix("0").removesuffix(".00")
    return ("−" if value <= -0.005 else "") + (text or "0")


# -- scatter ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Point:
    m: int
    name: str
    x: float
    y: float
    low: float | None
    high: float | None
    said: str


def scatter(
    points: Sequence[Point],
    x_label: str,
    y_label: str,
    x_ticks: Mapping[float, str],
    y_ticks: Mapping[float, str],
    said: str,
) -> Markup:
    """Cost against worth: left is cheap, up is better; every point labelled where there is room. The y axis ends at the
    first and the last of its ticks."""
    width, height = 560, 400
    x = logarithmic([*(point.x for point in points), *x_ticks], 46, width - 20)
    ends = list(y_ticks)
    y = Scale(min(ends), max(ends), height - 46, 26)
    parts = []
    for value, label in x_ticks.items():
        parts.append(f'<line class="grid" x1="{x(value)}" x2="{x(value)}" y1="16" y2="{height - 36}"/>')
        parts.append(f'<text x="{x(value)}" y="{height - 22}" text-anchor="middle">{escape(label)}</text>')
    for value, label in y_ticks.items():
        kind = "even" if value == 0 else "grid"
        parts.append(f'<line class="{kind}" x1="36" x2="{width}" y1="{y(value)}" y2="{y(value)}"/>')
        parts.append(f'<text x="30" y="{y(value) + 4}" text-anchor="end">{escape(label)}</text>')
    parts.append(f'<text class="title" x="{width}" y="{height - 4}" text-anchor="end">{escape(x_label)}</text>')
    parts.append(f'<text class="title" x="0" y="10">{escape(y_label)}</text>')
    return svg("scatter", width, height, said, [*parts, *_labelled(points, x, y, width, height - 36)])


def _labelled(points: Sequence[Point], x: Scale, y: Scale, width: float, height: float) -> list[str]:
    """The points with their intervals, and their names where they run into nothing."""
    spots = [(x(point.x), y(point.y)) for point in points]
    taken = [(px - 5, py - 5, px + 5, py + 5) for px, py in spots]
    for point, (px, _) in zip(points, spots, strict=True):
        if point.low is not None and point.high is not None:
            taken.append((px - 2, y(point.high), px + 2, y(point.low)))
    parts = []
    for point, (px, py) in sorted(zip(points, spots, strict=True), key=lambda both: both[1][1]):
        bar = ""
        if point.low is not None and point.high is not None:
            bar = f'<line class="ci" x1="{px}" x2="{px}" y1="{y(point.low)}" y2="{y(point.high)}"/>'
        lx, ly, anchor, box = _spot(px, py, LETTER * len(point.name), taken, width, height)
        taken.append(box)
        lead = ""
        if abs(ly - py) > FAR:
            lead = f'<line class="grid" x1="{px}" x2="{lx}" y1="{py}" y2="{round(ly - 4, 1)}"/>'
        parts.append(
            f'<g data-m="{point.m}"><title>{escape(point.said)}</title>{lead}{bar}<circle cx="{px}" cy="{py}" r="4"/>'
            f'<text class="name" x="{lx}" y="{ly}" text-anchor="{anchor}">{escape(point.name)}</text></g>'
        )
    return parts


# Where a name may stand beside its point, the best first: ever higher or lower, on the right or the left.
SPOTS = tuple(
    (dx, dy, anchor)
    for dy in (4, -5, 13, -14, 22, -23, 31, -32, 40, -41, 49)
    for dx, anchor in ((8, "start"), (-8, "end"))
)
FAR = 18  # from its point, from which on a line leads to a name


def _spot(
    px: float, py: float, length: float, taken: Sequence[tuple[float, float, float, float]], width: float, height: float
) -> tuple[float, float, str, tuple[float, float, float, float]]:
    """Where a label goes: the first of some places around its point that runs into nothing."""
    best = None
    for dx, dy, anchor in SPOTS:
        left = px + dx if anchor == "start" else px + dx - length
        box = (left, py + dy - 10, left + length, py + dy + 2)
        outside = box[0] < 36 or box[2] > width or box[1] < 12 or box[3] > height
        clashes = sum(box[0] < t[2] and t[0] < box[2] and box[1] < t[3] and t[1] < box[3] for t in taken)
        spot = (outside * 100 + clashes, (round(px + dx, 1), round(py + dy, 1), anchor, box))
        if best is None or spot[0] < best[0]:
            best = spot
    assert best is not None
    return best[1]
