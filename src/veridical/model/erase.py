"""Budgets, rankings and erasure: from scores to altered inputs.

All of them count free tokens only; special tokens and the context are in every altered input but `blank`.
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from typing import Literal

import numpy as np

from veridical.core.errors import InputError
from veridical.core.records import Explained, Soft, Variant
from veridical.core.records import Level as Level
from veridical.core.records import Operator as Operator

Rounding = Literal["ceil_min1", "floor_min1", "half_even_min1", "floor"]
Mode = Literal["bernoulli", "gaussian", "gaussian_sd", "attention"]


def budget(n: int, ratio: float, rounding: Rounding = "ceil_min1") -> int:
    """How many of n tokens a ratio buys, in exact arithmetic: the ratio is the decimal it prints as."""
    if not 0 <= ratio <= 1:
        raise InputError(f"A ratio is {ratio}; ratios are shares of the tokens, from 0 to 1.")
    if n == 0:
        return 0
    exact = Fraction(str(ratio)) * n
    if rounding == "floor":
        return int(exact)
    whole = {"ceil_min1": -(-exact // 1), "floor_min1": exact // 1, "half_even_min1": round(exact)}[rounding]
    return max(1, int(whole))


def ranking(scores: np.ndarray, free: Collection[bool]) -> np.ndarray:
    """Positions of the free tokens, highest score first, ties by lowest position."""
    positions = np.flatnonzero(np.asarray(free))
    chosen = np.asarray(scores)[positions]
    if not np.isfinite(chosen).all():
        raise InputError("A score is not a finite number; such an explanation cannot be ranked.")
    return positions[np.argsort(-chosen, kind="stable")]


def units(ex: Explained, level: Level = "token") -> list[list[int]]:
    """The groups of positions that are erased together: single free tokens, or the free tokens of a word."""
    positions = [int(p) for p in np.flatnonzero(ex.encoded.free)]
    if level == "token":
        return [[p] for p in positions]
    groups: dict[int, list[int]] = {}
    for p in positions:
        groups.setdefault(ex.encoded.words[p], []).append(p)
    return list(groups.values())


def ranked_units(ex: Explained, level: Level = "token") -> list[list[int]]:
    """The units, highest score first (a word's score is the sum of its tokens'), ties by position."""
    groups = units(ex, level)
    return [groups[i] for i in ranking(unit_scores(ex, groups), [True] * len(groups))]


def unit_scores(ex: Explained, groups: list[list[int]]) -> np.ndarray:
    """The sum of the scores in every group. [groups]"""
    if ex.scores is None:
        raise ValueError("a metric needs scores")
    return np.array([float(np.sum(ex.scores[group], dtype=np.float64)) for group in groups])


def erase(ex: Explained, gone: Collection[int], by: Operator = "delete") -> Variant:
    """The input of `ex` with these positions erased."""
    encoded, gone = ex.encoded, frozenset(int(position) for position in gone)
    if by == "delete":
        kept = [i for i in range(len(encoded.ids)) if i not in gone]
        return Variant(tuple(encoded.ids[i] for i in kept), tuple(encoded.types[i] for i in kept))
    if by == "attention" and gone:  # nothing gone is the intact input, which is asked once
        return Variant(encoded.ids, encoded.types, tuple(i not in gone for i in range(len(encoded.ids))))
    if by == "mask" and ex.mask_id is None:
        raise InputError("This tokenizer has no mask token, so by=mask cannot be used; take by=delete.")
    new = ex.mask_id if by == "mask" else 0
    if gone:
        _insist_on_other_than_end(ex, new, f"by={by}")
    return Variant(tuple(new if i in gone else id_ for i, id_ in enumerate(encoded.ids)), encoded.types)  # type: ignore[misc]


def _insist_on_other_than_end(ex: Explained, new: int | None, how: str) -> None:
    """Refuse to write a token by which a decoder's head finds the end of a text: it would read another position."""
    if new is not None and new == ex.end_id:
        raise InputError(
            f"{how} writes the id {new}, which is this decoder's pad token: its head would read the last token before "
            "those; take by=delete."
        )


def intact(ex: Explained) -> Variant:
    """The input unaltered."""
    return Variant(ex.encoded.ids, ex.encoded.types)


def erase_all(ex: Explained, by: Operator = "delete") -> Variant:
    """The null input: every free token erased."""
    return erase(ex, np.flatnonzero(ex.encoded.free), by)


def blank(ex: Explained) -> Variant:
    """The null input of some released code: id 0 for the text and every special token before its end, all attended.

    Of a pair the context and the separators around it stay.
    """
    _insist_on_other_than_end(ex, 0, "The blank null input")
    last = len(ex.encoded.ids)
    if ex.encoded.example.context is not None:
        last = int(np.flatnonzero(ex.encoded.free).max(initial=-1)) + 1
    return Variant((0,) * last + ex.encoded.ids[last:], ex.encoded.types)


def soften(
    ex: Explained,
    keep: np.ndarray,
    *,
    seed: int = 0,
    mode: Mode = "bernoulli",
    where: Literal["word", "block"] = "word",
    variance: float = 0.5,
) -> Variant:
    """The input of which each position keeps a share of itself (`model/soft.py` says how). keep [T]

    A seed that decides nothing is left out, so that the same question is not asked under many seeds.
    """
    if (keep == 1).all():
        return intact(ex)
    if mode == "attention" or (mode == "bernoulli" and ((keep == 0) | (keep == 1)).all()):
        seed = 0
    return Variant(
        ex.encoded.ids, ex.encoded.types, soft=Soft(tuple(keep.tolist()), seed, mode, where, float(variance))
    )
