"""How an estimate ran while texts came in: a small panel per method, all of them on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from veridical.page.plots import PANEL, Curve, Scale, band_path, line_path, svg, tick

LEFT, RIGHT, TOP, BOTTOM = 24, 6, 8, 18  # around the plot


@dataclass(frozen=True, slots=True)
class Run:
    """An estimate after so many texts, with its bounds."""

    texts: Sequence[int]
    curve: Curve


def running(runs: Sequence[Run], looks: Sequence[int], said: Sequence[str], key: str) -> tuple[Markup, list[Markup]]:
    """A panel per run from -1 to 1, all the others faint behind it, and a vertical line where the audit looked: the
    shared background, once, and the panels."""
    width, height = PANEL
    most = max([1, *looks, *(count for run in runs for count in run.texts)])
    x = Scale(0, most, LEFT, width - RIGHT)
    y = Scale(-1, 1, height - BOTTOM, TOP, (-1, 0, 1))
    grid = []
    for value in y.ticks:
        kind = "even" if value == 0 else "grid"
        grid.append(f'<line class="{kind}" x1="{LEFT}" x2="{width - RIGHT}" y1="{y(value)}" y2="{y(value)}"/>')
        grid.append(f'<text x="{LEFT - 4}" y="{y(value) + 3:.1f}" text-anchor="end">{tick(value)}</text>')
    for look in looks:
        anchor = "end" if look == most else "middle"
        grid.append(f'<line class="look" x1="{x(look)}" x2="{x(look)}" y1="{TOP}" y2="{height - BOTTOM}"/>')
        grid.append(f'<text x="{x(look)}" y="{height - 4}" text-anchor="{anchor}">{look}</text>')
    faint = "".join(f'<path d="{line_path(run.curve.values, run.texts, x, y)}"/>' for run in runs)
    shared = f'<g id="{key}">{"".join(grid)}<g class="faint">{faint}</g></g>'
    back = Markup(f'<svg class="defs" width="0" height="0" aria-hidden="true">{shared}</svg>')
    panels = []
    for run, words in zip(runs, said, strict=True):
        parts = [
            f'<use href="#{key}"/>',
            f'<path class="band" d="{band_path(run.curve, run.texts, x, y)}"/>',
            f'<path class="line" d="{line_path(run.curve.values, run.texts, x, y)}"/>',
        ]
        ends = [(at, value) for at, value in zip(run.texts, run.curve.values, strict=True) if value is not None]
        if ends:
            parts.append(f'<circle cx="{x(ends[-1][0])}" cy="{y(ends[-1][1])}" r="2.4"/>')
        panels.append(svg("panel", width, height, words, parts))
    return back, panels
