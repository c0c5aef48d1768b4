"""The page of `veridical validate`: a pure function of what is stored, layout alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from markupsafe import Markup

from veridical.page import plots
from veridical.page.plots import Mark
from veridical.page.render import render
from veridical.page.words import figure
from veridical.probes.validation.record import PanelErrors, Rate, ValidationSummary


@dataclass(frozen=True)
class PanelRow:
    """A panel on the worlds that choose (the upper mark) and on fresh ones."""

    label: str
    metrics: str
    chosen: bool
    first: PanelErrors
    fresh: PanelErrors
    plot: Markup


def validation_page(summary: ValidationSummary, stamp: Mapping[str, Any]) -> str:
    """One self-contained HTML page, from summary.json and stamp.json."""
    begun = f"{datetime.fromisoformat(stamp['time']):%d %B %Y, %H:%M} UTC"
    scale = plots.linear([0.0, 1.0], 2, 98, (0, 1))
    return render(
        "probes/validation/validation.html",
        s=summary,
        rows=panel_rows(summary, scale),
        axis=plots.axis(scale, [f"{100 * tick:.0f}%" for tick in scale.ticks]),
        stamp=stamp,
        begun=begun,
        num=figure,
        percent=percent,
        rate=rate,
    )


def panel_rows(summary: ValidationSummary, scale: plots.Scale) -> list[PanelRow]:
    """Best first: by the upper end of E1's interval on the worlds that choose, else on the fresh ones."""
    rows = []
    for first, fresh in zip(summary.first, summary.fresh, strict=True):
        shown = [row.wrong for row in (first, fresh) if row.wrong.of]
        marks = [Mark(r.share, r.low, r.high, hollow=r is first.wrong and len(shown) == 2) for r in shown]
        words = f"{first.label}: wrong in {' and in '.join(rate(r) for r in shown)}"
        plot = plots.row(marks, scale, words) if shown else Markup("")
        metrics = ", ".join(first.metrics)
        rows.append(PanelRow(first.label, metrics, first.label == summary.chosen, first, fresh, plot))
    return sorted(rows, key=lambda row: _upper([row.first.wrong, row.fresh.wrong]))


def _upper(rates: Sequence[Rate]) -> float:
    return next((r.high for r in rates if r.high is not None), 1.0)


def percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}%"


def rate(value: Rate) -> str:
    """`2 of 60 (0.4% to 11.5%)`"""
    if not value.of:
        return "–"
    interval = f" ({percent(value.low)} to {percent(value.high)})" if value.low is not None else ""
    return f"{value.count} of {value.of}{interval}"
