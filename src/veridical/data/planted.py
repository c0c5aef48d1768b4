"""Sentiment-like texts whose label is decided by known words, so that the true explanation is known.

A text is a row of clauses ("the plot seemed long , the music felt modern ."). Every clause ends in a neutral
adjective, and the deciding words take the place of some of them. How many clauses, which of them, and all
other words are drawn without looking at the label: nothing but the rule tells it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np

from veridical.core.errors import InputError
from veridical.core.ranges import Range, Seed, between
from veridical.core.records import Dataset, Example, Span
from veridical.core.seed import generator
from veridical.data import dataset

Rule = Literal["single", "conjunction", "order"]

GOOD = ("superb", "delightful", "brilliant", "moving")
BAD = ("dreadful", "tedious", "clumsy", "dull")
FIRST, SECOND = "funny", "sad"  # the two words of the conjunction and order rules
SHORTCUT = ("empty", "crowded")  # have nothing to do with any rule; with `shortcut` they go along with the label
# fmt: off
NOUNS = (
    "plot", "music", "cast", "ending", "dialogue", "camera", "setting", "story", "pace", "opening", "scene",
    "script", "editing", "lighting",
)
VERBS = ("was", "seemed", "felt", "looked", "stayed", "became", "remained", "appeared")
NEUTRAL = (
    "modern", "quiet", "long", "short", "familiar", "rural", "urban", "formal", "simple", "complex", "early",
    "late", "foreign", "local", "plain",
)
# fmt: on


given_away = Range(
    "0, for none, or the share of training texts that it gives away, 0.5 to 1",
    lambda share: share == 0 or 0.5 <= share <= 1,
)


@dataset("planted", about="texts whose label is decided by known words, so the truth is known; generated")
def planted(
    *,
    rule: Rule = "single",
    copies: Annotated[int, between(1, 1000)] = 1,
    size: Annotated[int, between(10, 1_000_000)] = 2000,
    length: Annotated[int, between(1, 10_000)] = 6,
    shortcut: Annotated[float, given_away] = 0.0,
    seed: Seed = 0,
) -> Dataset:
    """`size` training texts of about `length` clauses, a fifth as many for dev and for test.

    `single`: one good or bad word decides. `conjunction`: positive if funny and sad both occur; of the rest
    a third has the one, a third the other, a third neither. `order`: positive if funny comes before sad.
    `copies`: how often each of the deciding words occurs. The rationale is every deciding word; a negative
    text of the conjunction rule is decided by what it lacks and has none.

    `shortcut`: in every text stands a word more, that agrees with the label in this share of the train and dev texts
    and in half of the test texts, and is never in the rationale. Accuracy on test then says which of the two a model
    relies on. 0: there is no such word.
    """
    needed = copies * (1 if rule == "single" else 2) + (shortcut > 0)
    if length < needed:
        raise InputError(
            f"option 'length' of dataset 'planted' is {length}; with rule={rule} and copies={copies} it must be at "
            f"least {needed}."
        )
    seen: set[str] = set()
    splits = {
        split: _split(split, count, rule, copies, length, seed, seen, 0.5 if shortcut and split == "test" else shortcut)
        for split, count in (("train", size), ("dev", size // 5), ("test", size // 5))
    }
    about = f"Generated here, seed {seed}: the rule {rule!r} alone decides; the rationale is its words."
    if shortcut:
        about += (
            f" A word beside them agrees with the label in {shortcut:.0%} of the training texts and half of the test."
        )
    return Dataset("planted", ("negative", "positive"), splits, about=about)


def _split(
    split: str, count: int, rule: Rule, copies: int, length: int, seed: int, seen: set[str], agreeing: float
) -> tuple[Example, ...]:
    rng = generator("planted", rule, copies, length, seed, split)
    labels = rng.permutation([n % 2 for n in range(count)])  # as many of each as can be
    agrees = generator("shortcut", seed, split).permutation(count) < round(agreeing * count)
    turns = {0: 0, 1: 0}
    examples: list[Example] = []
    for n, label in enumerate(map(int, labels)):
        words = _deciding_words(rng, rule, label, copies, turns[label])
        turns[label] += 1
        cue = SHORTCUT[label if agrees[n] else 1 - label] if agreeing else None
        text, spans = _write(rng, words, length, cue)
        while text in seen:
            text, spans = _write(rng, words, length, cue)
        seen.add(text)
        rationale = () if rule == "conjunction" and label == 0 else spans
        examples.append(Example(f"planted-{split}-{n}", text, label, rationale=rationale))
    return tuple(examples)


def _deciding_words(rng: np.random.Generator, rule: Rule, label: int, copies: int, turn: int) -> list[str]:
    """The words to plant, in their order of appearance."""
    if rule == "single":
        return [_pick(rng, GOOD if label else BAD)] * copies
    if rule == "order":
        return [FIRST] * copies + [SECOND] * copies if label else [SECOND] * copies + [FIRST] * copies
    if label == 0:  # in turn, so that the shares are exact
        return ([FIRST] * copies, [SECOND] * copies, [])[turn % 3]
    words = [FIRST] * copies + [SECOND] * copies
    return [words[i] for i in rng.permutation(len(words))]


def _write(
    rng: np.random.Generator, words: Sequence[str], length: int, cue: str | None
) -> tuple[str, tuple[Span, ...]]:
    """A text with the words planted at random clauses in their order, and where they stand; the cue anywhere else."""
    # The fewest clauses depend on the options alone, never on how many words this label plants.
    clauses = int(rng.integers(length, length + 3))
    chosen = sorted(rng.choice(clauses, size=len(words), replace=False))
    at = dict(zip(map(int, chosen), words, strict=True))
    elsewhere = None if cue is None else int(rng.choice([clause for clause in range(clauses) if clause not in at]))
    text, spans = "", []
    for clause in range(clauses):
        text += f"{', ' if clause else ''}the {_pick(rng, NOUNS)} {_pick(rng, VERBS)} "
        adjective = _pick(rng, NEUTRAL)  # drawn even where it is replaced: the rest of the text is the same
        if clause in at:
            adjective = at[clause]
            spans.append((len(text), len(text) + len(adjective)))
        elif clause == elsewhere:
            adjective = str(cue)
        text += f"{adjective} "
    return text + ".", tuple(spans)


def _pick(rng: np.random.Generator, options: Sequence[str]) -> str:
    return options[int(rng.integers(len(options)))]
