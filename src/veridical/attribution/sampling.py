"""How sure a method that draws is of its scores, and when it has drawn enough.

Draws are dealt out to eight blocks in turn. The scores that come out with each block left out (the jackknife over
blocks) say how far the scores would move with other draws. What is stated is that error, root mean square over the
tokens, as a share of the scores' own spread over the tokens: at 0.1 they rank nearly as endless draws would (their
correlation with them is 0.995), at 1 they are noise. There are looks at a quarter, half, three quarters and all of the
draws; the first whose error is small enough is the last.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from veridical.core.ranges import between
from veridical.model.interruption import go_on

BLOCKS = 8
ENOUGH = 0.1
Enough = Annotated[float, between(0, 1)]  # draw until the error is that small; 0: draw all samples


def looks(samples: int, enough: float) -> list[int]:
    """How many draws there are at each look."""
    if not enough:
        return [samples]
    return sorted({-(-samples * quarter // 4) for quarter in (1, 2, 3, 4)})


def small(error: float | None, enough: float) -> bool:
    return error is not None and error <= enough


def jackknife(without: np.ndarray, scores: np.ndarray) -> float | None:
    """The sampling error of scores [n] from those with each block left out [blocks, n]; None where it is unknown: of
    one block, or of scores that do not differ and might."""
    blocks = len(without)
    if blocks < 2:
        return None
    variance, bias = (blocks - 1) * without.var(0), (blocks - 1) * (without.mean(0) - scores)
    error, spread = float(np.sqrt(np.mean(variance + bias**2))), float(np.std(scores))
    if not spread:
        return None if error else 0.0
    return error / spread if np.isfinite(error) else None


def fits_without(
    design: np.ndarray, values: np.ndarray, weights: np.ndarray, block: np.ndarray, penalty: np.ndarray
) -> np.ndarray:
    """Coefficients of weighted least squares with each block of rows left out. [blocks, k]

    design [m, k], values [m], weights [m], penalty [k] on the squares. Rows of block -1 are in all of them.
    """
    weighted = design * weights[:, None]
    whole, side = weighted.T @ design, weighted.T @ values
    # Rows may be fewer than columns: such coefficients are not of much worth, and then differ from block to block.
    held = np.diag(penalty + 1e-9 * np.trace(whole) / len(whole))
    fits = []
    for number in range(block.max() + 1):
        go_on()
        rows = block == number
        gram = whole - weighted[rows].T @ design[rows] + held
        fits.append(np.linalg.solve(gram, side - weighted[rows].T @ values[rows]))
    return np.stack(fits)
