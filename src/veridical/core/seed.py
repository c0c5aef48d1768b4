"""Random numbers that depend on what they are for, never on when or beside what they are drawn."""

from __future__ import annotations

import hashlib

import numpy as np


def seed_of(*parts: object) -> int:
    """A stable 63-bit seed from any printable parts: the same in every process, order and batch."""
    text = "\x1f".join(map(str, parts))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def generator(*parts: object) -> np.random.Generator:
    """A NumPy generator of its own for these parts."""
    return np.random.default_rng(seed_of(*parts))
