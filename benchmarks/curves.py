"""What the claims of Recursive ROAR need of a benchmark's folder: areas, drops and sparsity by seed.

    python -m benchmarks.curves roar/babi1-small

Of every measure: eq. 3; the score at every amount; how much is lost over the first step and, at most, over a later one
(figure 4); the share of the importance that the top tenth of a text's tokens holds (figure 6); seconds of explaining
all texts (table 7).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from veridical.core import store
from veridical.retraining.roar.cells import place
from veridical.retraining.roar.record import RoarSummary, read_summary

TENTH = 0.1


def listed(values: Sequence[float]) -> str:
    return f"[{', '.join(f'{value:.4f}' for value in values)}]"


def by_seed(values: Sequence[float], others: Sequence[float]) -> str:
    return f"by_seed = {listed(values)}, baseline_by_seed = {listed(others)}"


def drops(scores: Sequence[float | None]) -> tuple[float, float]:
    """Over the first step, and the largest over a later one."""
    lost = -np.diff(np.array(scores, dtype=np.float64))
    return float(lost[0]), float(lost[1:].max())


def top_tenth(folder: Path, summary: RoarSummary, measure: str) -> list[float]:
    """By seed, mean over the test texts that have any importance."""
    top = next(index for index, row in enumerate(shares(summary, measure)) if row == TENTH)
    means = []
    for seed in summary.settings.seeds:
        rows = store.read_parts(folder / f"seed{seed}" / place(measure) / "order" / "test", ["by_share"])
        known = [row[top] for row in rows["by_share"].to_pylist() if row[0] is not None]
        means.append(float(np.mean(known)))
    return means


def explained_in(folder: Path, summary: RoarSummary, measure: str) -> list[float]:
    """By seed, seconds of an explanation of all texts, mean over those of the texts masked so far."""
    means = []
    for seed in summary.settings.seeds:
        passes = list((folder / f"seed{seed}" / place(measure)).rglob("order"))
        tables = [store.read_parts(split, ["seconds"]) for each in passes for split in each.iterdir()]
        means.append(sum(sum(table["seconds"].to_pylist()) for table in tables) / len(passes))
    return means


def shares(summary: RoarSummary, measure: str) -> list[float]:
    return [row.top for row in summary.sparsity if row.measure == measure and row.unit == "share"]


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    summary = read_summary(folder)
    print(summary.title, summary.settings.score, "seeds", *summary.settings.seeds)
    for area in summary.areas:
        values = [value for value in area.values.values() if value is not None]
        between = f"{np.mean(values):.3f} ({area.low} to {area.high})"
        print(f"{area.measure}: area {between}; {by_seed(values, [0.0] * len(values))}")
    for curve in summary.curves:
        means = np.round(np.array(curve.mean, float), 3).tolist()
        print(f"{curve.measure}, recursive {curve.recursive}, at {curve.masked}: means {means}")
        for seed, scores in curve.values.items():
            print(f"    seed {seed}: {np.round(np.array(scores, float), 3).tolist()}")
        if all(None not in scores for scores in curve.values.values()):
            first, later = zip(*(drops(scores) for scores in curve.values.values()), strict=True)
            print(f"    first drop less the largest later one: {by_seed(first, later)}")
    held = {area.measure: top_tenth(folder, summary, area.measure) for area in summary.areas}
    for measure, values in held.items():
        print(f"{measure}: the top tenth holds {np.mean(values):.3f}, by seed {listed(values)}")
        seconds = explained_in(folder, summary, measure)
        print(f"    all texts are explained in {np.mean(seconds):.3f} s, by seed {listed(seconds)}")


if __name__ == "__main__":
    main()
