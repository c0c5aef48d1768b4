"""Encodings laid end to end: what is batched in every epoch is turned from tuples into numbers once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch

from veridical.core.records import Batch, Encoded
from veridical.model.classifier import Classifier


@dataclass(frozen=True)
class Flat:
    """The tokens of many encodings one after the other, and where each begins."""

    encoded: Sequence[Encoded]
    ids: np.ndarray  # [tokens]
    types: np.ndarray  # [tokens]
    free: np.ndarray  # [tokens]
    starts: np.ndarray  # [n]
    lengths: np.ndarray  # [n]

    def batch(self, clf: Classifier, rows: Sequence[int]) -> Batch:
        """What `Classifier.collate` makes of these encodings, to the last bit."""
        chosen = np.array(rows)
        lengths = self.lengths[chosen][:, None]  # [B, 1]
        steps = np.arange(lengths.max())
        real = steps < lengths  # [B, T]
        places = np.where(real, self.starts[chosen][:, None] + steps, 0)
        pad, device = clf.model.config.pad_token_id, clf.device
        ids = np.where(real, self.ids[places], 0 if pad is None else pad)
        types = np.where(real, self.types[places], 0)
        parts = (torch.from_numpy(part).to(device) for part in (ids, types, real, real & self.free[places]))
        return Batch(tuple(self.encoded[i] for i in rows), *parts)


def flat_of(clf: Classifier, encoded: Sequence[Encoded]) -> Flat:
    """These encodings, refused if the model has no word vector for one of their tokens."""
    lengths = np.array([len(e.ids) for e in encoded])

    def laid(values: Callable[[Encoded], Sequence[int]], kind: type) -> np.ndarray:
        return np.fromiter(chain.from_iterable(map(values, encoded)), dtype=kind, count=int(lengths.sum()))

    ids = laid(lambda e: e.ids, np.int64)
    clf.insist_on_rows(int(ids.min()), int(ids.max()))
    starts = np.concatenate([[0], lengths.cumsum()[:-1]])
    return Flat(encoded, ids, laid(lambda e: e.types, np.int64), laid(lambda e: e.free, bool), starts, lengths)
