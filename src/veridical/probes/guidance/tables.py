"""From measured runs to the rows of tables: means over seeds, changes from the baseline. Nothing here asks a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from veridical.core.statistics import estimate, mean
from veridical.probes.guidance.change import Change, changes
from veridical.probes.guidance.measure import Measured, Values
from veridical.probes.guidance.record import (
    LayerMean,
    MetricMean,
    OverSeeds,
    Prediction,
    RelianceRow,
    SpecialShare,
)
from veridical.probes.guidance.reliance import relied
from veridical.probes.guidance.runs import Condition

Measurements = Mapping[tuple[str, int], Mapping[str, Measured]]  # condition and seed -> corpus -> what was measured


def over_seeds(values: Iterable[float | None], seed: int = 0) -> OverSeeds:
    """The mean over seeds with the values behind it, and from five on a 95% interval."""
    known = [float(value) for value in values if value is not None and not np.isnan(value)]
    over = estimate(known, seed=seed)
    return OverSeeds(over.mean, over.low, over.high, tuple(known))


def seeds_of(measured: Measurements, condition: Condition, corpus: str) -> list[Measured]:
    return [measured[condition.name, run.seed][corpus] for run in condition.runs]


def predictions(measured: Measurements, conditions: Sequence[Condition], corpora: Sequence[str]) -> list[Prediction]:
    """Macro-F1 and cross-entropy (table 2, figures 2 and 11)."""
    return [
        Prediction(
            corpus,
            condition.name,
            name,
            **vars(over_seeds(seed.scores.get(name) for seed in seeds_of(measured, condition, corpus))),
        )
        for corpus in corpora
        for condition in conditions
        for name in ("macro_f1", "accuracy", "loss")
        if any(seed.scores for seed in seeds_of(measured, condition, corpus))
    ]


def explanations(measured: Measurements, conditions: Sequence[Condition], corpora: Sequence[str]) -> list[MetricMean]:
    """Every metric of every method (tables 3, 4 and 9)."""
    rows = []
    for corpus in corpora:
        for condition in conditions:
            seeds = seeds_of(measured, condition, corpus)
            for metric, method in dict.fromkeys(key for seed in seeds for key in seed.values):
                texts = [seed.values.get((metric, method), {}) for seed in seeds]
                rows.append(
                    MetricMean(
                        corpus,
                        metric,
                        condition.name,
                        method,
                        guided=method in condition.guides,
                        **vars(over_seeds(map(mean_of_texts, texts))),
                        texts=defined(texts),
                        undefined=max(map(len, texts)) - defined(texts),
                    )
                )
    return rows


def layers(measured: Measurements, conditions: Sequence[Condition], corpora: Sequence[str]) -> list[LayerMean]:
    """Plausibility of every layer's rows (figures 4 and 13)."""
    rows = []
    for corpus in corpora:
        for condition in conditions:
            seeds = seeds_of(measured, condition, corpus)
            for metric, technique in dict.fromkeys(key for seed in seeds for key in seed.layers):
                texts = [seed.layers[metric, technique] for seed in seeds]
                for layer in range(len(next(iter(texts[0].values())))):
                    at = [{text: values[layer] for text, values in seed.items()} for seed in texts]
                    over = over_seeds(map(mean_of_texts, at))
                    about = (corpus, metric, condition.name, technique, layer + 1)
                    rows.append(LayerMean(*about, **vars(over), texts=defined(at)))
    return rows


def specials(measured: Measurements, conditions: Sequence[Condition], corpora: Sequence[str]) -> list[SpecialShare]:
    """Share of each layer's attention on tokens that are not explained: where a model can park it."""
    rows = []
    for corpus in corpora:
        for condition in conditions:
            seeds = [seed.specials for seed in seeds_of(measured, condition, corpus) if seed.specials]
            depth = len(next(iter(seeds[0].values()))) if seeds else 0
            for layer in range(depth):
                over = over_seeds(mean(values[layer] for values in seed.values()) for seed in seeds)
                rows.append(SpecialShare(corpus, condition.name, layer + 1, **vars(over), texts=len(seeds[0])))
    return rows


RELIANCE = ("rationale", "others", "flips_rationale", "flips_others", "alone", "empty", "confidence")


def reliances(measured: Measurements, conditions: Sequence[Condition], corpora: Sequence[str]) -> list[RelianceRow]:
    """What erasing the rationale costs, beside as many other words."""
    rows = []
    for corpus in corpora:
        for condition in conditions:
            seeds = [seed.reliance for seed in seeds_of(measured, condition, corpus)]
            if not any(seeds):
                continue
            value = over_seeds(mean_of_texts(relied(seed)) for seed in seeds)
            parts = {
                name: over_seeds(mean(getattr(text, name) for text in seed.values()) for seed in seeds)
                for name in RELIANCE
            }
            rows.append(RelianceRow(corpus, condition.name, value, **parts, texts=max(map(len, seeds))))
    return rows


# -- changes ------------------------------------------------------------------------------------------------

Take = Callable[[Measured], Values]


def changed(
    measured: Measurements,
    base: Condition,
    condition: Condition,
    corpus: str,
    takes: Mapping[str, Take],
    margin: float,
) -> dict[str, Change]:
    """The changes of a family of quantities from the baseline to a condition, by name."""
    before, after = (seeds_of(measured, side, corpus) for side in (base, condition))
    pairs = {name: ([take(seed) for seed in before], [take(seed) for seed in after]) for name, take in takes.items()}
    return changes(pairs, margin=margin)


def plausibility_changes(
    measured: Measurements, base: Condition, condition: Condition, corpus: str, metric: str, margin: float
) -> dict[str, Change]:
    """By method; the family is a condition's methods."""
    seeds = [*seeds_of(measured, base, corpus), *seeds_of(measured, condition, corpus)]
    names = dict.fromkeys(m for seed in seeds for name, m in seed.values if name == metric)
    takes: dict[str, Take] = {m: lambda seed, m=m: dict(seed.values.get((metric, m), {})) for m in names}
    return changed(measured, base, condition, corpus, takes, margin)


def reliance_changes(
    measured: Measurements, base: Condition, others: Sequence[Condition], corpus: str, margin: float
) -> dict[str, Change]:
    """By condition; the family is the conditions."""

    def relied_by_seed(side: Condition) -> list[Values]:
        return [relied(seed.reliance) for seed in seeds_of(measured, side, corpus)]

    pairs = {condition.name: (relied_by_seed(base), relied_by_seed(condition)) for condition in others}
    return changes(pairs, margin=margin)


# -- small parts --------------------------------------------------------------------------------------------


def mean_of_texts(values: Mapping[str, float]) -> float | None:
    """Over the texts that have a value."""
    return mean([value for value in values.values() if not np.isnan(value)])


def defined(seeds: Sequence[Mapping[str, float]]) -> int:
    """Texts that have a value in some seed."""
    return len({text for seed in seeds for text, value in seed.items() if not np.isnan(value)})
