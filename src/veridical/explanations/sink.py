"""Decoders attend to the first token where they have nothing to look for: it collects weight, and says little."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch

from veridical.core.errors import Caution
from veridical.model.classifier import Classifier
from veridical.model.pooling import reads_last

MOST = 0.5  # of all that a method gives to a text
FEWEST = 4  # tokens: of two or three the first may well matter most


def first_shares(clf: Classifier, scores: torch.Tensor, mask: torch.Tensor) -> list[float]:
    """What share of all scores, by size, the first token of each text of a decoder has. [B, T] -> up to B"""
    if not reads_last(clf.model.config):
        return []
    sizes = torch.where(mask, scores.detach().abs(), torch.zeros_like(scores))[mask.sum(-1) >= FEWEST]
    return (sizes[:, 0] / sizes.sum(-1).clamp(min=1e-30)).tolist()


def warn_of_sink(clf: Classifier, method: str, shares: Sequence[float]) -> None:
    """Name the first token where a method gives it most."""
    most = [share for share in shares if share > MOST]
    if most:
        warnings.warn(
            f"In {len(most)} of {len(shares)} texts {method} gives the first token up to {max(most):.0%} of all its "
            f"scores. There {clf.name} ({clf.family}) attends when it looks for nothing, an attention sink, and the "
            "text shares what is left; look at alti, frozen_gradient or occlusion beside it.",
            Caution,
            stacklevel=3,
        )
