"""Error rates with intervals: of worlds exactly, of methods by resampling worlds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import beta

from veridical.core.seed import generator
from veridical.core.statistics import ALPHA, RESAMPLES
from veridical.probes.validation.record import Rate


def exact(count: int, of: int) -> Rate:
    """A share of independent worlds, with the interval of Clopper and Pearson."""
    if not of:
        return Rate(count, of, None, None, None)
    low = float(beta.ppf(ALPHA / 2, count, of - count + 1)) if count else 0.0
    high = float(beta.ppf(1 - ALPHA / 2, count + 1, of - count)) if count < of else 1.0
    return Rate(count, of, count / of, low, high)


def over_worlds(counts: Sequence[int], of: Sequence[int], *, seed: int = 0) -> Rate:
    """A share of things that come in worlds, of which one world may have several: worlds are resampled. Where every
    world is alike, as where none has an error, resampling has nothing to say and there is no interval."""
    total = sum(of)
    share = sum(counts) / total if total else None
    if len({(c, n) if c else (0, 0) for c, n in zip(counts, of, strict=True)}) < 2:
        return Rate(sum(counts), total, share, None, None)
    draws = generator("validate", seed, len(of)).integers(len(of), size=(RESAMPLES, len(of)))
    drawn, drawn_of = np.array(counts)[draws].sum(1), np.array(of)[draws].sum(1)
    low, high = np.quantile(drawn / np.maximum(drawn_of, 1), [ALPHA / 2, 1 - ALPHA / 2])
    return Rate(sum(counts), total, share, float(low), float(high))
