"""What a benchmark will cost, from one short timing before it starts (appendix D says it afterwards)."""

from __future__ import annotations

import dataclasses
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veridical.attribution import methods
from veridical.core.errors import Caution
from veridical.core.records import Encoded
from veridical.explanations.explain import attributions
from veridical.model.ask import predict
from veridical.retraining.roar.cells import FIXED
from veridical.retraining.roar.experiment import SPLITS, Bench
from veridical.training.loop import fit
from veridical.training.task import own_threads, prepare

BATCHES = 5  # trained on for the timing
TEXTS = 16  # explained for it


@dataclass(frozen=True)
class Timing:
    """Seconds on this machine with one worker: an epoch (its look at dev included), the scores of a trained model, and
    an explanation of all texts by each measure."""

    epoch: float
    scoring: float
    explain: Mapping[str, float]
    epochs: int  # at most
    stops_early: bool
    texts: int  # of all splits

    @property
    def point(self) -> float:
        """One training, at most."""
        return self.epoch * self.epochs + self.scoring

    def chain(self, measure: str, points: int, passes: int) -> float:
        """So many points and explanations by one measure, at most."""
        return points * self.point + passes * self.explain.get(measure, 0.0)


def take_time(bench: Bench, measures: Sequence[str]) -> Timing:
    """Train a few batches, score and explain a few texts, and reckon up to all of them by their tokens."""
    config, train = bench.experiment.config, bench.encoded["train"]
    few = train[:: max(1, len(train) // (BATCHES * config.batch))][: BATCHES * config.batch]
    tokens = {split: _tokens(bench.encoded[split]) for split in SPLITS}
    with own_threads(bench.threads, bench.clf.device), warnings.catch_warnings():
        warnings.simplefilter("ignore", Caution)  # what there is to say of a method is said when it is run
        batch = few[: config.batch]
        _train(bench, batch)  # the first steps of a process are slow
        short, long = _train(bench, batch), _train(bench, few)
        more = _tokens(few) - _tokens(batch)
        step = (long - short) / more if more else 0.0  # of a token; where one batch is all there is, `short` has it all
        once = max(0.0, short - step * _tokens(batch))  # of an epoch, whatever its length: its checkpoint
        began = time.perf_counter()
        predict(bench.clf, few)
        look = (time.perf_counter() - began) / _tokens(few)
        explain = {}
        for measure in measures:
            if measure not in FIXED:
                some = few[:TEXTS]
                began = time.perf_counter()
                attributions(bench.clf, some, methods.choose(measure), "gold")
                explain[measure] = (time.perf_counter() - began) / _tokens(some) * sum(tokens.values())
    bench.clf.model.load_state_dict(bench.first)
    return Timing(
        epoch=max(0.0, step) * tokens["train"] + once + look * tokens["dev"],
        scoring=look * (tokens["dev"] + tokens["test"]),
        explain=explain,
        epochs=config.epochs,
        stops_early=config.patience is not None,
        texts=sum(map(len, bench.encoded.values())),
    )


def _tokens(encoded: Sequence[Encoded]) -> int:
    return sum(len(e.ids) for e in encoded)


def _train(bench: Bench, some: Sequence[Encoded]) -> float:
    """Seconds of one epoch on some texts, checkpoint included."""
    place = {e.example.id: row for row, e in enumerate(bench.encoded["train"])}
    gold = {"train": bench.gold["train"][[place[e.example.id] for e in some]]}
    settings: dict[str, Any] = {"epochs": 1, "patience": None, "select": "last"}
    with tempfile.TemporaryDirectory() as folder:
        bench.clf.model.load_state_dict(bench.first)
        config = dataclasses.replace(bench.experiment.config, **settings)
        texts = {"train": list(some)}
        task = prepare(
            bench.clf, texts, gold, config=config, seed=bench.seed, folder=Path(folder), save_steps=BATCHES + 1
        )
        began = time.perf_counter()
        fit(task, progress=False)
        return time.perf_counter() - began


def spell(seconds: float) -> str:
    """`0.3 s`, `40 s`, `12 min`, `3.4 h`, `2.1 days`"""
    if seconds < 90:
        return f"{seconds:.1g} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"
