"""Guidance: did training towards people's rationales change what a model relies on, or was the loss hacked?

From finished runs of a baseline and of guided conditions, each with one or more seeds (Ferreira et al., *Explanation
Regularisation through the Lens of Attributions*; docs/explanation-regularisation.md).

    DIR/spec.json                     what was asked of which texts
    DIR/runs/<condition>/seed0/       what was measured of each run (measure.py): interrupted, the same call goes on;
                                      called again with more conditions, it adds them
    DIR/summary.json  tables/*.csv    every figure, test and verdict
    DIR/report.html                   the same for people
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from veridical.attribution import methods as all_methods
from veridical.audits.audit import claim
from veridical.audits.corpora import Corpus, corpora_of
from veridical.audits.selection import supported
from veridical.core import store, tables
from veridical.core.errors import InputError
from veridical.core.options import takes
from veridical.core.progress import Report
from veridical.core.records import Dataset
from veridical.core.spec import listed
from veridical.data import load_data
from veridical.data.labels import relabel
from veridical.data.split import sample
from veridical.metric import metrics as all_metrics
from veridical.model.classifier import Classifier
from veridical.model.load import load
from veridical.probes.guidance.measure import Measured, Settings, explanation_loss, measure
from veridical.probes.guidance.runs import Condition, condition, selection
from veridical.probes.guidance.summary import TABLES, summarise
from veridical.probes.options import GuidanceOptions

BASELINE = "baseline"


@dataclass(frozen=True)
class Guidance:
    """What was found and where it lies."""

    folder: Path
    summary: Mapping[str, Any]

    @property
    def page(self) -> Path:
        return self.folder / "report.html"

    @property
    def verdict(self) -> str:
        return str(self.summary["headline"])


@takes(GuidanceOptions)
def guidance(options: GuidanceOptions) -> Guidance:
    """Compare guided runs with baseline runs; a folder is a run's, or holds runs as seed0, seed1, ...

    The other corpora serve for macro-F1 and, where they have rationales, for the rest. A witness that a condition
    guides is none for it. Metrics of faithfulness are shown and held against macro-F1 out of domain.
    """
    from veridical.probes.guidance.page import guidance_page

    conditions = _conditions(options.base, options.guided)
    data, split, ood_split, margin = options.data, options.split, options.ood_split, options.margin
    limit, ood_limit, f1_limit = options.limit, options.ood_limit, options.f1_limit
    draws, by, seed = options.draws, options.by, options.seed
    home = load_data(data)
    others = [_elsewhere(load_data(one), split, ood_split) for one in options.ood]
    if not any(e.rationale for e in home.splits.get(split, ())):
        raise InputError(f"{home.name} has no rationales in its split {split!r}; use data that has, such as planted.")
    seen = all_methods.choose_all(options.witnesses)
    wanted = _specs(options.methods, [choice.label for choice in seen], conditions)
    abroad = _specs(options.ood_methods, (), conditions)
    judges = tuple(choice.label for choice in all_metrics.choose_all(options.metrics))
    first = load(conditions[0].runs[0].folder)
    example = next(e for e in home.splits[split] if e.rationale)
    works, left_out = supported(first, example, wanted, "predicted")
    how = Settings(tuple(works), judges, draws, by, seed)
    away = Settings(tuple(m for m in abroad if m in works or m not in wanted), judges, draws, by, seed)
    if not how.plausibility:
        raise InputError(f"None of the metrics {', '.join(judges)} compares with a rationale; add auc.")
    folder = Path(options.out)
    settings = {
        "split": split,
        "ood_split": ood_split or split,
        "limit": limit,
        "ood_limit": ood_limit,
        "f1_limit": f1_limit,
        "seed": seed,
    }
    _claim(folder, home, others, settings)
    found: dict[tuple[str, int], dict[str, Measured]] = {}
    baseline: dict[tuple[str, int], float | None] = {}
    cuts: dict[str, dict[str, int]] = {}
    corpora: list[Corpus] = []
    runs = [(one, run) for one in conditions for run in one.runs]
    with Report("Measuring", len(runs) * (1 + len(others)), progress=options.progress) as report:
        chosen_by = selection(conditions)
        for note in filter(None, [*left_out, chosen_by]):
            report.say(note)
        for one, run in runs:
            clf = load(run.folder)
            corpora = corpora_of(clf, home, others, split=split, limit=limit, ood_limit=ood_limit, seed=seed)
            predicted = corpora_of(clf, home, others, split=split, limit=f1_limit, seed=seed)
            place = claim(folder / "runs" / store.slug(one.name) / f"seed{run.seed}", clf, corpora, settings)
            own = found.setdefault((one.name, run.seed), {})
            for corpus, more in zip(corpora, predicted, strict=True):
                chosen = how if corpus.role == "in" else away
                own[corpus.name] = measure(clf, corpus, more.examples, place, chosen)
                cuts.setdefault(corpus.name, _cut(clf, corpus))
                report.advance(f"{one.name} seed {run.seed}, {corpus.name}")
            if one is conditions[0]:
                for key, value in _baseline_losses(clf, run.folder, home, conditions[1:], place).items():
                    baseline[key, run.seed] = value
    summary = {
        "title": f"{', '.join(one.name for one in conditions[1:])} against {BASELINE} on {home.name}",
        **summarise(conditions, corpora, found, baseline, how, [c.label for c in seen], margin, cuts),
        "settings": {**settings, "methods": how.methods, "ood_methods": away.methods, "metrics": judges}
        | {"witnesses": [c.label for c in seen], "margin": margin, "draws": draws, "by": by},
        "left_out": left_out,
        "selection": chosen_by,
        **_stamp(),
    }
    summary = store.plain(summary)  # as the page would read it from the file
    store.write_json(folder / "summary.json", summary)
    for name in TABLES:
        if summary[name]:
            store.write_text(folder / "tables" / f"{name}.csv", tables.to_csv(summary[name]))
    store.write_text(folder / "report.html", guidance_page(summary))
    return Guidance(folder, summary)


# -- what is measured ---------------------------------------------------------------------------------------


def _conditions(base: Any, guided: Mapping[str, Any]) -> list[Condition]:
    if not guided:
        raise InputError("There is no guided condition; name at least one, like att=runs/att.")
    if BASELINE in guided:
        raise InputError(f"A guided condition is called {BASELINE!r}, which is the other side's name; name it apart.")

    def several(sources: Any) -> list[str | Path]:
        return [sources] if isinstance(sources, (str, Path)) else list(sources)

    return [condition(name, several(held)) for name, held in {BASELINE: base, **guided}.items()]


def _elsewhere(data: Dataset, split: str, own: str | None) -> Dataset:
    """The data with its split `own` in the place of `split`."""
    if own is None:
        return data
    if own not in data.splits:
        raise InputError(f"{data.name!r} has no split {own!r}; it has: {', '.join(data.splits)}.")
    return replace(data, splits={**data.splits, split: data.splits[own]})


def _specs(given: str | Sequence[str], more: Sequence[str], conditions: Sequence[Condition]) -> list[str]:
    """Labels of the methods: those given, and always those that some condition guides."""
    guides = [guide for one in conditions for guide in one.guides]
    return list(dict.fromkeys(choice.label for choice in all_methods.choose_all([*listed(given), *more, *guides])))


def _claim(folder: Path, home: Dataset, others: Sequence[Dataset], settings: Mapping[str, Any]) -> None:
    """Which texts a folder is about may not change; conditions may come later."""
    spec = {"data": home.name, "ood": [other.name for other in others], **settings}
    store.claim(folder, spec)
    store.clean(folder)
    store.write_json(folder / "spec.json", spec)


def _baseline_losses(
    clf: Classifier, run: Path, home: Dataset, guided: Sequence[Condition], place: Path
) -> dict[str, float | None]:
    """The explanation loss on dev of a baseline run, for every guide of the others: the point of weight 0."""
    wanted = {one.explanation.choice.label: one.explanation for one in guided if one.explanation is not None}
    if not wanted or not home.splits.get("train") or not home.splits.get("dev"):
        return {}
    limit = store.read_json(run / "spec.json")["data"]["limit"]
    train, dev = (
        relabel(sample(part, limit, 0) if limit else part, home.labels, clf.labels)
        for part in (home.splits["train"], home.splits["dev"])
    )
    return {label: explanation_loss(clf, train, dev, term, place) for label, term in wanted.items()}


def _cut(clf: Classifier, corpus: Corpus) -> dict[str, int]:
    """Texts that are longer than the model reads, and the tokens they lost."""
    encoded = clf.encode(corpus.examples)
    return {"cut_texts": sum(e.cut > 0 for e in encoded), "cut_tokens": sum(e.cut for e in encoded)}


def _stamp() -> dict[str, Any]:
    stamp = store.stamp()
    return {
        "created": f"{datetime.fromisoformat(stamp['time']):%d %B %Y, %H:%M} UTC",
        "veridical": stamp["veridical"],
        "stamp": stamp,
    }
