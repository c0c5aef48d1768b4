"""What a model does when words are erased wherever they stand, beside other words of like frequency.

A word's effect is how far the probability of what was predicted falls in the texts that have it. The model relies on
the word if that is further than for each of the twenty words nearest to it in frequency: by chance one word in 21 is.
Of several words at once the controls are sets of as many, each word with one of like frequency in its place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from veridical.audits.shortcuts.corpus import Read
from veridical.audits.shortcuts.record import Erasure
from veridical.core.records import Explained
from veridical.core.seed import generator
from veridical.core.statistics import estimate, number, proportion
from veridical.core.text import marked
from veridical.explanations.explain import explained
from veridical.model.accuracy import decisions, targets
from veridical.model.ask import answer, predict
from veridical.model.classifier import Classifier
from veridical.model.erase import Operator, erase

CONTROLS = 20
Words = tuple[str, ...]


@dataclass(frozen=True)
class Before:
    """Texts, and what the model says of them whole."""

    clf: Classifier
    texts: Sequence[Read]
    seen: Sequence[Explained]
    probabilities: np.ndarray  # [texts, classes]
    decided: np.ndarray  # [texts, classes], 0/1
    gold: np.ndarray | None  # [texts, classes], 0/1; None: not every text has a label
    counts: Mapping[str, int]  # texts that have a word

    @property
    def predicted(self) -> np.ndarray:
        """The likeliest class. [texts]"""
        return self.probabilities.argmax(1)


def before(clf: Classifier, texts: Sequence[Read], *, budget: int | None = None) -> Before:
    encoded = [text.encoded for text in texts]
    answers = predict(clf, encoded, budget=budget)
    seen = [
        explained(clf, *row)
        for row in zip(encoded, answers.logits.argmax(1).tolist(), answers.logits, answers.probabilities, strict=True)
    ]
    counts: dict[str, int] = {}
    for text in texts:
        for word in text.places:
            counts[word] = counts.get(word, 0) + 1
    decided = decisions(answers.probabilities, clf.kind)
    return Before(clf, texts, seen, answers.probabilities, decided, _gold(clf, texts), counts)


def _gold(clf: Classifier, texts: Sequence[Read]) -> np.ndarray | None:
    examples = [text.example for text in texts]
    if any(example.label is None for example in examples):
        return None
    known = targets(examples, clf.labels, clf.kind == "multi").numpy()
    return known.astype(bool) if clf.kind == "multi" else np.eye(len(clf.labels), dtype=bool)[known]


@dataclass(frozen=True)
class _Effect:
    """What erasing words does to the texts that have one of them."""

    rows: np.ndarray  # [texts that have one]
    decided: np.ndarray  # [rows, classes]
    flipped: np.ndarray  # [rows]
    fall: np.ndarray  # [rows]


def erasures(
    known: Before,
    sets: Sequence[Words],
    flagged: Collection[str],
    *,
    by: Operator,
    seed: int,
    budget: int | None = None,
) -> dict[Words, Erasure]:
    """Of every set of words, each erased at once; no control is a flagged word."""
    others = sorted(word for word in known.counts if word not in flagged)
    controls = {words: _controls(known, words, others, seed) for words in sets}
    asked = dict.fromkeys([*sets, *(control for held in controls.values() for control in held)])
    effects = {words: _effect(known, words, by, budget) for words in asked}
    return {words: _erasure(known, words, effects, controls[words]) for words in sets}


def _controls(known: Before, words: Words, others: Sequence[str], seed: int) -> list[Words]:
    """Words of like frequency in the place of these, as many sets as there may be up to twenty."""
    if len(words) == 1:
        return [(word,) for word in nearest(known.counts, words[0], others, CONTROLS)]
    draw, sets = generator("shortcuts", "controls", seed, *words), []
    near = [nearest(known.counts, word, others, CONTROLS) for word in words]
    for _ in range(CONTROLS if len(others) >= len(words) + CONTROLS else 0):
        taken: list[str] = []
        for candidates in near:
            free = [word for word in candidates if word not in taken]
            # More words than controls near them may all be taken: then the rest serve, by frequency no more.
            free = free or [word for word in others if word not in taken]
            taken.append(free[int(draw.integers(len(free)))])
        sets.append(tuple(taken))
    return sets


def nearest(counts: Mapping[str, int], word: str, others: Iterable[str], most: int) -> list[str]:
    """The words whose number of texts is nearest by its ratio."""
    own = np.log(max(counts.get(word, 0), 1))
    return sorted(others, key=lambda other: (abs(np.log(counts[other]) - own), other))[:most]


def _effect(known: Before, words: Words, by: Operator, budget: int | None) -> _Effect:
    gone = {row: tokens for row, text in enumerate(known.texts) if (tokens := text.tokens_of(words))}
    rows = np.array(list(gone), dtype=int)
    classes = known.probabilities.shape[1]
    if not len(rows):
        return _Effect(rows, np.zeros((0, classes), dtype=bool), np.zeros(0, dtype=bool), np.zeros(0))
    answers = answer(known.clf, [erase(known.seen[row], tokens, by) for row, tokens in gone.items()], budget)
    decided = decisions(answers.probabilities, known.clf.kind)
    at = np.arange(len(rows)), known.predicted[rows]
    return _Effect(
        rows=rows,
        decided=decided,
        flipped=(decided != known.decided[rows]).any(1),
        fall=(known.probabilities[rows] - answers.probabilities)[at].astype(float),
    )


def _erasure(known: Before, words: Words, effects: Mapping[Words, _Effect], controls: Sequence[Words]) -> Erasure:
    own, others = effects[words], [effects[control] for control in controls]
    low, high = proportion(int(own.flipped.sum()), len(own.rows)) if len(own.rows) else (0.0, 1.0)
    fall = estimate(own.fall)
    falls = [float(effect.fall.mean()) for effect in others if len(effect.rows)]
    flips = [float(effect.flipped.mean()) for effect in others if len(effect.rows)]
    plain = Erasure(
        words=words,
        texts=len(own.rows),
        of=len(known.texts),
        flips=float(own.flipped.mean()) if len(own.rows) else 0.0,
        flips_low=low,
        flips_high=high,
        fall=fall.mean or 0.0,
        fall_low=fall.low,
        fall_high=fall.high,
        accuracy=None,
        accuracy_erased=None,
        change_low=None,
        change_high=None,
        controls=len(falls),
        control_flips=number(float(np.mean(flips))) if flips else None,
        control_fall=number(float(np.mean(falls))) if falls else None,
        control_most=max(falls, default=None),
        relied=(fall.mean or 0.0) > max(falls) if len(falls) >= CONTROLS else None,
    )
    return _with_accuracy(known, plain, own)


def _with_accuracy(known: Before, erasure: Erasure, own: _Effect) -> Erasure:
    if known.gold is None:
        return erasure
    was = (known.decided == known.gold).all(1)  # [texts]
    now = was.copy()
    now[own.rows] = (own.decided == known.gold[own.rows]).all(1)
    change = estimate(now.astype(float) - was)
    return replace(
        erasure,
        accuracy=float(was.mean()),
        accuracy_erased=float(now.mean()),
        change_low=change.low,
        change_high=change.high,
    )


def marked_share(texts: Sequence[Read], words: Collection[str]) -> dict[str, float | None]:
    """The share of each word's tokens that the rationale covers, in texts that have one; None where none has both."""
    inside, all_of = dict.fromkeys(words, 0), dict.fromkeys(words, 0)
    for text in texts:
        if text.example.rationale:
            covered = marked(text.encoded)
            for word in words:
                places = list(text.places.get(word, ()))
                inside[word] += int(covered[places].sum())
                all_of[word] += len(places)
    return {word: inside[word] / all_of[word] if all_of[word] else None for word in words}
