"""Whether the first would also come first under another question: other ways to erase, words for tokens, fewer metrics.

After the last look, of the contenders alone and on the texts of the first look. It describes; nothing is tested.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Literal

import numpy as np

from veridical.audits.looks import PART, Course, OutOfTimeError, wins_of
from veridical.audits.parts import Desk
from veridical.audits.plan import scoring_passes
from veridical.audits.record import MetricFacts, StabilityRow, Standing
from veridical.audits.selection import measures, metric_facts
from veridical.audits.sheet import Sheet, gather
from veridical.core.records import Encoded, Level, Operator
from veridical.model.ask import erased_by_attention
from veridical.model.classifier import Classifier

METRICS = ("sufficiency", "comprehensiveness")  # two that ask ten questions together
SETTINGS: dict[str, tuple[Operator, Level]] = {
    "delete": ("delete", "token"),
    "mask": ("mask", "token"),
    "attention": ("attention", "token"),
    "words": ("delete", "word"),
}
CONTENDERS = ("believe", "as_good", "open")
FEWEST = 3  # contenders; where fewer are left, the next in line are compared with them


def contenders(standings: Sequence[Standing]) -> list[str]:
    """Those that may be as good as the first, and at least three where there are as many."""
    ordered = sorted(standings, key=lambda standing: standing.place)
    left = [standing.method for standing in ordered if standing.list in CONTENDERS]
    others = [standing.method for standing in ordered if standing.method not in left]
    return [*left, *others[: max(0, FEWEST - len(left))]]


def applying(clf: Classifier, text: Encoded) -> dict[str, tuple[Operator, Level]]:
    """The settings that apply to a model and such texts: without a mask token none can be masked, and what a decoder's
    head reads cannot be hidden from it."""
    never: set[Operator] = set()
    if getattr(clf.tokenizer, "mask_token_id", None) is None:
        never.add("mask")
    if not erased_by_attention(clf, text):
        never.add("attention")
    return {name: setting for name, setting in SETTINGS.items() if setting[0] not in never}


def passes(clf: Classifier, text: Encoded, asked: Sequence[str]) -> float:
    """Passes of scoring one explanation of a text under all settings, at most; `asked` are the audit's own metrics,
    whose scores are there."""
    specs = [measures(METRICS, by=by, level=level) for by, level in applying(clf, text).values()]
    return sum(
        1 + scoring_passes(clf, text, some, ("orders",)) for some in specs if any(spec not in asked for spec in some)
    )


def by_setting(desk: Desk, course: Course, names: Sequence[str], deadline: float | None = None) -> list[StabilityRow]:
    """The contenders' places under every setting that applies to the model; raises OutOfTimeError when time is over."""
    texts = min(course.plan.stability_texts, course.texts)
    parts = range(-(-texts // PART))
    rows: list[StabilityRow] = []
    (first,) = desk.clf.encode(desk.corpus.examples[:1])
    for setting, (by, level) in applying(desk.clf, first).items():
        specs = measures(METRICS, by=by, level=level)
        cells = []
        for part in parts:
            if deadline is not None and time.monotonic() > deadline:
                raise OutOfTimeError
            cells += [cell for cell in desk.evaluate([part], names, specs).cells if not cell.control]
        asked = [example.id for example in desk.corpus.examples[:texts]]
        sheet = gather([cell for cell in cells if cell.metric in specs], desk.corpus.name, specs, asked)
        facts = {spec: metric_facts(spec) for spec in specs}
        rows += _rows(sheet, names, facts, course, "setting", setting)
    return rows


def by_subset(
    sheet: Sheet, course: Course, names: Sequence[str], facts: Mapping[str, MetricFacts]
) -> list[StabilityRow]:
    """The contenders' places by some of the metrics with a vote; nothing more is asked."""
    panel = [name for name in sheet.metrics if facts[name].votes]
    rows: list[StabilityRow] = []
    for size in range(1, len(panel) + 1):
        for some in combinations(panel, size):
            rows += _rows(sheet.only(some), names, facts, course, "subset", " + ".join(some))
    return rows


def caution(rows: Sequence[StabilityRow], believed: Sequence[str]) -> list[str]:
    """That a believed method is not among the first two in most other settings, where that is so."""
    notes = []
    for method in believed:
        asked = [row for row in rows if row.method == method and row.kind == "setting"]
        among = sum(row.place <= 2 for row in asked)
        if asked and 2 * among < len(asked):
            notes.append(
                f"Asked in other ways, {method} is among the first two in {among} of {len(asked)} settings only: "
                "believe it for this way of erasing, and audit by others (mask, word) before you rest on it."
            )
    return notes


def _rows(
    sheet: Sheet,
    names: Sequence[str],
    facts: Mapping[str, MetricFacts],
    course: Course,
    kind: Literal["setting", "subset"],
    name: str,
) -> list[StabilityRow]:
    wins, _ = wins_of(sheet, names, facts, course.units)
    there = ~np.isnan(wins)
    means = np.where(there, wins, 0.0).sum(2) / np.maximum(1, there.sum(2))
    total = np.round(means.sum(1), 9)
    return [
        StabilityRow(
            corpus=sheet.corpus,
            method=method,
            kind=kind,
            name=name,
            place=1 + int((total > total[m]).sum()),
            of=len(names),
            texts=len(sheet.examples),
        )
        for m, method in enumerate(names)
    ]
