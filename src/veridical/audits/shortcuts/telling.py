"""What was found of a model's shortcuts, in sentences. What is stored here has options by their plain names."""

from __future__ import annotations

from dataclasses import replace

from veridical.audits.shortcuts.record import Erasure, Flagged, Shortcuts, listed


def told(found: Shortcuts) -> Shortcuts:
    """With its sentence and its notes."""
    return replace(found, sentence=_sentence(found), notes=tuple(_notes(found)))


def _sentence(found: Shortcuts) -> str:
    if not found.looked_at:
        return f"Too few texts: no word occurs in {found.min_texts} of the {found.texts} explained texts of a class."
    if found.leads and not found.candidates:
        return (
            f"No word is shown to be a shortcut, but there {'is a lead' if len(found.leads) == 1 else 'are leads'}: "
            f"{listed(found.leads)}. {_each(found.leads)}"
        )
    if not found.flagged:
        return (
            f"No word stands out: of {found.looked_at} words none has more of the explanations of {found.texts} texts "
            "than its frequency gives it and goes with a class as well."
        )
    candidates, rule = found.candidates, found.of_kind("rule")
    if not candidates and rule:
        decides = "the rule" if found.planted else "what is marked"
        return f"No shortcut shows: the words that stand out belong to {decides}: {listed(rule)}."
    if not candidates:
        return (
            f"No shortcut shows: {listed(found.flagged)} stand out in the explanations, but erasing them changes no "
            "more than erasing other words of like frequency, or there were too few of these to compare with."
        )
    count = len(candidates)
    words = f"{count} word{'' if count == 1 else 's'}"
    what = {"outside": f"{words} beside {'the rule' if found.planted else 'what is marked'}", "unknown": words}
    return f"The model relies on {what[candidates[0].belongs]}: {listed(candidates)}. {_without(found, candidates)}"


def _without(found: Shortcuts, candidates: tuple[Flagged, ...]) -> str:
    """What erasing these does."""
    wanted = {word.word for word in candidates}
    held = [one.erased for one in found.together if set(one.erased.words) == wanted]
    held += [word.erased for word in candidates] if len(candidates) == 1 else []
    if not held:
        return ""
    erased = held[0]
    others = "" if erased.control_flips is None else f"; for other words of like frequency {erased.control_flips:.0%}"
    return (
        f"Erased wherever {'it stands' if len(wanted) == 1 else 'they stand'}, {erased.flips:.0%} of the predictions "
        f"on {erased.texts} texts change ({erased.flips_low:.0%} to {erased.flips_high:.0%}{others})"
        f"{_accuracy(erased)}."
    )


def _each(leads: tuple[Flagged, ...]) -> str:
    """What erasing each of these does by itself."""
    parts = [
        f"`{word.word}` {word.erased.flips:.0%} of the predictions on {word.erased.texts} texts change"
        f"{_accuracy(word.erased)}"
        for word in leads
    ]
    return f"Without {'; without '.join(parts)}."


def _accuracy(erased: Erasure) -> str:
    if erased.accuracy is None or erased.accuracy_erased is None:
        return ""
    return f", and accuracy goes from {erased.accuracy:.0%} to {erased.accuracy_erased:.0%}"


def _notes(found: Shortcuts) -> list[str]:
    notes = []
    if found.leads:
        notes.append(
            "A lead has more of the explanations than its frequency gives it, and the model relies on it, but "
            f"{found.texts} texts do not show that it goes with a class: a model that relies on a word only where "
            "nothing else decides gives it away in few texts."
        )
    if any(word.belongs == "unknown" for word in (*found.flagged, *found.leads)):
        notes.append(
            "A word that matters is not by itself a shortcut. Nothing in this data says which words should decide: "
            "judge for each whether it should, and look at how it goes with the labels in the training data."
        )
    elif found.of_kind("outside") and not found.planted:
        notes.append("That nobody marked a word does not make it wrong to use it: it makes it a candidate to look at.")
    if rule := found.of_kind("rule"):
        notes.append(f"{'Words of the rule' if found.planted else 'Marked words'}, listed apart: {listed(rule)}.")
    if found.rare:
        rare = "1 word occurs" if found.rare == 1 else f"{found.rare} words occur"
        notes.append(
            f"{rare} in fewer than {found.min_texts} explained texts of a class and could not be looked at; more than "
            f"{found.texts} explained texts would leave out fewer."
        )
    if found.silent:
        notes.append(f"{found.silent} explanations give every word 0 and were left out.")
    if not found.believed:
        notes.append(
            f"The audit's verdict believes no explanation of {', '.join(found.methods)}: the report says why, so take "
            "all of this with care."
        )
    return notes
