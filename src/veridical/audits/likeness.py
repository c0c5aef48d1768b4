"""How alike two models explain the same texts: Kendall's tau and the overlap of the top tokens, text by text.

Two tokenizers cut a text differently, so tokens are compared where both cut every text alike (the same characters,
whatever the ids), and words otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.records import Attribution, Span
from veridical.core.text import align
from veridical.metric.agreement import kendall
from veridical.metric.jaccard import overlap
from veridical.model.erase import Level, budget

SHARE = 0.25  # of the units, for the overlap (REGEX, tables 3 and 8)


@dataclass(frozen=True, eq=False)
class Reading:
    """One model's explanation of one text, without its tokenizer: what of it another model's can be held against."""

    id: str
    text: str
    target: int | str  # the explained class: its name where it is known, for models may number classes differently
    spans: tuple[Span, ...]  # n, characters of the free tokens: specials and the context are left out
    scores: np.ndarray  # [n] float64

    def by_word(self) -> dict[int, float]:
        """The sum of every word's tokens, for the words that were read at least in part."""
        words: dict[int, float] = {}
        for word, score in zip(align(self.text, self.spans), self.scores.tolist(), strict=True):
            words[word] = words.get(word, 0.0) + score
        return words


Readings = dict[tuple[str, str], Reading]  # by id and text


@dataclass(frozen=True)
class Likeness:
    """A value per text that both explained; None where there is none."""

    level: Level
    texts: tuple[str, ...]  # ids
    tau: tuple[float | None, ...]  # undefined where one model scores all units alike
    jaccard: tuple[float | None, ...]
    other_class: int  # texts for which the two explained different classes


def likeness(
    a: Sequence[Attribution],
    b: Sequence[Attribution],
    *,
    level: Level | None = None,
    share: float = SHARE,
    abs: bool = False,
) -> Likeness:
    """Two models' explanations of the same texts by one method, compared: tau-b, and Jaccard of the top `share`.

    Texts are matched by id and wording, in the order of `a`; those that only one has are left out. Without `level` it
    is tokens if both models cut every text alike, else words. `abs` compares sizes, whatever the sign.
    """
    return compared(_by_key(map(reading, a)), _by_key(map(reading, b)), level=level, share=share, abs=abs)


def compared(
    a: Readings,
    b: Readings,
    *,
    level: Level | None = None,
    share: float = SHARE,
    abs: bool = False,
) -> Likeness:
    """`likeness` of readings by id and text."""
    if not 0 < share <= 1:
        raise InputError(f"share is {share}; it must be above 0 and at most 1.")
    pairs = [(first, b[key]) for key, first in a.items() if key in b]
    if not pairs:
        raise InputError("The two models explained no text in common; explain the same texts with both.")
    differing = [first.id for first, second in pairs if first.spans != second.spans]
    level = level or ("word" if differing else "token")
    if level == "token" and differing:
        raise InputError(
            f"The two models cut the text {differing[0]!r} into different tokens; compare them with level='word'."
        )
    tau, jaccard = [], []
    for first, second in pairs:
        x, y = _units(first, second, level)
        x, y = (np.abs(x), np.abs(y)) if abs else (x, y)
        tau.append(kendall(x, y))
        jaccard.append(overlap(x, y, budget(len(x), share)))
    return Likeness(
        level=level,
        texts=tuple(first.id for first, _ in pairs),
        tau=tuple(tau),
        jaccard=tuple(jaccard),
        other_class=sum(first.target != second.target for first, second in pairs),
    )


def _units(a: Reading, b: Reading, level: Level) -> tuple[np.ndarray, np.ndarray]:
    """Scores of the units that both models have read, in reading order. [n], [n]"""
    if level == "token":
        return a.scores, b.scores
    first, second = a.by_word(), b.by_word()
    both = sorted(first.keys() & second.keys())
    return np.array([first[w] for w in both]), np.array([second[w] for w in both])


# -- where readings come from -------------------------------------------------------------------------------


def reading(attribution: Attribution) -> Reading:
    """What an attribution says of its free tokens."""
    encoded, free = attribution.encoded, np.flatnonzero(attribution.encoded.free)
    return Reading(
        id=encoded.example.id,
        text=encoded.example.text,
        target=attribution.target,
        spans=tuple(encoded.spans[i] for i in free),
        scores=np.asarray(attribution.scores, dtype=np.float64)[free],
    )


def stored(folder: Path) -> dict[str, Readings]:
    """The readings in an `attributions` folder of an audit, by method, then by id and text; none if it is not there."""
    found: dict[str, Readings] = {}
    # A method whose version was raised since has a folder for each; the one written last is what the scores are of.
    folders = [path for path in folder.glob("*") if (path / "part-0000.parquet").is_file()]
    for place in sorted(folders, key=lambda path: (path / "part-0000.parquet").stat().st_mtime_ns):
        table = store.read_parts(place)
        rows = table.select(["id", "text", "method", "target_name", "starts", "ends", "free", "scores"]).to_pylist()
        found[rows[0]["method"]] = _by_key(map(_stored, rows))
    return found


def _stored(row: Mapping[str, Any]) -> Reading:
    free = np.flatnonzero(row["free"])
    return Reading(
        id=row["id"],
        text=row["text"],
        target=row["target_name"],
        spans=tuple((row["starts"][i], row["ends"][i]) for i in free),
        scores=np.array(row["scores"], dtype=np.float64)[free],
    )


def _by_key(readings: Iterable[Reading]) -> Readings:
    found: Readings = {}
    for one in readings:
        if (one.id, one.text) in found:
            raise InputError(f"Two explanations are of the text {one.id!r}; give those of one model by one method.")
        found[one.id, one.text] = one
    return found
