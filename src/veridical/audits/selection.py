"""Which methods and metrics an audit takes, and what is said of them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from veridical.attribution import methods as all_methods
from veridical.audits.corpora import Corpus
from veridical.audits.oracles import is_planted
from veridical.audits.record import MethodFacts, MetricFacts
from veridical.core.errors import Caution, InputError
from veridical.core.records import Cost, Example
from veridical.core.registry import options_of
from veridical.core.spec import Spec, base_name, listed
from veridical.explanations.explain import attributions
from veridical.metric import metrics as all_metrics
from veridical.model.classifier import Classifier
from veridical.model.erase import Level, Operator

QUICK_NOTE = "A quick audit: cheap methods and metrics only. A full run has every one that veridical list names."
QUICK_METHODS = (
    "attention",
    "rollout",
    "attention_x_gradient",
    "gradient",
    "input_x_gradient",
    "frozen_gradient",
    "random",
)
QUICK_METRICS = ("sufficiency", "comprehensiveness", "decision_flip")


def insist_on_names(methods: str | Sequence[str] | None, metrics: str | Sequence[str] | None) -> None:
    """Refuse a misspelt method, metric or option before a model or data is loaded."""
    all_methods.choose_all(methods or ())
    all_metrics.choose_all(metrics or ())


def default_methods(quick: bool) -> list[str]:
    """Every method, or the cheap ones."""
    return list(QUICK_METHODS) if quick else [method.name for method in all_methods]


def default_metrics(quick: bool, corpora: Sequence[Corpus]) -> list[str]:
    """Every metric that applies to some of the texts, or the cheap ones."""
    if quick:
        return list(QUICK_METRICS)
    rationales = any(e.rationale for c in corpora for e in c.examples)
    planted = any(map(is_planted, corpora))
    absent = ({"rationale"} if not rationales else set()) | ({"planted"} if not planted else set())
    return [metric.name for metric in all_metrics if not absent & metric.needs]


def measures(specs: str | Sequence[str], *, by: Operator, level: Level) -> list[str]:
    """The metrics' specs, with one erasure operator and one level for all that have the choice."""
    labels = []
    for spec in listed(specs):
        given = Spec.read(spec)
        known = options_of(all_metrics[given.name].run)
        shared = {"by": by, "level": level}
        settings = {key: value for key, value in shared.items() if key in known and key not in given.options}
        labels.append(all_metrics.choose(spec, **settings).label)
    return list(dict.fromkeys(labels))


def measures_of(corpus: Corpus, specs: Sequence[str]) -> list[str]:
    """Those that apply to a corpus: truth is known of planted data only."""
    return [spec for spec in specs if is_planted(corpus) or "planted" not in all_metrics.choose(spec).entry.needs]


def supported(
    clf: Classifier, example: Example, specs: str | Sequence[str], target: str | int
) -> tuple[list[str], list[str]]:
    """The methods that work on this model, tried on one text, and why the others do not."""
    works, cautions = [], []
    refused: dict[str, list[str]] = {}  # reason -> methods: one reason often holds for several
    encoded = clf.encode([example])
    for choice in all_methods.choose_all(specs):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                attributions(clf, encoded, choice)
            except InputError as reason:
                refused.setdefault(str(reason), []).append(choice.label)
                continue
            except Exception as problem:  # a model of a family that nobody tried: the other methods may work
                first_line = (str(problem).strip().splitlines() or [""])[0]
                reason = f"on this model it breaks down ({type(problem).__name__}: {first_line})."
                refused.setdefault(reason, []).append(choice.label)
                continue
        works.append(choice.label)
        cautions += [f"{choice.label}: {c.message}" for c in caught if issubclass(c.category, Caution)]
    left_out = [
        f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} left out: {reason}"
        for reason, names in refused.items()
    ] + cautions
    if not works:
        raise InputError(f"No method works on this model. {' '.join(left_out)}")
    return works, left_out


def method_facts(spec: str, costs: Sequence[Cost]) -> MethodFacts:
    """What is true of a method, with its mean cost per text."""
    name = base_name(spec)
    known = all_methods[name] if name in all_methods else None  # noqa: SIM401  a registry, not a dict
    return MethodFacts(
        name=spec,
        summary=known.summary if known else "Known from how the data was made.",
        signed=known.signed if known else True,
        needs=tuple(sorted(known.needs)) if known else (),
        seconds=float(np.mean([cost.seconds for cost in costs])),
        forward=float(np.mean([cost.forward for cost in costs])),
        backward=float(np.mean([cost.backward for cost in costs])),
    )


def metric_facts(spec: str) -> MetricFacts:
    """What is true of a metric under its options."""
    choice = all_metrics.choose(spec)
    metric = choice.entry
    better, bounds = metric.reading(choice.options)
    return MetricFacts(
        name=spec,
        kind=metric.kind,
        better=better,
        bounds=bounds,
        summary=metric.summary,
        repeats=tuple(sorted(metric.repeats)),
        ratios=tuple(choice.options.get("ratios", choice.options.get("shares", ()))),
    )
