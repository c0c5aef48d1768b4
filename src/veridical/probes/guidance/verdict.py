"""Did guidance change what the model relies on, or was the loss hacked? The rule, and the words for it.

The model itself is asked first: does erasing the words people marked now cost the prediction more, beside as many other
words, than before (`reliance.py`)? What explanations say comes second, for explanations are what was trained. With the
states of `change.py`:

    reliance raised                                                                   -> changed
    reliance unchanged or lowered, a guided method raised, no witness raised          -> hacked
    reliance unchanged or lowered, a guided method raised, and a witness too          -> mixed
    reliance unchanged or lowered, every guided method unchanged or lowered (or none) -> unmoved
    anything else                                                                     -> unclear

A model that erasing words, marked or not, moves by less than the margin (share of predictions that change, share of its
confidence), before and after, relies on no words: that its reliance is the same says nothing, and is unclear too.

Witnesses are methods that were not guided and that measure what the prediction depends on, not what is attended to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from veridical.probes.guidance.change import Change, State

Outcome = Literal["changed", "hacked", "mixed", "unmoved", "unclear"]
Row = Mapping[str, Any]
STILL: tuple[State, ...] = ("unchanged", "lowered")


@dataclass(frozen=True)
class Evidence:
    """What is known of one guided condition on one corpus."""

    condition: str
    guides: tuple[str, ...]
    witnesses: tuple[str, ...]
    plausibility: Mapping[str, Change]  # by method
    reliance: Change
    moved: float  # how much erasing words moves at all, before or after, whichever is more
    margin: float
    metric: str = "auc"  # that the plausibility is measured by
    marked: str = "the words people marked"


@dataclass(frozen=True)
class Verdict:
    condition: str
    outcome: Outcome
    sentence: str


def outcome_of(found: Evidence) -> Outcome:
    """The rule above."""
    guided = [found.plausibility[name].state for name in found.guides if name in found.plausibility]
    others = [found.plausibility[name].state for name in found.witnesses if name in found.plausibility]
    if found.reliance.state == "raised":
        return "changed"
    if found.reliance.state not in STILL or found.moved < found.margin:
        return "unclear"
    if "raised" in guided:
        return "mixed" if "raised" in others else "hacked"
    return "unmoved" if all(state in STILL for state in guided) else "unclear"


def verdict(found: Evidence) -> Verdict:
    """The outcome in words, with its figures."""
    outcome = outcome_of(found)
    guided, rests = _guided(found), _reliance(found)
    said = {
        "changed": f"{rests}: it changed what the model relies on",
        "hacked": f"{rests}: what the model relies on did not change, the loss was met by what it guides alone",
        "mixed": f"{rests}, although explanations that were not guided moved too: a change of what the model relies on "
        "is not shown",
        "unmoved": f"{rests}: it moved nothing",
        "unclear": _unclear(found),
    }[outcome]
    if outcome == "unclear":
        said = f"{_name(found)}: {said}"
    else:
        link = "and" if outcome == "changed" or "raised" not in _states(found, found.guides) else "but"
        said = f"{_name(found)} {guided}, {link} {said}" if guided else f"{_name(found)}: {said}"
    return Verdict(found.condition, outcome, f"{said}.")


def headline(verdicts: Sequence[Verdict]) -> str:
    """All conditions in one sentence."""
    if len(verdicts) == 1:
        return verdicts[0].sentence
    said = {
        "changed": "made the model rely more on the rationale",
        "hacked": "met the loss without changing what the model relies on",
        "mixed": "moved explanations, guided or not, without reliance being shown to change",
        "unmoved": "moved nothing",
    }
    groups = {kind: [v.condition for v in verdicts if v.outcome == kind] for kind in (*said, "unclear")}
    parts = [f"{listed(groups[kind])} {words}" for kind, words in said.items() if groups[kind]]
    if groups["unclear"]:
        parts.append(f"{'what' if parts else 'What'} {listed(groups['unclear'])} changed cannot be told")
    return "; ".join(parts) + "."


# -- words --------------------------------------------------------------------------------------------------


def _name(found: Evidence) -> str:
    if not found.guides:
        return f"{found.condition} (which guides no explanation)"
    return f"Guiding {listed(found.guides)} ({found.condition})"


def _guided(found: Evidence) -> str:
    parts = []
    for name in found.guides:
        change = found.plausibility.get(name)
        if change is not None:
            words = {"raised": "raised", "lowered": "lowered", "unchanged": "left", "unclear": "may have moved"}
            where = " where it was" if change.state == "unchanged" else ""
            parts.append(f"{words[change.state]} the plausibility of {name}{where} ({_by(change, found.metric)})")
    return " and ".join(parts)


def _reliance(found: Evidence) -> str:
    change = found.reliance
    how = {"raised": "more than", "lowered": "less than", "unchanged": "no more than"}.get(change.state, "as much as")
    cost = _by(change, "of its confidence")
    return f"erasing {found.marked} rather than others costs the prediction {how} before ({cost})"


def _unclear(found: Evidence) -> str:
    """Why nothing can be said."""
    change = found.reliance
    rests = f"{change.texts} texts and {min(change.seeds)} seed{'' if min(change.seeds) == 1 else 's'} a side"
    if min(change.seeds) < 2:
        return f"cannot be told from {rests}: what guidance does and what another seed does look alike"
    if change.texts == 0 or change.low is None:
        return f"cannot be told from {rests}: too few texts have a rationale to erase"
    if found.moved < found.margin:
        return f"cannot be told: erasing words, marked or not, hardly moves its predictions ({_plain(found.moved)})"
    if change.state in STILL:
        said = f"reliance on {found.marked} did not grow ({_by(change, 'of the confidence')})"
        return f"{said}, but whether the guided scores moved cannot be told from {rests}"
    return (
        f"cannot be told from {rests}: reliance on {found.marked} changed by {_by(change, 'of the confidence')}, which "
        "neither leaves out 0 nor stays within the margin"
    )


def _witnesses(found: Evidence) -> str:
    if not any(name in found.plausibility for name in found.witnesses):
        return "No method that was not guided bears witness."
    said = []
    for state, words in (
        ("raised", "more plausible now"),
        ("lowered", "less plausible now"),
        ("unchanged", "where it was"),
        ("unclear", "cannot be told"),
    ):
        names = [n for n in found.witnesses if n in found.plausibility and found.plausibility[n].state == state]
        if names:
            shown = [f"{n} ({_signed(found.plausibility[n].difference)})" for n in names]
            said.append(f"{words}: {listed(shown)}")
    whole = "; ".join(said)
    return f"Not guided, {whole}."


def _states(found: Evidence, names: Sequence[str]) -> list[State]:
    return [found.plausibility[name].state for name in names if name in found.plausibility]


def _by(change: Change, unit: str) -> str:
    if change.difference is None:
        return "undefined"
    said = f"{_signed(change.difference)} {unit}"
    return said if change.low is None else f"{said}, 95% {_signed(change.low)} to {_signed(change.high)}"


def _signed(value: float | None) -> str:
    return "undefined" if value is None else f"{value:+.3f}".replace("-", "−")


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


# -- what else the figures say ------------------------------------------------------------------------------


def details(
    found: Evidence, *, alike: Sequence[Row], specials: Sequence[Row], predictions: Sequence[Row], base: str
) -> list[str]:
    """Sentences on how alike explanations are to the baseline's, where attention went, and what F1 is now."""
    said = [_witnesses(found)]
    rows = [row for row in alike if row["method"] in (*found.guides, *found.witnesses) and row["to_base"] is not None]
    if rows and any(row["within_base"] is not None for row in rows):
        taus = [f"{row['method']} {_plain(row['to_base'])} ({_plain(row['within_base'])})" for row in rows]
        said.append(
            "How alike it and the baseline rank tokens (Kendall's tau), in brackets how alike two seeds of the "
            f"baseline do: {', '.join(taus)}."
        )
    elif rows:
        taus = [f"{row['method']} {_plain(row['to_base'])}" for row in rows]
        said.append(
            f"How alike it and the baseline rank tokens (Kendall's tau): {', '.join(taus)}; the baseline has one seed, "
            "so how alike two of its seeds do is not known."
        )
    share = {row["condition"]: row["mean"] for row in specials}  # rows come layer by layer: the last one stays
    if {base, found.condition} <= share.keys():
        said.append(
            f"Attention of the last layer on tokens that are not explained: {_plain(share[found.condition])} "
            f"({_plain(share[base])} in the baseline)."
        )
    scores = {(row["corpus"], row["condition"]): row["mean"] for row in predictions if row["score"] == "macro_f1"}
    shown = [
        f"{corpus} {_plain(scores[corpus, found.condition])} ({_plain(scores[corpus, base])})"
        for corpus in dict.fromkeys(corpus for corpus, _ in scores)
        if (corpus, found.condition) in scores and (corpus, base) in scores
    ]
    if shown:
        said.append(f"Macro-F1, in brackets the baseline's: {', '.join(shown)}.")
    return said


def _plain(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}".replace("-", "−")
