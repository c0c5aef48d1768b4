"""What an audit does not say, and who may rely on it for what: the sentences of its record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from veridical.audits.known_error import KNOWN
from veridical.audits.record import AuditSummary, CorpusFacts, Ending

ENDED: dict[Ending, str] = {
    "budget": "The audit ended because its budget was used up, not because nothing was open.",
    "time": "The audit ended because its time was used up, not because nothing was open.",
}


@dataclass(frozen=True)
class Reliance:
    """Who may rely on an audit, for what, and for what not."""

    who: str
    may: str
    may_not: str


def limits(summary: AuditSummary) -> tuple[str, ...]:
    """The known limits of an audit, the general ones first."""
    return tuple(_limits(summary))


def _limits(summary: AuditSummary) -> Iterator[str]:
    settings = summary.settings
    erased = {"delete": "deleting", "mask": "masking", "attention": "hiding"}.get(settings.by, "replacing")
    yield (
        f"Faithfulness was measured by {erased} {settings.level}s. That makes texts unlike those that the model was "
        "trained on, and what it says of them counts."
    )
    yield "An explanation that may be believed says which words the model used, not that it was right to use them."
    yield "It holds for these weights and for texts like these; another training run is another model."
    home = next((corpus for corpus in summary.corpora if corpus.role == "in"), summary.corpora[0])
    verdict = next((v for v in summary.verdicts if v.corpus == home.name), None)
    if verdict is not None and verdict.believe and settings.looks:
        if KNOWN.of(verdict.panel, settings):
            yield f"Such a verdict was {KNOWN.share}, {KNOWN.where}."
        else:
            yield "How often a verdict by such metrics and settings is wrong, nobody has measured."
    if verdict is not None and not verdict.enough:
        yield f"The {verdict.texts:,} texts do not carry a recommendation."
    if summary.quick:
        yield "It was a quick run."
    yield from (ENDED[look.ended] for look in summary.looks if look.corpus == home.name and look.ended in ENDED)
    for corpus in summary.corpora:
        yield from _of_corpus(corpus)


def _of_corpus(corpus: CorpusFacts) -> Iterator[str]:
    if corpus.accuracy is None:
        yield f"How well the model predicts {corpus.name} is not known: not every text has a label."
    elif corpus.accuracy_low is not None and corpus.majority is not None and corpus.accuracy_low <= corpus.majority:
        yield f"On {corpus.name} the model is not shown to be better than always saying the most frequent class."
    if corpus.cut_texts:
        yield f"Texts of {corpus.name} that are longer than the model reads, and were cut: {corpus.cut_texts:,}."
    if corpus.unmoved:
        yield f"On {corpus.unmoved:,} of {corpus.texts:,} texts of {corpus.name} no erasure tells two methods apart."


def reliance(believed: tuple[str, ...]) -> tuple[Reliance, ...]:
    """Who may rely on it; where nothing is believed, for little."""
    names = ", ".join(believed)
    use, shown, told = (
        (
            f"To explain this model's predictions on such texts by {names}.",
            f"That {names} was tested on this model and this data, with the stated error.",
            f"Which words the model went by, where {names} says so.",
        )
        if believed
        else (
            "To see which methods are open.",
            "That no method was shown to be good on this model and this data.",
            "Nothing: no method is recommended.",
        )
    )
    return (
        Reliance("Who builds or runs the model", use, "For another model, a retrained one, or other kinds of text."),
        Reliance("Who audits it or owns its risk", shown, "That the model is right, fair or safe."),
        Reliance("Who is told an explanation", told, "As a reason why the prediction is justified."),
    )
