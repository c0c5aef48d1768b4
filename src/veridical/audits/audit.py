"""The main job: explain test texts with every method, score every explanation with every metric, rank the methods
with uncertainty, and write one page that says which explanation to believe.

    DIR/spec.json  stamp.json               what was asked of which model and data, and by which versions
    DIR/corpora/<name>/attributions, scores the parts (see evaluate.py): interrupted, the same call goes on
    DIR/scores.parquet  summary.json        every score; every mean, interval, test and verdict
    DIR/tables/*.csv    report.html         the same for people
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from veridical.attribution import methods as all_methods
from veridical.audits.evaluate import Evaluation, columns, evaluate
from veridical.audits.options import QUICK_TEXTS, TEXTS, AuditOptions
from veridical.core import store
from veridical.core.errors import Caution, InputError
from veridical.core.options import takes
from veridical.core.progress import Report
from veridical.core.records import Dataset, Example
from veridical.core.registry import options_of
from veridical.data import load_data
from veridical.data.labels import of_kind, relabel
from veridical.data.split import normalised, sample
from veridical.explanations.explain import attributions
from veridical.metric import metrics as all_metrics
from veridical.model.accuracy import score, targets
from veridical.model.ask import predict
from veridical.model.classifier import Classifier
from veridical.model.load import load
from veridical.model.target import classes_of, read_target

QUICK_METHODS = (
    "attention",
    "rollout",
    "attention_x_gradient",
    "gradient",
    "input_x_gradient",
    "frozen_gradient",
    "random",
)
RETRAINING = "roar.html"  # the section on a ROAR run that `veridical report --roar` has put beside an audit
BROWSER = 100_000  # scores in the example browser: about half a megabyte
QUICK_METRICS = ("sufficiency", "comprehensiveness", "decision_flip")


@dataclass(frozen=True)
class Corpus:
    """Texts to audit on."""

    name: str
    role: str  # in: the data the model is for; ood: out of its domain
    examples: tuple[Example, ...]
    dropped: int  # texts left out because they also stand in the training data


@dataclass(frozen=True)
class Audit:
    """What an audit found and where it lies."""

    folder: Path
    summary: Mapping[str, Any]

    @property
    def page(self) -> Path:
        return self.folder / "report.html"

    @property
    def verdict(self) -> str:
        return str(self.summary["verdicts"][0]["sentence"])


@takes(AuditOptions)
def audit(options: AuditOptions) -> Audit:
    """Audit a classifier's explanations on a split of `data`, and on the same split of every `ood` dataset.

    A sample of texts has the split's label shares. Interrupted at any moment, the same call goes on from what the
    folder `out` holds.
    """
    from veridical.audits.page import audit_page
    from veridical.audits.summary import summarise

    target, split, by, level, seed = options.target, options.split, options.by, options.level, options.seed
    quick, controls = options.quick, list(dict.fromkeys(options.controls))
    clf = options.model if isinstance(options.model, Classifier) else load(options.model)
    texts = {"limit": options.limit or (QUICK_TEXTS if quick else TEXTS), "ood_limit": options.ood_limit}
    corpora = corpora_of(clf, options.data, options.ood, split=split, seed=seed, **texts)
    settings = {"target": target, "split": split, "by": by, "level": level, "controls": controls, "seed": seed}
    folder = claim(options.out, clf, corpora, settings)
    chosen, left_out = supported(clf, corpora[0].examples[0], options.methods or _default_methods(quick), target)
    measures = _measures(options.metrics or _default_metrics(quick, corpora), by=by, level=level)
    found: dict[str, Evaluation] = {}
    facts = []
    total = sum(len(c.examples) for c in corpora)
    with Report(f"Auditing {store.slug(clf.name)}", total, progress=options.progress) as report:
        for note in left_out:
            report.say(note)
        for corpus in corpora:
            found[corpus.name] = evaluate(
                clf,
                corpus.examples,
                chosen,
                [m for m in measures if _is_planted(corpus) or "planted" not in all_metrics.choose(m).entry.needs],
                target=target,
                controls=controls,
                explanations=_oracles(clf, corpus, target),
                corpus=corpus.name,
                seed=seed,
                out=folder / "corpora" / store.slug(corpus.name),
                tick=lambda count, name=corpus.name: report.advance(name, steps=count),
            )
            facts.append(_facts(clf, corpus))
    cells = [cell for evaluation in found.values() for cell in evaluation.cells]
    store.write_parquet(folder / "scores.parquet", columns(cells))
    stamp = store.read_json(folder / "stamp.json")
    summary = {
        **summarise(
            cells,
            model={"name": clf.name, "family": clf.family, "labels": list(clf.labels), "kind": clf.kind},
            corpora=facts,
            methods=[_about_method(spec, found.values()) for spec in found[corpora[0].name].attributions],
            metrics=[_about_metric(spec) for spec in measures],
            settings=settings,
            seed=seed,
        ),
        "title": f"{clf.name} on {corpora[0].name}",
        "created": f"{datetime.fromisoformat(stamp['time']):%d %B %Y, %H:%M} UTC",
        "veridical": stamp["veridical"],
        "stamp": stamp,
        "left_out": left_out,
        "quick": quick,
        "quick_note": _quick_note(clf) if quick else "",
    }
    store.write_json(folder / "summary.json", summary)
    shown = _shown(clf, corpora, found)
    store.write_json(folder / "examples.json", shown)
    _tables(folder / "tables", summary)
    store.write_text(folder / "report.html", audit_page(summary, shown, retraining_of(folder)))
    return Audit(folder, summary)


def retraining_of(folder: Path) -> str:
    """The section on ROAR that stands beside an audit, or nothing."""
    path = folder / RETRAINING
    return path.read_text(encoding="utf-8") if path.exists() else ""


# -- what is audited ----------------------------------------------------------------------------------------


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


def corpora_of(
    clf: Classifier,
    data: str | Dataset,
    ood: Sequence[str | Dataset],
    *,
    split: str,
    limit: int | None,
    seed: int,
    ood_limit: int | None = None,
) -> list[Corpus]:
    """The texts of `data` and of the other corpora, labels as the model numbers them."""
    home = load_data(data) if isinstance(data, str) else data
    seen = {normalised(e.text) for e in home.splits.get("train", ())}
    found = [Corpus(home.name, "in", _texts(clf, home, split, limit, seed, set()), 0)]
    overlap = sum(normalised(e.text) in seen for e in found[0].examples)
    if overlap:
        warnings.warn(
            f"{overlap} of the {len(found[0].examples)} texts of {home.name} ({split}) also stand in its train split; "
            "what holds for them may not hold for new texts.",
            Caution,
            stacklevel=3,
        )
    for one in ood:
        other = load_data(one) if isinstance(one, str) else one
        if other.name in [c.name for c in found]:
            raise InputError(f"The corpus {other.name!r} is named twice; name each once.")
        dropped = sum(normalised(e.text) in seen for e in other.splits.get(split, ()))
        found.append(Corpus(other.name, "ood", _texts(clf, other, split, ood_limit or limit, seed, seen), dropped))
    return found


def _texts(
    clf: Classifier, data: Dataset, split: str, limit: int | None, seed: int, seen: set[str]
) -> tuple[Example, ...]:
    if split not in data.splits:
        raise InputError(f"{data.name!r} has no split {split!r}; it has: {', '.join(data.splits)}.")
    fresh = [e for e in data.splits[split] if normalised(e.text) not in seen]
    if not fresh:
        raise InputError(f"Every text of {data.name!r} ({split}) also stands in the training data; use other data.")
    chosen = sample(fresh, limit, seed) if limit is not None else fresh
    return tuple(of_kind(relabel(chosen, data.labels, clf.labels), clf.kind == "multi"))


def _default_methods(quick: bool) -> list[str]:
    return list(QUICK_METHODS) if quick else [method.name for method in all_methods]


def _default_metrics(quick: bool, corpora: Sequence[Corpus]) -> list[str]:
    if quick:
        return list(QUICK_METRICS)
    rationales = any(e.rationale for c in corpora for e in c.examples)
    planted = any(map(_is_planted, corpora))
    absent = ({"rationale"} if not rationales else set()) | ({"planted"} if not planted else set())
    return [metric.name for metric in all_metrics if not absent & metric.needs]


def _is_planted(corpus: Corpus) -> bool:
    """Whether its rationales are the truth, and not what people think."""
    return corpus.name.partition(":")[0] == "planted"


def _measures(specs: str | Sequence[str], **settings: Any) -> list[str]:
    """The metrics' specs, with one erasure operator and one level for all that have the choice."""
    found = []
    for spec in [specs] if isinstance(specs, str) else specs:
        for one in filter(None, map(str.strip, spec.split(","))):
            known = options_of(all_metrics[one.partition(":")[0]].run)
            own = {key: value for key, value in settings.items() if key in known and f":{key}=" not in one}
            found.append(all_metrics.choose(one, **own).label)
    return list(dict.fromkeys(found))


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
                said = (str(problem).strip().splitlines() or [""])[0]
                refused.setdefault(f"on this model it breaks down ({type(problem).__name__}: {said}).", []).append(
                    choice.label
                )
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


def _oracles(clf: Classifier, corpus: Corpus, target: str | int) -> list[Any]:
    """On planted data the truth and its opposite, to see how each metric ranks them."""
    if not _is_planted(corpus):
        return []
    from veridical.core.records import Attribution
    from veridical.core.text import marked

    encoded = clf.encode(corpus.examples)
    answers = predict(clf, encoded)
    explained = classes_of(read_target(target, clf.labels), corpus.examples, clf.labels)
    classes = answers.logits.argmax(1).tolist() if explained is None else explained
    rows = []
    for name, sign in (("oracle", 1), ("inverted oracle", -1)):
        for e, own, probabilities in zip(encoded, classes, answers.probabilities, strict=True):
            rows.append(Attribution(e, int(own), marked(e).astype(np.float32) * sign, probabilities, name))
    return rows


# -- what is said of it -------------------------------------------------------------------------------------


def _facts(clf: Classifier, corpus: Corpus) -> dict[str, Any]:
    encoded = clf.encode(corpus.examples)
    known = all(e.label is not None for e in corpus.examples)
    scores = {}
    if known:
        gold = targets(corpus.examples, clf.labels, clf.kind == "multi")
        scores = score(predict(clf, encoded), gold, clf.kind)
    return {
        "name": corpus.name,
        "role": corpus.role,
        "texts": len(corpus.examples),
        "hash": store.stable_hash([(e.id, e.text, e.context) for e in corpus.examples]),
        "dropped": corpus.dropped,
        "cut_texts": sum(e.cut > 0 for e in encoded),
        "cut_tokens": sum(e.cut for e in encoded),
        "accuracy": scores.get("accuracy"),
        "macro_f1": scores.get("macro_f1"),
    }


def _about_method(spec: str, found: Any) -> dict[str, Any]:
    costs = [a.cost for evaluation in found for a in evaluation.attributions.get(spec, ())]
    name = spec.partition(":")[0]
    known = all_methods[name] if name in all_methods else None  # noqa: SIM401  a registry, not a dict
    return {
        "name": spec,
        "summary": known.summary if known else "Known from how the data was made.",
        "signed": known.signed if known else True,
        "needs": sorted(known.needs) if known else [],
        "seconds": float(np.mean([c.seconds for c in costs])),
        "forward": float(np.mean([c.forward for c in costs])),
        "backward": float(np.mean([c.backward for c in costs])),
    }


def _about_metric(spec: str) -> dict[str, Any]:
    choice = all_metrics.choose(spec)
    metric = choice.entry
    better, bounds = metric.reading(choice.options)
    return {
        "name": spec,
        "kind": metric.kind,
        "better": better,
        "bounds": list(bounds),
        "summary": metric.summary,
        "repeats": sorted(metric.repeats),
        "ratios": list(choice.options.get("ratios", choice.options.get("shares", ()))),
    }


def _quick_note(clf: Classifier) -> str:
    more = [m.name for m in all_methods if m.name not in QUICK_METHODS]
    finer = [m.name for m in all_metrics if m.kind == "faithfulness" and m.name not in QUICK_METRICS]
    return (
        f"A quick audit: cheap methods and metrics only. A full run adds the methods {', '.join(more)} "
        f"and the metrics {', '.join(finer)}."
    )


def _shown(clf: Classifier, corpora: Sequence[Corpus], found: Mapping[str, Evaluation]) -> list[dict[str, Any]]:
    """What the page's example browser shows: as many texts as keep it light, the same share of every corpus."""
    shown = []
    scores = sum(sum(e.free) for e in clf.encode(corpora[0].examples)) / len(corpora[0].examples)
    each = max(4, min(200, int(BROWSER / (scores * len(found[corpora[0].name].attributions)))) // len(corpora))
    for corpus in corpora:
        evaluation = found[corpus.name]
        agreement: dict[str, list[float]] = {}
        for cell in evaluation.cells:
            if cell.metric.partition(":")[0] == "agreement" and cell.score.value is not None:
                agreement.setdefault(cell.example, []).append(cell.score.value)
        for row, example in enumerate(corpus.examples[:each]):
            first = next(iter(evaluation.attributions.values()))[row]
            free = np.flatnonzero(first.encoded.free)
            predicted = int(first.probabilities.argmax())
            decided = predicted if clf.kind != "multi" else tuple(np.flatnonzero(first.probabilities >= 0.5).tolist())
            own = agreement.get(example.id)
            shown.append(
                {
                    "corpus": corpus.name,
                    "id": example.id,
                    "text": example.text,
                    "context": example.context,
                    "label": _named(clf, example.label),
                    "predicted": clf.labels[predicted],
                    "probabilities": [float(p) for p in first.probabilities],
                    "right": None if example.label is None else example.label == decided,
                    "rationale": [list(span) for span in example.rationale],
                    "tokens": [list(first.encoded.spans[i]) for i in free],
                    "explanations": {
                        method: {
                            "target": clf.labels[rows[row].target],
                            "scores": [float(s) for s in rows[row].scores[free]],
                        }
                        for method, rows in evaluation.attributions.items()
                    },
                    "disagreement": 1 - float(np.mean(own)) if own else None,
                }
            )
    return shown


def _named(clf: Classifier, label: int | tuple[int, ...] | None) -> str | None:
    if label is None:
        return None
    return ", ".join(clf.labels[i] for i in (label if isinstance(label, tuple) else (label,)))


def _tables(folder: Path, summary: Mapping[str, Any]) -> None:
    """The summary's tables as CSV, a file each."""
    import csv
    import io

    for name, rows in summary.items():
        if not (isinstance(rows, list) and rows and isinstance(rows[0], dict)):
            continue
        text = io.StringIO()
        writer = csv.DictWriter(text, fieldnames=list(rows[0]), extrasaction="ignore")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: json.dumps(v) if isinstance(v, (list, dict)) else v for k, v in row.items()})
        store.write_text(folder / f"{name}.csv", text.getvalue())
