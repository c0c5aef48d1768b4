"""Masked fine-tuning: a model that meets masked texts in training can be asked about them afterwards (Madsen et al.
2024).

In every step each text is masked or not by a coin of its own, and a masked one by a share of its own. Both are drawn
from (data seed, step, example id): never from its place, for our batches are sorted by length, so neither batches nor
passes nor processes nor a second start change them. Cross-entropy sees all texts, every other term the whole ones
only: a rationale or a prior says nothing of the mask token. Dev is measured whole and in one fixed masked copy, and
their pooled score chooses the epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from veridical.core.records import Answers, Encoded
from veridical.core.seed import generator
from veridical.model.accuracy import Scores, score
from veridical.model.classifier import Classifier, Kind
from veridical.model.mask import Masking, masking
from veridical.training.config import TrainConfig


@dataclass(frozen=True, slots=True)
class Masks:
    """Which texts of a step are masked, and how."""

    how: Masking
    rows: float  # chance of a text
    seed: int

    def drawn(self, encoded: Sequence[Encoded], step: int) -> list[Encoded | None]:
        """Of every text its masked form in this step; none: it stays whole."""
        return [self._drawn(text, step) for text in encoded]

    def _drawn(self, encoded: Encoded, step: int) -> Encoded | None:
        draws = generator("mask", self.seed, step, encoded.example.id)
        return self.how.draw(encoded, draws) if draws.random() < self.rows else None

    def copy(self, encoded: Sequence[Encoded], split: str) -> list[Encoded]:
        """One fixed masked form of every text of a split."""
        return [self.how.draw(text, generator("mask", self.seed, split, text.example.id)) for text in encoded]


def masks(clf: Classifier, config: TrainConfig, seed: int) -> Masks | None:
    """What a training masks; none if it masks nothing."""
    if not config.mask:
        return None
    return Masks(masking(clf, config.mask, context=config.mask_context), config.mask_rows, seed)


def pooled(whole: Answers, masked: Answers, gold: torch.Tensor, kind: Kind) -> Scores:
    """The scores over a split and its masked copy together."""
    both = (np.concatenate([getattr(whole, part), getattr(masked, part)]) for part in ("logits", "probabilities"))
    return score(Answers(*both), torch.cat([gold, gold]), kind)


def masked_inputs(
    masks: Masks, inputs: Mapping[str, Any], encoded: Sequence[Encoded], step: int
) -> tuple[dict[str, Any], list[int]]:
    """A trainer's own tensors with some of its texts masked in this step, and the rows that stay whole."""
    ids, whole = inputs["input_ids"].clone(), []
    for row, new in enumerate(masks.drawn(encoded, step)):
        if new is None:
            whole.append(row)
        else:
            ids[row, : len(new.ids)] = torch.tensor(new.ids, device=ids.device)
    return {**inputs, "input_ids": ids}, whole


def some_rows(inputs: Mapping[str, Any], rows: Sequence[int]) -> dict[str, Any]:
    """Some rows of a trainer's tensors."""
    return {key: value[list(rows)] if isinstance(value, torch.Tensor) else value for key, value in inputs.items()}
