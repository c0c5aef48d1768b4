"""Planted data, whose texts were made so that it is known which tokens decide: the truth, explained and turned over."""

from __future__ import annotations

import numpy as np

from veridical.audits.corpora import Corpus
from veridical.core.records import Attribution
from veridical.core.spec import base_name
from veridical.core.text import marked
from veridical.model.ask import predict
from veridical.model.classifier import Classifier
from veridical.model.target import classes_of, read_target

ORACLES = ("oracle", "inverted oracle")  # known from how the data was made: never ranked, never believed


def is_planted(corpus: Corpus) -> bool:
    """Whether its rationales are the truth, and not what people think."""
    return base_name(corpus.name) == "planted"


def oracles(clf: Classifier, corpus: Corpus, target: str | int) -> list[Attribution]:
    """On planted data the truth and its opposite, to see how each metric ranks them; on other data nothing."""
    if not is_planted(corpus):
        return []
    encoded = clf.encode(corpus.examples)
    answers = predict(clf, encoded)
    explained = classes_of(read_target(target, clf.labels), corpus.examples, clf.labels)
    classes = answers.logits.argmax(1).tolist() if explained is None else explained
    return [
        Attribution(text, int(wanted), marked(text).astype(np.float32) * sign, probabilities, name)
        for name, sign in zip(ORACLES, (1, -1), strict=True)
        for text, wanted, probabilities in zip(encoded, classes, answers.probabilities, strict=True)
    ]
