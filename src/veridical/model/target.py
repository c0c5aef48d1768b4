"""Which class is explained: one per row, fixed by the first clean logits a method sees."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Literal

import torch

from veridical.core.errors import InputError
from veridical.core.readable import shown
from veridical.core.records import Example

Which = Literal["predicted", "gold"] | int


class Target:
    """Picks the explained logit of each row. `predicted` costs no pass of its own: the method's first clean
    forward decides, and every later (altered) one keeps to it."""

    def __init__(self, classes: torch.Tensor | None = None):
        self.classes = classes  # [B]; None until the first logits are seen
        self.logits: torch.Tensor | None = None  # [B, C], the first, on the unaltered input

    def __call__(self, logits: torch.Tensor) -> torch.Tensor:
        """The explained logit of each row. [B, C] -> [B]"""
        if self.logits is None:
            self.logits = logits.detach()
        if self.classes is None:
            self.classes = logits.detach().argmax(-1)
        return logits.gather(-1, self.classes[:, None]).squeeze(-1)

    def rows(self, index: torch.Tensor) -> Target:
        """The target of some rows of a batch whose clean logits have been seen."""
        if self.classes is None:
            raise RuntimeError("a target has to see the clean logits before it can be cut")
        part = Target(self.classes[index])
        part.logits = None if self.logits is None else self.logits[index]
        return part


def classes_of(which: Which, examples: Sequence[Example], labels: Sequence[str]) -> list[int] | None:
    """The explained class of each example; None where the model's own prediction is to decide."""
    if which == "predicted":
        return None
    if which == "gold":
        return [_gold(example) for example in examples]
    if isinstance(which, int) and 0 <= which < len(labels):
        return [which] * len(examples)
    allowed = ", ".join(f"{i} ({name})" for i, name in enumerate(labels))
    raise InputError(f"The target {shown(which)} is not a class of this model; allowed: predicted, gold, {allowed}.")


def read_target(text: str | int, labels: Sequence[str]) -> Which:
    """`predicted`, `gold`, a class index or a class name."""
    if isinstance(text, str):
        if text in ("predicted", "gold"):
            return text  # type: ignore[return-value]
        if text in labels:
            return list(labels).index(text)
        text = int(text) if text.isdecimal() and len(text) < 10 else text
    if isinstance(text, Integral) and 0 <= int(text) < len(labels):
        return int(text)
    allowed = ", ".join(f"{i} ({name})" for i, name in enumerate(labels))
    raise InputError(f"The target {shown(text)} is not a class of this model; allowed: predicted, gold, {allowed}.")


def _gold(example: Example) -> int:
    if isinstance(example.label, int):
        return example.label
    if isinstance(example.label, tuple) and len(example.label) == 1:
        return example.label[0]
    what = "no label" if example.label is None else f"{len(example.label)} labels"
    raise InputError(
        f"Example {example.id!r} has {what}, so 'gold' does not name one class; explain 'predicted' or a class."
    )
