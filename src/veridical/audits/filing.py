"""The record of an audit that an auditor files: `record.json`, and `record.html` of two pages.

It says what was audited by whom and for what, what was found and how sure, what it does not say, and what changed since
an earlier record. It holds the figure of every text, so that a later audit can be tested against it alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from veridical.audits.caveats import caveats
from veridical.audits.corpora import Corpus
from veridical.audits.record import (
    SUMMARY,
    AuditSummary,
    CorpusFacts,
    ModelFacts,
    Settings,
    Standing,
    Verdict,
    read_summary,
)
from veridical.core import store, stored
from veridical.core.errors import InputError
from veridical.core.provenance import rows_hash
from veridical.core.readable import shown_path
from veridical.core.records import Cell, Example
from veridical.metric import Direction
from veridical.model.ask import predict
from veridical.model.classifier import Classifier

RECORD, PAGE = "record.json", "record.html"
DIGITS = 6  # significant, of a score of a text
Outcome = Literal["worse", "better", "no change shown", "not tested"]
Test = Literal["", "sign test, paired", "Fisher's exact test", "signed rank, paired", "rank sum", "the audit's own"]


@dataclass(frozen=True)
class TextFigures:
    """One voting metric of one method, a value per text that it explained; None where it is undefined."""

    method: str
    metric: str
    better: Direction
    texts: tuple[int, ...]  # places in the evidence's texts
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class Evidence:
    """What a later audit is tested against, text by text."""

    corpus: str
    texts: tuple[str, ...]  # a key of id, text and context each
    right: tuple[bool | None, ...]  # whether the model is; None: not known
    figures: tuple[TextFigures, ...]


@dataclass(frozen=True)
class Change:
    """One figure then and now. `p` is one-sided, that it became worse; `p_holm` is corrected over all tests."""

    corpus: str
    what: str
    before: str
    now: str
    test: Test
    n: tuple[int, int]  # texts then and now; of a paired test the same
    p: float | None
    p_holm: float | None
    outcome: Outcome


@dataclass(frozen=True)
class Since:
    """What changed since an earlier record. A regression is a change for the worse that was tested."""

    title: str
    created: str
    model: str | None  # its fingerprint then
    differences: tuple[str, ...]  # in what was audited, on what and by what
    changes: tuple[Change, ...]
    level: float

    @property
    def regressions(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.outcome == "worse")


@dataclass(frozen=True)
class AuditRecord:
    """An audit as it is filed."""

    SCHEMA: ClassVar[int] = 1

    title: str
    created: str
    purpose: str  # "": nobody said
    veridical: str
    model: ModelFacts
    corpora: tuple[CorpusFacts, ...]
    settings: Settings
    stamp: Mapping[str, str | int | Mapping[str, str]]
    methods: tuple[str, ...]
    left_out: tuple[str, ...]
    verdicts: tuple[Verdict, ...]
    ranking: tuple[Standing, ...]
    limits: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    since: Since | None = None
    caveats: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by corpus, told with its verdict

    @property
    def home(self) -> CorpusFacts:
        return next((corpus for corpus in self.corpora if corpus.role == "in"), self.corpora[0])

    def verdict(self, corpus: str) -> Verdict | None:
        return next((verdict for verdict in self.verdicts if verdict.corpus == corpus), None)


def record_of(summary: AuditSummary, evidence: Sequence[Evidence], limits: Sequence[str], purpose: str) -> AuditRecord:
    """The record of an audit, not yet held against another."""
    return AuditRecord(
        title=summary.title,
        created=summary.created,
        purpose=purpose,
        veridical=summary.veridical,
        model=summary.model,
        corpora=summary.corpora,
        settings=summary.settings,
        stamp=summary.stamp,
        methods=tuple(dict.fromkeys(standing.method for standing in summary.ranking)),
        left_out=summary.left_out,
        verdicts=summary.verdicts,
        ranking=summary.ranking,
        limits=tuple(limits),
        evidence=tuple(evidence),
        caveats={
            verdict.corpus: tuple(caveat.sentence for caveat in caveats(summary, verdict.corpus))
            for verdict in summary.verdicts
        },
    )


# -- text by text ---------------------------------------------------------------------------------------------


def evidence_of(clf: Classifier, corpus: Corpus, cells: Sequence[Cell], summary: AuditSummary) -> Evidence:
    """Whether the model is right on every text, and the voting metrics of every ranked method."""
    keys = [text_key(example) for example in corpus.examples]
    place = {example.id: k for k, example in enumerate(corpus.examples)}
    ranked = {standing.method for standing in summary.ranking if standing.corpus == corpus.name}
    votes: dict[str, Direction] = {metric.name: metric.better for metric in summary.metrics if metric.votes}
    held: dict[tuple[str, str], dict[int, float | None]] = {}
    for cell in cells:
        if not cell.control and cell.method in ranked and cell.metric in votes:
            value = cell.score.value
            short = None if value is None else float(f"{value:.{DIGITS}g}")
            held.setdefault((cell.method, cell.metric), {})[place[cell.example]] = short
    figures = tuple(
        TextFigures(method, metric, votes[metric], tuple(by_text), tuple(by_text.values()))
        for (method, metric), by_text in held.items()
    )
    return Evidence(corpus.name, tuple(keys), _right(clf, corpus.examples), figures)


def text_key(example: Example) -> str:
    """Equal for equal texts, whatever audit drew them."""
    return rows_hash([(example.id, example.text, example.context)])[:16]


def _right(clf: Classifier, examples: Sequence[Example]) -> tuple[bool | None, ...]:
    if clf.kind == "multi" or any(example.label is None for example in examples):
        return (None,) * len(examples)
    said = predict(clf, clf.encode(examples)).probabilities.argmax(1)
    return tuple(bool(label) for label in said == np.array([example.label for example in examples]))


# -- files ----------------------------------------------------------------------------------------------------


def read_record(path: Path) -> AuditRecord:
    return stored.read(path, AuditRecord)


def read_earlier(given: str | Path, out: str | Path) -> AuditRecord:
    """The record that an audit is held against: a record.json, or the folder of an audit, also of one from before
    records were kept."""
    path = Path(given)
    if os.path.isdir(given) and os.path.isdir(out) and os.path.samefile(given, out):
        raise InputError(f"{shown_path(given)} is the folder that is written to; name that of an earlier audit.")
    if os.path.isfile(given):
        return read_record(path)
    if os.path.isfile(path / RECORD):
        return read_record(path / RECORD)
    if os.path.isfile(path / SUMMARY):
        return _without_record(path)
    raise InputError(
        f"{shown_path(given)} holds no earlier audit; name the folder of a finished audit, or its {RECORD}."
    )


def _without_record(folder: Path) -> AuditRecord:
    """From the summary and the scores: texts go by their ids alone, so that nothing can be paired by its text."""
    summary = read_summary(folder)
    votes: dict[str, Direction] = {metric.name: metric.better for metric in summary.metrics if metric.votes}
    ranked = {standing.method for standing in summary.ranking}
    held: dict[str, dict[tuple[str, str], list[float | None]]] = {}
    if (folder / "scores.parquet").is_file():
        names = ("corpus", "metric", "method", "control", "value")
        columns = store.read_parquet(folder / "scores.parquet", names).to_pydict()
        for corpus, metric, method, control, value in zip(*(columns[name] for name in names), strict=True):
            if not control and metric in votes and method in ranked:
                held.setdefault(corpus, {}).setdefault((method, metric), []).append(value)
    evidence = [
        Evidence(
            corpus,
            (),
            (),
            tuple(TextFigures(*key, votes[key[1]], (), tuple(values)) for key, values in figures.items()),
        )
        for corpus, figures in held.items()
    ]
    return record_of(summary, evidence, (), "")
