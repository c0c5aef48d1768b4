"""Random numbers that depend on what they are for, never on when or beside what they are drawn."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from veridical.core.errors import InputError
from veridical.core.readable import shown
from veridical.core.spec import listed

MOST_SEEDS = 1000  # in one range: more is a mistake in typing


def seed_of(*parts: object) -> int:
    """A stable 63-bit seed from any printable parts: the same in every process, order and batch."""
    text = "\x1f".join(map(str, parts))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def generator(*parts: object) -> np.random.Generator:
    """A NumPy generator of its own for these parts."""
    return np.random.default_rng(seed_of(*parts))


def seeds_in(typed: Sequence[str]) -> tuple[int, ...]:
    """Seeds as people name them: `3`, `0,1,2`, `0-4`; each once, in the order in which they are named."""
    seeds: list[int] = []
    for part in listed(text.replace("+", ",") for text in typed):
        ends = re.fullmatch(r"([0-9]{1,10})(?:-([0-9]{1,10}))?", part)
        first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (1, 0)
        if not first <= last < first + MOST_SEEDS:
            raise InputError(
                f"{shown(part)} is not a seed or a range of at most {MOST_SEEDS:,} seeds; write 3, 0,1,2 or 0-4."
            )
        seeds += range(first, last + 1)
    if not seeds:
        raise InputError("No seed is named; write 3, 0,1,2 or 0-4.")
    return tuple(dict.fromkeys(seeds))


@dataclass(frozen=True, slots=True)
class Draw:
    """A step of a training: what is drawn in it is another in every step and for every seed, and the same when the step
    is done again."""

    seed: int = 0  # of everything that is random once the weights are drawn
    step: int = 0

    def seed_of(self, *parts: object) -> int:
        return seed_of(*parts, self.seed, self.step)
