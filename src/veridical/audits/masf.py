"""MaSF, calibrated: is a masked text in the distribution that the model was trained on? (after Madsen et al. 2024)

Of every text the largest value of each hidden dimension over its tokens. Its place among a reference's is a p per
dimension; Simes joins a layer's dimensions, Fisher the layers. As released one reference serves all three steps, and a
text that is no part of it is rejected too often (1 to 20% at 5%, by dimensions and correlation). Here the reference is
halved: the first half has the places, the second says how large a Fisher's value gets by chance. So the last p is exact
for texts that are exchangeable with the reference. That it is large is weak evidence: hence a control beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from veridical.core.records import Variant
from veridical.model.ask import batches_of
from veridical.model.classifier import Classifier

Layers = list[np.ndarray]  # of every layer the texts' statistics [N, D]; layers may differ in width
DECIMALS = 12  # values are rounded before they are compared, or noise decides ties
LEVEL = 0.05
RATIOS = (0.1, 0.3, 0.5, 0.7, 0.9)
TEXTS = 48  # of a corpus that are looked at
REFERENCE = 400  # texts at most, halved; fewer than FEWEST carry no test
FEWEST = 38  # texts of which half give a p of 1/20


def passes(texts: int, reference: int, orders: int) -> int:
    """What the test asks at most: the reference once, every text by every order at every ratio, and the control."""
    if reference < FEWEST:
        return 0
    return min(reference, REFERENCE) + 2 * len(RATIOS) * orders * min(texts, TEXTS)


def mid_rank(reference: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Where points stand among reference values, column by column: (below + equal / 2 + 1/2) / (n + 1). [N, D]"""
    reference, points = np.sort(np.round(reference, DECIMALS), 0), np.round(points, DECIMALS)
    below, upto = (
        np.stack([np.searchsorted(reference[:, d], points[:, d], side) for d in range(points.shape[1])], 1)
        for side in ("left", "right")
    )
    return ((below + upto) / 2 + 0.5) / (len(reference) + 1)


def two_sided(ranks: np.ndarray) -> np.ndarray:
    """p of a place from either end: twice the smaller tail, at most 1."""
    return np.minimum(1.0, 2 * np.minimum(ranks, 1 - ranks))


def simes(p: np.ndarray) -> np.ndarray:
    """Joined along the last axis: the least of m p_(k) / k, at most 1."""
    m = p.shape[-1]
    return np.minimum(1.0, (m * np.sort(p, -1) / np.arange(1, m + 1)).min(-1))


def fisher(p: np.ndarray) -> np.ndarray:
    """Fisher's statistic along the last axis: large where p are small."""
    return -2 * np.log(p).sum(-1)


@dataclass(frozen=True)
class Familiar:
    """A reference, halved and worked out: what texts are held against."""

    first: Layers  # statistics of the first half
    joined: np.ndarray  # its Simes' values [A, L]
    calibrated: np.ndarray  # Fisher's values of the second half, sorted [B]

    def statistic(self, texts: Layers) -> np.ndarray:
        """Fisher's value of every text. [N]"""
        return np.round(fisher(two_sided(mid_rank(self.joined, _joined(self.first, texts)))), DECIMALS)

    def p(self, texts: Layers) -> np.ndarray:
        """Of every text: how often one of the reference lies as far out. At least 1 / (B + 1), so no text alone decides
        a corpus. [N]"""
        further = len(self.calibrated) - np.searchsorted(self.calibrated, self.statistic(texts), "left")
        return (1 + further) / (len(self.calibrated) + 1)


def _joined(reference: Layers, texts: Layers) -> np.ndarray:
    """Simes over the dimensions of every layer. [N, L]"""
    pairs = zip(reference, texts, strict=True)
    return np.stack([simes(two_sided(mid_rank(held, layer))) for held, layer in pairs], 1)


def familiar(reference: Layers) -> Familiar:
    """The reference's even texts fit the places, its odd ones calibrate."""
    first, second = ([layer[start::2] for layer in reference] for start in (0, 1))
    half = Familiar(first, _joined(first, first), np.empty(0))
    return Familiar(first, half.joined, np.sort(half.statistic(second)))


def hidden_peaks(clf: Classifier, variants: Sequence[Variant], budget: int | None = None) -> Layers:
    """Of every text and layer, the embedding's output among them, the largest value of each dimension over the attended
    tokens, special ones included."""
    places: dict[int, list[np.ndarray]] = {}
    with clf.at_rest(), torch.inference_mode():
        for rows in batches_of([len(v.ids) for v in variants], *(() if budget is None else (budget,))):
            batch = clf.collate_variants([variants[i] for i in rows])
            output = clf.forward(batch, hidden=True)
            hidden_away = ~batch.mask[..., None]
            peaks = [h.float().masked_fill(hidden_away, -torch.inf).amax(1).cpu().numpy() for h in output.hidden]
            for place, i in enumerate(rows):
                places[i] = [layer[place] for layer in peaks]
    return [np.stack([places[i][k] for i in range(len(variants))]) for k in range(len(places[0]))]
