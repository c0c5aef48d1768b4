"""How an explanation looks: plain text and terminal highlights; page.py has those of pages and notebooks.

All show the same pieces: the text as written, cut where units (words or tokens) begin and end, each
unit with its score and its weight, the score over the largest size of any. Special tokens are not shown.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from veridical.core.records import Cost, Span
from veridical.core.text import words_of

if TYPE_CHECKING:
    from rich.text import Text

    from veridical.explanations.explanation import Explanation

Level = Literal["word", "token"]
Sign = Literal["for", "against", "matters"]

FOR, AGAINST = (37, 99, 235), (217, 88, 12)  # blue and orange: apart for colour-blind readers too
MATTERS = (118, 126, 142)  # grey: of scores without a sign
FAINT = 0.08  # weights below this are left bare: they would only be noise to the eye


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the text: a unit with its score, or the characters between two units."""

    text: str
    score: float | None = None  # None: between units, or not read by the model
    weight: float = 0.0  # -1 to 1
    unread: bool = False  # beyond what the model took in

    @property
    def sign(self) -> Literal["", "for", "against"]:
        """What the unit says of the explained class, where it says enough to be shown."""
        return "" if abs(self.weight) < FAINT else "for" if self.weight > 0 else "against"


def pieces(explanation: Explanation, level: Level = "word") -> list[Piece]:
    """The whole text in order; joined, the pieces give it back to the character."""
    text, encoded = explanation.text, explanation.encoded
    units = _words(explanation) if level == "word" else _tokens(explanation)
    ends = [end for (_, end), free in zip(encoded.spans, encoded.free, strict=True) if free]
    read = max(ends) if encoded.cut else len(text)
    largest = max((abs(score) for _, score in units), default=0.0) or 1.0
    parts: list[Piece] = []
    at = 0
    for (start, end), score in units:
        if start >= read:
            break
        if start > at:
            parts.append(Piece(text[at:start]))
        parts.append(Piece(text[start:end], score, score / largest))
        at = end
    if at < len(text):
        parts.append(Piece(text[at:], unread=bool(encoded.cut)))
    return parts


def _words(explanation: Explanation) -> list[tuple[Span, float]]:
    return [(s, float(v)) for s, v in zip(words_of(explanation.text), explanation.word_scores, strict=True)]


def _tokens(explanation: Explanation) -> list[tuple[Span, float]]:
    """Free tokens as units. Those that share a character (the bytes of an emoji) are one unit; what a token
    without any (bare white space) scores goes to the next unit, as it does for words, or to the last."""
    units: list[tuple[Span, float]] = []
    encoded, waiting = explanation.encoded, 0.0
    for (start, end), free, score in zip(encoded.spans, encoded.free, explanation.scores, strict=True):
        if free and start == end:
            waiting += float(score)
        elif free:
            span, so_far = (start, end), 0.0
            if units and start < units[-1][0][1]:
                (before, reach), so_far = units.pop()
                span = (before, max(reach, end))
            units.append((span, so_far + waiting + float(score)))
            waiting = 0.0
    if units and waiting:
        units[-1] = (units[-1][0], units[-1][1] + waiting)
    return units


# -- words for numbers --------------------------------------------------------------------------------------


def number(value: float, signed: bool, largest: float = 0.0) -> str:
    """A score in as many decimals as give `largest` (or it) three digits; a plus only where signs count."""
    size = max(abs(value), abs(largest))
    decimals = max(0, 2 - math.floor(math.log10(size))) if size > 0 else 0
    if not 0 <= decimals <= 6:
        return f"{value:{'+' if signed else ''}.2e}"
    shown = f"{value:{'+' if signed else ''}.{decimals}f}"
    return shown if float(shown) else shown.lstrip("+-")


def duration(seconds: float) -> str:
    """`12 ms`, `1.23 s`, `145 s`, `12 min`, `3.4 h`"""
    if seconds >= 300:
        return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:,.3g} h"
    value, unit, digits = (seconds, "s", 3) if seconds >= 0.9995 else (seconds * 1000, "ms", 2)
    return f"{value:.0f} {unit}" if value >= 100 else f"{value:.{digits}g} {unit}"


def cost_line(cost: Cost, sampling_error: float | None = None, gap: float | None = None) -> str:
    """`1.2 s, 51 forward and 50 backward passes, sampling error 8%`, or `, the sum misses 0.3% of the change`"""
    counts = {"forward": cost.forward, "backward": cost.backward}
    passes = " and ".join(f"{count:g} {name}" for name, count in counts.items() if count)
    last = cost.backward or cost.forward
    error = "" if sampling_error is None else f", sampling error {sampling_error:.0%}"
    missed = "" if gap is None else f", the sum misses {gap:.1%} of the change"
    return f"{duration(cost.seconds)}, {passes or 'no'} {'pass' if last == 1 else 'passes'}{error}{missed}"


def class_line(explanation: Explanation) -> str:
    """`positive (0.987)`, or `positive (0.987) rather than negative (0.013)`"""
    classes = [explanation.target] if explanation.contrast is None else [explanation.target, explanation.contrast]
    return " rather than ".join(f"{explanation.labels[i]} ({explanation.probabilities[i]:.3f})" for i in classes)


def top(every: Sequence[Piece], count: int = 3) -> list[Piece]:
    """The units with the largest scores by size, largest first; ties in reading order."""
    scored = [piece for piece in every if piece.score is not None and piece.sign]
    return sorted(scored, key=lambda piece: -abs(piece.weight))[:count]


def printable(text: str) -> str:
    """The text with a mark for every control character: a text must not be able to steer a terminal."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", "\ufffd", text)


def unread_line(piece: Piece) -> str:
    return f"[not read: {len(piece.text.strip()):,} characters]"


# -- plain text ---------------------------------------------------------------------------------------------


def as_text(explanation: Explanation, level: Level = "word", width: int = 100) -> str:
    """The explained class, then every unit with its score."""
    spent = cost_line(explanation.cost, explanation.sampling_error, explanation.gap)
    head = f"{explanation.method} explains {class_line(explanation)}: {spent}"
    every = pieces(explanation, level)
    largest = max((abs(piece.score) for piece in every if piece.score is not None), default=0.0)
    shown = []
    for piece in every:
        if piece.score is not None:
            shown.append(f"{printable(piece.text)}({number(piece.score, explanation.signed, largest)})")
        elif piece.unread:
            shown.append(unread_line(piece))
    body = textwrap.wrap(" ".join(shown), width, break_long_words=False, break_on_hyphens=False)
    context = explanation.example.context
    return "\n".join([head, *([f"context: {printable(context)}"] if context is not None else []), *body])


# -- terminal -----------------------------------------------------------------------------------------------


def as_rich(explanation: Explanation, level: Level = "word", *, colour: bool = True) -> Text:
    """The highlighted text for a rich console. Without colour the strongest units carry their score."""
    from rich.text import Text

    every = pieces(explanation, level)
    strongest = [piece for piece in top(every, 5) if abs(piece.weight) >= 0.3]
    largest = max((abs(piece.score or 0.0) for piece in strongest), default=0.0)
    shown = Text()
    for piece in every:
        text = printable(piece.text)
        if piece.unread:
            shown.append(f" {unread_line(piece)}", "dim" if colour else "")
        elif colour and piece.sign:
            shown.append(text, _style(piece.sign if explanation.signed else "matters", abs(piece.weight)))
        elif any(piece is strong for strong in strongest):
            shown.append(f"[{text} {number(piece.score or 0.0, explanation.signed, largest)}]")
        else:
            shown.append(text)
    return shown


def _style(sign: Sign, size: float) -> str:
    """Nobody knows whether the terminal is light or dark, so weak units get a mid-tone letter colour that reads
    on both, and only the strong ones a block with letters of its own."""
    red, green, blue = {"for": FOR, "against": AGAINST, "matters": MATTERS}[sign]
    hue = f"rgb({red},{green},{blue})"
    if size < 0.3:
        return hue
    if size < 0.6:
        return f"bold underline {hue}"
    return f"bold {'rgb(255,255,255)' if sign == 'for' else 'rgb(0,0,0)'} on {hue}"


def legend(signed: bool, unsigned: bool = False, *, colour: bool = True) -> Text:
    """What the marks mean, in one line, of methods with a sign, without one, or both."""
    from rich.text import Text

    if not colour:
        return Text("In brackets: the words that matter most to each method, with their scores.")
    shown = Text()
    if signed:
        shown.append_text(Text.assemble((" for ", _style("for", 1)), " the explained class, "))
        shown.append_text(Text.assemble((" against ", _style("against", 1)), " it"))
    if unsigned:
        shown.append_text(Text.assemble(", " if signed else "", (" matters ", _style("matters", 1)), " (no sign)"))
    return shown.append("; strength relative to the strongest word of the same line.", "dim")
