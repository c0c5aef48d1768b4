"""Decompositions of a forward pass: which source tokens every position's vector is made of."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:  # `from veridical.model.decompose import readouts` goes with version 0.3
    from veridical.core.moved import forward

    return forward("veridical.model.decompose", "veridical.model.decompose.decompose", name)
