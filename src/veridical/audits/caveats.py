"""What a reader must know together with a verdict: wherever the sentence is told, these are told with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from veridical.audits.corpora import guessing, in_training
from veridical.audits.record import AuditSummary, CorpusFacts


@dataclass(frozen=True)
class Caveat:
    """A reason to take a verdict with care."""

    lead: str  # in a few words, a sentence
    words: str

    @property
    def sentence(self) -> str:
        return f"{self.lead} {self.words}"


def caveats(summary: AuditSummary, corpus: str) -> tuple[Caveat, ...]:
    """The caveats of the verdict on a corpus, the gravest first."""
    facts = next((facts for facts in summary.corpora if facts.name == corpus), None)
    sentence = next((verdict.sentence for verdict in summary.verdicts if verdict.corpus == corpus), "")
    return () if facts is None else (*_of_facts(facts, sentence), *_of_truth(summary, corpus))


def with_caveats(summary: AuditSummary, corpus: str) -> str:
    """The sentence of a verdict, and its caveats behind it."""
    verdict = next((verdict for verdict in summary.verdicts if verdict.corpus == corpus), None)
    sentence = "No verdict was reached." if verdict is None else verdict.sentence
    return " ".join([sentence, *(caveat.sentence for caveat in caveats(summary, corpus))])


def beats_majority(facts: CorpusFacts) -> bool | None:
    """Whether the whole interval of the accuracy lies above what knowing nothing gets right; None: not known."""
    if facts.accuracy_low is None or facts.majority is None:
        return None
    return facts.accuracy_low > facts.majority


def _of_facts(facts: CorpusFacts, sentence: str) -> Iterator[Caveat]:
    why = guessing(facts)  # where that is why there is no verdict, the sentence says it already
    if beats_majority(facts) is False and not (why and why in sentence):
        texts = "1 text" if facts.texts == 1 else f"{facts.texts:,} texts"
        yield Caveat(
            "The model is not shown to be better than guessing here.",
            f"It is right on {facts.accuracy:.0%} of {texts} ({facts.accuracy_low:.0%} to {facts.accuracy_high:.0%}); "
            f"always saying the most frequent class is right on {facts.majority:.0%}. The verdict says what the model "
            "goes by, not that it goes by the right things.",
        )
    if facts.seen:
        yield Caveat(
            "These are training texts." if facts.seen >= facts.texts else "Some of these are training texts.",
            in_training(facts.seen, facts.texts),
        )


def _of_truth(summary: AuditSummary, corpus: str) -> Iterator[Caveat]:
    level = summary.settings.alpha
    votes = {metric.name for metric in summary.metrics if metric.votes}
    broken = [row.metric for row in summary.truth if row.corpus == corpus and row.state(level) == "broken"]
    if broken:
        named = ", ".join(f"{name} (which has a vote)" if name in votes else name for name in broken)
        yield Caveat(
            "A known truth is contradicted.",
            f"The tokens that decide these texts are known. Shown at level {level:g} to put a random order above them, "
            f"or the tokens that do not decide above a random order: {named}.",
        )
