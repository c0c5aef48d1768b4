"""How a page says its numbers and names. What is not there is said, never shown as 0."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from markupsafe import Markup, escape

from veridical.core.spec import Spec, base_name

UNDEFINED = "undefined"
ROUNDING = 1e-9  # below this a figure is what adding and taking away leave of 0


def prose(text: str) -> Markup:
    """A sentence with what stands between backticks as code, everything escaped."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def figure(value: float | None) -> str:
    if value is None:
        return UNDEFINED
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if size < ROUNDING:
        return "0"
    if isinstance(value, int):
        return f"{value:,.0f}".replace("-", "−")
    text = f"{value:.3f}" if 0.0005 <= size < 10 else f"{value:.1f}" if 10 <= size < 1000 else f"{value:.3g}"
    return text.replace("-", "−")


def net(value: float | None) -> str:
    """Net wins, with their sign: +0.62"""
    if value is None:
        return UNDEFINED
    return "0.00" if round(value, 2) == 0 else f"{value:+.2f}".replace("-", "−")


def net_interval(low: float | None, high: float | None) -> str:
    return UNDEFINED if low is None or high is None else f"{net(low)} to {net(high)}"


def p_value(value: float | None) -> str:
    if value is None:
        return UNDEFINED
    return "<0.0001" if value < 0.0001 else f"{value:.1g}" if value < 0.001 else f"{value:.3f}"


def small_p(value: float | None) -> str:
    """A p to be held against a level far below 0.001: two digits, however small."""
    if value is None:
        return UNDEFINED
    if value >= 0.001:
        return f"{value:.2g}"
    digits, _, power = f"{value:.1e}".partition("e")
    return f"{digits}e−{-int(power)}" if value else "0"


def interval(low: float | None, high: float | None) -> str:
    return UNDEFINED if low is None or high is None else f"{figure(low)} to {figure(high)}"


def said(value: float | None, low: float | None, high: float | None) -> str:
    """A value with its interval, for those who hear the page."""
    return figure(value) if low is None or high is None else f"{figure(value)}, 95% interval {interval(low, high)}"


def short_names(specs: Sequence[str], most: int = 20) -> list[str]:
    """A label for each spec that fits a figure, and no two alike: the bare name where that says which, else the
    name with the option that tells it from its namesakes."""
    names: list[str] = []
    options = {text: Spec.read(text).options.items() for text in specs}
    for text in specs:
        name = label = base_name(text)
        namesakes = [options[other] for other in specs if other != text and base_name(other) == name]
        if namesakes and options[text]:
            apart = [option for option in options[text] if all(option not in other for other in namesakes)]
            telling = ":".join("=".join(option) for option in apart[:1] or options[text])
            room = max(6, most - 2 - len(telling))
            label = f"{name if len(name) <= room + 1 else name[:room] + '…'}:{telling}"
        label = label if len(label) <= most else f"{label[: most - 1]}…"
        count = sum(other.split(" #")[0] == label for other in names)
        names.append(f"{label} #{count + 1}" if count else label)
    return names
