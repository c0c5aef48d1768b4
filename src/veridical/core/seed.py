"""Random numbers that depend on what they are for, never on when or beside what they are drawn."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np


def seed_of(*parts: object) -> int:
    """A stable 63-bit seed from any printable parts: the same in every process, order and batch."""
    text = "\x1f".join(map(str, parts))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def generator(*parts: object) -> np.random.Generator:
    """A NumPy generator of its own for these parts."""
    return np.random.default_rng(seed_of(*parts))


@dataclass(frozen=True, slots=True)
class Draw:
    """A step of a training: what is drawn in it is another in every step and for every seed, and the same when the step
    is done again."""

    seed: int = 0  # of everything that is random once the weights are drawn
    step: int = 0

    def seed_of(self, *parts: object) -> int:
        return seed_of(*parts, self.seed, self.step)
