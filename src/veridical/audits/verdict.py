"""Which explanation to believe: what a ranking may claim, in one plain sentence.

- *better than chance*: better than `random` on the texts' mean ranks, and than the method's own scores shuffled;
- *told apart*: see `ranking`;
- *believed*: the first in rank among those better than chance, if it can be told from any other method at all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from veridical.audits.options import Control
from veridical.audits.ranking import CHANCE, RIVALS, Ranking, Standing
from veridical.core.spec import base_name
from veridical.core.statistics import fewest, needed

MOST = 10_000  # texts beyond which two methods count as equal


@dataclass(frozen=True)
class Verdict:
    """What may be said of the methods on the texts of a corpus."""

    corpus: str
    believe: tuple[str, ...]
    tied: tuple[str, ...]  # better than chance, and not told from the first
    undecided: tuple[str, ...]  # told neither from the first nor from chance
    avoid: tuple[str, ...]  # no better than chance, and told from the first
    texts: int
    enough: bool  # the texts carry a belief
    sentence: str
    notes: tuple[str, ...]
    weights: Mapping[str, float]  # by metric, in the ranking


def verdict(ranking: Ranking) -> Verdict:
    """What the ranking may claim, as lists and as a sentence."""
    count = sum(base_name(name) != CHANCE for name in ranking.methods)
    tests = max(count, math.comb(count, 2))
    if refusal := _refusal(ranking, count, tests):
        texts, sentence = refusal
        return _verdict(ranking, sentence, texts=texts)
    real = [s for s in ranking.standings if base_name(s.method) != CHANCE]
    shown = {s.method: (s.better_than_random, s.beats_control) for s in real}
    good = [name for name, answers in shown.items() if True in answers and False not in answers]
    if not good:
        return _nobody(ranking, real, tests)
    first = good[0]
    others = [s.method for s in real if s.method != first]
    tied = tuple(m for m in good[1:] if not ranking.apart(first, m))
    undecided = tuple(m for m in others if m not in good and not ranking.apart(first, m))
    if others and len(tied) + len(undecided) == len(others):
        return _nobody_first(ranking, first, tied, undecided, tests)
    avoid = tuple(m for m in others if m not in good and m not in undecided)
    notes = ((_how_many(ranking, first, tied[0], tests),) if tied else ()) + _why(avoid, shown, ranking.control)
    sentence = f"For this model on this data believe {first}"
    sentence += f"; {_list(tied)} cannot be told apart from it" if tied else ""
    sentence += f"; {_list(undecided)} can be told neither from it nor from chance" if undecided else ""
    sentence += f"; do not use {_list(avoid)}" if avoid else ""
    return _verdict(ranking, f"{sentence}.", believe=(first,), tied=tied, undecided=undecided, avoid=avoid, notes=notes)


def _verdict(
    ranking: Ranking,
    sentence: str,
    *,
    believe: tuple[str, ...] = (),
    tied: tuple[str, ...] = (),
    undecided: tuple[str, ...] = (),
    avoid: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
    texts: int | None = None,
) -> Verdict:
    """A verdict on a ranking; unless told otherwise it rests on the texts that have a rank."""
    return Verdict(
        corpus=ranking.corpus,
        believe=believe,
        tied=tied,
        undecided=undecided,
        avoid=avoid,
        texts=ranking.texts if texts is None else texts,
        enough=bool(believe),
        sentence=sentence,
        notes=notes,
        weights=ranking.weights,
    )


def _refusal(ranking: Ranking, count: int, tests: int) -> tuple[int, str] | None:
    """Why nothing at all can be said, and on how many texts; None if something can."""
    n, given = ranking.texts, ranking.given
    if not count or not ranking.weights:
        return given, "No verdict: no method was scored by a metric of faithfulness."
    if given < fewest(tests):
        return given, _too_few(given, count, tests)
    if not any(ranking.weights.values()):
        return given, (
            f"No verdict: on these {_texts(given)} no metric was shown to rate explanations above "
            f"{RIVALS[ranking.control]}."
        )
    if n < fewest(tests):
        return n, _too_few(n, count, tests) + f" On {given - n} of {given} texts no metric was defined."
    real = [s for s in ranking.standings if base_name(s.method) != CHANCE]
    if all(s.better_than_random is None and s.beats_control is None for s in real):
        return n, (
            "No verdict: no random explanations were scored, so no method can be shown to be "
            "better than chance; add the method random."
        )
    return None


def _why(
    avoid: Sequence[str], shown: Mapping[str, tuple[bool | None, bool | None]], control: Control
) -> tuple[str, ...]:
    """What the methods to avoid were not shown to beat."""
    notes = []
    shuffled = "their own scores shuffled" if control == "permutation" else RIVALS[control]
    for place, rival in enumerate(("random explanations", shuffled)):
        lost = [name for name in avoid if shown[name][place] is False]
        if lost:
            notes.append(f"Not shown to do better than {rival}: {_list(lost)}.")
    return tuple(notes)


def _too_few(n: int, methods: int, tests: int) -> str:
    several = f"{methods} methods" if methods > 1 else "1 method"
    return (
        f"{_texts(n)} {_do(n)} not carry a verdict: with {several} no difference can be significant on fewer "
        f"than {fewest(tests)}."
    )


def _nobody_first(
    ranking: Ranking, first: str, tied: tuple[str, ...], undecided: tuple[str, ...], tests: int
) -> Verdict:
    """Some methods are better than chance, but the first can be told from no other."""
    n = ranking.texts
    sentence = f"{_texts(n)} {_do(n)} not single out a method: {_list((first, *tied))} "
    sentence += (
        "all do better than random explanations and cannot be told apart"
        if tied
        else "does better than random explanations"
    )
    sentence += f", and {_list(undecided)} can be told neither from it nor from chance" if undecided else ""
    sentence += f". {_how_many(ranking, first, (tied or undecided)[0], tests)}"
    return _verdict(ranking, sentence, tied=(first, *tied), undecided=undecided)


def _nobody(ranking: Ranking, real: Sequence[Standing], tests: int) -> Verdict:
    """No method is better than chance: those worse than it are to be avoided, of the others nothing is known."""
    floors = [s.method for s in ranking.standings if base_name(s.method) == CHANCE]
    lost = {(c.b if c.effect > 0 else c.a) for c in ranking.comparisons if c.distinguishable and {c.a, c.b} & {*floors}}
    avoid = tuple(s.method for s in real if s.method in lost)
    undecided = tuple(s.method for s in real if s.method not in lost)
    sentence = f"On these {_texts(ranking.texts)} no method did better than random explanations: believe none of them"
    sentence += f"; {_list(avoid)} did worse." if avoid else "."
    if undecided and floors:
        sentence += f" {_how_many(ranking, undecided[0], floors[0], tests)}"
    return _verdict(ranking, sentence, undecided=undecided, avoid=avoid)


def _how_many(ranking: Ranking, a: str, b: str, tests: int) -> str:
    """A sentence on how many texts would tell two methods apart, were these texts typical."""
    row = {s.method: i for i, s in enumerate(ranking.standings)}
    count = needed(ranking.ranks[row[a]] - ranking.ranks[row[b]], tests)
    if count > MOST:
        return f"More than {MOST:,} texts would be needed to tell {a} from {b} (estimate): they are as good as equal."
    count = max(int(count), ranking.texts + 1)
    digits = max(0, len(str(count)) - 2)
    return (
        f"About {math.ceil(count / 10**digits) * 10**digits:,} texts would be needed to tell {a} from {b} (estimate)."
    )


def _texts(n: int) -> str:
    return "1 text" if n == 1 else f"{n:,} texts"


def _do(n: int) -> str:
    return "does" if n == 1 else "do"


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
