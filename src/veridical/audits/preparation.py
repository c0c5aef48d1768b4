"""Before an audit asks anything: every method is tried, what it takes is counted, and the cost is said."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from veridical.audits import masf, selection, stability
from veridical.audits import plan as planning
from veridical.audits.corpora import Corpus, corpus_facts, guessing
from veridical.audits.options import AuditOptions, seconds_of
from veridical.audits.oracles import oracles
from veridical.audits.parts import Desk, Spread
from veridical.audits.plan import Plan
from veridical.audits.record import CorpusFacts, MetricFacts, Settings
from veridical.audits.sequential import Rule
from veridical.core import store, stored
from veridical.core.records import Encoded, Example
from veridical.grid.pool import cores
from veridical.model.classifier import Classifier
from veridical.model.mask import trained_ratio

CALIBRATION = "calibration.json"


@dataclass(frozen=True)
class Work:
    """An audit at work: all that its stages share."""

    clf: Classifier
    corpora: Sequence[Corpus]
    measures: Sequence[str]
    settings: Settings
    folder: Path
    weights: str  # the hash of the model's
    spread: Spread | None
    reference: Sequence[Example] = ()  # texts of another split, for the test of masks

    def desk(self, corpus: Corpus) -> Desk:
        return Desk(
            self.clf,
            corpus,
            selection.measures_of(corpus, self.measures),
            self.settings,
            self.folder,
            self.weights,
            oracles(self.clf, corpus, self.settings.target),
        )

    @property
    def metrics(self) -> dict[str, MetricFacts]:
        return {spec: selection.metric_facts(spec) for spec in self.measures}

    @property
    def asking(self) -> list[str]:
        """The metrics that ask the model something."""
        return [spec for spec in self.measures if selection.asks(spec)]


@dataclass(frozen=True)
class Planned:
    """An audit's plans, by corpus, and what was said of them."""

    plans: Mapping[str, Plan]
    corpora: tuple[CorpusFacts, ...]
    left_out: tuple[str, ...]
    timed: float | None  # seconds of a pass, where a time was given: only then it is stored, and the same ever after


def prepared(work: Work, options: AuditOptions, say: Callable[[str], None]) -> Planned:
    """Try every method, count what it takes, and say what the audit will cost."""
    clf, home = work.clf, work.corpora[0]
    encoded = {corpus.name: clf.encode(corpus.examples) for corpus in work.corpora}
    texts = {name: planning.typical_text(of_corpus) for name, of_corpus in encoded.items()}
    typical, weighty = texts[home.name], planning.weighty_text(encoded[home.name])
    methods = planning.known_methods(options.methods or selection.default_methods())
    costs, left_out = selection.tried(clf, weighty, methods)
    scoring = planning.scoring_passes(clf, weighty, work.asking, work.settings.controls)
    budget, seconds = _budget(work, options, typical)
    if options.time:  # of a number alone this says the unit, before it may turn out too small
        say(f"The audit is to keep to {seconds_of(options.time):g} seconds.")
    foreign = len(work.desk(home).foreign)
    elsewhere = stability.passes(clf, weighty, work.asking)
    rule = _rule(work, options, home)
    plan = planning.plan(rule, costs, scoring, budget, foreign=foreign, elsewhere=elsewhere)
    plans = {home.name: plan}
    for corpus in work.corpora[1:]:
        longer = len(texts[corpus.name].ids) / len(typical.ids)
        plans[corpus.name] = planning.scaled(plan, _rule(work, options, corpus), longer)
    for note in left_out:
        say(note)
    say(planning.forecast(list(plans.values()), seconds, len(typical.ids), _mask_test(work, rule)))
    facts = tuple(corpus_facts(clf, corpus) for corpus in work.corpora)
    if why := guessing(facts[0]):
        say(f"There will be no verdict: {why} Methods are scored all the same; interrupt if that is not what you want.")
    return Planned(plans, facts, tuple(left_out), seconds if options.time else None)


def _mask_test(work: Work, rule: Rule) -> int:
    """Passes of the test of masks, by the first method's order and a random one. There is no test where passes are
    bounded, nor of a model that was not trained on masks."""
    if work.settings.budget or work.settings.by != "mask" or not trained_ratio(work.clf):
        return 0
    return masf.passes(rule.looks[-1], len(work.reference), orders=2)


def _rule(work: Work, options: AuditOptions, corpus: Corpus) -> Rule:
    """When the audit looks at a corpus: once, if no metric has a vote."""
    rule = planning.rule_of(options, len(corpus.examples))
    if any(metric.votes for metric in work.metrics.values()):
        return rule
    return replace(rule, looks=rule.looks[-1:])


def _budget(work: Work, options: AuditOptions, text: Encoded) -> tuple[int | None, float]:
    """The passes that may be spent, and the seconds of one. A time is turned into passes once, and that is stored."""
    spread = work.spread
    workers = (spread.workers or cores()) if spread is not None else 1
    path = work.folder / CALIBRATION
    if not options.time or not path.exists():
        seconds = planning.seconds_a_pass(work.clf, text, None if spread is None else 1) / workers
        if not options.time:
            return planning.budget_of(options), seconds
        passes = max(1, int(planning.SPARED * seconds_of(options.time) / seconds))
        held = {"time": options.time, "passes": passes, "seconds": seconds, "looks": {}}
        store.create(path, json.dumps(held))  # of shards that begin together the first one's counts
    held = stored.read_fields(path, "passes", "seconds")
    return held["passes"], held["seconds"]
