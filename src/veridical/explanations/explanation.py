"""`Explanation`: what `veridical.explain` returns. It prints itself in a terminal and displays in a notebook."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from veridical.core.records import Attribution
from veridical.core.spec import base_name
from veridical.core.text import Gather, by_word, words_of
from veridical.model.classifier import Classifier


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Explanation(Attribution):
    """An attribution with the names of its tokens and classes: how much each token speaks for the explained class."""

    tokens: tuple[str, ...]  # T, as the tokenizer writes them, special ones included
    labels: tuple[str, ...]  # names of the classes
    signed: bool  # negative scores speak against the class

    @classmethod
    def of(cls, clf: Classifier, attribution: Attribution) -> Explanation:
        from veridical.attribution import methods

        name = base_name(attribution.method)
        signed = methods[name].signed if name in methods else bool((attribution.scores < 0).any())
        known = {field.name: getattr(attribution, field.name) for field in fields(Attribution)}
        return cls(**known, tokens=tuple(clf.tokens(attribution.encoded.ids)), labels=clf.labels, signed=signed)

    @property
    def attribution(self) -> Attribution:
        """Itself: before 0.2 an explanation held its attribution."""
        return self

    @property
    def text(self) -> str:
        return self.example.text

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the text: runs of characters that are not white space."""
        return tuple(self.text[start:end] for start, end in words_of(self.text))

    @property
    def word_scores(self) -> np.ndarray:
        """One per word, the sum of its tokens'. [words]"""
        return self.scores_by_word()

    def scores_by_word(self, gather: Gather = "sum") -> np.ndarray:
        return by_word(self.encoded, self.scores, gather)

    @property
    def label(self) -> str:
        """Name of the explained class."""
        return self.labels[self.target]

    def __str__(self) -> str:
        from veridical.explanations.display import as_text

        return as_text(self)

    def __repr__(self) -> str:
        probability = float(self.probabilities[self.target])
        return f"Explanation({self.method}, {self.label!r} {probability:.3f}, {self.text[:40]!r})"

    def _repr_html_(self) -> str:
        from veridical.explanations.display import as_html

        return as_html(self)
