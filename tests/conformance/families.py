"""What every conformance test needs: a classifier of each family and its encoded texts."""

from __future__ import annotations

import functools

from tiny import PAIRS, TEXTS, tiny
from veridical.core.records import Encoded, Example
from veridical.model.classifier import Classifier

EXAMPLES = [Example(id=f"t{i}", text=text, label=i % 3) for i, text in enumerate(TEXTS)]
PAIRED = [Example(id=f"p{i}", text=text, context=context, label=i % 3) for i, (text, context) in enumerate(PAIRS)]


@functools.cache
def classifier(family: str, pair: bool = False) -> Classifier:
    return Classifier(*tiny(family, pair=pair), name=f"tiny-{family}")


@functools.cache
def encoded(family: str, pair: bool = False) -> tuple[Encoded, ...]:
    return tuple(classifier(family, pair).encode(PAIRED if pair else EXAMPLES))
