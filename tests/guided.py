"""The toy data with rationales: the words that decide a label are marked, in three texts of four."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from toy import SIGNS, toy
from veridical.core.records import Dataset, Example


def guided(*sizes: int, every: int = 4, **kind: Any) -> Dataset:
    """`toy(...)` with every text marked but the first of each `every` (0: none is left out)."""
    data = toy(*sizes, **kind)
    return replace(
        data,
        splits={
            split: tuple(_marked(e) if not every or i % every else e for i, e in enumerate(examples))
            for split, examples in data.splits.items()
        },
    )


def _marked(example: Example) -> Example:
    return replace(example, rationale=tuple(m.span() for m in re.finditer("|".join(SIGNS), example.text)))
