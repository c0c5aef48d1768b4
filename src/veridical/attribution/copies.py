"""Many altered copies of every text of a batch, run together: short texts side by side, next to no padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from veridical.core.records import Batch
from veridical.model.ask import batches_of
from veridical.model.memory import tokens_under_way


def in_copies(batch: Batch, count: int, some: Sequence[int] | None = None) -> Iterator[tuple[torch.Tensor, int, range]]:
    """Rows of the batch, or of some of its rows, how many tokens the longest of them has, and which of their `count`
    copies go into one pass; the copies of a row come in order."""
    every = torch.arange(len(batch.ids), device=batch.ids.device)
    every = every if some is None else every[list(some)]
    lengths = [int(row.nonzero().max()) + 1 for row in batch.mask[every]]
    tokens = tokens_under_way()
    for group in batches_of(lengths, tokens // count):
        width = lengths[group[0]]
        together = max(1, tokens // (len(group) * width))
        for start in range(0, count, together):
            yield every[group], width, range(start, min(start + together, count))


def some_rows(batch: Batch, rows: torch.Tensor, width: int | None) -> Batch:
    """Some rows of a batch, cut to so many tokens."""
    return Batch((), *(t[rows, :width] for t in (batch.ids, batch.types, batch.mask, batch.free)))
