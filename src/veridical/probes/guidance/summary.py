"""Everything that was found, as the rows and sentences of summary.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from veridical.audits.corpora import Corpus
from veridical.core.spec import base_name
from veridical.probes.guidance import alike, outlook, tables
from veridical.probes.guidance.change import Change
from veridical.probes.guidance.measure import Settings
from veridical.probes.guidance.record import (
    AlikeRow,
    ChangeRow,
    ConditionFacts,
    CorpusFacts,
    CorpusVerdict,
    Cut,
    ForetoldRow,
    LayerMean,
    MethodPair,
    MetricMean,
    Prediction,
    RelianceRow,
    SpecialShare,
    TradeoffRow,
)
from veridical.probes.guidance.reliance import TINY
from veridical.probes.guidance.runs import Condition
from veridical.probes.guidance.verdict import Evidence, Verdict, details, headline, verdict


@dataclass(frozen=True)
class Tables:
    """The rows that need no verdict; each is a CSV file too."""

    predictions: tuple[Prediction, ...]
    explanations: tuple[MetricMean, ...]
    reliance: tuple[RelianceRow, ...]
    layers: tuple[LayerMean, ...]
    specials: tuple[SpecialShare, ...]
    alike: tuple[AlikeRow, ...]
    between_methods: tuple[MethodPair, ...]
    tradeoff: tuple[TradeoffRow, ...]
    foretold: tuple[ForetoldRow, ...]


@dataclass(frozen=True)
class Findings:
    """What is said of the measured runs; a summary is this, its title, its settings and its date."""

    headline: str
    verdicts: tuple[CorpusVerdict, ...]
    conditions: tuple[ConditionFacts, ...]
    corpora: tuple[CorpusFacts, ...]
    changes: tuple[ChangeRow, ...]
    tables: Tables


TABLES = ("changes", *(field.name for field in fields(Tables)))  # of a summary, that are CSV files too


def summarise(
    conditions: Sequence[Condition],
    corpora: Sequence[Corpus],
    measured: tables.Measurements,
    baseline: Mapping[tuple[str, int], float | None],
    how: Settings,
    witnesses: Sequence[str],
    margin: float,
    cuts: Mapping[str, Cut],
) -> Findings:
    """What the page shows; all but titles and settings."""
    base, *others = conditions
    rows = _tables(conditions, corpora, measured, baseline, how)
    changes: list[ChangeRow] = []
    verdicts: list[CorpusVerdict] = []
    at_home: list[Verdict] = []
    for corpus in corpora:
        if not any(e.rationale for e in corpus.examples):
            continue
        reliance = tables.reliance_changes(measured, base, others, corpus.name, margin)
        for condition in others:
            by_metric = {
                metric: tables.plausibility_changes(measured, base, condition, corpus.name, metric, margin)
                for metric in how.plausibility
            }
            changes += _change_rows(corpus.name, condition.name, reliance[condition.name], by_metric)
            evidence = Evidence(
                condition=condition.name,
                guides=condition.guides,
                witnesses=tuple(name for name in witnesses if name not in condition.guides),
                plausibility=by_metric[how.plausibility[0]],
                reliance=reliance[condition.name],
                moved=_moved(rows.reliance, corpus.name, (base.name, condition.name)),
                margin=margin,
                metric=base_name(how.plausibility[0]).replace("auc", "AUC"),
                marked=_marked(corpus),
            )
            decided = verdict(evidence)
            if corpus is corpora[0]:
                at_home.append(decided)
            lines = _details(evidence, rows, corpus.name, base.name, at_home=corpus is corpora[0])
            verdicts.append(CorpusVerdict(corpus.name, **vars(decided), details=lines))
    return Findings(
        headline=headline(at_home),
        verdicts=tuple(verdicts),
        conditions=tuple(map(_condition_facts, conditions)),
        corpora=tuple(_corpus_facts(corpus, cuts[corpus.name]) for corpus in corpora),
        changes=tuple(changes),
        tables=rows,
    )


def _tables(
    conditions: Sequence[Condition],
    corpora: Sequence[Corpus],
    measured: tables.Measurements,
    baseline: Mapping[tuple[str, int], float | None],
    how: Settings,
) -> Tables:
    base, *others = conditions
    names = [corpus.name for corpus in corpora]
    known = [metric for metric in how.metrics if metric not in how.plausibility[1:]]
    return Tables(
        predictions=tuple(tables.predictions(measured, conditions, names)),
        explanations=tuple(tables.explanations(measured, conditions, names)),
        reliance=tuple(tables.reliances(measured, conditions, names)),
        layers=tuple(tables.layers(measured, conditions, names)),
        specials=tuple(tables.specials(measured, conditions, names)),
        alike=tuple(alike.across(measured, base, others, names)),
        between_methods=tuple(alike.between_methods(measured, conditions, names)),
        tradeoff=tuple(outlook.tradeoff(base, others, baseline)),
        foretold=tuple(outlook.foretold(measured, conditions, names[0], names[1:], known)),
    )


def _change_rows(
    corpus: str, condition: str, reliance: Change, by_metric: Mapping[str, Mapping[str, Change]]
) -> list[ChangeRow]:
    """Of reliance, then of every metric of every method."""
    return [
        ChangeRow(corpus, "reliance", condition, "", **vars(reliance)),
        *(
            ChangeRow(corpus, metric, condition, method, **vars(change))
            for metric, by_method in by_metric.items()
            for method, change in by_method.items()
        ),
    ]


def _details(evidence: Evidence, rows: Tables, corpus: str, base: str, *, at_home: bool) -> tuple[str, ...]:
    """Macro-F1 is said once, at home."""
    alike_rows = [row for row in rows.alike if (row.corpus, row.condition) == (corpus, evidence.condition)]
    return tuple(
        details(
            evidence,
            alike=alike_rows,
            specials=[row for row in rows.specials if row.corpus == corpus],
            predictions=rows.predictions if at_home else (),
            base=base,
        )
    )


def _moved(rows: Sequence[RelianceRow], corpus: str, names: Sequence[str]) -> float:
    """How much erasing words moves at all: predictions changed, or confidence lost or won, whichever is most."""
    moves = [0.0]
    for row in rows:
        if row.corpus == corpus and row.condition in names:
            largest = max(abs(_known(row.rationale.mean)), abs(_known(row.others.mean)))
            falls = largest / max(_known(row.confidence.mean), TINY)
            moves += [_known(row.flips_rationale.mean), _known(row.flips_others.mean), falls]
    return max(moves)


def _known(mean: float | None) -> float:
    assert mean is not None  # of a row of reliance, which is there only where texts are
    return mean


def _marked(corpus: Corpus) -> str:
    planted = base_name(corpus.name) == "planted"
    return "the words that decide the label" if planted else "the words people marked"


def _condition_facts(condition: Condition) -> ConditionFacts:
    return ConditionFacts(
        name=condition.name,
        objective=condition.objective,
        bound=condition.bound,
        guides=condition.guides,
        select=condition.select,
        setting=condition.setting,
        seeds=tuple(run.seed for run in condition.runs),
        failed=condition.failed,
    )


def _corpus_facts(corpus: Corpus, cut: Cut) -> CorpusFacts:
    return CorpusFacts(
        name=corpus.name,
        role=corpus.role,
        texts=len(corpus.examples),
        rationales=sum(bool(e.rationale) for e in corpus.examples),
        labelled=sum(e.label is not None for e in corpus.examples),
        dropped=corpus.dropped,
        cut_texts=cut.cut_texts,
        cut_tokens=cut.cut_tokens,
    )
