"""What was found of a model's shortcuts as a section of its audit's page, and in a notebook: layout alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from markupsafe import Markup, escape

from veridical.audits.shortcuts.record import Shortcuts, Taught, read_shortcuts, standing
from veridical.page.render import render
from veridical.page.words import figure, p_value, prose

SHOWN = 25  # words of the table of all; words.csv has the rest
GROUPS = {"candidates": "the candidates together", "rule": "", "all": "all flagged words together"}


def section_of(folder: Path) -> str:
    """The section of an audit's page; nothing where nobody looked for shortcuts."""
    found = read_shortcuts(folder)
    return "" if found is None else section(found)


def section(found: Shortcuts) -> str:
    groups = {**GROUPS, "rule": f"the {'words of the rule' if found.planted else 'marked words'} together"}
    return render(
        "audits/shortcuts/section.html",
        s=found,
        tables=_tables(found),
        groups=groups,
        rows=found.words[:SHOWN],
        level=f"{100 * found.alpha:.3g}%",
        standing=lambda word: standing(found, word),
        percent=percent,
        percents=percents,
        taught=_taught,
        num=_escaped(figure),
        p=_escaped(p_value),
        prose=prose,
    )


def snippet(found: Shortcuts) -> str:
    """What a notebook shows."""
    return render(
        "audits/shortcuts/snippet.html",
        s=found,
        standing=lambda word: standing(found, word),
        percent=percent,
        percents=percents,
        taught=_taught,
        prose=prose,
    )


def _tables(found: Shortcuts) -> list[tuple[str, tuple[object, ...]]]:
    """The flagged words, those of the rule apart, each under its heading."""
    outside = "No part of the rule" if found.planted else "Not marked in the data"
    rule = "Words of the rule" if found.planted else "Marked in the data"
    held = [
        (outside, found.of_kind("outside")),
        ("Flagged words", found.of_kind("unknown")),
        (rule, found.of_kind("rule")),
        ("Leads: relied on, and not shown to go with a class", found.leads),
    ]
    return [(heading, words) for heading, words in held if words]


def _taught(row: Taught) -> str:
    return f"{row.split}: {percent(row.share)} {row.label} of {row.texts} (of all {percent(row.overall)})"


def percent(value: float | None) -> str:
    if value is None:
        return "–"
    text = f"{100 * value:.1f}%" if 0.0005 <= abs(value) < 0.0995 else f"{100 * value:.0f}%"
    return text.replace("-", "−")


def percents(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{percent(low)} to {percent(high)}"


def _escaped(words: Callable[[float | None], str]) -> Callable[[float | None], Markup]:
    return lambda value: escape(words(value))
