"""What is measured on: the embedded encoder fine-tuned on movie sentences, and sentences it has not seen."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

import veridical
from benchmarks.timing import Contender
from veridical.core import assets
from veridical.core.records import Encoded, Example
from veridical.model.ask import TOKEN_BUDGET, batches_of
from veridical.model.classifier import Classifier
from veridical.training.config import TrainConfig

DATA = "hutto/movies"


@dataclass(frozen=True, slots=True)
class Subject:
    """A classifier at rest (no dropout, no parameter collects a gradient) and the texts to explain."""

    clf: Classifier
    examples: tuple[Example, ...]
    encoded: tuple[Encoded, ...]
    budget: int  # padded tokens in a batch, for everyone


def trained(folder: str | Path | None = None) -> Path:
    """The folder of the fine-tuned encoder, which is trained at the first call (minutes on two cores)."""
    if folder is not None:
        return Path(folder)
    home = assets.cache_root() / "benchmarks" / "minilm-movies"
    run = veridical.train(DATA, "minilm", limit=2000, config=TrainConfig(epochs=2), out=home)
    return run.folder


def subject(model: str | Path | None, texts: int, budget: int = TOKEN_BUDGET) -> Subject:
    """The fine-tuned encoder and the first test sentences; where there are fewer, they come again."""
    clf = veridical.load(trained(model))
    for parameter in clf.model.parameters():  # for the peers' sake: Veridical does so by itself
        parameter.requires_grad_(False)
    found = veridical.load_data(DATA).splits["test"]
    examples = tuple(found[i % len(found)] for i in range(texts))
    return Subject(clf, examples, tuple(clf.encode(examples)), budget)


def forward_pass(subject: Subject) -> Contender:
    """The unit: the bare model over all texts, in length-sorted batches that were padded beforehand."""
    clf, encoded = subject.clf, subject.encoded
    batches = []
    for rows in batches_of([len(e.ids) for e in encoded], subject.budget):
        batch = clf.collate([encoded[i] for i in rows])
        inputs = {"input_ids": batch.ids, "attention_mask": batch.mask.long()}
        if getattr(clf.model.config, "type_vocab_size", None):  # decoders have no segments
            inputs["token_type_ids"] = batch.types
        batches.append(inputs)

    def run() -> None:
        with torch.inference_mode():
            for batch in batches:
                clf.model(**batch)

    return Contender("forward pass", run)


def arguments(about: str, *, texts: int = 48, repeats: int = 5) -> argparse.ArgumentParser:
    """The options all benchmarks share."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--model", metavar="FOLDER", help="a classifier to measure instead of the embedded one")
    parser.add_argument("--texts", type=int, default=texts, help="test sentences (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=repeats, help="(default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--budget", type=int, default=TOKEN_BUDGET, help="padded tokens in a batch (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="(default: %(default)s)")
    return parser


def mean_length(encoded: Sequence[Encoded]) -> float:
    return sum(len(e.ids) for e in encoded) / len(encoded)
