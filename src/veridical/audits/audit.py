"""The main job: explain test texts with every method, score every explanation, let go of the methods that are shown to
be behind, and write one page that says which explanation to believe.

    DIR/spec.json  stamp.json               what was asked of which model and data, and by which versions
    DIR/corpora/<name>/attributions, scores the parts (see evaluate.py): interrupted, the same call goes on
    DIR/calibration.json                    how many passes the time that was given is good for
    DIR/scores.parquet  summary.json        every score; every mean, interval, test, look and verdict
    DIR/tables/*.csv    report.html         the same for people
    DIR/record.json     record.html         what an auditor files: see filing.py
    DIR/sources.json    shortcuts/          where model and data lay; what `veridical shortcuts` found
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import torch

from veridical.audits import filing, selection, stability
from veridical.audits import plan as planning
from veridical.audits.corpora import Corpus, corpora_of, insist_on_split, trained_on
from veridical.audits.evaluate import Evaluation, columns
from veridical.audits.examples import shown_texts
from veridical.audits.familiarity import with_familiarity
from veridical.audits.filing_page import file_record
from veridical.audits.finished import Audit
from veridical.audits.looks import Course, OutOfTimeError, follow, sheet_of
from veridical.audits.operator import operator_for
from veridical.audits.options import AuditOptions, seconds_of
from veridical.audits.parts import Desk, Spread, asking, prepare
from veridical.audits.plan import ORDERS, Plan
from veridical.audits.preparation import CALIBRATION, Planned, Work, prepared
from veridical.audits.record import (
    EXAMPLES,
    SUMMARY,
    AuditSummary,
    ModelFacts,
    Settings,
    ShownTexts,
    Spending,
    StabilityRow,
)
from veridical.audits.sources import write_sources
from veridical.core import provenance, store, stored, tables
from veridical.core.errors import InputError
from veridical.core.options import takes
from veridical.core.progress import Report
from veridical.core.records import Cell, Dataset, Operator
from veridical.data import load_data
from veridical.grid.claim import claimed
from veridical.grid.pool import check
from veridical.model.classifier import Classifier
from veridical.model.load import classifier_of

RETRAINING = "roar.html"  # the section on a ROAR run that `veridical report --roar` has put beside an audit


@takes(AuditOptions)
def audit(options: AuditOptions) -> Audit:
    """Audit a classifier's explanations on a split of `data`, and on the same split of every `ood` dataset.

    Texts come in an order in which any first n have the split's label shares. After 24, 48 and 96 of them the audit
    looks at what it knows: methods that are shown to be behind are asked no more, and when nothing is open it stops.
    Interrupted at any moment, the same call goes on from what the folder `out` holds.

    Returns:
        What was found: `.verdict` in one sentence, `.page` the report to open in a browser, `.summary` every figure,
        `.since` what changed since the audit that `against` names. It displays itself in a notebook.

    Example:
        >>> found = veridical.audit("runs/mine", "hutto/movies", out="audit", limit=100)
        >>> print(found.verdict)
    """
    earlier = None if options.against is None else filing.read_earlier(options.against, options.out)
    spread = _spread(options)
    home, *others = (load_data(given) for given in (options.data, *options.ood))  # before the model, which takes longer
    for data in (home, *others):
        insist_on_split(data, options.split)
    clf = classifier_of(options.model)
    corpora = _corpora(clf, home, others, options)
    by = operator_for(clf, options.by)
    settings = _settings(options, corpora, by)
    measures = selection.measures(options.metrics or selection.default_metrics(corpora), by=by, level=options.level)
    shared = spread is not None and spread.shard is not None
    command = provenance.typed_command() or _call(options)
    with claim(options.out, clf, corpora, store.plain(settings), shared=shared, command=command) as folder:
        beside = tuple(home.splits.get("dev", ()) or home.splits.get("train", ()))
        work = Work(clf, corpora, measures, settings, folder, clf.fingerprint(), spread, beside)
        return _audit(work, options, earlier)


def _audit(work: Work, options: AuditOptions, earlier: filing.AuditRecord | None) -> Audit:
    """The audit in its folder, which is claimed."""
    clf, corpora, settings = work.clf, work.corpora, work.settings
    write_sources(work.folder, options.model, options.data)
    if work.spread is not None:
        for corpus in corpora:
            prepare(work.desk(corpus), str(options.model))
    began = time.monotonic()
    with Report(f"Auditing {store.slug(clf.name)}", _parts(corpora, settings), progress=options.progress) as report:
        planned = prepared(work, options, report.say)
        deadline = began + seconds_of(options.time) if options.time else None
        courses = _follow(work, planned, deadline, report)
        evaluations = {corpus.name: _whole(work.desk(corpus), courses[corpus.name]) for corpus in corpora}
        # Of a model that was given as an object its folder's files would say nothing.
        facts = _facts(work, planned, courses, evaluations, provenance.file_hashes(options.model))
        audited = _written(work, facts, courses, evaluations, deadline, report.say)
        evidence = [filing.evidence_of(clf, c, evaluations[c.name].cells, audited.summary) for c in corpora]
        record = file_record(work.folder, audited.summary, evidence, options.purpose or "", earlier)
        return replace(audited, since=record.since)


# -- before ---------------------------------------------------------------------------------------------------


@contextmanager
def claim(
    out: str | Path,
    clf: Classifier,
    corpora: Sequence[Corpus],
    settings: Mapping[str, Any],
    *,
    shared: bool = False,
    command: str = "",
) -> Iterator[Path]:
    """The folder, if it is new or holds the same work on the same model and texts, for this process alone unless
    shards share it."""
    folder = Path(out)
    spec = {
        "model": {"name": clf.name, "hash": clf.fingerprint()},
        "corpora": {c.name: store.stable_hash(c.examples) for c in corpora},
        **settings,
    }
    with _beside_others(folder, spec) if shared else claimed(folder, spec):
        made_by = {"code": provenance.code_hash(), **({"command": command} if command else {})}
        stamp = store.stamp(threads=torch.get_num_threads(), seed=settings["seed"], **made_by)
        store.write_json(folder / "stamp.json", stamp)
        yield folder


def _call(options: AuditOptions) -> str:
    """The call in Python, with what is not as usual."""
    unusual = {f.name: getattr(options, f.name) for f in fields(options) if getattr(options, f.name) is not f.default}
    return provenance.python_call("veridical.audit", unusual)


@contextmanager
def _beside_others(folder: Path, spec: Mapping[str, Any]) -> Iterator[None]:
    """The folder of a grid, whose processes know of each other by its marks."""
    store.claim(folder, spec)
    if not (folder / "spec.json").exists():
        store.write_json(folder / "spec.json", spec)
    yield


def _spread(options: AuditOptions) -> Spread | None:
    """How parts are spread over processes; None: they are done here."""
    check(options.engine, options.workers, options.shard, options.address)
    if options.workers is None and options.shard is None and options.engine == "local":
        return None
    if not isinstance(options.model, (str, Path)):
        raise InputError(
            f"Workers load the model themselves, but it was given as {type(options.model).__name__}; save it and name "
            "its folder, or leave workers, shard and engine out."
        )
    return Spread(options.workers, options.shard, options.engine, options.address)


def _corpora(clf: Classifier, home: Dataset, others: Sequence[Dataset], options: AuditOptions) -> list[Corpus]:
    most = options.fixed or options.limit or (planning.THOROUGH if options.thorough else planning.LOOKS)[-1]
    how = {"split": options.split, "seed": options.seed, "limit": most, "ood_limit": options.ood_limit}
    return corpora_of(clf, home, others, trained=trained_on(options.model), **how)


def _settings(options: AuditOptions, corpora: Sequence[Corpus], by: Operator) -> Settings:
    rule = planning.rule_of(options, len(corpora[0].examples))
    budget = planning.budget_of(options)
    return Settings(
        target=options.target,
        split=options.split,
        by=by,
        level=options.level,
        controls=tuple(dict.fromkeys(options.controls)),
        seed=options.seed,
        looks=rule.looks,
        alpha=options.alpha,
        margin=options.margin,
        budget=options.time or ("" if budget is None else f"{budget} passes"),
    )


def _parts(corpora: Sequence[Corpus], settings: Settings) -> int:
    return sum(min(len(corpus.examples), settings.looks[-1]) for corpus in corpora)


# -- at work --------------------------------------------------------------------------------------------------


def _follow(work: Work, planned: Planned, deadline: float | None, report: Report) -> dict[str, Course]:
    """The corpora one after the other, each from look to look; what one does not spend the next may."""
    courses: dict[str, Course] = {}
    path = work.folder / CALIBRATION
    # Looks after which time was over, when this was run before.
    ended = stored.read_fields(path, "looks")["looks"] if deadline is not None else {}
    spent = 0.0
    for corpus in work.corpora:
        desk = work.desk(corpus)
        ask = asking(
            desk,
            [spec for spec in work.asking if spec in desk.measures],
            lambda count, name=corpus.name: report.advance(name, steps=count),
            spread=work.spread,
            deadline=deadline,
        )
        plan = planning.left(planned.plans[corpus.name], spent)
        course = follow(corpus, plan, work.metrics, ask, most=ended.get(corpus.name), say=report.say)
        spent += course.planned
        courses[corpus.name] = course
        if course.ended == "time":
            ended = {**ended, corpus.name: len(course.looks)}
            store.write_json(path, {**store.read_json(path), "looks": ended})
    return courses


def _whole(desk: Desk, course: Course) -> Evaluation:
    """All that was asked of a corpus, part by part, with the metrics that ask nothing."""
    cells: list[Cell] = []
    rows: dict[str, list[Any]] = {}
    # In one order in every part, whoever entered it late: two methods are then the same pair everywhere.
    order = (*course.plan.methods, *course.plan.references, *ORDERS)
    for number in sorted({number for number, _ in course.asked.cells}):
        methods = [name for name in order if (number, name) in course.asked.cells]
        evaluation = desk.evaluate([number], methods, desk.measures)
        cells += evaluation.cells
        for name, attributions in evaluation.attributions.items():
            rows.setdefault(name, []).extend(attributions)
    return Evaluation(tuple(cells), {name: tuple(of_name) for name, of_name in rows.items()})


# -- after ----------------------------------------------------------------------------------------------------


def retraining_of(folder: Path) -> str:
    """The section on ROAR that stands beside an audit, or nothing."""
    path = folder / RETRAINING
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _facts(
    work: Work,
    planned: Planned,
    courses: Mapping[str, Course],
    evaluations: Mapping[str, Evaluation],
    files: Mapping[str, str],
) -> AuditSummary:
    """What was audited: the summary before anything is made of the scores."""
    stamp = store.read_json(work.folder / "stamp.json")
    home = work.corpora[0].name
    costs = {
        spec: [a.cost for evaluation in evaluations.values() for a in evaluation.attributions.get(spec, ())]
        for spec in evaluations[home].attributions
    }
    passes = planned.plans[home].costs
    clf = work.clf
    return AuditSummary(
        title=f"{clf.name} on {home}",
        created=f"{datetime.fromisoformat(stamp['time']):%d %B %Y, %H:%M} UTC",
        veridical=stamp["veridical"],
        model=ModelFacts(clf.name, clf.family, tuple(clf.labels), clf.kind, work.weights, files),
        settings=work.settings,
        stamp=stamp,
        corpora=planned.corpora,
        methods=tuple(selection.method_facts(spec, spent, passes.get(spec)) for spec, spent in costs.items()),
        metrics=tuple(work.metrics.values()),
        left_out=(*planned.left_out, *_unreached(planned.plans[home])),
        spending=tuple(_spending(planned, course) for course in courses.values()),
    )


def _unreached(plan: Plan) -> list[str]:
    if not plan.left_out:
        return []
    return [f"{', '.join(plan.left_out)}: left out, since the budget of {plan.budget:,} passes does not reach them."]


def _spending(planned: Planned, course: Course) -> Spending:
    plan = course.plan
    texts = course.texts
    return Spending(
        corpus=course.corpus,
        budget=plan.budget,
        planned=plan.most,
        spent=course.planned,
        fixed=plan.of(dict.fromkeys(plan.methods, texts)) if texts else 0.0,
        seconds_a_pass=planned.timed,
        without=(*plan.left_out, *course.without),
    )


def _written(
    work: Work,
    facts: AuditSummary,
    courses: Mapping[str, Course],
    evaluations: Mapping[str, Evaluation],
    deadline: float | None,
    say: Callable[[str], None],
) -> Audit:
    """The audit's summary, with every file that is made of it."""
    from veridical.audits.page import audit_page
    from veridical.audits.shortcuts.page import section_of
    from veridical.audits.summary import summarise

    folder = work.folder
    cells = {name: evaluation.cells for name, evaluation in evaluations.items()}
    store.write_parquet(
        folder / "scores.parquet", columns([cell for of_corpus in cells.values() for cell in of_corpus])
    )
    summary = _with_stability(work, summarise(facts, courses, cells), courses, deadline, say)
    summary = with_familiarity(work, summary, evaluations)
    examples: ShownTexts = shown_texts(work.clf, work.corpora, evaluations)
    stored.write(folder / SUMMARY, summary)
    stored.write(folder / EXAMPLES, examples)
    for name, rows in _tables(summary).items():
        store.write_text(folder / "tables" / f"{name}.csv", tables.to_csv(rows))
    store.write_text(folder / "report.html", audit_page(summary, examples, retraining_of(folder), section_of(folder)))
    return Audit(folder, summary)


def _with_stability(
    work: Work,
    summary: AuditSummary,
    courses: Mapping[str, Course],
    deadline: float | None,
    say: Callable[[str], None],
) -> AuditSummary:
    """The summary with what other settings would say of the contenders at home, if budget and time allow to ask."""
    home = work.corpora[0]
    course, facts = courses[home.name], {metric.name: metric for metric in summary.metrics}
    standings = [standing for standing in summary.ranking if standing.corpus == home.name]
    names = stability.contenders(standings)
    if len(names) < 2 or all(standing.list is None for standing in standings):
        return summary
    sheet = sheet_of(course, [name for name, metric in facts.items() if metric.votes])
    rows = stability.by_subset(sheet, course, names, facts)
    cost = course.plan.stability(len(names))
    spent = sum(other.planned for other in courses.values())
    budget, timed_out = course.plan.budget, any(other.ended == "time" for other in courses.values())
    if not timed_out and (budget is None or spent + cost <= budget):
        say(f"{home.name}: {len(names)} methods are tried with other ways to erase, {cost:,.0f} passes at most.")
        if settings := _by_setting(work, course, names, deadline):
            paid = summary.spending[0]
            paid = replace(paid, spent=paid.spent + cost, stability=cost)
            summary = replace(summary, spending=(paid, *summary.spending[1:]))
            rows = [*settings, *rows]
    verdicts = [
        replace(said, notes=(*said.notes, *stability.caution(rows, said.believe))) if said.corpus == home.name else said
        for said in summary.verdicts
    ]
    return replace(summary, stability=tuple(rows), verdicts=tuple(verdicts))


def _by_setting(work: Work, course: Course, names: Sequence[str], deadline: float | None) -> list[StabilityRow]:
    """Nothing where time is over, also when it was in an earlier run of the same audit."""
    desk, path = work.desk(work.corpora[0]), work.folder / CALIBRATION
    if deadline is None:
        return stability.by_setting(desk, course, names)
    if not store.read_json(path).get("settings", True):
        return []
    try:
        return stability.by_setting(desk, course, names, deadline)
    except OutOfTimeError:
        store.write_json(path, {**store.read_json(path), "settings": False})
        return []


def _tables(summary: AuditSummary) -> dict[str, tuple[Any, ...]]:
    """The fields of the summary that hold rows."""
    held = {field.name: getattr(summary, field.name) for field in fields(summary)}
    return {name: rows for name, rows in held.items() if isinstance(rows, tuple) and rows and is_dataclass(rows[0])}
