"""`Explanation`: what `veridical.explain` returns. It prints itself in a terminal and displays in a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from veridical.core.frames import Columns, Tabular
from veridical.core.records import Attribution
from veridical.core.spec import base_name
from veridical.core.text import Gather, by_word, words_of
from veridical.model.classifier import Classifier

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Explanation(Attribution, Tabular):
    """An attribution with the names of its tokens and classes: how much each token speaks for the explained class."""

    # A row per token of the text, special ones left out.
    COLUMNS: ClassVar[Columns] = {
        **{"example": str, "method": str, "class": str, "probability": float, "position": int, "token": str},
        **{"start": int, "end": int, "word_index": int, "word": str, "score": float, "contrast": str},
    }

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
        """What is explained, without its context."""
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

    @property
    def contrast_label(self) -> str | None:
        """Name of the class that it is explained against, if any."""
        return None if self.contrast is None else self.labels[self.contrast]

    @property
    def question(self) -> str:
        """What is explained, in words: `positive`, or `positive rather than negative`."""
        return self.label if self.contrast is None else f"{self.label} rather than {self.labels[self.contrast]}"

    def __str__(self) -> str:
        from veridical.explanations.display import as_text

        return as_text(self)

    def __repr__(self) -> str:
        probability = float(self.probabilities[self.target])
        return f"Explanation({self.method}, {self.question!r} {probability:.3f}, {self.text[:40]!r})"

    def _repr_html_(self) -> str:
        from veridical.explanations.page import explain_snippet

        return explain_snippet({self.method: [self]})

    def _rows(self) -> Iterator[dict[str, Any]]:
        shared = {
            "example": self.example.id,
            "method": self.method,
            "class": self.label,
            "probability": float(self.probabilities[self.target]),
        }
        words, encoded = self.words, self.encoded
        for position in (place for place, free in enumerate(encoded.free) if free):
            (start, end), word = encoded.spans[position], encoded.words[position]
            yield {
                **shared,
                "position": position,
                "token": self.tokens[position],
                "start": start,
                "end": end,
                "word_index": word,
                "word": words[word] if word >= 0 else None,
                "score": float(self.scores[position]),
                "contrast": self.contrast_label,
            }

    def plot(self, *, ax: Axes | None = None, figsize: tuple[float, float] | None = None) -> Axes:
        """Its words with their scores as bars, from the top down as they are read; of more than thirty words those
        with the largest scores. Returns the Axes, those of `ax` or new ones."""
        from veridical.explanations.charts import bars

        return bars(self, ax, figsize)
