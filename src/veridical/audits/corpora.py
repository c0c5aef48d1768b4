"""The texts that an audit is about: of the data a model is for, and of other domains."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from veridical.audits.record import CorpusFacts, Role
from veridical.core import store
from veridical.core.errors import Caution, InputError
from veridical.core.provenance import rows_hash
from veridical.core.records import Dataset, Example, Given
from veridical.core.statistics import proportion
from veridical.data import load_data
from veridical.data.labels import of_kind, relabel
from veridical.data.split import normalised, sample, spread
from veridical.model.accuracy import score, targets
from veridical.model.ask import predict
from veridical.model.classifier import Classifier


@dataclass(frozen=True)
class Corpus:
    """Texts to audit on."""

    name: str
    role: Role
    examples: tuple[Example, ...]
    dropped: int  # texts left out because they also stand in the training data


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
) -> list[Corpus]:
    """The texts of `data` and of the other corpora, labels as the model numbers them."""
    home = load_data(data)
    seen = {normalised(e.text) for e in home.splits.get("train", ())}
    corpora = [Corpus(home.name, "in", _texts(clf, home, split, limit, seed, set()), 0)]
    overlap = sum(normalised(e.text) in seen for e in corpora[0].examples)
    if overlap:
        warnings.warn(
            f"{overlap} of the {len(corpora[0].examples)} texts of {home.name} ({split}) also stand in its train "
            "split; what holds for them may not hold for new texts.",
            Caution,
            stacklevel=3,
        )
    for given in ood:
        other = load_data(given)
        if other.name in [c.name for c in corpora]:
            raise InputError(
                f"The corpus {other.name!r} is named twice; name each once, an object by load_data(..., name=NAME)."
            )
        dropped = sum(normalised(e.text) in seen for e in other.splits.get(split, ()))
        corpora.append(Corpus(other.name, "ood", _texts(clf, other, split, ood_limit or limit, seed, seen), dropped))
    return corpora


def _texts(
    clf: Classifier, data: Dataset, split: str, limit: int | None, seed: int, seen: set[str]
) -> tuple[Example, ...]:
    insist_on_split(data, split)
    fresh = [e for e in data.splits[split] if normalised(e.text) not in seen]
    if not fresh:
        raise InputError(f"Every text of {data.name!r} ({split}) also stands in the training data; use other data.")
    chosen = spread(sample(fresh, limit, seed) if limit is not None else fresh, seed)
    return tuple(of_kind(relabel(chosen, data.labels, clf.labels), clf.kind == "multi"))


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
