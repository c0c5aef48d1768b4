"""Inline SVG of the guidance page: lines over layers, points of runs, histograms. Colours are in guidance.css.

A condition has a number, by which its colour (`c0`, `c1`, ...) and its shape are the same in every figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from veridical.page.plots import LETTER, SHAPES, Scale, linear, tick

COLOURS = 8  # in guidance.css, then again from the first


def mark(place: int, x: float, y: float) -> str:
    d = SHAPES[place % len(SHAPES)]
    return f'<path class="c{place % COLOURS}" transform="translate({x:g} {y:g})" d="{d}"/>'


def key(place: int) -> Markup:
    """A condition's mark, for legends and tables."""
    box = 'viewBox="-6 -6 12 12" width="12" height="12"'
    return Markup(f'<svg class="key" {box} aria-hidden="true">{mark(place, 0, 0)}</svg>')


def _svg(kind: str, width: int, height: int, words: str, parts: Sequence[str]) -> Markup:
    box = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return Markup(f'<svg class="{kind}" {box} role="img" aria-label="{escape(words)}">{"".join(parts)}</svg>')


def _frame(x: Scale, y: Scale, width: int, height: int, x_label: str, y_label: str) -> list[str]:
    """Grid, ticks and titles."""
    parts = []
    for value in y.ticks:
        parts.append(f'<line class="grid" x1="{x.start}" x2="{x.end}" y1="{y(value)}" y2="{y(value)}"/>')
        parts.append(f'<text x="{x.start - 6}" y="{y(value) + 3.5:.1f}" text-anchor="end">{tick(value)}</text>')
    for value in x.ticks:
        parts.append(f'<line class="grid" x1="{x(value)}" x2="{x(value)}" y1="{y.end}" y2="{y.start}"/>')
        parts.append(f'<text x="{x(value)}" y="{y.start + 15}" text-anchor="middle">{tick(value)}</text>')
    parts.append(f'<text class="title" x="{x.end}" y="{height - 3}" text-anchor="end">{escape(x_label)}</text>')
    parts.append(f'<text class="title" x="0" y="10">{escape(y_label)}</text>')
    return parts


def lines(series: Sequence[tuple[int, Sequence[float | None]]], words: str, *, y_label: str, x_label: str) -> Markup:
    """A line per condition over 1, 2, 3, ...; all of one figure."""
    width, height = 300, 210
    count = max((len(values) for _, values in series), default=1)
    y = linear([v for _, values in series for v in values], height - 36, 22, count=5)
    every = 1 + (count - 1) // 12
    x = Scale(1, max(count, 2), 40, width - 12, tuple(range(1, count + 1, every)))
    parts = _frame(x, y, width, height, x_label, y_label)
    for place, values in series:
        known = [(x(i + 1), y(v)) for i, v in enumerate(values) if v is not None]
        path = "L".join(f"{px} {py}" for px, py in known)
        parts.append(f'<path class="line c{place % COLOURS}" d="M{path}"/>' if known else "")
        parts += [mark(place, px, py) for px, py in known]
    return _svg("chart", width, height, words, parts)


@dataclass(frozen=True, slots=True)
class Spot:
    """A run or a condition in a plane."""

    place: int
    x: float
    y: float
    words: str
    name: str = ""  # printed beside it
    faint: bool = False  # one of several behind a mean


def spots(points: Sequence[Spot], words: str, *, x_label: str, y_label: str, verticals: Sequence[float] = ()) -> Markup:
    """Points in a plane, with vertical lines at some values."""
    width, height = 360, 270
    x = linear([*(p.x for p in points), *verticals], 46, width - 16, count=4)
    y = linear([p.y for p in points], height - 38, 24, count=5)
    parts = _frame(x, y, width, height, x_label, y_label)
    parts += [f'<line class="bound" x1="{x(v)}" x2="{x(v)}" y1="{y.end}" y2="{y.start}"/>' for v in verticals]
    taken: list[tuple[float, float]] = []
    for point in sorted(points, key=lambda p: not p.faint):
        px, py = x(point.x), y(point.y)
        name = ""
        if point.name:
            left = px > width - 24 - LETTER * len(point.name)
            ly = py + 4
            while any(abs(ly - other) < 11 and abs(px - at) < LETTER * len(point.name) for at, other in taken):
                ly += 11
            taken.append((px, ly))
            anchor, at = ("end", px - 8) if left else ("start", px + 8)
            name = f'<text class="name" x="{at:.1f}" y="{ly:.1f}" text-anchor="{anchor}">{escape(point.name)}</text>'
        kind = ' class="faint-spot"' if point.faint else ""
        parts.append(f"<g{kind}><title>{escape(point.words)}</title>{mark(point.place, px, py)}{name}</g>")
    return _svg("chart", width, height, words, parts)


def histogram(counts: Sequence[int], others: Sequence[int], place: int, words: str) -> Markup:
    """Shares of texts per stretch of -1 to 1: bars, and the yardstick as a line over them."""
    width, height = 190, 92
    x = Scale(-1, 1, 6, width - 6)
    shares, line = ([c / max(1, sum(side)) for c in side] for side in (counts, others))
    y = Scale(0, max([*shares, *line, 1e-9]), height - 16, 6)
    step = 2 / max(1, len(counts))
    parts = [f'<line class="grid" x1="6" x2="{width - 6}" y1="{y.start}" y2="{y.start}"/>']
    for i, share in enumerate(shares):
        if share:
            left, right = x(-1 + i * step), x(-1 + (i + 1) * step)
            top = y(share)
            parts.append(
                f'<rect class="c{place % COLOURS}" x="{left}" y="{top}" width="{right - left:.1f}" '
                f'height="{y.start - top:.1f}"/>'
            )
    if sum(others):
        steps = "".join(f"L{x(-1 + i * step)} {y(s)}L{x(-1 + (i + 1) * step)} {y(s)}" for i, s in enumerate(line))
        parts.append(f'<path class="yardstick" d="M{x(-1)} {y.start}{steps}L{x(1)} {y.start}"/>')
    for value in (-1, 0, 1):
        parts.append(f'<text x="{x(value)}" y="{height - 3}" text-anchor="middle">{tick(value)}</text>')
    return _svg("histogram", width, height, words, parts)
