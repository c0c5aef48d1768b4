"""Which texts are worked on together, so that memory stays bounded and the first results come soon."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from veridical.core.records import Encoded
from veridical.explanations.long_texts import groups
from veridical.model.classifier import Classifier
from veridical.model.memory import room_for

PART = 64  # examples whose questions are held at once: memory does not grow with the number of texts
STRETCH = 1024  # texts that are sorted by length together; far more than a batch, so that little is padding
SHARE = 8  # of the tokens in a pass, that a portion's texts have: with their questions they fill it


def stretches(encoded: Sequence[Encoded]) -> Iterator[Sequence[Encoded]]:
    """The texts in stretches that are explained one after the other, none cut between the windows of a text."""
    start = 0
    for group in groups(encoded):
        if group[-1] + 1 - start >= STRETCH:
            yield encoded[start : group[-1] + 1]
            start = group[-1] + 1
    if start < len(encoded):
        yield encoded[start:]


def parts(encoded: Sequence[Encoded]) -> list[Sequence[int]]:
    """Places of texts whose questions are asked together, as many as memory allows."""
    return [range(start, min(start + PART, len(encoded))) for start in range(0, len(encoded), PART)]


def soon(clf: Classifier, encoded: Sequence[Encoded], budget: int | None) -> list[Sequence[int]]:
    """Texts whose questions are asked together: as few as fill the passes all the same, so that results come soon. A
    text has about as many questions as tokens, each about as long as itself."""
    enough = room_for(clf, "questions", budget).tokens / SHARE
    portions: list[Sequence[int]] = []
    start, tokens = 0, 0
    for place, text in enumerate(encoded):
        tokens += len(text.ids)
        if tokens >= enough or place + 1 - start == PART or place + 1 == len(encoded):
            portions.append(range(start, place + 1))
            start, tokens = place + 1, 0
    return portions
