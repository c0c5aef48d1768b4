"""How much work a method is on a text, before it begins; what is too much is refused in a sentence.

The unit is a token that goes through the model once: passes times the text's length. Passes follow from the options
where a method draws or integrates, from the text's length where it asks about every token, and else from what was
counted on a short text (methods.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from veridical.attribution import Method
from veridical.core.registry import Choice
from veridical.explanations.passes import BACKWARD
from veridical.playground.limits import ASKED, CHEAP, EXPORTED, OPTIONS, QUICK_WORK, WORK
from veridical.playground.methods import LENGTH, Costs, guess
from veridical.playground.problem import ProblemError
from veridical.playground.text import Text


@dataclass(frozen=True)
class Size:
    """Of a text: its words, the tokens of all its windows, and those of the longest."""

    words: int
    tokens: int
    longest: int

    @classmethod
    def of(cls, text: Text) -> Size:
        lengths = [len(window.ids) for window in text.windows]
        return cls(len({word for word in text.whole.words if word >= 0}), sum(lengths), max(lengths))


@dataclass(frozen=True)
class Planned:
    """A method of a request, and what explaining the text with it takes."""

    choice: Choice[Method]
    work: float  # tokens through the model

    @property
    def quick(self) -> bool:
        return self.work <= QUICK_WORK


def planned(choices: Iterable[Choice[Method]], costs: Costs, size: Size) -> list[Planned]:
    """The methods, the least work first."""
    work = [Planned(choice, passes(choice, costs, size.longest) * size.tokens) for choice in choices]
    return sorted(work, key=lambda each: (each.work, each.choice.label))


def passes(choice: Choice[Method], costs: Costs, tokens: int) -> float:
    """Forward passes of a text of so many tokens, about."""
    draws = choice.options.get("samples", choice.options.get("steps"))
    if isinstance(draws, int):
        return 1 + draws * (1 if choice.entry.asks else 1 + BACKWARD)
    if choice.entry.asks:
        return 1 + tokens
    counted = costs.passes.get(choice.label, costs.passes.get(choice.entry.name))
    if counted is None:
        return guess(choice.entry)
    # What takes many passes of a short text takes them for its tokens, and more of a longer one.
    return counted * max(1.0, tokens / LENGTH) if counted > CHEAP else counted


def too_much(each: Planned, size: Size) -> ProblemError | None:
    """Why a method is not begun on a text of this size."""
    choice = each.choice
    for name, most in OPTIONS.items():
        value = choice.options.get(name)
        if isinstance(value, (int, float)) and value > most:
            return _refused(f"{choice.label}: {name} is {value:,}, and {most:,g} is the most here; take less.")
    if choice.entry.asks and size.longest > ASKED:
        return _refused(
            f"{choice.label} asks about the parts of a text, which is done here up to {ASKED:,} tokens; this text has "
            f"{size.longest:,}: shorten it, or take another method."
        )
    if each.work > WORK:
        return _refused(
            f"{choice.label} would run about {each.work:,.0f} tokens through the model for this text, and {WORK:,} are "
            "the most here; shorten the text, or ask for fewer samples or steps."
        )
    return None


def too_wide(size: Size, methods: int) -> ProblemError | None:
    """Why a page of so many methods is not written."""
    if size.words * methods <= EXPORTED:
        return None
    return ProblemError(
        413,
        "too_wide",
        f"A page of {methods} methods on {size.words:,} words is too large, {EXPORTED:,} words are the most over all "
        "methods; take fewer methods, or export JSON or Parquet.",
    )


def _refused(sentence: str) -> ProblemError:
    return ProblemError(413, "too_much", sentence)
