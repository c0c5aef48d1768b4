"""The texts that an audit is about: of the data a model is for, and of other domains."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veridical.audits.record import CorpusFacts, Role
from veridical.core import store
from veridical.core.errors import Caution, InputError
from veridical.core.provenance import rows_hash
from veridical.core.records import Dataset, Example, Given
from veridical.core.statistics import proportion
from veridical.data import load_data
from veridical.data.labels import of_kind, relabel
from veridical.data.split import sample, spread, text_mark
from veridical.model.accuracy import score, targets
from veridical.model.ask import predict
from veridical.model.classifier import Classifier

PREDICTIONS, MARK = "predictions.parquet", "mark"  # of a training run, and its column of marks of the texts


@dataclass(frozen=True)
class Corpus:
    """Texts to audit on."""

    name: str
    role: Role
    examples: tuple[Example, ...]
    dropped: int  # texts left out of another domain because they also stand in the training data
    seen: int = 0  # texts that also stand in the training data, and are audited all the same


def insist_on_split(data: Dataset, split: str) -> None:
    if split not in data.splits:
        raise InputError(f"{data.name!r} has no split {split!r}; it has: {', '.join(data.splits)}.")


def corpora_of(
    clf: Classifier,
    data: Given | Path,
    ood: Sequence[Given | Path],
    *,
    split: str,
    limit: int | None,
    seed: int,
    ood_limit: int | None = None,
    trained: Set[str] = frozenset(),
) -> list[Corpus]:
    """The texts of `data` and of the other corpora, labels as the model numbers them.

    Training data is the train split of `data`, and the texts whose marks are in `trained` (`trained_on`). At home its
    texts stay, and are counted: who names that split wants it. Out of domain they are left out.
    """
    home = load_data(data)
    seen = {*trained, *(text_mark(e.text) for e in home.splits.get("train", ()))}
    texts = _texts(clf, home, split, limit, seed, set())
    corpora = [Corpus(home.name, "in", texts, 0, sum(text_mark(e.text) in seen for e in texts))]
    if corpora[0].seen:
        sentence = in_training(corpora[0].seen, len(texts))
        warnings.warn(f"{home.name} ({split}): {sentence}", Caution, stacklevel=3)
    for given in ood:
        other = load_data(given)
        if other.name in [c.name for c in corpora]:
            raise InputError(
                f"The corpus {other.name!r} is named twice; name each once, an object by load_data(..., name=NAME)."
            )
        dropped = sum(text_mark(e.text) in seen for e in other.splits.get(split, ()))
        corpora.append(Corpus(other.name, "ood", _texts(clf, other, split, ood_limit or limit, seed, seen), dropped))
    return corpora


def _texts(
    clf: Classifier, data: Dataset, split: str, limit: int | None, seed: int, seen: set[str]
) -> tuple[Example, ...]:
    insist_on_split(data, split)
    fresh = [e for e in data.splits[split] if text_mark(e.text) not in seen]
    if not fresh:
        raise InputError(f"Every text of {data.name!r} ({split}) also stands in the training data; use other data.")
    chosen = spread(sample(fresh, limit, seed) if limit is not None else fresh, seed)
    return tuple(of_kind(relabel(chosen, data.labels, clf.labels), clf.kind == "multi"))


def trained_on(model: Any) -> frozenset[str]:
    """The marks of the texts that a run of `veridical train` was trained on; none of a model that is not in the folder
    of one, or whose run is from before they were kept."""
    if not isinstance(model, (str, Path)):
        return frozenset()
    folder = Path(model)
    path = (folder.parent if folder.name == "model" else folder) / PREDICTIONS
    if not os.path.isfile(path):
        return frozenset()
    columns = store.read_parquet(path).to_pydict()
    marks = zip(columns.get("split", ()), columns.get(MARK, ()), strict=False)
    return frozenset(mark for split, mark in marks if split == "train")


def in_training(seen: int, texts: int) -> str:
    """That audited texts are no new ones to the model."""
    which = f"All {texts:,} texts stand" if seen >= texts > 1 else f"{seen:,} of {texts:,} texts also stand"
    return f"{which} in the training data; what holds for them may not hold for new texts."


def corpus_facts(clf: Classifier, corpus: Corpus) -> CorpusFacts:
    """What is true of a corpus, and how well the model predicts it."""
    encoded = clf.encode(corpus.examples)
    scores: dict[str, float | None] = {}
    bounds: tuple[float | None, float | None] = (None, None)
    majority = None
    if all(e.label is not None for e in corpus.examples):
        gold = targets(corpus.examples, clf.labels, clf.kind == "multi")
        scores = score(predict(clf, encoded), gold, clf.kind)
        if clf.kind != "multi":
            right = round((scores["accuracy"] or 0.0) * len(encoded))
            bounds = proportion(right, len(encoded))
            majority = max(Counter(e.label for e in corpus.examples).values()) / len(encoded)
    return CorpusFacts(
        name=corpus.name,
        role=corpus.role,
        texts=len(corpus.examples),
        hash=store.stable_hash([(e.id, e.text, e.context) for e in corpus.examples]),
        dropped=corpus.dropped,
        seen=corpus.seen,
        cut_texts=sum(e.cut > 0 for e in encoded),
        cut_tokens=sum(e.cut for e in encoded),
        accuracy=scores.get("accuracy"),
        macro_f1=scores.get("macro_f1"),
        accuracy_low=bounds[0],
        accuracy_high=bounds[1],
        majority=majority,
        sha256=rows_hash((e.id, e.text, e.context, e.label, e.rationale) for e in corpus.examples),
    )


def guessing(facts: CorpusFacts) -> str:
    """That the model knows no more than which class is most frequent, where that is so: then nothing is to be said."""
    if facts.accuracy is None or facts.majority is None or facts.accuracy > facts.majority:
        return ""
    return (
        f"the model is right on {facts.accuracy:.0%} of these {facts.texts} texts, and always saying the most "
        f"frequent class would be on {facts.majority:.0%}; what explains such a model explains nothing of the task."
    )
