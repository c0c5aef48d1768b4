"""How an audit erases where nobody says: decided by the model, in this one place."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from veridical.core.errors import Caution
from veridical.core.records import Operator
from veridical.core.registry import Choice
from veridical.model.classifier import Classifier
from veridical.model.mask import trained_ratio


def operator_for(clf: Classifier, by: Operator | None) -> Operator:
    """As asked for; else by the mask token of a model that was trained on masked texts, and by deletion of others."""
    return by or ("mask" if trained_ratio(clf) else "delete")


def warn_of_operators(clf: Classifier, metrics: Sequence[Choice[Any]]) -> None:
    """Of a model that was trained on masked texts: which of these metrics erase otherwise, as they do unless told."""
    if not trained_ratio(clf):
        return
    foreign = [choice.label for choice in metrics if choice.options.get("by", "mask") != "mask"]
    if foreign:
        warnings.warn(
            f"{clf.name} was trained on masked texts, and {', '.join(foreign)} would erase otherwise, which is foreign "
            f"to it; write {foreign[0]}:by=mask, or audit it, which erases by the mask.",
            Caution,
            stacklevel=3,
        )
