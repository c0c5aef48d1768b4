"""From measured runs to the rows of tables: means over seeds, changes from the baseline. Nothing here asks a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from veridical.core.statistics import bca
from veridical.probes.guidance.change import Change, changes
from veridical.probes.guidance.measure import Measured, Values
from veridical.probes.guidance.reliance import relied
from veridical.probes.guidance.runs import Condition

Found = Mapping[tuple[str, int], Mapping[str, Measured]]  # condition and seed -> corpus -> what was measured
Row = dict[str, Any]


def over_seeds(values: Iterable[float | None], seed: int = 0) -> Row:
    """The mean over seeds with the values behind it, and from five on a 95% interval."""
    known = [float(value) for value in values if value is not None and not np.isnan(value)]
    low, high = (bound[0] for bound in bca(np.array([known]), seed=seed)) if known else (np.nan, np.nan)
    return {
        "mean": float(np.mean(known)) if known else None,
        "low": None if np.isnan(low) else float(low),
        "high": None if np.isnan(high) else float(high),
        "values": known,
    }


def seeds_of(found: Found, one: Condition, corpus: str) -> list[Measured]:
    return [found[one.name, run.seed][corpus] for run in one.runs]


def predictions(found: Found, conditions: Sequence[Condition], corpora: Sequence[str]) -> list[Row]:
    """Macro-F1 and cross-entropy (table 2, figures 2 and 11)."""
    return [
        {"corpus": corpus, "condition": one.name, "score": name}
        | over_seeds(own.scores.get(name) for own in seeds_of(found, one, corpus))
        for corpus in corpora
        for one in conditions
        for name in ("macro_f1", "accuracy", "loss")
        if any(own.scores for own in seeds_of(found, one, corpus))
    ]


def explanations(found: Found, conditions: Sequence[Condition], corpora: Sequence[str]) -> list[Row]:
    """Every metric of every method (tables 3, 4 and 9)."""
    rows = []
    for corpus in corpora:
        for one in conditions:
            own = seeds_of(found, one, corpus)
            for metric, method in dict.fromkeys(key for seed in own for key in seed.values):
                texts = [seed.values.get((metric, method), {}) for seed in own]
                rows.append(
                    {"corpus": corpus, "metric": metric, "condition": one.name, "method": method}
                    | {"guided": method in one.guides}
                    | over_seeds(map(mean, texts))
                    | {"texts": defined(texts), "undefined": max(map(len, texts)) - defined(texts)}
                )
    return rows


def layers(found: Found, conditions: Sequence[Condition], corpora: Sequence[str]) -> list[Row]:
    """Plausibility of every layer's rows (figures 4 and 13)."""
    rows = []
    for corpus in corpora:
        for one in conditions:
            own = seeds_of(found, one, corpus)
            for metric, technique in dict.fromkeys(key for seed in own for key in seed.layers):
                texts = [seed.layers[metric, technique] for seed in own]
                for layer in range(len(next(iter(texts[0].values())))):
                    at = [{text: values[layer] for text, values in seed.items()} for seed in texts]
                    rows.append(
                        {"corpus": corpus, "metric": metric, "condition": one.name, "technique": technique}
                        | {"layer": layer + 1}
                        | over_seeds(map(mean, at))
                        | {"texts": defined(at)}
                    )
    return rows


def specials(found: Found, conditions: Sequence[Condition], corpora: Sequence[str]) -> list[Row]:
    """Share of each layer's attention on tokens that are not explained: where a model can park it."""
    rows = []
    for corpus in corpora:
        for one in conditions:
            own = [seed.specials for seed in seeds_of(found, one, corpus) if seed.specials]
            depth = len(next(iter(own[0].values()))) if own else 0
            for layer in range(depth):
                means = [float(np.mean([values[layer] for values in seed.values()])) for seed in own]
                row = {"corpus": corpus, "condition": one.name, "layer": layer + 1}
                rows.append(row | over_seeds(means) | {"texts": len(own[0])})
    return rows


RELIANCE = ("rationale", "others", "flips_rationale", "flips_others", "alone", "empty", "confidence")


def reliances(found: Found, conditions: Sequence[Condition], corpora: Sequence[str]) -> list[Row]:
    """What erasing the rationale costs, beside as many other words."""
    rows = []
    for corpus in corpora:
        for one in conditions:
            own = [seed.reliance for seed in seeds_of(found, one, corpus)]
            if not any(own):
                continue
            row: Row = {
                "corpus": corpus,
                "condition": one.name,
                "value": over_seeds(mean(relied(seed)) for seed in own),
            }
            for name in RELIANCE:
                row[name] = over_seeds(mean({text: getattr(r, name) for text, r in seed.items()}) for seed in own)
            rows.append(row | {"texts": max(map(len, own))})
    return rows


# -- changes ------------------------------------------------------------------------------------------------

Take = Callable[[Measured], Values]


def changed(found: Found, base: Condition, one: Condition, corpus: str, takes: Mapping[str, Take], margin: float):
    """The changes of a family of quantities from the baseline to a condition, by name."""
    pairs = {
        name: tuple([take(seed) for seed in seeds_of(found, side, corpus)] for side in (base, one))
        for name, take in takes.items()
    }
    return changes(pairs, margin=margin)  # type: ignore[arg-type]


def plausibility_changes(
    found: Found, base: Condition, one: Condition, corpus: str, metric: str, margin: float
) -> dict[str, Change]:
    """By method; the family is a condition's methods."""
    sides = [*seeds_of(found, base, corpus), *seeds_of(found, one, corpus)]
    names = dict.fromkeys(m for own in sides for name, m in own.values if name == metric)
    takes: dict[str, Take] = {m: lambda own, m=m: dict(own.values.get((metric, m), {})) for m in names}
    return changed(found, base, one, corpus, takes, margin)


def reliance_changes(
    found: Found, base: Condition, others: Sequence[Condition], corpus: str, margin: float
) -> dict[str, Change]:
    """By condition; the family is the conditions."""
    pairs = {
        one.name: tuple([relied(seed.reliance) for seed in seeds_of(found, side, corpus)] for side in (base, one))
        for one in others
    }
    return changes(pairs, margin=margin)  # type: ignore[arg-type]


def change_row(corpus: str, what: str, condition: str, method: str, change: Change) -> Row:
    return {"corpus": corpus, "what": what, "condition": condition, "method": method, **asdict(change)}


# -- small parts --------------------------------------------------------------------------------------------


def mean(values: Mapping[str, float]) -> float | None:
    """Over the texts that have a value."""
    known = [value for value in values.values() if not np.isnan(value)]
    return float(np.mean(known)) if known else None


def defined(seeds: Sequence[Mapping[str, float]]) -> int:
    """Texts that have a value in some seed."""
    return len({text for seed in seeds for text, value in seed.items() if not np.isnan(value)})
