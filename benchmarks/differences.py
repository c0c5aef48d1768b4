"""What a claim's finding needs, from `veridical evaluate` on several seeds of two models: figures, interval, freedom.

    python -m benchmarks.differences baseline=flips/baseline0,flips/baseline1 saloss=flips/saloss0,flips/saloss1

The second less the first, metric by metric and method by method, with a 95% interval over texts and seeds; then, of
each model, every method less every other one. Folders of `veridical audit` do as well; where they hold several corpora,
a corpus stands before the metric, and of each model its own corpus, the first, is compared with every other. Lines are
those of a recipe's `findings`; behind them stand the means of the seeds.

With --paired the folders of both are of the same seeds in the same order, and a seed's two models are compared with
each other: they began with the same weights and saw the same texts in the same order, so that what they share does not
widen the interval.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import Path

import numpy as np

from benchmarks.claimed import finding, of_mean
from veridical.audits.evaluate import read_cells
from veridical.probes.guidance.change import Change, changes

Seeds = Sequence[Mapping[str, float]]  # a value by text, of every seed


def scores(folders: Sequence[str]) -> dict[tuple[str, str], Seeds]:
    """By metric and method; a metric is told with its corpus where there are several."""
    seeds: list[dict[tuple[str, str], dict[str, float]]] = []
    for folder in folders:
        values: dict[tuple[str, str], dict[str, float]] = {}
        cells = read_cells(Path(folder) / "scores.parquet")
        several = len({cell.corpus for cell in cells}) > 1
        for cell in cells:
            if cell.control == "" and cell.score.value is not None:
                metric = f"{cell.corpus}: {cell.metric}" if several else cell.metric
                values.setdefault((metric, cell.method), {})[cell.example] = cell.score.value
        seeds.append(values)
    return {key: [seed[key] for seed in seeds] for key in seeds[0]}


def paired(these: Seeds, those: Seeds) -> tuple[Seeds, Seeds]:
    """Two methods of the same models: their differences seed by seed, beside nothing at all."""
    gaps = [{t: a[t] - b[t] for t in a if t in b} for a, b in zip(these, those, strict=True)]
    return [dict.fromkeys(gap, 0.0) for gap in gaps], gaps


def home_less(side: Mapping[tuple[str, str], Seeds]) -> list[str]:
    """Of every metric and method the models' own corpus less another: seeds are paired, texts are not."""
    lines = []
    home = next(iter(side))[0].partition(": ")[0]
    for (metric, method), elsewhere in side.items():
        corpus, _, of = metric.partition(": ")
        if not of or corpus == home:
            continue
        here = side[f"{home}: {of}", method]
        gaps = np.array([seed_mean(a) - seed_mean(b) for a, b in zip(here, elsewhere, strict=True)])
        parts = [of_mean(gaps), of_mean(text_means(here)), of_mean(text_means(elsewhere))]
        lines.append(finding(f"{of}, {method}: {home} less {corpus}", float(gaps.mean()), parts))
    return lines


def seed_mean(values: Mapping[str, float]) -> float:
    return sum(values.values()) / len(values)


def text_means(seeds: Seeds) -> np.ndarray:
    """Of every text its mean over the seeds that have a value."""
    texts = dict.fromkeys(text for seed in seeds for text in seed)
    return np.array([np.mean([seed[text] for seed in seeds if text in seed]) for text in texts])


def line(of: str, change: Change) -> str:
    if change.low is None or change.high is None:
        return f"{{ of = {of!r}, ours = {change.difference:.4f} }}  # too few seeds or texts"
    between = f"low = {change.low:.4f}, high = {change.high:.4f}, freedom = {change.freedom or 1:.1f}"
    return f"{{ of = {of!r}, ours = {change.difference:.4f}, {between} }}  # {change.texts} texts"


def means(seeds: Seeds) -> str:
    return ", ".join(f"{seed_mean(values):.3f}" for values in seeds)


def main() -> None:
    given = [argument for argument in sys.argv[1:] if argument != "--paired"]
    sides = dict(argument.split("=", 1) for argument in given)
    if len(sides) != 2:
        sys.exit(__doc__)
    (before, first), (after, second) = ((name, scores(folders.split(","))) for name, folders in sides.items())
    how = "seeds paired" if "--paired" in sys.argv else "seeds not paired"
    print(f"{after} less {before}, {how}")
    both = {
        key: paired(second[key], first[key]) if "--paired" in sys.argv else (first[key], second[key]) for key in first
    }
    for (metric, method), change in changes(both).items():
        print(
            line(f"{metric}, {method}", change), "|", means(first[metric, method]), "->", means(second[metric, method])
        )
    for name, side in ((before, first), (after, second)):
        for told in home_less(side):
            print(name, told)
        for metric in dict.fromkeys(metric for metric, _ in side):
            methods = [method for of, method in side if of == metric]
            pairs = {(a, b): paired(side[metric, a], side[metric, b]) for a, b in permutations(methods, 2)}
            for (a, b), change in changes(pairs).items():
                print(line(f"{name}: {metric}, {a} less {b}", change))


if __name__ == "__main__":
    main()
