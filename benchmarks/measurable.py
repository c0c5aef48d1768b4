"""The figures of docs/measurable.md, from the folders that its commands wrote.

    python -m benchmarks.measurable FOLDER copies movies --truth copies --data copies=planted:size=600:length=4:copies=2

FOLDER holds, by name of the data: runs/NAME-plain and runs/NAME-masked (trainings, a folder per seed), one/NAME and
forced/NAME (curves without retraining) and roar/NAME (Recursive ROAR). What is missing is left out.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import veridical
from veridical.audits.familiarity import mask_tests
from veridical.core.statistics import mean
from veridical.metric.agreement import kendall
from veridical.retraining.roar.curve import OverSeeds, over_seeds
from veridical.retraining.roar.record import MeanArea, RoarSummary, read_summary, read_time
from veridical.training.train import read_run

TEXTS = 120  # test texts whose explanations are held against the truth
OCCLUSION = "occlusion:by=mask"


def said(over: OverSeeds, scale: float = 1.0) -> str:
    """A mean with its interval, if it has one."""
    if over.mean is None:
        return "undefined"
    interval = "" if over.low is None or over.high is None else f" ({scale * over.low:.2f} to {scale * over.high:.2f})"
    return f"{scale * over.mean:.2f}{interval}, n {over.n}"


def seeds_of(folder: Path) -> list[Path]:
    return sorted(folder.glob("seed*")) if folder.exists() else []


def accuracy(root: Path, name: str) -> None:
    """(a) with and without masked training, and the trainings' seconds."""
    for kind in ("plain", "masked"):
        folders = seeds_of(root / "runs" / f"{name}-{kind}")
        runs = [read_run(seed) for seed in folders if (seed / "scores.json").exists()]
        values = [run.scores["test"]["accuracy"] for run in runs]
        by_run, seconds = [round(value or 0, 3) for value in values], sum(run.seconds for run in runs)
        print(f"(a) {name} {kind}: test accuracy {said(over_seeds(values))}; {by_run}; {seconds:.0f} s")


def curves(one: RoarSummary, retrained: RoarSummary, name: str) -> None:
    """(b) and (f): the random curves, and every area beside its twin."""
    for summary, kind in ((one, "one model"), (retrained, "retrained")):
        random = next(curve for curve in summary.curves if curve.measure == "random")
        known = [(at, value) for at, value in zip(random.masked, random.mean, strict=True) if value is not None]
        print(f"(b) {name} random, {kind}: " + ", ".join(f"{at}% {value:.3f}" for at, value in known))
    ours, theirs = (next(c for c in s.curves if c.measure == "random").values for s in (one, retrained))
    gaps = []
    for seed in ours.keys() & theirs.keys():
        between = [a - b for a, b in zip(ours[seed], theirs[seed], strict=True) if a is not None and b is not None]
        gaps.append(float(np.mean(between[1:-1])))
    print(f"(b) {name}: one model minus retrained, mean over the points between the ends {said(over_seeds(gaps))}")
    for area in one.areas:
        twin = next((a for a in retrained.areas if a.measure == area.measure), None)
        print(f"(f) {name} {area.measure}: one model {_area(area)}; retrained {_area(twin)}")
    for leak in retrained.leakage:
        told = f"above random {leak.above_random:.2f}, positions alone {leak.positions_alone:.2f}"
        print(f"(f) {name} leak {leak.measure} seed {leak.seed}: {told}")


def _area(area: MeanArea | None) -> str:
    if area is None or area.mean is None:
        return "none"
    ends = "" if area.low is None or area.high is None else f" ({100 * area.low:.0f} to {100 * area.high:.0f})"
    return f"{100 * area.mean:.0f}{ends}, clipped {100 * (area.clipped or 0.0):.0f}"


def by_seed(summary: RoarSummary) -> dict[str, dict[str, float]]:
    """Areas: seed -> measure -> value."""
    table: dict[str, dict[str, float]] = {}
    for area in summary.areas:
        for seed, value in area.values.items():
            if value is not None and area.recursive:
                table.setdefault(seed, {})[area.measure] = value
    return table


def taus(a: dict[str, dict[str, float]], b: dict[str, dict[str, float]]) -> OverSeeds:
    """Kendall's tau of two rankings of methods, seed by seed."""
    values = []
    for seed in a:
        names = [name for name in a[seed] if name in b.get(seed, {})]
        if len(names) > 2:
            values.append(kendall(*(np.array([table[seed][name] for name in names]) for table in (a, b))))
    return over_seeds(values)


def truth(root: Path, name: str, data: str, methods: Sequence[str]) -> dict[str, dict[str, dict[str, float]]]:
    """(d), (e): how well each method finds the planted words (average precision), by kind of model, seed and method."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    texts = [e for e in veridical.load_data(data).splits["test"] if e.rationale][:TEXTS]
    for kind in ("plain", "masked"):
        for seed in seeds_of(root / "runs" / f"{name}-{kind}"):
            clf, how = veridical.load(str(seed)), {"target": "gold", "progress": False}
            result = veridical.evaluate(clf, texts, list(methods), "average_precision", **how)
            means = {m: mean(c.score.value for c in result.cells if c.method == m) for m in methods}
            known = {method: value for method, value in means.items() if value is not None}
            found.setdefault(kind, {})[seed.name.removeprefix("seed")] = known
    for method in methods:
        per = {kind: over_seeds([table[method] for table in seeds.values()]) for kind, seeds in found.items()}
        print(f"(e) {name} truth {method}: " + "; ".join(f"{kind} {said(value)}" for kind, value in per.items()))
    return found


def masks(root: Path, name: str, data: str, limit: int | None) -> None:
    """(c) the test of masks with its control, on random masks and on occlusion's."""
    dataset = veridical.load_data(data, limit=limit)
    for kind in ("masked", "plain"):
        for seed in seeds_of(root / "runs" / f"{name}-{kind}")[:3]:
            clf = veridical.load(str(seed))
            texts = dataset.splits["test"][:48]
            orders = {}
            for method in ("random", OCCLUSION):
                orders[method] = [(x.encoded, x.scores) for x in veridical.explain(clf, texts, method, target="gold")]
            for row in mask_tests(clf, name, dataset.splits["dev"], orders, ratios=(0.1, 0.5, 0.9)):
                ours, control = (row.simes, row.share), (row.control_simes, row.control_share)
                told = f"Simes, share {ours[0]:.2f}, {ours[1]:.2f}; control {control[0]:.2f}, {control[1]:.2f}"
                print(f"(c) {name} {kind} {seed.name} {row.method} {row.ratio:.0%}: {told}; {row.found}")


def most_asked(tokens: int, step: int, beam: int = 5) -> int:
    """Distinct sets that a beam can ask about in one step."""
    return min(math.comb(tokens, step), beam * (tokens - step + 1))


def limits(root: Path, name: str, data: str, limit: int | None, count: int = 12) -> None:
    """(e) between models: NAOPC of occlusion by mask and of random orders, and the questions that the search asked."""
    texts = veridical.load_data(data, limit=limit).splits["test"][:count]
    for kind in ("plain", "masked"):
        for method in (OCCLUSION, "random"):
            values, asked, bound = [], 0, 0.0
            for seed in seeds_of(root / "runs" / f"{name}-{kind}")[:3]:
                clf = veridical.load(str(seed))
                before = clf.forwards
                result = veridical.evaluate(clf, texts, [method], "naopc:by=mask", target="gold", progress=False)
                asked += clf.forwards - before
                lengths = [sum(e.free) for e in clf.encode(texts)]
                bound += sum(2 * (1 + sum(most_asked(n, t) for t in range(1, n + 1))) for n in lengths)
                values.append(mean(cell.score.value for cell in result.cells))
            told = f"{asked:,} questions, at most {bound:,.0f} for the limits"
            print(f"(e) {name} {kind} naopc of {method}: {said(over_seeds(values))}, {values}; {told}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--data", action="append", default=[], help="NAME=DATA[@LIMIT], for truth and masks")
    parser.add_argument("--truth", default="")
    parser.add_argument("--masks", default="")
    parser.add_argument("--limits", default="")
    given = parser.parse_args()
    data = dict(pair.split("=", 1) for pair in given.data)
    needed = {name for names in (given.truth, given.masks, given.limits) for name in names.split(",") if name}
    if missing := sorted(needed - data.keys()):
        parser.error(f"--data {missing[0]}=... is missing: truth, masks and limits read the texts")
    for name in given.names:
        accuracy(given.folder, name)
        folders = {kind: given.folder / kind / name for kind in ("one", "forced", "roar")}
        held = {kind: read_summary(folder) for kind, folder in folders.items() if (folder / "summary.json").exists()}
        for kind in held:
            print(f"(g) {name} {kind}: {held[kind].trainings.done} points, {read_time(folders[kind]).seconds:.0f} s")
        where, _, limit = data.get(name, "").partition("@")
        if "one" in held and "roar" in held:
            curves(held["one"], held["roar"], name)
            both = taus(by_seed(held["one"]), by_seed(held["roar"]))
            print(f"(d) {name}: tau of one model's areas with the retrained ones {said(both)}")
        if name in given.truth.split(",") and "one" in held:
            known = truth(given.folder, name, where, held["one"].measures)
            for kind, of in (("one", "masked"), ("roar", "plain")):
                if kind in held:
                    told = said(taus(by_seed(held[kind]), known[of]))
                    print(f"(d) {name}: tau of the areas of {kind} with the truth of the {of} models {told}")
        if name in given.masks.split(","):
            masks(given.folder, name, where, int(limit) if limit else None)
        if name in given.limits.split(","):
            limits(given.folder, name, where, int(limit) if limit else None)


if __name__ == "__main__":
    main()
