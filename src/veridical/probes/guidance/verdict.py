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

from veridical.probes.guidance.change import Change, State
from veridical.probes.guidance.record import AlikeRow, Outcome, Prediction, SpecialShare

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


def outcome_of(evidence: Evidence) -> Outcome:
    """The rule above."""
    guided = [evidence.plausibility[name].state for name in evidence.guides if name in evidence.plausibility]
    others = [evidence.plausibility[name].state for name in evidence.witnesses if name in evidence.plausibility]
    if evidence.reliance.state == "raised":
        return "changed"
    if evidence.reliance.state not in STILL or evidence.moved < evidence.margin:
        return "unclear"
    if "raised" in guided:
        return "mixed" if "raised" in others else "hacked"
    return "unmoved" if all(state in STILL for state in guided) else "unclear"


def verdict(evidence: Evidence) -> Verdict:
    """The outcome in words, with its figures."""
    outcome = outcome_of(evidence)
    guided, rests = _guided(evidence), _reliance(evidence)
    words = {
        "changed": f"{rests}: it changed what the model relies on",
        "hacked": f"{rests}: what the model relies on did not change, the loss was met by what it guides alone",
        "mixed": f"{rests}, although explanations that were not guided moved too: a change of what the model relies on "
        "is not shown",
        "unmoved": f"{rests}: it moved nothing",
        "unclear": _unclear(evidence),
    }[outcome]
    if outcome == "unclear" or not guided:
        return Verdict(evidence.condition, outcome, f"{_name(evidence)}: {words}.")
    link = "and" if outcome == "changed" or "raised" not in _states(evidence, evidence.guides) else "but"
    return Verdict(evidence.condition, outcome, f"{_name(evidence)} {guided}, {link} {words}.")


def headline(verdicts: Sequence[Verdict]) -> str:
    """All conditions in one sentence."""
    if len(verdicts) == 1:
        return verdicts[0].sentence
    words: dict[Outcome, str] = {
        "changed": "made the model rely more on the rationale",
        "hacked": "met the loss without changing what the model relies on",
        "mixed": "moved explanations, guided or not, without reliance being shown to change",
        "unmoved": "moved nothing",
    }
    groups = {kind: [v.condition for v in verdicts if v.outcome == kind] for kind in (*words, "unclear")}
    parts = [f"{listed(groups[kind])} {did}" for kind, did in words.items() if groups[kind]]
    if groups["unclear"]:
        parts.append(f"{'what' if parts else 'What'} {listed(groups['unclear'])} changed cannot be told")
    return "; ".join(parts) + "."


# -- words --------------------------------------------------------------------------------------------------


def _name(evidence: Evidence) -> str:
    if not evidence.guides:
        return f"{evidence.condition} (which guides no explanation)"
    return f"Guiding {listed(evidence.guides)} ({evidence.condition})"


def _guided(evidence: Evidence) -> str:
    parts = []
    for name in evidence.guides:
        change = evidence.plausibility.get(name)
        if change is not None:
            words = {"raised": "raised", "lowered": "lowered", "unchanged": "left", "unclear": "may have moved"}
            where = " where it was" if change.state == "unchanged" else ""
            parts.append(f"{words[change.state]} the plausibility of {name}{where} ({_by(change, evidence.metric)})")
    return " and ".join(parts)


def _reliance(evidence: Evidence) -> str:
    change = evidence.reliance
    how = {"raised": "more than", "lowered": "less than", "unchanged": "no more than"}.get(change.state, "as much as")
    cost = _by(change, "of its confidence")
    return f"erasing {evidence.marked} rather than others costs the prediction {how} before ({cost})"


def _unclear(evidence: Evidence) -> str:
    """Why nothing can be said."""
    change = evidence.reliance
    rests = f"{change.texts} texts and {min(change.seeds)} seed{'' if min(change.seeds) == 1 else 's'} a side"
    if min(change.seeds) < 2:
        return f"cannot be told from {rests}: what guidance does and what another seed does look alike"
    if change.texts == 0 or change.low is None:
        return f"cannot be told from {rests}: too few texts have a rationale to erase"
    if evidence.moved < evidence.margin:
        return f"cannot be told: erasing words, marked or not, hardly moves its predictions ({_plain(evidence.moved)})"
    if change.state in STILL:
        still = f"reliance on {evidence.marked} did not grow ({_by(change, 'of the confidence')})"
        return f"{still}, but whether the guided scores moved cannot be told from {rests}"
    if change.low > 0 or (change.high or 0.0) < 0:  # the interval would do, the test does not hold
        why = (
            f"which leaves out 0, but text by text the change is not consistent (signed rank, p = {change.p_holm:.2g})"
        )
    else:
        why = "which neither leaves out 0 nor stays within the margin"
    changed = f"reliance on {evidence.marked} changed by {_by(change, 'of the confidence')}"
    return f"cannot be told from {rests}: {changed}, {why}"


def _witnesses(evidence: Evidence) -> str:
    if not any(name in evidence.plausibility for name in evidence.witnesses):
        return "No method that was not guided bears witness."
    parts = []
    for state, words in (
        ("raised", "more plausible now"),
        ("lowered", "less plausible now"),
        ("unchanged", "where it was"),
        ("unclear", "cannot be told"),
    ):
        names = [
            n for n in evidence.witnesses if n in evidence.plausibility and evidence.plausibility[n].state == state
        ]
        if names:
            shown = [f"{n} ({_signed(evidence.plausibility[n].difference)})" for n in names]
            parts.append(f"{words}: {listed(shown)}")
    return f"Not guided, {'; '.join(parts)}."


def _states(evidence: Evidence, names: Sequence[str]) -> list[State]:
    return [evidence.plausibility[name].state for name in names if name in evidence.plausibility]


def _by(change: Change, unit: str) -> str:
    if change.difference is None:
        return "undefined"
    difference = f"{_signed(change.difference)} {unit}"
    return difference if change.low is None else f"{difference}, 95% {_signed(change.low)} to {_signed(change.high)}"


def _signed(value: float | None) -> str:
    return "undefined" if value is None else f"{value:+.3f}".replace("-", "−")


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


# -- what else the figures say ------------------------------------------------------------------------------


def details(
    evidence: Evidence,
    *,
    alike: Sequence[AlikeRow],
    specials: Sequence[SpecialShare],
    predictions: Sequence[Prediction],
    base: str,
) -> list[str]:
    """Sentences on how alike explanations are to the baseline's, where attention went, and what F1 is now."""
    lines = [_witnesses(evidence), _alike(evidence, alike)]
    share = {row.condition: row.mean for row in specials}  # rows come layer by layer: the last one stays
    if {base, evidence.condition} <= share.keys():
        lines.append(
            f"Attention of the last layer on tokens that are not explained: {_plain(share[evidence.condition])} "
            f"({_plain(share[base])} in the baseline)."
        )
    scores = {(row.corpus, row.condition): row.mean for row in predictions if row.score == "macro_f1"}
    shown = [
        f"{corpus} {_plain(scores[corpus, evidence.condition])} ({_plain(scores[corpus, base])})"
        for corpus in dict.fromkeys(corpus for corpus, _ in scores)
        if (corpus, evidence.condition) in scores and (corpus, base) in scores
    ]
    if shown:
        lines.append(f"Macro-F1, in brackets the baseline's: {', '.join(shown)}.")
    return [line for line in lines if line]


def _alike(evidence: Evidence, alike: Sequence[AlikeRow]) -> str:
    named = (*evidence.guides, *evidence.witnesses)
    rows = [row for row in alike if row.method in named and row.to_base is not None]
    if not rows:
        return ""
    if any(row.within_base is not None for row in rows):
        taus = [f"{row.method} {_plain(row.to_base)} ({_plain(row.within_base)})" for row in rows]
        return (
            "How alike it and the baseline rank tokens (Kendall's tau), in brackets how alike two seeds of the "
            f"baseline do: {', '.join(taus)}."
        )
    taus = [f"{row.method} {_plain(row.to_base)}" for row in rows]
    return (
        f"How alike it and the baseline rank tokens (Kendall's tau): {', '.join(taus)}; the baseline has one seed, "
        "so how alike two of its seeds do is not known."
    )


def _plain(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}".replace("-", "−")
