"""Which class is explained, and against which other one: one per row, fixed by the first clean logits a method sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Literal

import numpy as np
import torch

from veridical.core.errors import InputError
from veridical.core.readable import shown
from veridical.core.records import Example

SECOND = "second"  # the contrast that is the likeliest of the other classes
Against = int | Literal["second"]


@dataclass(frozen=True, slots=True)
class Contrast:
    """A class explained against another: the difference of their logits."""

    target: Literal["predicted", "gold"] | int
    against: Against


Which = Literal["predicted", "gold"] | int | Contrast


class Target:
    """Picks the explained logit of each row, less that of the class it is explained against. `predicted` costs no
    pass of its own: the method's first clean forward decides, and every later (altered) one keeps to it."""

    def __init__(self, classes: torch.Tensor | None = None, against: torch.Tensor | Literal["second"] | None = None):
        self.classes = classes  # [B]; None until the first logits are seen
        self._against = against
        self.against = against if isinstance(against, torch.Tensor) else None  # [B]; None: against no other
        self.logits: torch.Tensor | None = None  # [B, C], the first, on the unaltered input

    def __call__(self, logits: torch.Tensor) -> torch.Tensor:
        """The explained logit of each row, or its lead over another. [B, C] -> [B]"""
        if self.logits is None:
            self.logits = logits.detach()
        if self.classes is None:
            self.classes = logits.detach().argmax(-1)
        if self._against is not None and self.against is None:
            others = logits.detach().scatter(-1, self.classes[:, None], -torch.inf)
            self.against = others.argmax(-1)
        value = logits.gather(-1, self.classes[:, None]).squeeze(-1)
        if self.against is None:
            return value
        if bool((self.classes == self.against).any()):
            raise _same()
        return value - logits.gather(-1, self.against[:, None]).squeeze(-1)

    def weights(self, like: torch.Tensor) -> torch.Tensor:
        """What is explained as a weighted sum of the logits, which have been seen: 1 for the class, -1 for the one
        it is explained against. [B, C]"""
        if self.classes is None or self.logits is None:
            raise RuntimeError("a target has to see the clean logits before it can weigh them")
        count = self.logits.shape[-1]
        weights = torch.nn.functional.one_hot(self.classes, count)
        if self.against is not None:
            weights = weights - torch.nn.functional.one_hot(self.against, count)
        return weights.to(like.dtype)

    def rows(self, index: torch.Tensor) -> Target:
        """The target of some rows of a batch whose clean logits have been seen."""
        if self.classes is None:
            raise RuntimeError("a target has to see the clean logits before it can be cut")
        part = Target(self.classes[index], None if self.against is None else self.against[index])
        part.logits = None if self.logits is None else self.logits[index]
        return part


@dataclass(frozen=True)
class Wanted:
    """Which class is explained of each text, and against which."""

    classes: Sequence[int] | None  # None: the predicted one
    against: Sequence[int] | Literal["second"] | None = None  # None: against no other

    def target(self, rows: Sequence[int], device: torch.device) -> Target:
        """That of some texts, to be settled by the logits that a method sees."""
        classes = None if self.classes is None else torch.tensor([self.classes[i] for i in rows], device=device)
        if self.against is None or isinstance(self.against, str):
            return Target(classes, self.against)
        return Target(classes, torch.tensor([self.against[i] for i in rows], device=device))

    def settled(self, place: int, logits: np.ndarray) -> tuple[int, int | None]:
        """The class of one text and the one it is explained against, by its logits [C]."""
        explained = int(logits.argmax()) if self.classes is None else self.classes[place]
        if self.against is None:
            return explained, None
        if isinstance(self.against, str):
            return explained, int(np.where(np.arange(len(logits)) == explained, -np.inf, logits).argmax())
        if self.against[place] == explained:
            raise _same()
        return explained, self.against[place]

    def settled_all(self, logits: np.ndarray) -> Wanted:
        """The same with every class known. [n, C]"""
        pairs = [self.settled(place, row) for place, row in enumerate(logits)]
        against = [other for _, other in pairs if other is not None]
        return Wanted([explained for explained, _ in pairs], against or None)


def wanted_of(which: Which, examples: Sequence[Example], labels: Sequence[str]) -> Wanted:
    """What is explained of each example."""
    classes = classes_of(which, examples, labels)
    if not isinstance(which, Contrast):
        return Wanted(classes)
    return Wanted(classes, SECOND if isinstance(which.against, str) else [which.against] * len(examples))


def classes_of(which: Which, examples: Sequence[Example], labels: Sequence[str]) -> list[int] | None:
    """The explained class of each example; None where the model's own prediction is to decide."""
    if isinstance(which, Contrast):
        which = which.target
    if which == "predicted":
        return None
    if which == "gold":
        return [_gold(example) for example in examples]
    if isinstance(which, int) and 0 <= which < len(labels):
        return [which] * len(examples)
    raise _unknown("target", which, labels, "predicted, gold")


def read_target(text: str | int, labels: Sequence[str]) -> Literal["predicted", "gold"] | int:
    """`predicted`, `gold`, a class index or a class name."""
    if text in ("predicted", "gold"):
        return text  # type: ignore[return-value]
    return _class("target", text, labels, "predicted, gold")


def read_contrast(target: str | int, contrast: str | int | None, labels: Sequence[str]) -> Which:
    """A target, explained against `second`, a class index or a class name; None: against no other."""
    explained = read_target(target, labels)
    if contrast is None:
        return explained
    if len(labels) < 2:
        raise InputError(f"The contrast is {shown(contrast)}, but this model has one class; leave it out.")
    against: Against = SECOND if contrast == SECOND else _class("contrast", contrast, labels, SECOND)
    if isinstance(against, int) and against == explained:
        raise InputError(
            f"Target and contrast are both {labels[against]!r}; a class is explained against another one: name two."
        )
    return Contrast(explained, against)


def _class(what: str, given: str | int, labels: Sequence[str], words: str) -> int:
    if isinstance(given, str):
        if given in labels:
            return list(labels).index(given)
        given = int(given) if given.isdecimal() and len(given) < 10 else given
    if isinstance(given, Integral) and 0 <= int(given) < len(labels):
        return int(given)
    raise _unknown(what, given, labels, words)


def _unknown(what: str, given: object, labels: Sequence[str], words: str) -> InputError:
    allowed = ", ".join(f"{i} ({name})" for i, name in enumerate(labels))
    return InputError(f"The {what} {shown(given)} is not a class of this model; allowed: {words}, {allowed}.")


def _same() -> InputError:
    return InputError(
        f"The explained class of some text is the contrast itself; name the target, or take the contrast {SECOND!r}, "
        "the likeliest of the other classes."
    )


def _gold(example: Example) -> int:
    if isinstance(example.label, int):
        return example.label
    if isinstance(example.label, tuple) and len(example.label) == 1:
        return example.label[0]
    what = "no label" if example.label is None else f"{len(example.label)} labels"
    raise InputError(
        f"Example {example.id!r} has {what}, so 'gold' does not name one class; explain 'predicted' or a class."
    )
