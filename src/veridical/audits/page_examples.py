"""The examples of an audit as the JSON its page's browser reads.

Text enters the page here and nowhere else, inside a data block no browser runs, and the script puts it on the
page as text only.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from veridical.audits.page_view import View
from veridical.audits.record import ShownText, ShownTexts
from veridical.core.records import Span

DIGITS = 4  # significant, of a score


@dataclass(frozen=True)
class PackedText:
    """One text as the script reads it: units of the text, and per method a score for each."""

    corpus: int  # its place on the page
    id: str
    text: str
    context: str | None
    label: str | None
    predicted: str
    right: bool | None
    probabilities: list[float]
    rationale: list[int]  # start, end, start, end, ... in characters
    units: list[int]  # likewise
    disagreement: float | None
    explanations: list[tuple[int, str, int, list[int]]]  # method, explained class, power of ten, scores over it


@dataclass(frozen=True)
class PageData:
    """What the page's script reads; audit.js knows these names."""

    methods: list[str]
    signed: list[bool]
    corpora: list[str]
    labels: tuple[str, ...]
    orders: list[list[int]]  # of the methods: by place, then by every faithfulness metric
    examples: list[PackedText]


def page_data(view: View, examples: ShownTexts) -> PageData:
    """What the script needs of an audit: names, orders and packed texts."""
    corpora = {corpus.name: k for k, corpus in enumerate(view.corpora)}
    labels = view.summary.model.labels
    shown = {view.specs[m]: m for m in view.shown}
    return PageData(
        methods=["a random order" if m == view.chance else spec for m, spec in enumerate(view.specs)],
        signed=[method.signed for method in view.methods],
        corpora=list(corpora),
        labels=labels,
        orders=[view.order(view.home), *(view.order(view.home, metric) for metric in view.of_kind("faithfulness"))],
        examples=[packed(text, shown, corpora, labels) for text in examples.texts],
    )


def as_json(value: Any) -> str:
    """JSON that cannot end the `<script>` it stands in, nor open a comment there; records as their fields."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=vars)
    text = text.replace("<", "\\u003c")
    return re.sub("[\ud800-\udfff]", lambda lone: f"\\u{ord(lone[0]):04x}", text)  # half a pair has no UTF-8


def packed(
    example: ShownText, methods: Mapping[str, int], corpora: Mapping[str, int], labels: Sequence[str]
) -> PackedText:
    """One text. Free tokens that share a character (the bytes of an emoji) are one unit with the sum of their scores;
    what a token without characters scores goes to the next unit, or to the last. Only `methods` are kept."""
    spans, unit_of = _units(example.tokens)
    return PackedText(
        corpus=corpora[example.corpus],
        id=example.id,
        text=example.text,
        context=example.context,
        label=example.label,
        predicted=example.predicted,
        right=example.right,
        probabilities=[round(p, 4) for p in example.probabilities[: len(labels)]],
        rationale=[end for span in example.rationale for end in span],
        units=[end for span in spans for end in span],
        disagreement=None if example.disagreement is None else round(example.disagreement, 3),
        explanations=[
            (methods[name], shown.target, *_scaled(_summed(shown.scores, unit_of, len(spans))))
            for name in sorted(set(methods) & set(example.explanations), key=lambda name: methods[name])
            for shown in [example.explanations[name]]
        ],
    )


def _units(tokens: Sequence[Span]) -> tuple[list[Span], list[int]]:
    """The character spans of the units, and the unit of every token (-1 if there is none at all)."""
    spans: list[Span] = []
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
