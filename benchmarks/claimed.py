"""A finding of a recipe's claim, as its line is written: a difference, its 95% interval, its degrees of freedom."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from veridical.probes.guidance.change import around

Part = tuple[float, int]  # of the difference's variance: how much, with how many degrees of freedom


def finding(of: str, difference: float, parts: Sequence[Part]) -> str:
    value, low, high, freedom = around(difference, parts)
    return f"{{ of = {of!r}, ours = {value:.4f}, low = {low:.4f}, high = {high:.4f}, freedom = {freedom or 1:.1f} }}"


def of_mean(values: np.ndarray) -> Part:
    """What a mean of independent values adds."""
    return values.var(ddof=1) / len(values), len(values) - 1
