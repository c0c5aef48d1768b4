"""What is masked when: amounts, the order in which a text's tokens go, and texts with some of them gone.

A masked dataset is never written out. It is the original encodings, one array of positions per text in the order in
which they go, and an amount: the first so many are masked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from veridical.core.errors import InputError
from veridical.core.records import Encoded
from veridical.core.seed import generator
from veridical.core.text import marked
from veridical.model.erase import ranking
from veridical.model.mask import masked as masked
from veridical.retraining.options import Rounding

Unit = Literal["percent", "token"]
Orders = dict[str, list[np.ndarray]]  # split -> per text, its free positions in the order in which they are masked


@dataclass(frozen=True, slots=True)
class Amount:
    """So much of every text is masked: per cent of its tokens, or a number of them."""

    value: int
    unit: Unit = "percent"

    @property
    def name(self) -> str:
        return f"{self.unit[0]}{self.value}"

    def of(self, tokens: int, rounding: Rounding = "floor") -> int:
        """How many of a text's tokens that is; masked ones count, so that amounts are of the original text."""
        if self.unit == "token":
            return min(self.value, tokens)
        whole = self.value * tokens
        return whole // 100 if rounding == "floor" else -(-whole // 100)


@dataclass(frozen=True, slots=True)
class Steps:
    """The amounts of a curve between nothing and everything: every `size` per cent, or every `size` tokens up to
    `last` (appendix F)."""

    size: int = 10
    unit: Unit = "percent"
    last: int = 99

    def __post_init__(self) -> None:
        if self.unit == "percent" and not 1 <= self.size <= 50:
            raise InputError(f"step is {self.size}; it is per cent of the tokens, from 1 to 50.")
        if self.unit == "token" and not 1 <= self.size <= self.last:
            raise InputError(f"tokens is {self.last}; it is how many are masked one after the other, from {self.size}.")

    @property
    def name(self) -> str:
        """Of a recursive chain: with other steps it is another chain, however far it goes."""
        return f"by-{self.unit[0]}{self.size}"

    @property
    def amounts(self) -> tuple[Amount, ...]:
        return tuple(Amount(value, self.unit) for value in range(self.size, self.last + 1, self.size))


def order(scores: np.ndarray, free: Sequence[bool], gone: Sequence[int] | np.ndarray = ()) -> np.ndarray:
    """A text's free positions, those already masked first, then by score, ties by lowest position."""
    held = {int(position) for position in gone}
    left = [position for position in ranking(scores, free).tolist() if position not in held]
    return np.array([*(int(position) for position in gone), *left], dtype=np.int32)


def random_order(encoded: Encoded, seed: int) -> np.ndarray:
    """The baseline's: the same whatever the steps, so its curve is run once per seed and never recursively."""
    return order(_draws(encoded, seed), encoded.free)


def oracle_order(encoded: Encoded, seed: int) -> np.ndarray:
    """The rationale first, in random order, then the rest as the baseline has it."""
    return order(marked(encoded) + _draws(encoded, seed), encoded.free)


def _draws(encoded: Encoded, seed: int) -> np.ndarray:
    return generator("roar", seed, encoded.example.id, encoded.ids).random(len(encoded.ids))


def positions_only(encoded: Encoded, positions: Sequence[int] | np.ndarray, mask: int, filler: int) -> Encoded:
    """The text that says nothing but where it is masked: every other free token is the same (appendix A)."""
    blank = tuple(filler if free else id for id, free in zip(encoded.ids, encoded.free, strict=True))
    return masked(replace(encoded, ids=blank), positions, mask)


def gone(orders: Sequence[np.ndarray], amount: Amount, rounding: Rounding) -> list[np.ndarray]:
    """The positions masked in every text at an amount."""
    return [positions[: amount.of(len(positions), rounding)] for positions in orders]
