"""Everything that was found, as the rows and sentences of summary.json, and as CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from veridical.audits.corpora import Corpus
from veridical.core.spec import base_name
from veridical.probes.guidance import alike, outlook, tables
from veridical.probes.guidance.measure import Settings
from veridical.probes.guidance.reliance import TINY
from veridical.probes.guidance.runs import Condition
from veridical.probes.guidance.tables import Row
from veridical.probes.guidance.verdict import Evidence, Verdict, details, headline, verdict

TABLES = (
    "predictions",
    "explanations",
    "changes",
    "reliance",
    "layers",
    "specials",
    "alike",
    "between_methods",
    "tradeoff",
    "foretold",
)


def summarise(
    conditions: Sequence[Condition],
    corpora: Sequence[Corpus],
    found: tables.Found,
    baseline: Mapping[tuple[str, int], float | None],
    how: Settings,
    witnesses: Sequence[str],
    margin: float,
    cuts: Mapping[str, Row],
) -> Row:
    """What the page shows; all but titles and settings."""
    base, *others = conditions
    names = [corpus.name for corpus in corpora]
    shared = {
        "predictions": tables.predictions(found, conditions, names),
        "explanations": tables.explanations(found, conditions, names),
        "reliance": tables.reliances(found, conditions, names),
        "layers": tables.layers(found, conditions, names),
        "specials": tables.specials(found, conditions, names),
        "alike": alike.across(found, base, others, names),
        "between_methods": alike.between_methods(found, conditions, names),
        "tradeoff": outlook.tradeoff(base, others, baseline),
        "foretold": outlook.foretold(
            found, conditions, names[0], names[1:], [m for m in how.metrics if m not in how.plausibility[1:]]
        ),
    }
    changes: list[Row] = []
    verdicts: list[Row] = []
    spoken: list[Verdict] = []
    for corpus in corpora:
        if not any(e.rationale for e in corpus.examples):
            continue
        reliance = tables.reliance_changes(found, base, others, corpus.name, margin)
        for one in others:
            by_metric = {
                metric: tables.plausibility_changes(found, base, one, corpus.name, metric, margin)
                for metric in how.plausibility
            }
            changes.append(tables.change_row(corpus.name, "reliance", one.name, "", reliance[one.name]))
            changes += [
                tables.change_row(corpus.name, metric, one.name, method, change)
                for metric, own in by_metric.items()
                for method, change in own.items()
            ]
            evidence = Evidence(
                condition=one.name,
                guides=one.guides,
                witnesses=tuple(name for name in witnesses if name not in one.guides),
                plausibility=by_metric[how.plausibility[0]],
                reliance=reliance[one.name],
                moved=_moved(shared["reliance"], corpus.name, (base.name, one.name)),
                margin=margin,
                metric=base_name(how.plausibility[0]).replace("auc", "AUC"),
                marked=_marked(corpus),
            )
            made = verdict(evidence)
            if corpus is corpora[0]:
                spoken.append(made)
            here = {key: [r for r in shared[key] if r["corpus"] == corpus.name] for key in ("alike", "specials")}
            own = details(
                evidence,
                alike=[row for row in here["alike"] if row["condition"] == one.name],
                specials=here["specials"],
                predictions=shared["predictions"] if corpus is corpora[0] else (),
                base=base.name,
            )
            verdicts.append({"corpus": corpus.name, **asdict(made), "details": own})
    return {
        "headline": headline(spoken),
        "verdicts": verdicts,
        "conditions": [
            {
                "name": one.name,
                "objective": one.objective,
                "bound": one.bound,
                "guides": one.guides,
                "select": one.select,
            }
            | {"setting": one.setting, "seeds": [run.seed for run in one.runs], "failed": one.failed}
            for one in conditions
        ],
        "corpora": [_facts(corpus) | cuts[corpus.name] for corpus in corpora],
        "changes": changes,
        **shared,
    }


def _moved(rows: Sequence[Row], corpus: str, names: Sequence[str]) -> float:
    """How much erasing words moves at all: predictions changed, or confidence lost or won, whichever is most."""
    found = [0.0]
    for row in rows:
        if row["corpus"] == corpus and row["condition"] in names:
            means = {key: row[key]["mean"] for key in tables.RELIANCE}
            falls = max(abs(means["rationale"]), abs(means["others"])) / max(means["confidence"], TINY)
            found += [means["flips_rationale"], means["flips_others"], falls]
    return max(found)


def _marked(corpus: Corpus) -> str:
    planted = base_name(corpus.name) == "planted"
    return "the words that decide the label" if planted else "the words people marked"


def _facts(corpus: Corpus) -> Row:
    return {
        "name": corpus.name,
        "role": corpus.role,
        "texts": len(corpus.examples),
        "rationales": sum(bool(e.rationale) for e in corpus.examples),
        "labelled": sum(e.label is not None for e in corpus.examples),
        "dropped": corpus.dropped,
    }
