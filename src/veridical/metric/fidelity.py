"""F-Fidelity: the explanation removed at random portions (Zheng et al. 2025).

Of the k top tokens of n each goes with probability min(alpha, beta n / k), beta being the share that the model was
trained to do without: on average never more is removed than training removed, and no mask has a shape that could tell
the class. Fid+ is how far the explained class falls, Fid- the same of the k lowest tokens.
"""

from __future__ import annotations

from itertools import product
from typing import Annotated, Literal

import numpy as np

from veridical.core.ranges import at_least, between
from veridical.core.records import Answers, Explained, Score
from veridical.core.seed import generator
from veridical.metric import metric
from veridical.metric.erasure import Ratios
from veridical.model.ask import Asker
from veridical.model.erase import Operator, budget, erase, ranking

RATIOS = (0.05, 0.1, 0.2, 0.5)
BETA = 0.1  # the authors', for a model that says nothing of masks
Share = Annotated[float, between(0, 1, without="low")]
Of = Literal["probability", "label"]
Samples = Annotated[int, at_least(2)]


def removal_rate(tokens: int, size: int, alpha: float, beta: float) -> float:
    """The chance of each of `size` tokens of a text to go."""
    return min(alpha, beta * tokens / size)


@metric("fid_plus", kind="faithfulness", better="higher", bounds=(-1, 1), needs=("questions",), order=True)
def fid_plus(
    ex: Explained,
    *,
    ratios: Ratios = RATIOS,
    alpha: Share = 0.5,
    beta: Share | None = None,
    samples: Samples = 50,
    by: Operator = "mask",
    of: Of = "probability",
) -> Asker[Score]:
    """How far the explained class falls when random parts of the top tokens go, averaged over sizes of the top set
    (F-Fidelity, Zheng et al. 2025).

    `beta` is by default the share of masks that the model was trained on (1: no cap), or the authors' 0.1 where it was
    trained on none. `of=label` counts changed labels, as the authors do. Sets whose parts are few are gone through in
    full, the others sampled.
    """
    return (yield from _fidelity(ex, ratios, alpha, beta, samples, by, of, sign=1))


@metric("fid_minus", kind="faithfulness", better="lower", bounds=(-1, 1), needs=("questions",), order=True)
def fid_minus(
    ex: Explained,
    *,
    ratios: Ratios = RATIOS,
    alpha: Share = 0.5,
    beta: Share | None = None,
    samples: Samples = 50,
    by: Operator = "mask",
    of: Of = "probability",
) -> Asker[Score]:
    """The same of the lowest tokens: what an explanation calls unimportant should not matter, so lower is better
    (F-Fidelity, Zheng et al. 2025)."""
    return (yield from _fidelity(ex, ratios, alpha, beta, samples, by, of, sign=-1))


def _fidelity(
    ex: Explained,
    ratios: tuple[float, ...],
    alpha: float,
    beta: float | None,
    samples: int,
    by: Operator,
    of: Of,
    sign: int,
) -> Asker[Score]:
    if ex.scores is None:
        raise ValueError("a metric needs scores")
    order = ranking(ex.scores, ex.encoded.free)[::sign]
    n, values, errors = len(order), [], []
    if not n:
        return Score(None, (None,) * len(ratios))
    share = (ex.masks or BETA) if beta is None else beta
    parts = []
    for size in (budget(n, ratio) for ratio in ratios):
        parts.append(_parts(ex, order[:size], removal_rate(n, size, alpha, share), samples))
    answers = yield [erase(ex, gone.tolist(), by) for removed, _ in parts for gone in removed]
    falls = _value(ex, of) - _values(ex, answers, of)
    start = 0
    for removed, weights in parts:
        some, start = falls[start : start + len(removed)], start + len(removed)
        values.append(float(some @ weights))
        errors.append(0.0 if len(removed) != samples else float(some.var(ddof=1)) / samples)
    error = float(np.sqrt(sum(errors))) / len(ratios)
    return Score(float(np.mean(values)), tuple(values), error)


def _parts(ex: Explained, positions: np.ndarray, rate: float, samples: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Removed parts of a set with their weights: all of them with their chances where they are fewer than the samples,
    else draws that are the same for every explanation of the text."""
    if 1 << len(positions) < samples:
        masks = np.array(list(product((False, True), repeat=len(positions))))
        weights = np.where(masks, rate, 1 - rate).prod(1)
        return [positions[mask] for mask in masks], weights
    draws = generator("fidelity", ex.seed, ex.encoded.example.id, ex.encoded.ids).random((samples, len(ex.encoded.ids)))
    return [positions[draw[positions] < rate] for draw in draws], np.full(samples, 1 / samples)


def _value(ex: Explained, of: Of) -> float:
    whole = ex.probabilities
    return float(whole[ex.target]) if of == "probability" else float(whole.argmax() == ex.target)


def _values(ex: Explained, answers: Answers, of: Of) -> np.ndarray:
    p = answers.probabilities.astype(np.float64)
    return p[:, ex.target] if of == "probability" else (p.argmax(1) == ex.target).astype(np.float64)
