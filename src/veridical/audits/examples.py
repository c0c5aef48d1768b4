"""The texts that an audit's page shows, with what every method says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from veridical.audits.corpora import Corpus
from veridical.audits.evaluate import Evaluation
from veridical.audits.record import ShownScores, ShownText, ShownTexts
from veridical.core.records import Attribution, Example
from veridical.core.spec import base_name
from veridical.core.statistics import mean
from veridical.model.classifier import Classifier

BROWSER = 100_000  # scores in the example browser: about half a megabyte


def shown_texts(clf: Classifier, corpora: Sequence[Corpus], evaluations: Mapping[str, Evaluation]) -> ShownTexts:
    """As many texts as keep the page light, the same share of every corpus."""
    home = corpora[0]
    tokens = sum(sum(e.free) for e in clf.encode(home.examples)) / len(home.examples)
    methods = max(1, len(evaluations[home.name].attributions))
    each = max(4, min(200, int(BROWSER / (tokens * methods))) // len(corpora))
    texts: list[ShownText] = []
    for corpus in corpora:
        evaluation = evaluations[corpus.name]
        taus = _agreement(evaluation)
        by_id = {
            method: {attribution.example.id: attribution for attribution in attributions}
            for method, attributions in evaluation.attributions.items()
        }
        for example in corpus.examples[:each]:
            rows = {method: explained[example.id] for method, explained in by_id.items() if example.id in explained}
            if not rows:  # the audit ended before it came to this text
                continue
            tau = mean(taus.get(example.id, ()))
            texts.append(_shown(clf, corpus.name, example, rows, None if tau is None else 1 - tau))
    return ShownTexts(tuple(texts))


def _shown(
    clf: Classifier, corpus: str, example: Example, rows: Mapping[str, Attribution], disagreement: float | None
) -> ShownText:
    first = next(iter(rows.values()))
    free = np.flatnonzero(first.encoded.free)
    predicted = int(first.probabilities.argmax())
    decided = predicted if clf.kind != "multi" else tuple(np.flatnonzero(first.probabilities >= 0.5).tolist())
    return ShownText(
        corpus=corpus,
        id=example.id,
        text=example.text,
        context=example.context,
        label=_named(clf, example.label),
        predicted=clf.labels[predicted],
        probabilities=tuple(float(p) for p in first.probabilities),
        right=None if example.label is None else example.label == decided,
        rationale=example.rationale,
        tokens=tuple(first.encoded.spans[i] for i in free),
        explanations={
            method: ShownScores(clf.labels[row.target], tuple(float(score) for score in row.scores[free]))
            for method, row in rows.items()
        },
        disagreement=disagreement,
    )


def _agreement(evaluation: Evaluation) -> dict[str, list[float]]:
    """The rank correlations of every two methods on every text."""
    taus: dict[str, list[float]] = {}
    for cell in evaluation.cells:
        if cell.score.value is not None and base_name(cell.metric) == "agreement":
            taus.setdefault(cell.example, []).append(cell.score.value)
    return taus


def _named(clf: Classifier, label: int | tuple[int, ...] | None) -> str | None:
    if label is None:
        return None
    return ", ".join(clf.labels[i] for i in (label if isinstance(label, tuple) else (label,)))
