"""Soft-NS and Soft-NC (Zhao and Aletras 2023, eq. 3-5 and appendix C)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from scipy.special import expit, softmax

from veridical.core.errors import InputError
from veridical.core.ranges import Seed, above, between
from veridical.core.records import Explained, Score, Variant
from veridical.core.seed import seed_of
from veridical.metric import metric
from veridical.metric.erasure import UNDEFINED_BELOW, Side, fall, insist_on_defaults, normalised, of_target
from veridical.model.ask import Asker
from veridical.model.erase import Mode, blank, soften

Scale = Literal["minmax", "none", "sigmoid", "abs_max", "abs_minmax", "softmax", "rank"]
Where = Literal["word", "post_layernorm"]
Preset = Literal["", "released"]
Samples = Annotated[int, between(1, 100_000)]
Variance = Annotated[float, above(0)]


@dataclass(frozen=True)
class Setting:
    """The options of both metrics."""

    scale: Scale
    mode: Mode
    where: Where
    samples: int
    variance: float
    seed: int
    preset: Preset

    def __post_init__(self) -> None:
        if self.mode == "attention" and self.where != "word":
            raise InputError("mode=attention changes no embeddings, so where=post_layernorm cannot go with it.")
        if self.preset:
            insist_on_defaults(
                self.preset,
                scale=(self.scale, "minmax"),
                mode=(self.mode, "bernoulli"),
                where=(self.where, "word"),
                samples=(self.samples, 10),
            )


def soft_score(ex: Explained, side: Side, how: Setting) -> Asker[Score]:
    """Mean over draws, then normalised, then clipped; its standard error is the jackknife's over the draws.

    The jackknife takes in what a formula for a ratio of means would leave out: a value held by the clip hardly moves.
    """
    erased, null = _released(ex, side, how) if how.preset else _variants(ex, side, how)
    answers = yield [*null, *erased]
    p = of_target(ex, answers)
    rooms, falls = fall(ex, p[: len(null)]), fall(ex, p[len(null) :])  # [samples]; only Gaussian rooms differ
    room = float(rooms.mean())
    if room < UNDEFINED_BELOW:
        return Score(None, room=room)

    def value(fall: np.ndarray, room: np.ndarray) -> np.ndarray:
        return np.clip(normalised(side, fall / np.maximum(room, UNDEFINED_BELOW)), 0.0, 1.0)

    error, n = None, len(falls)
    if n > 1:
        without = value((falls.sum() - falls) / (n - 1), (rooms.sum() - rooms) / (n - 1))  # each draw left out
        error = float(np.sqrt((n - 1) * np.var(without)))
    return Score(float(value(falls.mean(), rooms.mean())), error=error, room=room)


def scaled(scores: np.ndarray, scale: Scale) -> np.ndarray:
    """Scores as shares of importance in [0, 1]; one half for all where they do not differ. `rank` spaces them evenly in
    their order, ties to the earlier, so that nothing else of them matters."""
    scores = np.asarray(scores, dtype=np.float64)
    if scale == "rank":
        places = np.empty(len(scores))
        places[np.argsort(-scores, kind="stable")] = np.arange(len(scores), 0, -1)
        scores = places
    if scale == "none":
        if ((scores < 0) | (scores > 1)).any():
            outside = scores[(scores < 0) | (scores > 1)][0]
            raise InputError(f"A score is {outside:.4g}, but scale=none needs scores from 0 to 1; take scale=minmax.")
        return scores
    if scale == "sigmoid":
        return expit(scores)
    if scale == "softmax":
        return softmax(scores)
    if scale.startswith("abs"):
        scores = np.abs(scores)
    low = 0.0 if scale == "abs_max" else scores.min(initial=np.inf)
    high = scores.max(initial=-np.inf)
    if not high > low:
        return np.full_like(scores, 0.5)
    return (scores - low) / (high - low)


def _variants(ex: Explained, side: Side, how: Setting) -> tuple[list[Variant], list[Variant]]:
    """The perturbed inputs and, with the same draws, those of which no free token keeps anything."""
    assert ex.scores is not None
    free = np.flatnonzero(ex.encoded.free)
    important = scaled(ex.scores[free], how.scale)
    keep, nothing = np.ones(len(ex.encoded.ids)), np.ones(len(ex.encoded.ids))
    keep[free] = important if side == "sufficiency" else 1 - important
    nothing[free] = 0.0
    where = "word" if how.where == "word" else "block"
    # The seed knows the text and the draw, never the explanation: all explanations meet the same draws.
    seeds = [
        seed_of("soft", ex.seed, how.seed, ex.encoded.example.id, ex.encoded.ids, draw) for draw in range(how.samples)
    ]
    erased, null = (
        [soften(ex, q, seed=seed, mode=how.mode, where=where, variance=how.variance) for seed in seeds]
        for q in (keep, nothing)
    )
    return erased, null


def _released(ex: Explained, side: Side, how: Setting) -> tuple[list[Variant], list[Variant]]:
    """What the authors' code asks: the direction turned round, one draw, after the LayerNorm.

    [CLS] and the context count as unimportant; the separator that ends a single text counts as a token (of score 0
    here, since no explanation of ours scores it).
    """
    assert ex.scores is not None
    counted = np.array(ex.encoded.free)
    if ex.encoded.example.context is None and counted.any():
        counted[int(np.flatnonzero(counted).max()) + 1 :] = True
    if side == "sufficiency":
        important = np.where(counted, expit(ex.scores.astype(np.float64)), 0.0)
        keep = 1 - important
    else:
        keep = scaled(np.where(counted, ex.scores, -1.0), "minmax")
    seed = seed_of("soft", ex.seed, how.seed, ex.encoded.example.id, ex.encoded.ids, 0)
    return [soften(ex, keep, seed=seed, where="block")], [blank(ex)]


@metric("soft_sufficiency", kind="faithfulness", better="higher", bounds=(0, 1), needs=("questions",))
def soft_sufficiency(
    ex: Explained,
    *,
    scale: Scale = "minmax",
    mode: Mode = "bernoulli",
    where: Where = "word",
    samples: Samples = 10,
    variance: Variance = 0.5,
    seed: Seed = 0,
    preset: Preset = "",
) -> Asker[Score]:
    """How much of the prediction is left when every token keeps a share of its vector that grows with its score
    (Soft-NS, Zhao and Aletras 2023 eq. 3-4), as a share of what all tokens carry.

    `preset` released follows the authors' code, in which the direction is turned round (see docs/soft-faithfulness.md).
    """
    how = Setting(scale, mode, where, samples, variance, seed, preset)
    return (yield from soft_score(ex, "sufficiency", how))


@metric("soft_comprehensiveness", kind="faithfulness", better="higher", bounds=(0, 1), needs=("questions",))
def soft_comprehensiveness(
    ex: Explained,
    *,
    scale: Scale = "minmax",
    mode: Mode = "bernoulli",
    where: Where = "word",
    samples: Samples = 10,
    variance: Variance = 0.5,
    seed: Seed = 0,
    preset: Preset = "",
) -> Asker[Score]:
    """How much of the prediction goes when every token loses a share of its vector that grows with its score
    (Soft-NC, Zhao and Aletras 2023 eq. 3 and 5), as a share of what goes with all tokens.

    `preset` released follows the authors' code, in which the direction is turned round (see docs/soft-faithfulness.md).
    """
    how = Setting(scale, mode, where, samples, variance, seed, preset)
    return (yield from soft_score(ex, "comprehensiveness", how))
