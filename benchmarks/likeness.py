"""What REGEX's claims on likeness need: are explanations more alike, over seeds and texts, and unlike the untrained's?

    python -m benchmarks.likeness --data sst:path=trees --limit 100 --method attention,attention_x_gradient \
        baseline=runs/base/seed0,runs/base/seed1,runs/base/seed2 regex=runs/regex/seed0,...

`veridical robustness` has intervals over texts. These hold the seeds too. A model stands in several pairs, so the
pairs are no sample: the variance over seeds is the jackknife's, each model left out in turn (Arvesen 1969), with one
degree of freedom fewer than models. To it the variance over texts of their values is added, as in
`probes/guidance/change.py`. Lines are those of a recipe's `findings`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np

import veridical
from benchmarks.claimed import Part, finding, of_mean
from veridical.core.records import Example, Explained
from veridical.metric.jaccard import jaccard
from veridical.model.classifier import Classifier

Pairs = Mapping[tuple[int, int], np.ndarray]  # Jaccard by text, of two models of a side; -1 is the untrained one
Statistic = Callable[[Pairs, Sequence[int]], np.ndarray]  # a value by text, from these models alone
BLANK = -1


def alike(pairs: Pairs, models: Sequence[int]) -> np.ndarray:
    """Mean over the pairs of trained models. [texts]"""
    return np.mean([pairs[pair] for pair in combinations(models, 2)], axis=0)


def blank(pairs: Pairs, models: Sequence[int]) -> np.ndarray:
    """Mean over the models, each beside the untrained one. [texts]"""
    return np.mean([pairs[BLANK, model] for model in models], axis=0)


def apart(pairs: Pairs, models: Sequence[int]) -> np.ndarray:
    return blank(pairs, models) - alike(pairs, models)


def of_seeds(statistic: Statistic, pairs: Pairs, models: Sequence[int]) -> Part:
    """What seeds add to the variance of the statistic's mean over texts: the jackknife's."""
    n = len(models)
    without = np.array([statistic(pairs, [m for m in models if m != left]).mean() for left in models])
    return float((n - 1) / n * ((without - without.mean()) ** 2).sum()), n - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--method", default="attention_x_gradient")
    parser.add_argument("--untrained", default="minilm", help="what the runs began with")
    parser.add_argument("--share", type=float, default=0.25)
    parser.add_argument("sides", nargs=2, metavar="NAME=RUN,RUN,RUN")
    given = parser.parse_args()
    texts = list(veridical.load_data(given.data, limit=given.limit).splits["test"])
    runs = {name: folders.split(",") for name, folders in (side.split("=", 1) for side in given.sides)}
    if min(map(len, runs.values())) < 3:
        parser.error("the jackknife leaves a model out and needs a pair still: give three runs of a side, or more.")
    sides = {name: [veridical.load(folder) for folder in folders] for name, folders in runs.items()}
    some = next(iter(sides.values()))[0]
    untrained = veridical.load(given.untrained, labels=some.labels)
    untrained.read_at_most(min(untrained.limit, some.limit))
    for method in given.method.split(","):
        print(f"{method}, top {given.share:.0%}, {len(texts)} texts")
        pairs = {name: pairs_of([untrained, *side], texts, method, given.share) for name, side in sides.items()}
        (before, first), (after, second) = pairs.items()
        models = {name: range(len(side)) for name, side in sides.items()}
        for what, statistic in (("trained models", alike), ("with the untrained model", blank)):
            change = statistic(second, models[after]) - statistic(first, models[before])
            seeds = [of_seeds(statistic, of, models[name]) for name, of in pairs.items()]
            print("  ", finding(f"{after} less {before}, {what}", change.mean(), [of_mean(change), *seeds]))
        for name, of in pairs.items():
            gap = apart(of, models[name])
            parts = [of_mean(gap), of_seeds(apart, of, models[name])]
            print("  ", finding(f"{name}: untrained less trained", gap.mean(), parts))
            print("  ", name, "pairs", {pair: round(float(values.mean()), 4) for pair, values in of.items()})


def pairs_of(models: Sequence[Classifier], texts: Sequence[Example], method: str, share: float) -> Pairs:
    """The untrained model comes first in `models`."""
    by_model = {place: explanations(model, texts, method) for place, model in enumerate(models, BLANK)}
    return {
        (a, b): np.array(
            [jaccard(x, y, share=share).value for x, y in zip(by_model[a], by_model[b], strict=True)], float
        )
        for a, b in combinations(by_model, 2)
    }


def explanations(model: Classifier, texts: Sequence[Example], method: str) -> list[Explained]:
    """Each model is explained for its own prediction."""
    found = veridical.explain(model, texts, method, progress=False)
    return [Explained(e.encoded, e.target, e.probabilities, np.log(e.probabilities), scores=e.scores) for e in found]


if __name__ == "__main__":
    main()
