"""`Explanation`: what `veridical.explain` returns. It prints itself in a terminal and displays in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from veridical.core.records import Attribution, Cost, Encoded, Example
from veridical.core.spec import base_name
from veridical.core.text import Gather, by_word, words_of
from veridical.model.classifier import Classifier


@dataclass(frozen=True, eq=False)
class Explanation:
    """How much each token speaks for the explained class, with what it took to find out."""

    attribution: Attribution
    tokens: tuple[str, ...]  # T, as the tokenizer writes them, special ones included
    labels: tuple[str, ...]  # names of the classes
    signed: bool  # negative scores speak against the class

    @classmethod
    def of(cls, clf: Classifier, attribution: Attribution) -> Explanation:
        from veridical.attribution import methods

        name = base_name(attribution.method)
        signed = methods[name].signed if name in methods else bool((attribution.scores < 0).any())
        tokens = tuple(clf.tokens(attribution.encoded.ids))
        return cls(attribution, tokens, clf.labels, signed)

    @property
    def example(self) -> Example:
        return self.attribution.example

    @property
    def encoded(self) -> Encoded:
        return self.attribution.encoded

    @property
    def text(self) -> str:
        return self.example.text

    @property
    def scores(self) -> np.ndarray:
        """One per token, 0 for special tokens and the context. [T]"""
        return self.attribution.scores

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
    def target(self) -> int:
        """Index of the explained class."""
        return self.attribution.target

    @property
    def label(self) -> str:
        """Name of the explained class."""
        return self.labels[self.target]

    @property
    def probabilities(self) -> np.ndarray:
        return self.attribution.probabilities

    @property
    def method(self) -> str:
        return self.attribution.method

    @property
    def options(self) -> Mapping[str, Any]:
        return self.attribution.options

    @property
    def cost(self) -> Cost:
        return self.attribution.cost

    def __str__(self) -> str:
        from veridical.explanations.display import as_text

        return as_text(self)

    def __repr__(self) -> str:
        probability = float(self.probabilities[self.target])
        return f"Explanation({self.method}, {self.label!r} {probability:.3f}, {self.text[:40]!r})"

    def _repr_html_(self) -> str:
        from veridical.explanations.display import as_html

        return as_html(self)
