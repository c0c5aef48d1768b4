"""A finding of a recipe's claim, as its line is written: a difference, its 95% interval, its degrees of freedom."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

Part = tuple[float, int]  # of the difference's variance: how much, with how many degrees of freedom


def finding(of: str, difference: float, parts: Sequence[Part]) -> str:
    """With Satterthwaite's degrees of freedom of the parts together."""
    variance = sum(part for part, _ in parts)
    freedom = variance**2 / sum(part**2 / free for part, free in parts)
    half = float(stdtrit(freedom, 0.975) * np.sqrt(variance))
    between = f"low = {difference - half:.4f}, high = {difference + half:.4f}, freedom = {freedom:.1f}"
    return f"{{ of = {of!r}, ours = {difference:.4f}, {between} }}"


def of_mean(values: np.ndarray) -> Part:
    """What a mean of independent values adds."""
    return values.var(ddof=1) / len(values), len(values) - 1
