"""Which words stand out in a method's explanations, class by class, and whether chance would do the same.

Two questions are asked of every word in the texts of every class, and each has the permutation that answers it.

*Is it given more than its frequency gives it?* The statistic is the mean over the texts that have the word of its share
of the explanation times the number of words, so 1 is an average word. What is drawn is which word of a text has which
score; the words, the scores and the length of every text stay.

*Does it go with the class?* The statistic is the number of the class's texts that have the word. What is drawn is
which text has which class; the texts stay. That the word is there is what is counted, not how much it is given: shares
of a text add up to 1, so a word of every text (`the`, a comma) is given more where nothing stronger stands beside it,
and a model that says one class unless told otherwise has such texts in that class alone. Tried first with shares, this
flagged neutral words in four of nine models (docs/shortcuts.md).

Both are in units of their standard deviation under the permutation, which is known exactly, and p is the share of
permutations in which the largest of all words and classes is as large (Westfall and Young): right for all at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from veridical.audits.shortcuts.corpus import Said
from veridical.core.seed import generator

NOTHING = 1e-12  # variances below this are 0


@dataclass(frozen=True)
class Standing:
    """A word in the texts of a class."""

    word: str
    label: int  # the class
    texts: int  # of the class that have the word
    mass: float  # mean share of the explanation that it has in these
    importance: float  # the same times the number of words and over its occurrences: 1 is an average word
    towards: float  # mean share with its sign
    p_importance: float
    p_class: float


@dataclass(frozen=True)
class _Counted:
    """Texts and words as numbers: a row per word of a text, `many` of them where it occurs more than once."""

    text: np.ndarray  # [occurrences]
    word: np.ndarray  # [occurrences], -1: too rare to be looked at
    size: np.ndarray  # [occurrences], shares without their sign
    signed: np.ndarray  # [occurrences]
    lengths: np.ndarray  # [texts]
    labels: np.ndarray  # [texts]
    many: np.ndarray  # [texts, words], how often
    classes: int


def standings(
    said: Sequence[Said],
    labels: Sequence[int],
    *,
    classes: int,
    min_texts: int,
    permutations: int,
    seed: int,
    signed: bool,
) -> list[Standing]:
    """Every word that at least `min_texts` texts have, in every class of which as many texts have it; by word, then
    class. Texts of which nothing is said have no say."""
    heard = [place for place, text in enumerate(said) if np.abs(text.scores).sum() > 0]
    texts = [said[place] for place in heard]
    held: dict[str, int] = {}
    for text in texts:
        for word in set(text.words):
            held[word] = held.get(word, 0) + 1
    words = sorted(word for word, count in held.items() if count >= min_texts)
    if not words:
        return []
    counted = _counted(texts, [labels[place] for place in heard], words, classes, signed)
    having = _by_class(counted, (counted.many > 0).astype(float)).T  # [words, classes]
    tested = having >= min_texts
    if not tested.any():
        return []
    important, p_important = _importance(counted, having, tested, permutations, seed)
    p_class = _of_class(counted, permutations, seed)
    mass = _mean(counted, counted.size, having)
    towards = _mean(counted, counted.signed, having)
    return [
        Standing(
            word=words[row],
            label=label,
            texts=int(having[row, label]),
            mass=float(mass[row, label]),
            importance=float(important[row, label]),
            towards=float(towards[row, label]),
            p_importance=float(p_important[row, label]),
            p_class=float(p_class[row, label]),
        )
        for row, label in zip(*np.nonzero(tested), strict=True)
        for row, label in [(int(row), int(label))]
    ]


def _counted(
    texts: Sequence[Said], labels: Sequence[int], words: Sequence[str], classes: int, signed: bool
) -> _Counted:
    place = {word: row for row, word in enumerate(words)}
    of_text = np.concatenate([np.full(len(text.words), number) for number, text in enumerate(texts)])
    of_word = np.array([place.get(word, -1) for text in texts for word in text.words])
    scores = np.concatenate([text.scores for text in texts])
    many = np.zeros((len(texts), len(words)))
    np.add.at(many, (of_text[of_word >= 0], of_word[of_word >= 0]), 1)
    return _Counted(
        text=of_text,
        word=of_word,
        size=np.abs(scores),
        signed=scores if signed else np.abs(scores),
        lengths=np.array([len(text.words) for text in texts], dtype=float),
        labels=np.asarray(labels),
        many=many,
        classes=classes,
    )


def _by_class(counted: _Counted, values: np.ndarray, labels: np.ndarray | None = None) -> np.ndarray:
    """Sums over the texts of every class. [texts, words] -> [classes, words]"""
    of_class = np.eye(counted.classes)[counted.labels if labels is None else labels]  # [texts, classes]
    return of_class.T @ values


def _per_text(counted: _Counted, values: np.ndarray) -> np.ndarray:
    """The sum of every word's values in every text. [occurrences] -> [texts, words]"""
    known = counted.word >= 0
    texts, words = counted.many.shape
    flat = counted.text[known] * words + counted.word[known]
    return np.bincount(flat, values[known], minlength=texts * words).reshape(texts, words)


def _mean(counted: _Counted, values: np.ndarray, having: np.ndarray) -> np.ndarray:
    """Over the texts of a class that have the word. [words, classes]"""
    with np.errstate(invalid="ignore"):
        return _by_class(counted, _per_text(counted, values)).T / having


# -- more than its frequency --------------------------------------------------------------------------------


def _importance(
    counted: _Counted, having: np.ndarray, tested: np.ndarray, permutations: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """How much more than an average word each is given, and p. [words, classes], [words, classes]"""
    weight = np.divide(
        counted.lengths[:, None], counted.many, out=np.zeros_like(counted.many), where=counted.many > 0
    )  # what makes a share of a text an importance

    def sums(size: np.ndarray) -> np.ndarray:
        return _by_class(counted, _per_text(counted, size) * weight).T  # [words, classes]

    # The sum of k of n shares drawn without replacement has this variance, text by text.
    n, k = counted.lengths[:, None], counted.many
    spread = np.bincount(counted.text, counted.size**2) - 1 / counted.lengths  # of a text's shares around 1 / n
    variance = _by_class(
        counted, weight**2 * k * (n - k) / np.maximum(n * (n - 1), 1) * np.maximum(spread, 0)[:, None]
    ).T
    error = np.sqrt(np.where(variance > NOTHING, variance, np.inf))
    observed = sums(counted.size)
    draw, starts = generator("shortcuts", "scores", seed), counted.text.astype(float)
    largest = np.empty(permutations)
    for turn in range(permutations):
        shuffled = counted.size[np.argsort(starts + draw.random(len(starts)))]  # each text's among its own words
        largest[turn] = ((sums(shuffled) - having) / error)[tested].max()
    with np.errstate(invalid="ignore"):
        return observed / having, _p((observed - having) / error, largest)


# -- with the class -----------------------------------------------------------------------------------------


def _of_class(counted: _Counted, permutations: int, seed: int) -> np.ndarray:
    """p that having a word goes with the class. [words, classes]

    Over all words and classes: which words have enough texts of a class depends on the classes, and a family that was
    chosen by them would be one of words that go with theirs.
    """
    there = (counted.many > 0).astype(float)  # [texts, words]
    texts = len(there)
    centred = there - there.mean(0)
    sizes = np.bincount(counted.labels, minlength=counted.classes)  # texts of every class
    drawn = sizes * (texts - sizes) / max(texts * (texts - 1), 1)
    variance = (centred**2).sum(0)[:, None] * drawn[None]  # [words, classes]
    error = np.sqrt(np.where(variance > NOTHING, variance, np.inf))
    draw = generator("shortcuts", "classes", seed)
    largest = np.empty(permutations)
    for turn in range(permutations):
        largest[turn] = (_by_class(counted, centred, draw.permutation(counted.labels)).T / error).max()
    return _p(_by_class(counted, centred).T / error, largest)


def _p(observed: np.ndarray, largest: np.ndarray) -> np.ndarray:
    """The share of permutations, with the data themselves as one, whose largest value is as large."""
    as_large = len(largest) - np.searchsorted(
        np.sort(largest), observed - 1e-9
    )  # what is equal but for rounding is tied
    return (1 + as_large) / (1 + len(largest))
