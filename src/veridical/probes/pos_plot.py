"""The plot of importance by part of speech: a line per tag, a mark per model, one file that needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup, escape

from veridical.page.plots import LETTER, SHAPES, linear, tick

WIDTH, ROW, TOP = 640, 20, 58
CAPITAL = 8.8  # width of a letter of a tag
COLOURS = ("#8a93a6", "#2563eb", "#d9580c", "#0f766e", "#9333ea", "#a16207")
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#1c1d21}.soft{fill:#5e626b}.grid{stroke:#e3e4e8}.span{stroke:#b9bdc7}"
    "@media(prefers-color-scheme:dark){text{fill:#e9eaee}.soft{fill:#a2a7b3}.grid{stroke:#31343e}.span{stroke:#5a6070}}"
)


def pos_chart(rows: Sequence[tuple[str, Sequence[float]]], models: Sequence[str], title: str, unit: str) -> Markup:
    """`rows` are a tag and the models' means each, drawn in their order; the line between marks is their distance."""
    left = 14 + math.ceil(CAPITAL * max((len(tag) for tag, _ in rows), default=0))
    bottom = TOP + ROW * len(rows)
    x = linear([0.0, *(mean for _, means in rows for mean in means)], left, WIDTH - 16, count=6)
    parts = [f"<style>{STYLE}</style>", f'<text x="0" y="14" font-weight="600">{escape(title)}</text>']
    at = 0.0
    for place, model in enumerate(models):
        parts.append(_mark(place, at + 6, 32) + f'<text x="{at + 16:.0f}" y="36">{escape(model)}</text>')
        at += 32 + LETTER * 1.1 * len(model)
    for value in x.ticks:
        parts.append(f'<line class="grid" x1="{x(value)}" x2="{x(value)}" y1="{TOP - 8}" y2="{bottom}"/>')
        parts.append(
            f'<text class="soft" x="{x(value)}" y="{bottom + 16}" text-anchor="middle">{escape(tick(value))}</text>'
        )
    for line, (tag, means) in enumerate(rows):
        y = TOP + ROW * line + ROW / 2 - 4
        words = ", ".join(f"{model} {mean:.3f}" for model, mean in zip(models, means, strict=True))
        parts.append(f"<g><title>{escape(tag)}: {escape(words)}</title>")
        parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{escape(tag)}</text>')
        parts.append(f'<line class="span" x1="{x(min(means))}" x2="{x(max(means))}" y1="{y}" y2="{y}"/>')
        parts += [_mark(place, x(mean), y) for place, mean in enumerate(means)]
        parts.append("</g>")
    parts.append(f'<text class="soft" x="{WIDTH - 16}" y="{bottom + 34}" text-anchor="end">{escape(unit)}</text>')
    size = f'viewBox="0 0 {WIDTH} {bottom + 42}" width="{WIDTH}" height="{bottom + 42}"'
    name = f'role="img" aria-label="{escape(title)}"'
    return Markup(f'<svg xmlns="http://www.w3.org/2000/svg" {size} {name}>{"".join(parts)}</svg>\n')


def _mark(model: int, x: float, y: float) -> str:
    shape, colour = SHAPES[model % len(SHAPES)], COLOURS[model % len(COLOURS)]
    return f'<path transform="translate({x:g} {y:g})" d="{shape}" fill="{colour}"/>'
