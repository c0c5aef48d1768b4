"""The main job: explain test texts with every method, score every explanation with every metric, rank the methods
with uncertainty, and write one page that says which explanation to believe.

    DIR/spec.json  stamp.json               what was asked of which model and data, and by which versions
    DIR/corpora/<name>/attributions, scores the parts (see evaluate.py): interrupted, the same call goes on
    DIR/scores.parquet  summary.json        every score; every mean, interval, test and verdict
    DIR/tables/*.csv    report.html         the same for people
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import torch

from veridical.audits import selection
from veridical.audits.corpora import Corpus, corpora_of, corpus_facts
from veridical.audits.evaluate import Evaluation, columns, evaluate
from veridical.audits.examples import shown_texts
from veridical.audits.options import QUICK_TEXTS, TEXTS, AuditOptions
from veridical.audits.oracles import oracles
from veridical.audits.record import EXAMPLES, SUMMARY, AuditSummary, ModelFacts, Settings, ShownTexts
from veridical.core import store, stored, tables
from veridical.core.options import takes
from veridical.core.progress import Report
from veridical.model.classifier import Classifier
from veridical.model.load import load

RETRAINING = "roar.html"  # the section on a ROAR run that `veridical report --roar` has put beside an audit


@dataclass(frozen=True)
class Audit:
    """What an audit found and where it lies."""

    folder: Path
    summary: AuditSummary

    @property
    def page(self) -> Path:
        return self.folder / "report.html"

    @property
    def verdict(self) -> str:
        return self.summary.verdicts[0].sentence


@takes(AuditOptions)
def audit(options: AuditOptions) -> Audit:
    """Audit a classifier's explanations on a split of `data`, and on the same split of every `ood` dataset.

    A sample of texts has the split's label shares. Interrupted at any moment, the same call goes on from what the
    folder `out` holds.
    """
    target, split, by, level, quick = options.target, options.split, options.by, options.level, options.quick
    selection.insist_on_names(options.methods, options.metrics)
    clf = options.model if isinstance(options.model, Classifier) else load(options.model)
    texts = {"limit": options.limit or (QUICK_TEXTS if quick else TEXTS), "ood_limit": options.ood_limit}
    corpora = corpora_of(clf, options.data, options.ood, split=split, seed=options.seed, **texts)
    settings = Settings(target, split, by, level, tuple(dict.fromkeys(options.controls)), options.seed)
    folder = claim(options.out, clf, corpora, store.plain(settings))
    methods = options.methods or selection.default_methods(quick)
    chosen, left_out = selection.supported(clf, corpora[0].examples[0], methods, target)
    measures = selection.measures(options.metrics or selection.default_metrics(quick, corpora), by=by, level=level)
    total = sum(len(c.examples) for c in corpora)
    with Report(f"Auditing {store.slug(clf.name)}", total, progress=options.progress) as report:
        for note in left_out:
            report.say(note)
        evaluations = {
            corpus.name: _evaluate(clf, corpus, chosen, measures, settings, folder, report) for corpus in corpora
        }
    facts = _facts(clf, corpora, evaluations, measures, settings, folder, left_out=tuple(left_out), quick=quick)
    return _written(folder, facts, evaluations, shown_texts(clf, corpora, evaluations))


def claim(out: str | Path, clf: Classifier, corpora: Sequence[Corpus], settings: Mapping[str, Any]) -> Path:
    """The folder, if it is new or holds the same work on the same model and texts."""
    folder = Path(out)
    spec = {
        "model": {"name": clf.name, "hash": clf.fingerprint()},
        "corpora": {c.name: store.stable_hash(c.examples) for c in corpora},
        **settings,
    }
    store.claim(folder, spec)
    store.clean(folder)
    store.write_json(folder / "spec.json", spec)
    store.write_json(folder / "stamp.json", store.stamp(threads=torch.get_num_threads(), seed=settings["seed"]))
    return folder


def retraining_of(folder: Path) -> str:
    """The section on ROAR that stands beside an audit, or nothing."""
    path = folder / RETRAINING
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _evaluate(
    clf: Classifier,
    corpus: Corpus,
    methods: Sequence[str],
    measures: Sequence[str],
    settings: Settings,
    folder: Path,
    report: Report,
) -> Evaluation:
    return evaluate(
        clf,
        corpus.examples,
        methods,
        selection.measures_of(corpus, measures),
        target=settings.target,
        controls=settings.controls,
        explanations=oracles(clf, corpus, settings.target),
        corpus=corpus.name,
        seed=settings.seed,
        out=folder / "corpora" / store.slug(corpus.name),
        tick=lambda count: report.advance(corpus.name, steps=count),
    )


def _facts(
    clf: Classifier,
    corpora: Sequence[Corpus],
    evaluations: Mapping[str, Evaluation],
    measures: Sequence[str],
    settings: Settings,
    folder: Path,
    *,
    left_out: tuple[str, ...],
    quick: bool,
) -> AuditSummary:
    """What was audited: the summary before anything is made of the scores."""
    stamp = store.read_json(folder / "stamp.json")
    costs = {
        spec: [a.cost for evaluation in evaluations.values() for a in evaluation.attributions.get(spec, ())]
        for spec in evaluations[corpora[0].name].attributions
    }
    return AuditSummary(
        title=f"{clf.name} on {corpora[0].name}",
        created=f"{datetime.fromisoformat(stamp['time']):%d %B %Y, %H:%M} UTC",
        veridical=stamp["veridical"],
        model=ModelFacts(clf.name, clf.family, tuple(clf.labels), clf.kind),
        settings=settings,
        stamp=stamp,
        corpora=tuple(corpus_facts(clf, corpus) for corpus in corpora),
        methods=tuple(selection.method_facts(spec, spent) for spec, spent in costs.items()),
        metrics=tuple(map(selection.metric_facts, measures)),
        left_out=left_out,
        quick=quick,
        quick_note=selection.QUICK_NOTE if quick else "",
    )


def _written(folder: Path, facts: AuditSummary, evaluations: Mapping[str, Evaluation], examples: ShownTexts) -> Audit:
    """The audit's summary, with every file that is made of it."""
    from veridical.audits.page import audit_page
    from veridical.audits.summary import summarise

    cells = [cell for evaluation in evaluations.values() for cell in evaluation.cells]
    store.write_parquet(folder / "scores.parquet", columns(cells))
    summary = summarise(cells, facts)
    stored.write(folder / SUMMARY, summary)
    stored.write(folder / EXAMPLES, examples)
    for name, rows in _tables(summary).items():
        store.write_text(folder / "tables" / f"{name}.csv", tables.to_csv(rows))
    store.write_text(folder / "report.html", audit_page(summary, examples, retraining_of(folder)))
    return Audit(folder, summary)


def _tables(summary: AuditSummary) -> dict[str, tuple[Any, ...]]:
    """The fields of the summary that hold rows."""
    held = {field.name: getattr(summary, field.name) for field in fields(summary)}
    return {name: rows for name, rows in held.items() if isinstance(rows, tuple) and rows and is_dataclass(rows[0])}
