"""Small changes to a text that leave its meaning alone (CheckList, Ribeiro et al. 2020): contractions, numbers, names.

A change belongs to a place of the text. Names of people and places come from a spaCy pipeline where there is one, else
from the short lists below, which only know capitalised words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Literal

import numpy as np

from veridical.core.errors import InputError
from veridical.core.records import Span
from veridical.probes.options import PIPELINE, Change

LISTS = "built-in lists"

Entity = tuple[Literal["name", "location"], Span]
Finder = Callable[[str], list[Entity]]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a text may be changed and to what; the same name at several spots is changed in all of them."""

    change: Change
    spans: tuple[Span, ...]
    options: tuple[str, ...]

    def meets(self, other: Place) -> bool:
        """Whether the two share a character: then only one of them can be changed."""
        return any(max(a, c) < min(b, d) for a, b in self.spans for c, d in other.spans)


def places(
    text: str, changes: Sequence[Change], finder: Finder, *, alternatives: int, random: np.random.Generator
) -> list[Place]:
    """Every place that one of the changes finds, with at most so many alternatives each."""
    known: list[Place] = []
    if "contract" in changes:
        known += rewordings(text, "contract", LONG)
    if "extend" in changes:
        known += rewordings(text, "extend", SHORT)
    if "number" in changes:
        known += _numbers(text, alternatives, random)
    if "name" in changes or "location" in changes:
        known += [place for place in _entities(text, finder, alternatives, random) if place.change in changes]
    return known


def rewrite(text: str, edits: Iterable[tuple[Place, str]]) -> str:
    """The text with some places changed."""
    spots = sorted((span, new) for place, new in edits for span in place.spans)
    parts, end = [], 0
    for (start, stop), new in spots:
        parts += [text[end:start], new]
        end = stop
    return "".join([*parts, text[end:]])


# -- contractions -------------------------------------------------------------------------------------------

_NOT = {
    f"{verb}n't": f"{verb} not" for verb in "is are was were has have had does do did could would should must".split()
}
_NOT |= {"can't": "cannot", "won't": "will not", "shan't": "shall not"}
_IS = {f"{who}'s": f"{who} is" for who in "he she it that there here what who where".split()}
_REST = {"I'm": "I am"}
_REST |= {f"{who}'re": f"{who} are" for who in ("you", "we", "they")}
_REST |= {f"{who}'ve": f"{who} have" for who in ("I", "you", "we", "they")}
_REST |= {f"{who}'ll": f"{who} will" for who in ("I", "you", "he", "she", "it", "we", "they")}


def _short(word: str) -> str:
    """A contraction as a pattern: either apostrophe, and a space before what was contracted (as treebanks write it)."""
    head, tail = (word[:-3], "n't") if word.endswith("n't") else word.split("'")
    tail = tail if tail == "n't" else f"'{tail}"
    return rf"\b{head} ?{tail}\b".replace("'", "['\u2019]")


def _long(words: str) -> str:
    return r"\b" + r"\s+".join(words.split()) + r"\b"


# What may stand between "'s" or "have" and its participle: "it's always been", "I have never really seen".
_ADVERBS = r"""(?:\w+ly|always|never|ever|already|just|also|only|still|since|now|then|long|often|once|all|both|not|yet|
even|rather|quite|almost|very|much|too|so|again|here|there)""".replace("\n", "")
# Participles after which "'s" stands, or may stand, for "has": then it is left alone.
_AFTER_HAS = "been got gotten had become begun come gone grown happened seen done made taken given lost won found"
# With "have" before them it is an auxiliary, which can be contracted; in "all I have is" it cannot.
_NO_PARTICIPLE = r"(?!\w*eed\b|red\b|bed\b|shed\b|hundred\b|naked\b|sacred\b)"  # though they end in -ed
_AFTER_HAVE = rf"""(?:{_AFTER_HAS.replace(" ", "|")}|{_NO_PARTICIPLE}\w+ed|known|heard|read|said|told|thought|felt|kept|
left|met|paid|put|run|sat|sold|sent|shown|spoken|spent|stood|written|held|meant|bought|brought|caught|built|chosen|driven|
eaten|fallen|forgotten|hidden|hit|hurt|led|let|ridden|risen|set|slept|stuck|sunk|taught|thrown|understood|worn)""".replace(
    "\n", ""
)
_HAS = rf"(?!\s+(?:{_ADVERBS}\s+){{0,3}}(?:{_AFTER_HAS.replace(' ', '|')})\b)"
_HAVE = rf"(?=\s+(?:{_ADVERBS}\s+){{0,3}}{_AFTER_HAVE}\b)"
# "As it is.", "all it is is a joke" and "better than it is now" have the verb's full form.
_VERB = r"(?=\s+\w)(?!\s+(?:is|was|are|were)\b)"
_NOT_AFTER = r"(?<!\bthan )(?<!\bas )"

Rewordings = Sequence[tuple[re.Pattern[str], str]]  # what is found, and what takes its place


def _patterns(table: dict[str, str], before: str = "", after: str = "", *, short: bool) -> Rewordings:
    """Contractions to be extended (`short`), or words to be contracted, where the surroundings allow it."""
    found = [
        (_short(short_form) if short else _long(words), words if short else short_form)
        for short_form, words in table.items()
    ]
    return [(re.compile(f"{before}{pattern}{after}", re.IGNORECASE), new) for pattern, new in found]


_CAN_NOT = [(re.compile(r"\bcan\s+not\b", re.IGNORECASE), "can't")]
_OTHERS = {short: words for short, words in _REST.items() if not short.endswith("'ve")}
_HAVES = {short: words for short, words in _REST.items() if short.endswith("'ve")}
SHORT: Rewordings = [*_patterns(_NOT | _REST, short=True), *_patterns(_IS, after=_HAS, short=True)]
LONG: Rewordings = [
    *_patterns(_NOT, short=False),
    *_CAN_NOT,
    *_patterns(_IS | _OTHERS, _NOT_AFTER, _VERB, short=False),
    *_patterns(_HAVES, after=_HAVE, short=False),
]
# The same wherever the words stand, as TextAttack has it.
SHORT_ANYWHERE: Rewordings = _patterns(_NOT | _REST | _IS, short=True)
LONG_ANYWHERE: Rewordings = [*_patterns(_NOT | _REST | _IS, short=False), *_CAN_NOT]


def rewordings(text: str, change: Change, table: Rewordings) -> Iterator[Place]:
    for pattern, new in table:
        for match in pattern.finditer(text):
            yield Place(change, (match.span(),), (like(match.group(), new),))


def like(old: str, new: str) -> str:
    """The new words in capitals where the old ones were."""
    if len(old) > 3 and old.isupper():
        return new.upper()
    return new[0].upper() + new[1:] if old[0].isupper() else new


# -- numbers ------------------------------------------------------------------------------------------------

# Not part of a word, a date, an amount, a share, or a rating (8/10, 3 stars, 7 out of 10), which are opinions.
_NUMBER = re.compile(
    r"(?<![\w.,/:$\u20ac\u00a3-])(?<!out of )\d{1,6}(?![\w/:%-]|[.,]\d|\s*/|\s+(?:stars?|out\s+of|percent)\b)"
)
_COUNTS = "two three four five six seven eight nine ten eleven twelve".split()  # "one" is mostly no number
_COUNT = re.compile(rf"\b(?:{'|'.join(_COUNTS)})\b(?!\s+(?:stars?|out\s+of|percent|thumbs)\b)", re.IGNORECASE)


def _numbers(text: str, alternatives: int, random: np.random.Generator) -> Iterator[Place]:
    for match in _NUMBER.finditer(text):
        number = int(match.group())
        reach = 5 if 1500 <= number < 2100 else max(2, number // 5)  # a year stays a year
        near = [n for n in range(max(1, number - reach), number + reach + 1) if n != number]
        yield Place("number", (match.span(),), tuple(str(n) for n in pick(near, alternatives, random)))
    for match in _COUNT.finditer(text):
        others = [word for word in _COUNTS if word != match.group().lower()]
        options = tuple(like(match.group(), word) for word in pick(others, alternatives, random))
        yield Place("number", (match.span(),), options)


# -- names --------------------------------------------------------------------------------------------------

# First names that are no ordinary English words: "Mark", "Will" or "Grace" would often be none.
FIRST = """
Aaron Abigail Adam Alan Albert Alexander Alice Amanda Amy Andrea Andrew Angela Anna Anthony Arthur Barbara
Benjamin Betty Brandon Brenda Brian Bruce Carl Carlos Carol Caroline Catherine Charles Christina Christopher
Cynthia Daniel David Deborah Dennis Diana Diane Donald Dorothy Douglas Edward Elizabeth Emily Emma Eric Ethan
Eugene Evelyn Fatima Frances Gary George Gerald Gregory Hannah Harold Helen Henry Howard Isabella Jacob
Jacqueline James Janet Jason Jeffrey Jennifer Jeremy Jessica Joan John Jonathan Jose Joseph Joshua Joyce Juan
Judith Julia Julie Justin Karen Katherine Kathleen Kenneth Kevin Kimberly Larry Laura Lauren Lawrence Linda Lisa
Louis Luis Margaret Maria Marie Martha Martin Mary Matthew Megan Melissa Michael Michelle Mohammed Monica Nancy
Natalie Nathan Nicholas Nicole Olivia Pamela Patricia Patrick Paul Peter Philip Priya Rachel Ralph Raymond
Rebecca Richard Robert Roger Ronald Russell Ruth Ryan Samantha Samuel Sandra Sarah Scott Sean Sharon Shirley
Sofia Stephanie Stephen Steven Susan Teresa Theresa Thomas Timothy Tyler Victoria Vincent Walter Wayne William
Yusuf Zachary
""".split()
LAST = """
Adams Anderson Bailey Bennett Campbell Carter Clark Collins Cooper Davis Diaz Edwards Evans Fisher Garcia
Gonzalez Gupta Harris Hernandez Howard Hughes Jackson Jenkins Johnson Jones Kelly Kim Lewis Lopez Martinez
Miller Mitchell Moore Morgan Morris Murphy Nelson Nguyen Parker Patel Perez Peterson Phillips Ramirez Richardson
Roberts Robinson Rodriguez Sanchez Schmidt Smith Stewart Taylor Thomas Thompson Torres Turner Walker Watson
Williams Wilson Wright Yang
""".split()
COUNTRIES = """
Argentina|Australia|Austria|Bangladesh|Belgium|Brazil|Cambodia|Canada|Chile|China|Colombia|Cuba|Denmark|Egypt|
England|Ethiopia|Finland|France|Germany|Ghana|Greece|Hungary|Iceland|India|Indonesia|Iran|Iraq|Ireland|Israel|
Italy|Jamaica|Japan|Kenya|Malaysia|Mexico|Morocco|Nepal|Netherlands|New Zealand|Nigeria|Norway|Pakistan|Peru|
Philippines|Poland|Portugal|Romania|Russia|Saudi Arabia|Scotland|Senegal|Singapore|South Africa|South Korea|
Spain|Sweden|Switzerland|Thailand|Tunisia|Uganda|Ukraine|United Kingdom|United States|Uruguay|Venezuela|Vietnam|
Wales
""".replace("\n", "").split("|")
CITIES = """
Amsterdam|Athens|Atlanta|Baghdad|Bangkok|Barcelona|Beijing|Berlin|Boston|Brussels|Budapest|Buenos Aires|Cairo|
Cape Town|Chicago|Copenhagen|Dallas|Delhi|Denver|Detroit|Dubai|Dublin|Edinburgh|Hong Kong|Houston|Istanbul|
Jakarta|Johannesburg|Karachi|Lagos|Las Vegas|Lima|Lisbon|London|Los Angeles|Madrid|Manila|Melbourne|Miami|Milan|
Montreal|Moscow|Mumbai|Munich|Nairobi|New Orleans|New York|Oslo|Paris|Philadelphia|Phoenix|Prague|
Rio de Janeiro|Rome|San Diego|San Francisco|Santiago|Seattle|Seoul|Shanghai|Stockholm|Sydney|Tehran|Tokyo|
Toronto|Vancouver|Vienna|Warsaw|Washington|Zurich
""".replace("\n", "").split("|")

_NAMES = re.compile(rf"\b(?:{'|'.join(FIRST)})\b")
# Longest first, so that "New York" is not cut short by a name that begins it.
_LOCATIONS = re.compile(rf"\b(?:{'|'.join(sorted([*COUNTRIES, *CITIES], key=len, reverse=True))})\b")


def finder_of(entities: str) -> tuple[Finder, str]:
    """Who finds names and locations, and what to call it: `lists`, a spaCy pipeline by name, or `auto`, which is the
    pipeline if it is installed and the lists if not."""
    if entities == "auto":
        entities = PIPELINE if find_spec("spacy") and find_spec(PIPELINE) else "lists"
    if entities == "lists":
        return _listed, LISTS
    return _from_pipeline(entities), f"spaCy pipeline {entities}"


def _listed(text: str) -> list[Entity]:
    locations: list[Entity] = [("location", match.span()) for match in _LOCATIONS.finditer(text)]
    return locations + [("name", match.span()) for match in _NAMES.finditer(text)]


@lru_cache(maxsize=2)
def _from_pipeline(name: str) -> Finder:
    try:
        spacy = import_module("spacy")
    except ImportError as problem:
        raise InputError(
            f"entities={name!r} is a spaCy pipeline, and spaCy is not installed; install spacy and "
            f"{PIPELINE.replace('_', '-')}, or take entities=lists."
        ) from problem
    try:
        pipeline = spacy.load(name)
    except OSError as problem:
        raise InputError(f"spaCy has no pipeline {name!r} here; install it, or take entities=lists.") from problem
    if "ner" not in pipeline.pipe_names:
        raise InputError(f"The spaCy pipeline {name!r} finds no named entities; name one that does, or entities=lists.")

    def find(text: str) -> list[Entity]:
        kinds: dict[str, Literal["name", "location"]] = {"PERSON": "name", "GPE": "location", "LOC": "location"}
        return [(kinds[e.label_], (e.start_char, e.end_char)) for e in pipeline(text).ents if e.label_ in kinds]

    return find


def _entities(text: str, finder: Finder, alternatives: int, random: np.random.Generator) -> Iterator[Place]:
    """A place for every distinct name: all its occurrences become the same other one."""
    spots: dict[tuple[Literal["name", "location"], str], list[Span]] = {}
    for change, (start, stop) in finder(text):
        spots.setdefault((change, text[start:stop]), []).append((start, stop))
    for (change, old), spans in spots.items():
        options = _others(change, old, alternatives, random)
        yield Place(change, tuple(spans), tuple(like(old, new) for new in options))


def _others(change: Change, old: str, count: int, random: np.random.Generator) -> list[str]:
    if change == "location":
        return pick([x for x in (COUNTRIES if old in COUNTRIES else CITIES) if x != old], count, random)
    first = pick([x for x in FIRST if x != old], count, random)
    if " " not in old:
        return first
    return [f"{name} {last}" for name, last in zip(first, pick(LAST, count, random), strict=True)]


def pick(among: Sequence, count: int, random: np.random.Generator) -> list:
    return [among[i] for i in random.permutation(len(among))[:count]]
