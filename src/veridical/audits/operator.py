"""How an audit erases where nobody says: decided by the model, in this one place."""

from __future__ import annotations

from veridical.core.records import Operator
from veridical.model.classifier import Classifier
from veridical.model.mask import trained_ratio


def operator_for(clf: Classifier, by: Operator | None) -> Operator:
    """As asked for; else by the mask token of a model that was trained on masked texts, and by deletion of others."""
    return by or ("mask" if trained_ratio(clf) else "delete")
