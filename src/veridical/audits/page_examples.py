"""The examples of an audit as the JSON its page's browser reads.

Text enters the page here and nowhere else, inside a data block no browser runs, and the script puts it on the
page as text only.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

DIGITS = 4  # significant, of a score


def as_json(value: Any) -> str:
    """JSON that cannot end the `<script>` it stands in, nor open a comment there."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return re.sub("[\ud800-\udfff]", lambda lone: f"\\u{ord(lone[0]):04x}", text)  # half a pair has no UTF-8


def packed(
    example: Mapping[str, Any], methods: Mapping[str, int], corpora: Mapping[str, int], labels: Sequence[str]
) -> dict[str, Any]:
    """One example: units of the text, and per method a score for each.

    Free tokens that share a character (the bytes of an emoji) are one unit with the sum of their scores; what a
    token without characters scores goes to the next unit, or to the last.
    """
    spans, unit_of = _units(example["tokens"])
    return {
        "corpus": corpora[example["corpus"]],
        "id": example["id"],
        "text": example["text"],
        "context": example["context"],
        "label": example["label"],
        "predicted": example["predicted"],
        "right": example["right"],
        "probabilities": [round(p, 4) for p in example["probabilities"][: len(labels)]],
        "rationale": [end for span in example["rationale"] for end in span],
        "units": [end for span in spans for end in span],
        "disagreement": None if example["disagreement"] is None else round(example["disagreement"], 3),
        "explanations": [
            [methods[name], found["target"], *_scaled(_summed(found["scores"], unit_of, len(spans)))]
            for name, found in sorted(example["explanations"].items(), key=lambda item: methods[item[0]])
        ],
    }


def _units(tokens: Sequence[Sequence[int]]) -> tuple[list[tuple[int, int]], list[int]]:
    """The character spans of the units, and the unit of every token (-1 if there is none at all)."""
    spans: list[tuple[int, int]] = []
    unit_of: list[int] = []
    for start, end in tokens:
        if start < end:
            if spans and start < spans[-1][1]:
                spans[-1] = (spans[-1][0], max(spans[-1][1], end))
            else:
                spans.append((start, end))
            unit_of.append(len(spans) - 1)
        else:
            unit_of.append(len(spans))  # the next unit, if one comes
    return spans, [min(unit, len(spans) - 1) for unit in unit_of]


def _summed(scores: Sequence[float], unit_of: Sequence[int], count: int) -> list[float]:
    sums = [0.0] * count
    for score, unit in zip(scores, unit_of, strict=True):
        if unit >= 0:
            sums[unit] += score
    return sums


def _scaled(scores: Sequence[float]) -> tuple[int, list[int]]:
    """A power of ten and the scores over it in whole numbers: four digits of the largest, short to write."""
    largest = max((abs(score) for score in scores), default=0.0)
    power = math.floor(math.log10(largest)) - DIGITS + 1 if largest > 0 else 0
    return power, [round(score / 10.0**power) for score in scores]
