"""What is asked of a folder, and the points in it that are done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from veridical.core import store, stored
from veridical.retraining.options import Interval, Scored
from veridical.retraining.roar.cells import FIXED, PART, RANDOM, curve_place, leak_place, worst_point
from veridical.retraining.roar.mask import Amount, Steps
from veridical.retraining.roar.point import Point, read_point
from veridical.retraining.roar.settings import family

ENDS = {0: "whole", 100: "masked"}
FACTS = "facts.json"


@dataclass(frozen=True)
class SplitFacts:
    """What a split looks like to the model."""

    texts: int
    tokens: float  # of a text, on average
    cut_texts: int  # longer than the model reads
    cut_tokens: int


@dataclass(frozen=True)
class Request:
    """Which of a folder's results are asked for."""

    measures: tuple[str, ...]  # specs; the baseline is not among them
    seeds: tuple[int, ...]
    steps: Steps
    kinds: tuple[bool, ...]  # recursive or not
    score: Scored
    leakage: bool = True
    interval: Interval = "bca"


def default_score(data: str) -> Scored:
    """What the paper scores a dataset by (table 1); with one label per text micro-F1 is accuracy.

    Planted data has as many texts of each class: there accuracy is plainer, for the macro-F1 of a model that knows
    nothing is one third or one half, depending on whether it always says the same.
    """
    known = family(data)
    if known == "babi" or store.slug(data).lower().startswith("planted"):
        return "accuracy"
    return "micro_f1" if known == "snli" else "macro_f1"


def column(score: Scored) -> str:
    """The stored score of that name."""
    return "accuracy" if score == "micro_f1" else score


class Points:
    """The points of a request that are done, each read once."""

    def __init__(self, folder: Path, request: Request):
        self.folder, self.request = folder, request
        self.score = column(request.score)
        self.amounts = request.steps.amounts
        ends = [Amount(0), Amount(100)] if request.steps.unit == "percent" else [Amount(0, "token")]
        self.all = sorted([*self.amounts, *ends], key=lambda amount: amount.value)
        self._held: dict[Path, Point | None] = {}
        self.retrained = "one_model" not in stored.read_fields(folder / "spec.json", "roar")["roar"]
        self.facts = {split: SplitFacts(**facts) for split, facts in store.read_json(folder / FACTS).items()}

    def seed(self, seed: int) -> Path:
        return self.folder / f"seed{seed}"

    def read(self, path: Path) -> Point | None:
        if path not in self._held:
            self._held[path] = read_point(path)
        return self._held[path]

    def point(self, seed: int, measure: str, recursive: bool, amount: Amount) -> Point | None:
        if amount not in self.amounts:
            return self.read(self.seed(seed) / ENDS[amount.value])
        return self.read(self.seed(seed) / curve_place(measure, self.request.steps, recursive) / amount.name)

    def value(self, seed: int, measure: str, recursive: bool, amount: Amount) -> float | None:
        """The test score at a point."""
        point = self.point(seed, measure, recursive, amount)
        return None if point is None else point.test(self.score)

    def explained(self, order: Path, split: str) -> bool:
        """Whether all parts of an explanation of a split's texts are there."""
        return all(part.done for part in store.parts(order / split, self.facts[split].texts, PART))

    def curve(self, seed: int, measure: str, recursive: bool) -> list[float | None]:
        return [self.value(seed, measure, recursive, amount) for amount in self.all]

    def curves(self) -> list[tuple[str, bool]]:
        """Every measure of every kind, the baseline first."""
        return [(RANDOM, False), *((m, kind) for kind in self.request.kinds for m in self.request.measures)]

    def distinct(self) -> list[tuple[str, bool]]:
        """The same, each once: an order that no model has a say in has one curve of both kinds."""
        return list(dict.fromkeys((m, kind or m in FIXED) for m, kind in self.curves()))

    def leaks(self) -> Iterator[tuple[str, bool, int, Amount, Point | None]]:
        """Of every curve that lies above its baseline: where it does most, and what positions alone tell there."""
        for measure, recursive, seed in self.checked():
            steps = self.request.steps
            at = worst_point(self.seed(seed), measure, steps, recursive, self.score)
            if at is not None:
                curve = self.seed(seed) / curve_place(measure, steps, recursive)
                yield measure, recursive, seed, at, self.read(leak_place(curve, at))

    def checked(self) -> list[tuple[str, bool, int]]:
        """The curves that are checked for leakage, if that is asked for."""
        curves = [(m, kind) for m, kind in self.curves()[1:] if m not in FIXED] if self.request.leakage else []
        return [(m, kind, seed) for m, kind in curves for seed in self.request.seeds]

    def ends(self) -> list[Point | None]:
        """The points that all curves of a seed share."""
        return [self.read(self.seed(seed) / end) for seed in self.request.seeds for end in ENDS.values()]

    def between(self, measure: str, recursive: bool) -> list[Point | None]:
        """Those of one curve, of all seeds."""
        return [self.point(seed, measure, recursive, a) for seed in self.request.seeds for a in self.amounts]

    def rows(self) -> list[dict[str, object]]:
        """For curves.parquet: a row per point and seed, the two ends in every curve."""
        rows: list[dict[str, object]] = []
        for measure, recursive in self.curves():
            for seed in self.request.seeds:
                for amount in self.all:
                    point = self.point(seed, measure, recursive, amount)
                    if point is not None:
                        about = {"measure": measure, "recursive": recursive, "seed": seed}
                        about |= {"masked": amount.value, "unit": amount.unit, "best_epoch": point.best_epoch}
                        rows.append({**about, **point.scores["test"], "epochs": point.epochs})
        return rows
