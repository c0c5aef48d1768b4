"""The words that stand out, each with what the data says of it and what the model does without it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veridical.audits.options import ShortcutsOptions
from veridical.audits.record import AuditSummary
from veridical.audits.shortcuts.corpus import names_in
from veridical.audits.shortcuts.erasing import Before, erasures, marked_share
from veridical.audits.shortcuts.record import Belonging, Erasure, Flagged, Group, Taught, Together, WordRow
from veridical.core.records import Dataset, Example
from veridical.core.statistics import proportion
from veridical.data.labels import of_kind, relabel
from veridical.model.classifier import Classifier

MOSTLY = 0.5  # share of a word's occurrences that are marked, from which on it is of what decides
LEAST = 0.01  # of the predictions that a lead changes beyond other words, at the lower end: one flip is none


@dataclass(frozen=True)
class Work:
    """What all stages share."""

    clf: Classifier
    data: Dataset
    examples: Sequence[Example]  # of the split: those that the audit explained first, in its order
    summary: AuditSummary
    methods: Sequence[str]
    options: ShortcutsOptions
    place: Path

    @property
    def signed(self) -> set[str]:
        """Methods whose scores have a sign."""
        return {method.name for method in self.summary.methods if method.signed}


def _by_word(rows: Iterable[WordRow]) -> dict[str, list[WordRow]]:
    held: dict[str, list[WordRow]] = {}
    for row in rows:
        held.setdefault(row.word, []).append(row)
    return held


def _described(
    work: Work, of_word: Mapping[str, Sequence[WordRow]], known: Before, no_controls: Collection[str]
) -> tuple[Flagged, ...]:
    """Words with what the data says of each and what the model does without it."""
    marked = marked_share(known.texts, of_word)
    erased = _erased(work, known, [(word,) for word in of_word], no_controls)
    taught = _taught(work, {word: dict.fromkeys(row.label for row in held) for word, held in of_word.items()})
    return tuple(
        Flagged(
            word=word,
            labels=tuple(dict.fromkeys(row.label for row in held)),
            methods=tuple(dict.fromkeys(row.method for row in held)),
            belongs=_belongs(marked[word]),
            marked=marked[word],
            taught=taught[word],
            erased=erased[word,],
        )
        for word, held in of_word.items()
    )


def leads_among(work: Work, rows: Sequence[WordRow], known: Before) -> tuple[Flagged, ...]:
    """Words that have more of the explanations than their frequency gives, and that were not shown to go with a class:
    a model that relies on a word in some texts only says its class too seldom for that. What it does without them is
    the evidence, so it has to be more than chance: more than for each control, and in more than a few predictions."""
    flagged = {row.word for row in rows if row.flagged}
    of_word = _by_word(row for row in rows if row.important and row.word not in flagged)
    described = _described(work, of_word, known, flagged | of_word.keys()) if of_word else ()
    return tuple(
        word
        for word in described
        if word.candidate and word.erased.flips_low > LEAST + (word.erased.control_flips or 0.0)
    )


def flagged_words(
    work: Work, rows: Sequence[WordRow], known: Before
) -> tuple[tuple[Flagged, ...], tuple[Together, ...]]:
    """The flagged words, each with what the data says of it and what the model does without it, and all together."""
    of_word = _by_word(row for row in rows if row.flagged)
    if not of_word:
        return (), ()
    flagged = _described(work, of_word, known, of_word)
    groups: dict[tuple[str, ...], Group] = {
        tuple(word.word for word in flagged if word.candidate): "candidates",
        tuple(word.word for word in flagged if word.belongs == "rule"): "rule",
    }
    groups.setdefault(tuple(of_word), "all")
    several: dict[tuple[str, ...], Group] = {words: name for words, name in groups.items() if len(words) > 1}
    erased = _erased(work, known, list(several), of_word)
    return flagged, tuple(Together(name, erased[words]) for words, name in several.items())


def _erased(
    work: Work, known: Before, sets: Sequence[tuple[str, ...]], flagged: Collection[str]
) -> dict[tuple[str, ...], Erasure]:
    options = work.options
    by = options.by or work.summary.settings.by
    return erasures(known, sets, flagged, by=by, seed=options.seed, budget=options.budget)


def _belongs(marked: float | None) -> Belonging:
    if marked is None:
        return "unknown"
    return "rule" if marked >= MOSTLY else "outside"


def _taught(work: Work, wanted: Mapping[str, Any]) -> dict[str, tuple[Taught, ...]]:
    """How often texts with a word have the labels that it goes with, in the training data and in the audited split."""
    clf, split = work.clf, work.summary.settings.split
    held: dict[str, list[Taught]] = {word: [] for word in wanted}
    train = of_kind(relabel(work.data.splits.get("train", ()), work.data.labels, clf.labels), clf.kind == "multi")
    for name, examples in {"train": train, split: work.examples}.items():
        labelled = [example for example in examples if example.label is not None]
        having = {word: [] for word in wanted}
        for example in labelled:
            for word in having.keys() & set(names_in(example.text)):
                having[word].append(example)
        for word, labels in wanted.items():
            held[word] += [_goes_with(name, label, clf, having[word], labelled) for label in labels if having[word]]
    return {word: tuple(rows) for word, rows in held.items()}


def _goes_with(
    split: str, label: str, clf: Classifier, having: Sequence[Example], labelled: Sequence[Example]
) -> Taught:
    place = clf.labels.index(label)

    def count(examples: Sequence[Example]) -> int:
        return sum(place in (e.label if isinstance(e.label, tuple) else (e.label,)) for e in examples)

    low, high = proportion(count(having), len(having))
    share = count(having) / len(having)
    return Taught(split, len(having), label, share, low, high, count(labelled) / len(labelled))
