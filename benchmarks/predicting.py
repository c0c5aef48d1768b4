"""Does one training predict better than another? Macro-F1 by seed, and the difference over texts and seeds.

    python -m benchmarks.predicting --data sst:path=trees baseline=base/seed0,base/seed1 regex=regex/seed0,...
    python -m benchmarks.predicting --data hutto/amazon,hutto/nyt --split test,dev ...

Macro-F1 is no mean over texts, so what texts add to the variance is a bootstrap's: both sides are scored on the same
draw of texts, each a mean over its seeds. What seeds add is Welch's, as in `probes/guidance/change.py`. Lines are those
of a recipe's `findings`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

import veridical
from benchmarks.claimed import finding, of_mean
from veridical.core.records import Example
from veridical.data.labels import relabel
from veridical.model.accuracy import macro_f1
from veridical.model.ask import predict
from veridical.model.classifier import Classifier

RESAMPLES = 2000


def decided(clf: Classifier, texts: Sequence[Example]) -> np.ndarray:
    """The predicted class of every text."""
    return predict(clf, clf.encode(texts)).probabilities.argmax(1)


def score(truth: np.ndarray, predicted: np.ndarray, classes: int) -> float:
    one_hot = np.eye(classes, dtype=bool)
    value = macro_f1(one_hot[truth], one_hot[predicted])
    if value is None:
        raise ValueError("macro-F1 is undefined: there are no texts")
    return value


def of_texts(truth: np.ndarray, before: np.ndarray, after: np.ndarray, classes: int) -> tuple[float, int]:
    """What texts add to the variance of the difference of the sides' means over seeds. [seeds, texts] each"""
    draw = np.random.default_rng(0)
    gaps = []
    for _ in range(RESAMPLES):
        rows = draw.integers(len(truth), size=len(truth))
        means = [np.mean([score(truth[rows], seed[rows], classes) for seed in side]) for side in (before, after)]
        gaps.append(means[1] - means[0])
    return float(np.var(gaps, ddof=1)), len(truth) - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="one, or several with commas")
    parser.add_argument("--split", default="test", help="one, or several with commas, whose texts are put together")
    parser.add_argument("--limit", type=int, help="at most so many texts of a corpus")
    parser.add_argument("sides", nargs=2, metavar="NAME=RUN,RUN,RUN")
    given = parser.parse_args()
    named = dict(side.split("=", 1) for side in given.sides)
    sides = {name: [veridical.load(folder) for folder in folders.split(",")] for name, folders in named.items()}
    first, second = sides
    labels = sides[first][0].labels
    for spec in given.data.split(","):
        data = veridical.load_data(spec)
        rows = [example for split in given.split.split(",") for example in data.splits[split]][: given.limit]
        texts = relabel(rows, data.labels, labels)
        truth = np.array([example.label for example in texts])
        predictions = {name: np.array([decided(clf, texts) for clf in side]) for name, side in sides.items()}
        values = {name: [score(truth, seed, len(labels)) for seed in side] for name, side in predictions.items()}
        means = {name: np.array(each) for name, each in values.items()}
        parts = [of_texts(truth, predictions[first], predictions[second], len(labels)), *map(of_mean, means.values())]
        gap = float(means[second].mean() - means[first].mean())
        print(finding(f"{data.name}: {second} less {first}", gap, parts), f" # {len(texts)} texts")
        for name, each in values.items():
            print("  ", name, ", ".join(f"{value:.3f}" for value in each))


if __name__ == "__main__":
    main()
