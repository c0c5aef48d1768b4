"""TextRank (Mihalcea and Tarau 2004) over the pieces of one text, as SaLoss uses it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np

from veridical.core.ranges import at_least, between
from veridical.core.records import Encoded
from veridical.training.prior import Normalise, normalised, prior

Nodes = Literal["types", "positions"]
TOLERANCE = 1e-5  # on the largest change: the sum of the scores never changes, so it cannot tell when to stop


@prior("textrank")
def textrank(
    encoded: Encoded,
    fitted: Any = None,
    *,
    window: Annotated[int, at_least(2)] = 4,  # 2 links neighbours
    damping: Annotated[float, between(0, 1, without="high")] = 0.85,
    steps: Annotated[int, between(1, 100_000)] = 10,
    nodes: Nodes = "types",
    weighted: bool = False,
    normalise: Normalise = "sum",
    preset: Literal["released"] | None = None,
) -> np.ndarray:
    """How central a piece is in the graph that links the pieces standing near each other (SaLoss equation 1).

    Nodes are piece types, and every occurrence has its type's score, or `positions`. A window of 4 links distances 1
    to 3. `weighted` counts a pair seen in both orders twice and links a type that stands near itself to itself.
    `preset=released` is the authors' code: window 8, weighted, always two updates, a softmax in which special tokens
    have their share, and of a pair the context and the separator in the graph; it overrides the other options.
    """
    scores = np.zeros(len(encoded.ids))
    if preset == "released":
        inner = slice(0 if encoded.free[0] else 1, None if encoded.free[-1] else -1)  # neither [CLS] nor the last [SEP]
        scores[inner] = ranks(encoded.ids[inner], window=8, steps=2, weighted=True)
        return normalised(encoded, scores, "softmax_all")
    free = np.flatnonzero(encoded.free)
    pieces = [encoded.ids[i] for i in free]
    scores[free] = ranks(pieces, window=window, damping=damping, steps=steps, nodes=nodes, weighted=weighted)
    return normalised(encoded, scores, normalise)


def ranks(
    pieces: Sequence[int],
    *,
    window: int = 4,
    damping: float = 0.85,
    steps: int = 10,
    nodes: Nodes = "types",
    weighted: bool = False,
    tolerance: float = TOLERANCE,
) -> np.ndarray:
    """The score of each piece, in their order: s_i = (1 - d) + d * sum_j s_j / degree_j over neighbours, from 1. [n]"""
    place = np.arange(len(pieces))  # the node of each position
    if nodes == "types":
        place = np.unique(np.asarray(pieces), return_inverse=True)[1].reshape(-1)
    size = int(place.max(initial=-1)) + 1
    follows = np.zeros((size, size))
    for distance in range(1, min(window, len(pieces))):
        follows[place[:-distance], place[distance:]] = 1
    links = follows + follows.T
    if weighted:
        links -= np.diag(np.diag(follows))  # a loop weighs 1
    else:
        links = (links > 0).astype(float)
        np.fill_diagonal(links, 0)
    degree = links.sum(0)
    flow = links / np.where(degree > 0, degree, 1)  # columns sum to 1; a node without links gives and gets nothing
    scores = np.ones(size)
    for _ in range(steps):
        before, scores = scores, (1 - damping) + damping * flow @ scores
        if np.abs(scores - before).max(initial=0) < tolerance:
            break
    return scores[place]
