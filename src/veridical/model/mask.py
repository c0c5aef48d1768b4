"""The mask token in a text's place, and what a model knows of it: a model that was trained on masked texts says so in
its configuration, up to which share of a text was masked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from veridical.core.errors import InputError
from veridical.core.records import Encoded
from veridical.model.classifier import Classifier

RATIO = "veridical_mask"  # in config.json: the largest share of a text that was masked in training


def masked(encoded: Encoded, positions: Sequence[int] | np.ndarray, mask: int) -> Encoded:
    """The text with the mask token at these positions."""
    ids = list(encoded.ids)
    for position in positions:
        ids[int(position)] = mask
    return replace(encoded, ids=tuple(ids))


def mask_token(clf: Classifier) -> int:
    """The id of its mask token."""
    token = getattr(clf.tokenizer, "mask_token_id", None)
    if token is None:
        raise InputError(
            f"The tokenizer of {clf.name!r} has no mask token, so its texts cannot be masked; take another model."
        )
    return int(token)


def trained_ratio(clf: Classifier) -> float:
    """Up to which share of a text the model was trained on masks; 0: it never saw one in training."""
    ratio = getattr(clf.model.config, RATIO, 0.0)
    if isinstance(ratio, bool) or not isinstance(ratio, (int, float)) or not 0 <= ratio <= 1:
        raise InputError(f"{RATIO} in config.json of {clf.name!r} is {ratio!r}; it is a share from 0 to 1: mend it.")
    return float(ratio)


def note_ratio(model: Any, ratio: float) -> None:
    """Write into a model's configuration what it is trained on. A model that never saw a mask is left as it was, so
    that its files are; one that is trained on without masks has no claim to them any more."""
    if ratio or hasattr(model.config, RATIO):
        setattr(model.config, RATIO, float(ratio))


@dataclass(frozen=True, slots=True)
class Masking:
    """How texts are masked in training (Madsen et al. 2024): the share of a text is drawn, then every token by itself,
    so that all amounts are equally frequent."""

    token: int  # the mask
    largest: float  # of the share
    template: frozenset[int] | None = None  # with the context masked too: ids of the tokens that are no text

    def draw(self, encoded: Encoded, draws: np.random.Generator) -> Encoded:
        """The text with each of its tokens masked at random, by a share of its own."""
        ratio = self.largest * draws.random()
        return masked(encoded, self.chosen(encoded, ratio, draws.random(len(encoded.ids))), self.token)

    def chosen(self, encoded: Encoded, ratio: float, uniforms: np.ndarray) -> np.ndarray:
        """The positions whose uniform draw is at most the ratio, of those that may be masked."""
        may = np.array(encoded.free)
        if self.template is not None:
            may = np.array([token not in self.template for token in encoded.ids])
        return np.flatnonzero(may & (uniforms <= ratio))


def masking(clf: Classifier, largest: float, *, context: bool = False) -> Masking:
    """Of a classifier's texts; with `context` the second text of a pair is masked by the same share, as in the released
    code."""
    template = None
    if context:
        tokenizer: Any = clf.tokenizer
        sample = tokenizer("a", "a", return_special_tokens_mask=True)
        added = zip(sample["input_ids"], sample["special_tokens_mask"], strict=True)
        template = frozenset(token for token, special in added if special)
    return Masking(mask_token(clf), largest, template)
