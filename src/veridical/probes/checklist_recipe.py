"""Changes as TextAttack's CheckList recipe makes them, with which the REGEX paper attacked: `preset="textattack"`.

What it does and ours does not (docs/regex.md, point by point): contractions whatever stands around them, numbers up to
twice as large and ratings among them, names word by word and each occurrence for itself. Written from its behaviour;
its lists of names and places are longer than ours, and its tagger another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from veridical.core.records import Span
from veridical.probes.checklist import (
    CITIES,
    COUNTRIES,
    FIRST,
    LAST,
    LONG_ANYWHERE,
    SHORT_ANYWHERE,
    Finder,
    Place,
    like,
    pick,
    rewordings,
)
from veridical.probes.options import Change

_UP_TO_NINETEEN = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen"""
ONES: Sequence[str] = _UP_TO_NINETEEN.split()
TENS: Sequence[str] = "twenty thirty forty fifty sixty seventy eighty ninety".split()
STAY = (0, 2, 4)  # numbers that the recipe leaves alone
_DIGITS = re.compile(r"(?<![\w'*@-])\d{1,9}(?![\w'*@-])")
_WORDS = re.compile(rf"(?<![\w'*@-])(?:{'|'.join([*ONES, *TENS])})(?![\w'*@-])", re.IGNORECASE)


def recipes_places(
    text: str, changes: Sequence[Change], finder: Finder, *, alternatives: int, random: np.random.Generator
) -> list[Place]:
    """Every place that one of the changes finds, with at most so many alternatives each."""
    known: list[Place] = []
    if "contract" in changes:
        known += rewordings(text, "contract", LONG_ANYWHERE)
    if "extend" in changes:
        known += rewordings(text, "extend", SHORT_ANYWHERE)
    if "number" in changes:
        known += _numbers(text, alternatives, random)
    for change, span in finder(text):
        if change in changes:
            known += (_names if change == "name" else _location)(text, span, alternatives, random)
    return [place for place in known if place.options]


def _numbers(text: str, alternatives: int, random: np.random.Generator) -> Iterator[Place]:
    for match in _DIGITS.finditer(text):
        numbers = _near(int(match.group()), alternatives, random)
        yield Place("number", (match.span(),), tuple(map(str, numbers)))
    for match in _WORDS.finditer(text):
        word = match.group().lower()
        number = ONES.index(word) if word in ONES else 20 + 10 * TENS.index(word)
        options = (spelled(n) for n in _near(number, alternatives, random))
        yield Place("number", (match.span(),), tuple(like(match.group(), option) for option in options))


def _near(number: int, alternatives: int, random: np.random.Generator) -> list[int]:
    """Other numbers from 1 up to twice this one."""
    if number in STAY:
        return []
    drawn = {int(random.integers(1, 2 * number + 1)) for _ in range(alternatives)}
    return sorted(drawn - {number})


def spelled(number: int) -> str:
    """A number below 200 in words."""
    if number < 20:
        return ONES[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return TENS[tens - 2] + (f"-{ONES[ones]}" if ones else "")
    return "one hundred" + (f" and {spelled(number - 100)}" if number > 100 else "")


def _names(text: str, span: Span, alternatives: int, random: np.random.Generator) -> Iterator[Place]:
    """The first word of a name becomes another first name, the last another last name; those between stay."""
    start = span[0]
    words = [(start + m.start(), start + m.end()) for m in re.finditer(r"\S+", text[slice(*span)])]
    for place, names in ((words[0], FIRST), *(((words[-1], LAST),) if len(words) > 1 else ())):
        others = [name for name in names if name != text[slice(*place)]]
        yield Place("name", (place,), tuple(pick(others, alternatives, random)))


def _location(text: str, span: Span, alternatives: int, random: np.random.Generator) -> Iterator[Place]:
    """A place of one word that the lists have; the recipe looks others up in lower case and does not find them."""
    old = text[slice(*span)]
    known = next((names for names in (COUNTRIES, CITIES) if old in names), [])
    if known and " " not in old:
        yield Place("location", (span,), tuple(pick([x for x in known if x != old], alternatives, random)))
