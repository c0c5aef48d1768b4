"""Small labelled data in memory and small models in folders, for tests that train."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification

from tiny import tiny
from veridical.core.records import Dataset, Example
from veridical.core.seed import generator

WORDS = ("the", "film", "was", "and", "book", "is", "this", "story", "but", "plot", "in", "an", "end", "that")
SIGNS = ("bad", "good", "boring")  # the word that decides the label


def toy(
    train: int = 40,
    dev: int = 16,
    test: int = 16,
    *,
    classes: int = 2,
    multilabel: bool = False,
    pair: bool = False,
) -> Dataset:
    """Texts of 3 to 12 words whose label is the sign among them; multi-label: every sign that occurs."""
    sizes = {"train": train, "dev": dev, "test": test}
    splits = {
        split: tuple(_example(f"{split}-{i}", classes, multilabel, pair) for i in range(size))
        for split, size in sizes.items()
        if size
    }
    return Dataset("toy", SIGNS[:classes], splits, multilabel=multilabel)


def _example(name: str, classes: int, multilabel: bool, pair: bool) -> Example:
    random = generator(name)
    words = list(random.choice(WORDS, size=int(random.integers(3, 13))))
    signs = [int(random.integers(classes))]
    if multilabel:
        signs = [sign for sign in range(classes) if random.random() < 0.5]
    for sign in signs:
        words.insert(int(random.integers(len(words) + 1)), SIGNS[sign])
    label = tuple(signs) if multilabel else signs[0]
    return Example(name, " ".join(words), label, context="was the film good?" if pair else None)


def small_model(folder: Path, family: str = "bert", **config: Any) -> str:
    """A folder with a tiny model of a family, initialised as for training, and its tokenizer."""
    model, tokenizer = tiny(family, **config)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = AutoModelForSequenceClassification.from_config(model.config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)
