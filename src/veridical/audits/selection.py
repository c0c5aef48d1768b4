"""Which methods and metrics an audit takes, and what is said of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from veridical.attribution import Method
from veridical.attribution import methods as all_methods
from veridical.audits.corpora import Corpus
from veridical.audits.oracles import is_planted
from veridical.audits.plan import all_draws, asking_passes, line, pieces
from veridical.audits.record import MethodFacts, MetricFacts
from veridical.core.errors import InputError
from veridical.core.hearing import heard
from veridical.core.records import Cost, Encoded
from veridical.core.registry import Choice, options_of
from veridical.core.spec import Spec, base_name, listed
from veridical.explanations.passes import passes_of
from veridical.metric import metrics as all_metrics
from veridical.model.classifier import Classifier
from veridical.model.erase import Level, Operator

PANEL = (
    "sufficiency",
    "comprehensiveness",
    "decision_flip",
)  # metrics of faithfulness that vote unless others are named
VOTELESS = ("monotonicity", "corr", "loo_tau")  # shown where they are asked for; docs/benchmarks.md says why


def default_methods() -> list[str]:
    """Every method but the references, which are asked for by name."""
    return [method.name for method in all_methods if not method.reference]


def default_metrics(corpora: Sequence[Corpus]) -> list[str]:
    """The panel, and every metric that applies to some of the texts and asks the model nothing."""
    rationales = any(e.rationale for c in corpora for e in c.examples)
    planted = any(map(is_planted, corpora))
    absent = ({"rationale"} if not rationales else set()) | ({"planted"} if not planted else set())
    free = [metric.name for metric in all_metrics if not metric.asks and not absent & metric.needs]
    return [*PANEL, *free]


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


def asks(spec: str) -> bool:
    """Whether a metric asks the model something."""
    return all_metrics.choose(spec).entry.asks


def measures_of(corpus: Corpus, specs: Sequence[str]) -> list[str]:
    """Those that apply to a corpus: truth is known of planted data only."""
    return [spec for spec in specs if is_planted(corpus) or "planted" not in all_metrics.choose(spec).entry.needs]


def tried(clf: Classifier, text: Encoded, specs: str | Sequence[str]) -> tuple[dict[str, float], list[str]]:
    """The methods that work on this model, with the passes that each takes at most for a text like this one; and why
    the others do not. They are tried on short pieces of it."""
    short = pieces(clf, text)
    costs: dict[str, float] = {}
    cautions = []
    refused: dict[str, list[str]] = {}  # reason -> methods: one reason often holds for several
    for choice in all_methods.choose_all(specs):
        with heard() as cautious:
            try:
                costs[choice.label] = _passes(clf, text, short, choice)
            except InputError as reason:
                refused.setdefault(str(reason), []).append(choice.label)
                continue
            except Exception as problem:  # a model of a family that nobody tried: the other methods may work
                first_line = (str(problem).strip().splitlines() or [""])[0]
                reason = f"on this model it breaks down ({type(problem).__name__}: {first_line})."
                refused.setdefault(reason, []).append(choice.label)
                continue
        cautions += [f"{choice.label}: {caution}" for caution in cautious]
    left_out = [
        f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} left out: {reason}"
        for reason, names in refused.items()
    ] + list(dict.fromkeys(cautions))
    if not costs:
        raise InputError(f"No method works on this model. {' '.join(left_out)}")
    return costs, left_out


def _passes(clf: Classifier, text: Encoded, short: Sequence[Encoded], choice: Choice[Method]) -> float:
    if choice.entry.asks:
        passes_of(clf, short[0], choice)  # whether it works
        return asking_passes(clf, text, choice)
    counted = [passes_of(clf, piece, all_draws(choice))[1] for piece in short]
    return line([len(piece.ids) for piece in short], counted)(len(text.ids))


def method_facts(spec: str, costs: Sequence[Cost], passes: float | None) -> MethodFacts:
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
        passes=passes,
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
        votes=metric.kind == "faithfulness" and not metric.repeats and metric.name not in VOTELESS,
        order=metric.of_order(choice.options),
    )
