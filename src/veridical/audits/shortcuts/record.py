"""What `veridical shortcuts` stores and returns: `shortcuts.json`; printed, as a frame and as a plot too."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from veridical.core import stored
from veridical.core.frames import Columns, Tabular, columns_of
from veridical.core.tables import to_text
from veridical.model.erase import Operator
from veridical.page.words import interval as words_of_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FOLDER, FILE, WORDS = "shortcuts", "shortcuts.json", "words.csv"
WIDTH = 100
# Of a word that stands out: part of what decides by the data's own marks, no part of it, or nobody marked anything.
Belonging = Literal["rule", "outside", "unknown"]
Group = Literal["candidates", "rule", "all"]  # of flagged words


@dataclass(frozen=True)
class WordRow:
    """A word in the explanations of the texts of a class, by one method."""

    method: str
    word: str
    label: str  # the class that the model predicts
    texts: int  # explained texts of the class that have the word
    of: int  # explained texts of the class
    share: float  # texts / of
    mass: float  # mean share of the explanation in these texts
    importance: float  # the same next to an average word's, which has 1
    towards: float | None  # mean share with its sign: above 0 it speaks for the class; None: the method has no sign
    p_importance: float  # that its frequency gives it as much, over all words and classes
    p_class: float  # that an unrelated label goes as well with its being there, over all words and classes
    flagged: bool  # both are small, and where there is a sign it speaks for the class
    important: bool = False  # the first of the two is small, and where there is a sign it speaks for the class


@dataclass(frozen=True)
class Taught:
    """How a word goes with a label in a split of the data, whatever the model does."""

    split: str
    texts: int  # that have the word and a label
    label: str
    share: float  # of these with the label
    low: float  # 95%, exact
    high: float
    overall: float  # share of all texts with the label


@dataclass(frozen=True)
class Erasure:
    """What the model does when words are erased wherever they stand, with 95% intervals.

    `flips` and `fall` are of the texts that have one of the words, accuracy is of all texts.
    """

    words: tuple[str, ...]
    texts: int  # that have one of them
    of: int
    flips: float  # share of predictions that change
    flips_low: float
    flips_high: float
    fall: float  # mean fall of the probability of what was predicted
    fall_low: float | None
    fall_high: float | None
    accuracy: float | None  # None: not every text has a label
    accuracy_erased: float | None
    change_low: float | None  # of the change of accuracy
    change_high: float | None
    controls: int  # words, or sets of as many words, of like frequency that were erased instead
    control_flips: float | None  # mean over these
    control_fall: float | None
    control_most: float | None  # the largest fall among them
    relied: bool | None  # it falls further than for every control; None: too few to say so

    @property
    def change(self) -> float | None:
        """Of accuracy."""
        return None if self.accuracy is None or self.accuracy_erased is None else self.accuracy_erased - self.accuracy


@dataclass(frozen=True)
class Flagged:
    """A word that stands out, and what is known of it besides."""

    word: str
    labels: tuple[str, ...]  # the classes that it goes with
    methods: tuple[str, ...]  # that say so
    belongs: Belonging
    marked: float | None  # share of its occurrences that are marked, in texts that have marks
    taught: tuple[Taught, ...]  # in the training data and in the texts that were erased in, where they have labels
    erased: Erasure

    @property
    def candidate(self) -> bool:
        """Whether it may be a shortcut: the model relies on it, and it is no part of what is marked."""
        return self.belongs != "rule" and self.erased.relied is True


@dataclass(frozen=True)
class Together:
    """Several flagged words erased at once."""

    name: Group
    erased: Erasure


@dataclass(frozen=True, repr=False)
class Shortcuts(Tabular):
    """Which words a model relies on, by explanations that may be believed, and what it does without them."""

    SCHEMA: ClassVar[int] = 1
    COLUMNS: ClassVar[Columns] = columns_of(WordRow)  # a row per method, word and class, as in words.csv

    title: str
    corpus: str
    split: str
    planted: bool  # what is marked is the rule that the data was made by, not what people think
    methods: tuple[str, ...]
    believed: bool  # the methods are those of the audit's verdict
    texts: int  # explained
    silent: int  # of these, texts of which a method says nothing
    looked_at: int  # words
    rare: int  # words that fewer than min_texts of the texts have
    min_texts: int
    alpha: float
    permutations: int
    by: Operator
    seed: int
    erased_in: int  # texts
    sentence: str
    notes: tuple[str, ...]
    words: tuple[WordRow, ...]
    flagged: tuple[Flagged, ...]
    together: tuple[Together, ...]
    leads: tuple[Flagged, ...] = ()  # not flagged, for they were not shown to go with a class; relied on all the same

    @property
    def candidates(self) -> tuple[Flagged, ...]:
        """The flagged words that may be shortcuts."""
        return tuple(word for word in self.flagged if word.candidate)

    def of_kind(self, *kinds: Belonging) -> tuple[Flagged, ...]:
        """The flagged words that belong to the rule, stand outside of it, or are unknown."""
        return tuple(word for word in self.flagged if word.belongs in kinds)

    def _rows(self) -> tuple[WordRow, ...]:
        return self.words

    def __repr__(self) -> str:
        parts = [_wrapped(self.sentence), flagged_table(self), *map(_wrapped, self.notes)]
        return "\n".join(filter(None, parts))

    def _repr_html_(self) -> str:
        from veridical.audits.shortcuts.page import snippet

        return snippet(self)

    def plot(self, *, ax: Axes | None = None, figsize: tuple[float, float] | None = None) -> Axes:
        """How far the probability of the prediction falls when each flagged word is erased wherever it stands, beside
        other words of like frequency. Returns the Axes, those of `ax` or new ones."""
        from veridical.page.charts import GREY, Series, intervals

        names = {"unknown": "the word", "outside": "not marked", "rule": "marked"}
        if self.planted:
            names |= {"outside": "no part of the rule", "rule": "of the rule"}
        colours = {"unknown": "#0072B2", "outside": "#D55E00", "rule": "#0072B2"}
        series = [
            Series(
                names[kind],
                {w.word: (w.erased.fall, w.erased.fall_low, w.erased.fall_high) for w in self.of_kind(kind)},
                colours[kind],
            )
            for kind in ("outside", "rule", "unknown")
            if self.of_kind(kind)
        ]
        others = {w.word: (w.erased.control_fall, None, w.erased.control_most) for w in self.flagged}
        series.append(Series("other words of like frequency, mean", others, GREY))
        order = [w.word for w in self.flagged]
        return intervals(series, "fall of the prediction's probability, 95% interval", ax, figsize, order=order)


def flagged_table(found: Shortcuts) -> str:
    """The flagged words and the leads as aligned lines; nothing where none is."""
    if not found.flagged and not found.leads:
        return ""
    cells = [["word", "goes with", "", "texts", "flips when erased", "others", "in training data"]]
    for word in (*found.flagged, *found.leads):
        erased = word.erased
        cells.append(
            [
                word.word,
                ", ".join(word.labels),
                standing(found, word),
                str(erased.texts),
                f"{erased.flips:.0%} ({erased.flips_low:.0%} to {erased.flips_high:.0%})",
                "" if erased.control_flips is None else f"{erased.control_flips:.0%}",
                "; ".join(f"{t.share:.0%} {t.label}" for t in word.taught if t.split == "train"),
            ]
        )
    return to_text(cells)


def standing(found: Shortcuts, word: Flagged) -> str:
    """What a flagged word is, in a word or two."""
    if word in found.leads:
        return "lead"
    if word.belongs == "rule":
        return "of the rule" if found.planted else "marked"
    if word.erased.relied is None:
        return "not compared"
    if not word.erased.relied:
        return "not relied on"
    if word.belongs == "unknown":
        return "candidate"
    return "shortcut" if found.planted else "candidate, not marked"


def listed(words: Sequence[Flagged]) -> str:
    """Words with the classes that they go with: `empty` (negative)."""
    return ", ".join(f"`{word.word}` ({', '.join(word.labels)})" for word in words)


def said_interval(value: float, low: float | None, high: float | None) -> str:
    return f"{value:.2f}" if low is None else f"{value:.2f} ({words_of_interval(low, high)})"


def read_shortcuts(folder: Path) -> Shortcuts | None:
    """What was found in an audit's folder, if anybody looked."""
    path = folder / FOLDER / FILE
    return stored.read(path, Shortcuts) if path.exists() else None


def _wrapped(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)
