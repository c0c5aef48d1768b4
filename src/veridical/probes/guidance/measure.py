"""One trained run, measured on texts: how it predicts, how plausible its explanations are, what it relies on.

Everything is stored in the run's own folder, part by part, and what is there is not done again:

    spec.json  stamp.json                               which weights, which texts, which settings
    corpora/<name>/attributions, scores                 see evaluate.py
    corpora/<name>/layers-<hash>/part-0000.parquet      plausibility of every layer's rows
    corpora/<name>/reliance-<hash>/part-0000.parquet    what erasing the rationale costs
    corpora/<name>/predictions-<hash>.json              macro-F1 and its like
    explanation-<hash>.json                             a baseline's explanation loss on dev
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from veridical.audits.computable import allowed
from veridical.audits.corpora import Corpus
from veridical.audits.evaluate import evaluate
from veridical.audits.likeness import Readings, by_key, reading
from veridical.core import store
from veridical.core.records import Encoded, Example
from veridical.core.registry import Choice
from veridical.explanations.explain import explained
from veridical.metric import Metric
from veridical.metric import metrics as all_metrics
from veridical.model.accuracy import Scores, score, targets
from veridical.model.ask import ask, predict
from veridical.model.classifier import Classifier
from veridical.model.erase import Operator
from veridical.model.memory import run_all
from veridical.probes.guidance.layers import Rows, layered, rows_of, techniques_of
from veridical.probes.guidance.reliance import Reliance, reliance
from veridical.training.term import Weighted, ready

PART = 16  # texts of a part
VERSION = 1  # raised when the numbers of this package's own measurements change

Values = dict[str, float]  # by text, NaN where undefined


@dataclass(frozen=True)
class Settings:
    """What is measured, and how."""

    methods: tuple[str, ...]
    metrics: tuple[str, ...]
    draws: int
    by: Operator
    seed: int

    @property
    def plausibility(self) -> tuple[str, ...]:
        """Those of the metrics that compare with a rationale."""
        return tuple(m for m in self.metrics if "rationale" in all_metrics.choose(m).entry.needs)


@dataclass(frozen=True)
class Measured:
    """One run on one corpus."""

    scores: Scores  # of its predictions
    values: Mapping[tuple[str, str], Values]  # metric, method
    readings: Mapping[str, Readings]  # method -> what it says of each text
    layers: Mapping[tuple[str, str], Mapping[str, list[float]]]  # metric, technique -> by text, a value per layer
    specials: Mapping[str, list[float]]  # by text: share of each layer's attention on tokens that are not explained
    reliance: Mapping[str, Reliance]  # by text, of those that have words of both kinds


def measure(
    clf: Classifier,
    corpus: Corpus,
    predicted: Sequence[Example],
    folder: Path,
    how: Settings,
    *,
    tick: Callable[[int], None] | None = None,
) -> Measured:
    """`corpus` is explained; `predicted` are the texts, usually more of them, that the predictions are scored on."""
    place = folder / "corpora" / store.slug(corpus.name)
    # Another domain may lack rationales: there its predictions are scored, and explanations are compared.
    metrics = allowed(how.metrics, corpus.examples, len(how.methods)) or None
    evaluation = evaluate(
        clf, corpus.examples, how.methods, metrics, corpus=corpus.name, seed=how.seed, out=place, tick=tick
    )
    values: dict[tuple[str, str], Values] = {}
    for cell in evaluation.cells:
        value = cell.score.value
        values.setdefault((cell.metric, cell.method), {})[cell.example] = np.nan if value is None else value
    encoded = [e for e in clf.encode(corpus.examples) if e.example.rationale]
    layers, specials = _layers(clf, encoded, place, how)
    return Measured(
        scores=predictions(clf, predicted, place),
        values=values,
        readings={name: by_key(map(reading, rows)) for name, rows in evaluation.attributions.items()},
        layers=layers,
        specials=specials,
        reliance=_reliance(clf, encoded, place, how),
    )


def predictions(clf: Classifier, examples: Sequence[Example], place: Path) -> Scores:
    """Macro-F1, accuracy and their like; none where a text has no label."""
    if any(e.label is None for e in examples):
        return {}

    def work() -> Scores:
        gold = targets(examples, clf.labels, clf.kind == "multi")
        return score(predict(clf, clf.encode(examples)), gold, clf.kind)

    return _once(place / f"predictions-{store.stable_hash(examples)}.json", work)


def explanation_loss(
    clf: Classifier, train: Sequence[Example], dev: Sequence[Example], term: Weighted, folder: Path
) -> float | None:
    """The term `explanation` on dev, as training would have measured it, of a run that was trained without it."""

    def work() -> float | None:
        seen, encoded = clf.encode(train), clf.encode(dev)
        labels, gold = (targets(part, clf.labels, clf.kind == "multi") for part in (train, dev))
        (prepared,) = ready((term,), clf, seen, labels)
        losses: list[float] = []

        def run(rows: list[int]) -> None:
            batch = clf.collate([encoded[i] for i in rows])
            output = clf.forward(batch, attentions="attention" in prepared.term.needs)
            losses.append(float(prepared.loss(clf, batch, output, gold[rows].to(clf.device))[0].detach()))

        with clf.still(), clf.eager():
            run_all(clf, [len(e.ids) for e in encoded], run, work=term.choice.label)
        size = prepared.size(encoded, gold)
        return sum(losses) / size if size else None

    key = store.stable_hash([term.choice.label, train, dev])
    return _once(folder / f"explanation-{key}.json", work)


def _once(path: Path, work: Callable[[], Any]) -> Any:
    if not path.exists():
        store.write_json(path, work())
    return store.read_json(path)


# -- in parts -----------------------------------------------------------------------------------------------


def _by_parts(
    folder: Path, encoded: Sequence[Encoded], kinds: Mapping[str, Any], work: Callable[[Sequence[Encoded]], list[dict]]
) -> list[dict[str, Any]]:
    """The rows that `work` gives for the texts, a file per part."""
    import pyarrow

    rows: list[dict[str, Any]] = []
    for part in store.parts(folder, len(encoded), PART):
        if not part.done:
            new = work(encoded[part.start : part.stop])
            store.write_parquet(part.path, pyarrow.Table.from_pylist(new, schema=pyarrow.schema(dict(kinds))))
        rows += store.read_parquet(part.path).to_pylist()
    return rows


def _layers(
    clf: Classifier, encoded: Sequence[Encoded], place: Path, how: Settings
) -> tuple[dict[tuple[str, str], dict[str, list[float]]], dict[str, list[float]]]:
    import pyarrow

    techniques = techniques_of(how.methods)
    if not layered(clf) or not techniques:
        return {}, {}
    chosen = [all_metrics.choose(name) for name in how.plausibility]

    def work(part: Sequence[Encoded]) -> list[dict[str, Any]]:
        by_text = {i: _layer_rows(clf, part[i], rows, chosen) for i, rows in rows_of(clf, part, techniques)}
        return [row for i in sorted(by_text) for row in by_text[i]]

    text, numbers = pyarrow.string(), pyarrow.list_(pyarrow.float64())
    kinds = {"example": text, "technique": text, "metric": text, "values": numbers, "specials": numbers}
    key = store.stable_hash([VERSION, techniques, how.plausibility])
    layers: dict[tuple[str, str], dict[str, list[float]]] = {}
    specials: dict[str, list[float]] = {}
    for row in _by_parts(place / f"layers-{key}", encoded, kinds, work):
        known = [np.nan if value is None else value for value in row["values"]]
        layers.setdefault((row["metric"], row["technique"]), {})[row["example"]] = known
        if row["technique"] == "attention":
            specials[row["example"]] = row["specials"]
    return layers, specials


def _layer_rows(
    clf: Classifier, encoded: Encoded, rows: Rows, metrics: Sequence[Choice[Metric]]
) -> list[dict[str, Any]]:
    """Of one text: every metric of every layer's row, by technique."""
    nothing = np.zeros(len(clf.labels))  # plausibility looks at scores and marks alone
    plain = explained(clf, encoded, 0, nothing, nothing)
    outside = [not free for free in encoded.free]
    held = []
    for technique, scores in rows.items():  # scores: [L, T]
        specials = (scores[:, outside].sum(-1) / scores.sum(-1).clamp_min(1e-12)).tolist()
        for metric in metrics:
            values = [metric.entry.run(replace(plain, scores=row), **metric.options).value for row in scores.numpy()]
            about = {"example": encoded.example.id, "technique": technique, "metric": metric.label}
            held.append({**about, "values": values, "specials": specials})
    return held


def _reliance(clf: Classifier, encoded: Sequence[Encoded], place: Path, how: Settings) -> dict[str, Reliance]:
    import pyarrow

    def work(part: Sequence[Encoded]) -> list[dict[str, Any]]:
        full = predict(clf, part)
        askers = [
            reliance(
                explained(clf, e, int(logits.argmax()), logits, probabilities),
                draws=how.draws,
                by=how.by,
                seed=how.seed,
            )
            for e, logits, probabilities in zip(part, full.logits, full.probabilities, strict=True)
        ]
        texts = [text for text, _ in ask(clf, askers)]
        return [
            {"example": e.example.id, **asdict(text)} for e, text in zip(part, texts, strict=True) if text is not None
        ]

    number = pyarrow.float64()
    names = ("confidence", "rationale", "others", "flips_rationale", "flips_others", "alone", "empty")
    kinds = {"example": pyarrow.string(), "words": pyarrow.int64(), **dict.fromkeys(names, number)}
    key = store.stable_hash([VERSION, how.draws, how.by, how.seed])
    rows = _by_parts(place / f"reliance-{key}", encoded, kinds, work)
    return {row.pop("example"): Reliance(**row) for row in rows}
