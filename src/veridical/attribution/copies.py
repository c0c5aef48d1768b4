"""Many altered copies of every text of a batch, run together: short texts side by side, next to no padding."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from veridical.core.records import Batch
from veridical.model.ask import TOKEN_BUDGET, batches_of


def in_copies(batch: Batch, count: int) -> Iterator[tuple[torch.Tensor, int, range]]:
    """Rows of the batch, how many tokens the longest of them has, and which of their `count` copies go into one pass;
    the copies of a row come in order."""
    every = torch.arange(len(batch.ids), device=batch.ids.device)
    lengths = [int(row.nonzero().max()) + 1 for row in batch.mask]
    for group in batches_of(lengths, TOKEN_BUDGET // count):
        width = lengths[group[0]]
        together = max(1, TOKEN_BUDGET // (len(group) * width))
        for start in range(0, count, together):
            yield every[group], width, range(start, min(start + together, count))


def some_rows(batch: Batch, rows: torch.Tensor, width: int | None) -> Batch:
    """Some rows of a batch, cut to so many tokens."""
    return Batch((), *(t[rows, :width] for t in (batch.ids, batch.types, batch.mask, batch.free)))
