"""Erase and see: a prediction with some tokens gone, and the deletion and insertion curves of explanations.

Both are askers (model/ask.py), answered together with those of everybody else.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from veridical.core.errors import InputError
from veridical.core.records import Answers, Explained, Level, Operator, Variant
from veridical.core.seed import generator
from veridical.core.text import words_of
from veridical.model.classifier import Classifier
from veridical.model.erase import ranking, unit_scores, units
from veridical.playground.answering import Asking
from veridical.playground.job import Job
from veridical.playground.limits import FEWEST_POINTS, ORDERS, POINTS
from veridical.playground.served import Served
from veridical.playground.text import Text, checked_indices, mean_probabilities, read


def insist_on_operator(model: Served, by: Operator) -> None:
    if by not in model.operators:
        raise InputError(f"{model.name} has no mask token, so operator mask cannot be used; take delete or attention.")


def predicted(
    model: Served,
    text: str,
    context: str | None,
    *,
    erased: Sequence[int] | None = None,
    kept: Sequence[int] | None = None,
    by: Operator = "delete",
) -> Asking:
    """The prediction for a text without `erased` tokens, or with no others than `kept`."""
    insist_on_operator(model, by)
    if erased is not None and kept is not None:
        raise InputError("erased and kept were given together; give one of them.")
    held = read(model.answers, text, context)
    gone = checked_indices(held, erased or (), "erased")
    if kept is not None:
        gone = set(held.free.tolist()) - checked_indices(held, kept, "kept")
    answers = yield held.without(gone, by, model.mask_id)
    (probabilities,) = mean_probabilities(model.answers, answers.logits, len(held.windows))
    return {**prediction(model, probabilities), "erased": len(gone), "passes": len(held.windows)}


def prediction(model: Served, probabilities: np.ndarray) -> dict[str, Any]:
    """What a model says of a text, for people."""
    return {
        "label": decided(model, probabilities),
        "probabilities": [
            {"label": label, "probability": float(p)} for label, p in zip(model.labels, probabilities, strict=True)
        ],
        "multi_label": model.multi_label,
    }


def decided(model: Served, probabilities: np.ndarray) -> str | list[str]:
    """The likeliest class; of a multi-label model those that hold."""
    if model.multi_label:
        return [label for label, p in zip(model.labels, probabilities, strict=True) if p >= 0.5]
    return model.labels[int(probabilities.argmax())]


# -- curves ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curves:
    """What all curves of a text share."""

    clf: Classifier
    text: Text
    by: Operator
    mask_id: int | None
    groups: list[list[int]]  # units that go together
    sizes: list[int]  # how many of them have gone at each point
    target: int

    @property
    def fractions(self) -> list[float]:
        return [size / len(self.groups) for size in self.sizes]

    def questions(self, order: Sequence[int]) -> list[Variant]:
        """Without the first units of an order, then with them alone, at every point."""
        asked: list[Variant] = []
        for chosen in (_first, _rest):
            for size in self.sizes:
                gone = {index for unit in chosen(order, size) for index in self.groups[unit]}
                asked += self.text.without(gone, self.by, self.mask_id)
        return asked

    def along(self, order: Sequence[int]) -> Generator[list[Variant], Answers, np.ndarray]:
        """The target's probability along deletion and insertion. [2, points]

        Asked an order at a time: making the questions of all of them at once would hold up everybody else's.
        """
        answers = yield self.questions(order)
        probabilities = mean_probabilities(self.clf, answers.logits, len(self.text.windows))[:, self.target]
        return probabilities.reshape(2, len(self.sizes))


def _first(order: Sequence[int], size: int) -> Sequence[int]:
    return order[:size]


def _rest(order: Sequence[int], size: int) -> Sequence[int]:
    return order[size:]


def curves(
    model: Served,
    text: str,
    context: str | None,
    scores: Mapping[str, Sequence[float]],
    job: Job,
    *,
    by: Operator = "delete",
    level: Level = "token",
    target: int | Literal["predicted"] = "predicted",
) -> Asking:
    """Curves of every method, told as they are done; those of random orders with the first."""
    insist_on_operator(model, by)
    held = read(model.answers, text, context)
    seen = Explained(held.whole, 0, np.empty(0), np.empty(0))
    groups = units(seen, level)
    orders = {name: _order(held, groups, values, name) for name, values in scores.items()}
    answers = yield held.without((), by, model.mask_id)
    if target == "predicted":
        (probabilities,) = mean_probabilities(model.answers, answers.logits, len(held.windows))
        target = int(probabilities.argmax())
    sizes = sizes_of(len(groups), len(held.windows))
    how = Curves(model.answers, held, by, model.mask_id, groups, sizes, target)
    random = None
    for name, order in orders.items():
        found = yield from how.along(order)
        line = {"method": name, "fractions": how.fractions, **_drawn(found)}
        if random is None:
            random = yield from _random(how, text, level)
            line["random"] = random
        job.tell(line)


def _random(how: Curves, text: str, level: Level) -> Generator[list[Variant], Answers, dict[str, Any]]:
    """The mean curves of some random orders."""
    drawn = generator("playground", text, level)
    found = []
    for _ in range(ORDERS):
        curves = yield from how.along(drawn.permutation(len(how.groups)).tolist())
        found.append(curves)
    return {**_drawn(np.mean(found, 0)), "orders": ORDERS}


def sizes_of(units: int, windows: int = 1) -> list[int]:
    """How many units have gone at each point of a curve: none at first, all at last; fewer points of a text that takes
    many questions at each."""
    points = max(FEWEST_POINTS, POINTS // windows)
    return sorted({round(units * step / points) for step in range(points + 1)})


def _order(text: Text, groups: list[list[int]], scores: Sequence[float], name: str) -> list[int]:
    if len(scores) != len(text.whole.ids):
        raise InputError(
            f"scores of {name} has {len(scores)} numbers, but the text has {len(text.whole.ids)} tokens; give one for "
            "each, special ones included, as /api/tokens lists them."
        )
    seen = Explained(text.whole, 0, np.empty(0), np.empty(0), scores=np.array(scores, dtype=np.float64))
    return ranking(unit_scores(seen, groups), [True] * len(groups)).tolist()


def _drawn(curves: np.ndarray) -> dict[str, Any]:
    """Both curves, and the mean height of each."""
    deletion, insertion = curves.astype(np.float64)
    return {
        "deletion": deletion.tolist(),
        "insertion": insertion.tolist(),
        "areas": {"deletion": _area(deletion), "insertion": _area(insertion)},
    }


def _area(curve: np.ndarray) -> float:
    """Under a curve whose points are about as far from each other, by trapezes."""
    return float((curve[1:] + curve[:-1]).mean() / 2) if len(curve) > 1 else float(curve.mean())


def tokens_of(model: Served, text: str, context: str | None) -> dict[str, Any]:
    """A text's tokens and words, and where each lies."""
    held = read(model.answers, text, context)
    whole = held.whole
    names = model.answers.tokens(whole.ids)
    words: list[dict[str, Any]] = [
        {"index": place, "text": text[start:end], "start": start, "end": end, "tokens": []}
        for place, (start, end) in enumerate(words_of(text))
    ]
    tokens = []
    for index, (name, (start, end), word, free) in enumerate(
        zip(names, whole.spans, whole.words, whole.free, strict=True)
    ):
        tokens.append(
            {"index": index, "text": name, "start": start, "end": end, "free": free, "word": word if free else None}
        )
        if free:
            words[word]["tokens"].append(index)
    return {"tokens": tokens, "words": words, "truncated": False, "windows": len(held.windows)}
