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
from veridical.explanations.exchange import Reading, units_of
from veridical.metric.agreement import kendall
from veridical.metric.jaccard import overlap
from veridical.model.erase import Level, budget

SHARE = 0.25  # of the units, for the overlap (REGEX, tables 3 and 8)


Readings = dict[tuple[str, str], Reading]  # by id and text
Units = Sequence[tuple[Span, float]]  # the characters of each unit and its score


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
    return compared(by_key(map(reading, a)), by_key(map(reading, b)), level=level, share=share, abs=abs)


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
    pairs = {key: (units_of(first, key[1]), units_of(b[key], key[1])) for key, first in a.items() if key in b}
    if not pairs:
        raise InputError("The two models explained no text in common; explain the same texts with both.")
    differing = [key for key, both in pairs.items() if len({tuple(span for span, _ in units) for units in both}) > 1]
    level = level or ("word" if differing else "token")
    if level == "token" and differing:
        raise InputError(
            f"The two models cut the text {differing[0][0]!r} into different tokens; compare them with level='word'."
        )
    tau, jaccard = [], []
    for (_, text), both in pairs.items():
        x, y = _by_token(*both) if level == "token" else _by_word(*both, text)
        x, y = (np.abs(x), np.abs(y)) if abs else (x, y)
        tau.append(kendall(x, y))
        jaccard.append(overlap(x, y, budget(len(x), share)))
    return Likeness(
        level=level,
        texts=tuple(name for name, _ in pairs),
        tau=tuple(tau),
        jaccard=tuple(jaccard),
        other_class=sum(a[key].target != b[key].target for key in pairs),
    )


def _by_token(a: Units, b: Units) -> tuple[np.ndarray, np.ndarray]:
    """Scores of the tokens, which are the same. [n], [n]"""
    return np.array([score for _, score in a]), np.array([score for _, score in b])


def _by_word(a: Units, b: Units, text: str) -> tuple[np.ndarray, np.ndarray]:
    """The sum of every word's tokens, for the words that both have read at least in part, in reading order. [n], [n]"""
    sums: list[dict[int, float]] = []
    for units in (a, b):
        words: dict[int, float] = {}
        for word, (_, score) in zip(align(text, [span for span, _ in units]), units, strict=True):
            words[word] = words.get(word, 0.0) + score
        sums.append(words)
    both = sorted(sums[0].keys() & sums[1].keys())
    return np.array([sums[0][word] for word in both]), np.array([sums[1][word] for word in both])


# -- where readings come from -------------------------------------------------------------------------------


def reading(attribution: Attribution) -> Reading:
    """What an attribution says of its text."""
    encoded = attribution.encoded
    return Reading(
        where=encoded.example.id,
        method=attribution.method,
        scores=np.asarray(attribution.scores, dtype=np.float64),
        id=encoded.example.id,
        text=encoded.example.text,
        target=attribution.target,
        spans=encoded.spans,
        free=encoded.free,
    )


def stored(folder: Path) -> dict[str, Readings]:
    """The readings in an `attributions` folder of an audit, by method, then by id and text; none if it is not there."""
    readings: dict[str, Readings] = {}
    # A method whose version was raised since has a folder for each; the one written last is what the scores are of.
    folders = [path for path in folder.glob("*") if (path / "part-0000.parquet").is_file()]
    for place in sorted(folders, key=lambda path: (path / "part-0000.parquet").stat().st_mtime_ns):
        columns = ["id", "text", "method", "target_name", "starts", "ends", "free", "scores"]
        rows = store.read_parts(place, columns).to_pylist()
        if rows:
            readings[rows[0]["method"]] = by_key(_stored(row, place) for row in rows)
    return readings


def _stored(row: Mapping[str, Any], place: Path) -> Reading:
    """With the class by its name: models may number classes differently."""
    return Reading(
        where=f"{place}, {row['id']}",
        method=row["method"],
        scores=np.array(row["scores"], dtype=np.float64),
        id=row["id"],
        text=row["text"],
        target=row["target_name"],
        spans=tuple(zip(row["starts"], row["ends"], strict=True)),
        free=tuple(row["free"]),
    )


def by_key(readings: Iterable[Reading]) -> Readings:
    """Readings by id and text."""
    known: Readings = {}
    for reading in readings:
        key = (reading.id or "", reading.text or "")
        if key in known:
            raise InputError(f"Two explanations are of the text {key[0]!r}; give those of one model by one method.")
        known[key] = reading
    return known
