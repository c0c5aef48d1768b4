"""The parts of an audit: a few texts, explained and scored by some methods; done here, or as jobs of a grid.

Workers find in the audit's folder what they need:

    work.json                    the model's place, and what is asked of it
    corpora/<name>/texts.json    the texts, in their order

The same parts with the same methods are asked in the same batches, one thread each, however many workers there are:
tables are equal to the last bit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from veridical.audits.corpora import Corpus
from veridical.audits.evaluate import Evaluation, evaluate
from veridical.audits.looks import PART, Asked, OutOfTimeError
from veridical.audits.options import Draw
from veridical.audits.record import Settings
from veridical.core import store, stored
from veridical.core.errors import InputError
from veridical.core.records import Attribution, Example
from veridical.grid.job import Job
from veridical.grid.options import Address, Engine, Shard, Workers
from veridical.grid.pool import part_of, run
from veridical.model.classifier import Classifier
from veridical.model.load import load

WORK, TEXTS = "work.json", "texts.json"
CALL = "veridical.audits.parts:do_part"


@dataclass(frozen=True)
class Work:
    """What a worker must know of an audit."""

    SCHEMA: ClassVar[int] = 1

    model: str
    hash: str  # of its weights
    settings: Settings


@dataclass(frozen=True)
class Texts:
    """The texts of a corpus, in the order in which they are asked about."""

    SCHEMA: ClassVar[int] = 1

    corpus: str
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class Spread:
    """How parts are spread over processes and machines."""

    workers: Workers
    shard: Shard
    engine: Engine
    address: Address


@dataclass(frozen=True)
class Desk:
    """One corpus of an audit, and all that is needed to ask the model about it."""

    clf: Classifier
    corpus: Corpus
    measures: Sequence[str]  # metrics that apply to it
    settings: Settings
    folder: Path  # of the audit
    weights: str  # the hash of the model's
    explanations: Sequence[Attribution] = ()  # made elsewhere: the truth, where it is known

    @property
    def foreign(self) -> set[str]:
        """Names of the explanations that were made elsewhere."""
        return {explanation.method for explanation in self.explanations}

    @property
    def place(self) -> Path:
        return self.folder / "corpora" / store.slug(self.corpus.name)

    def evaluate(self, parts: Sequence[int], methods: Sequence[str], metrics: Sequence[str]) -> Evaluation:
        """Some parts by some methods; what is on file is read."""
        controls = self.settings.controls
        drawn: tuple[Draw, ...] = tuple(name for name in controls if name != "orders")
        return evaluate(
            self.clf,
            self.corpus.examples,
            methods,
            metrics or None,  # of a corpus to which none applies
            target=self.settings.target,
            controls=drawn or ("permutation",),
            orders="orders" in controls and not drawn,
            explanations=self.explanations,
            corpus=self.corpus.name,
            seed=self.settings.seed,
            out=self.place,
            weights=self.weights,
            part=PART,
            parts=parts,
        )


def asking(
    desk: Desk, metrics: Sequence[str], tick: Callable[[int], None], *, spread: Spread | None, deadline: float | None
) -> Callable[[Mapping[int, Sequence[str]]], Asked]:
    """What `looks.follow` asks with: every part in its turn, those that workers can do by workers first."""

    told: set[int] = set()  # a part that is asked again, for methods that enter late, is no progress

    def tell(number: int) -> None:
        if number not in told:
            told.add(number)
            tick(len(desk.corpus.examples[number * PART : (number + 1) * PART]))

    def ask(parts: Mapping[int, Sequence[str]]) -> Asked:
        if spread is not None:
            _spread(desk, metrics, parts, spread, deadline, tell)
        cells, rows = {}, {}
        for number, methods in parts.items():
            if deadline is not None and time.monotonic() > deadline:
                raise OutOfTimeError
            evaluation = desk.evaluate([number], methods, metrics)
            for name, attributions in evaluation.attributions.items():
                rows[number, name] = attributions
                cells[number, name] = [cell for cell in evaluation.cells if cell.method == name]
            tell(number)
        return Asked(cells, rows)

    return ask


# -- workers ------------------------------------------------------------------------------------------------


def prepare(desk: Desk, model: str) -> None:
    """Write what workers read; they may stand elsewhere."""
    model = os.path.abspath(model) if os.path.isdir(model) else model
    stored.write(desk.folder / WORK, Work(model, desk.weights, desk.settings))
    stored.write(desk.place / TEXTS, Texts(desk.corpus.name, desk.corpus.examples))


def _spread(
    desk: Desk,
    metrics: Sequence[str],
    parts: Mapping[int, Sequence[str]],
    spread: Spread,
    deadline: float | None,
    tell: Callable[[int], None],
) -> None:
    jobs = [_job(desk, number, methods, metrics) for number, methods in parts.items()]
    numbers = {job.key: number for job, number in zip(jobs, parts, strict=True)}
    if spread.shard is not None:  # every process does what nobody is at, and begins elsewhere
        number, count = part_of(spread.shard)
        first = (number - 1) * len(jobs) // count
        jobs = [*jobs[first:], *jobs[:first]]

    def tick(key: str) -> None:
        tell(numbers[key])
        if deadline is not None and time.monotonic() > deadline:
            raise OutOfTimeError

    run(jobs, desk.folder, engine=spread.engine, workers=spread.workers, address=spread.address, tick=tick)


def _job(desk: Desk, number: int, methods: Sequence[str], metrics: Sequence[str]) -> Job:
    arguments: dict[str, Any] = {
        "folder": str(desk.folder.absolute()),
        "corpus": store.slug(desk.corpus.name),
        "number": number,
        "methods": list(methods),
        "metrics": list(metrics),
    }
    corpus, name = store.stable_hash(desk.corpus.name), store.stable_hash([methods, metrics])
    return Job(f"{corpus}/part-{number:04d}-{name}", CALL, arguments)


def do_part(*, folder: str, corpus: str, number: int, methods: Sequence[str], metrics: Sequence[str]) -> None:
    """One part, by a worker: it is done when its scores are on file."""
    _desk(folder, corpus).evaluate([number], methods, metrics)


@lru_cache(maxsize=4)
def _desk(folder: str, corpus: str) -> Desk:
    from veridical.audits.oracles import oracles

    root = Path(folder)
    work = stored.read(root / WORK, Work)
    texts = stored.read(root / "corpora" / corpus / TEXTS, Texts)
    clf = _model(work.model)
    if clf.fingerprint() != work.hash:
        raise InputError(f"The model {work.model} has other weights than when the audit began; begin in a new folder.")
    of_texts = Corpus(texts.corpus, "in", texts.examples, 0)
    return Desk(clf, of_texts, (), work.settings, root, work.hash, oracles(clf, of_texts, work.settings.target))


@lru_cache(maxsize=1)
def _model(place: str) -> Classifier:
    return load(place)
