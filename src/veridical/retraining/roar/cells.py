"""What the cells of a grid do: the two ends of a seed's curves, the chains between them, and the leakage checks.

    seed0/whole, masked              nothing masked, everything masked: shared by all measures of a seed
    seed0/random/p10, ...            the baseline, not recursive: its points serve any steps
    seed0/<measure>/order/           the explanation of the whole texts: the order in which each one's tokens go
    seed0/<measure>/plain/p10, ...   ROAR: that order throughout
    seed0/<measure>/by-p10/p10, ...  Recursive ROAR: each point explains its own texts anew (p10/order) for the next

Every function may be called again at any time: what is done is found done, what is half done goes on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.torch import load_file

from veridical.attribution import Method, methods
from veridical.core import store
from veridical.core.records import Attribution, Encoded
from veridical.core.registry import Choice
from veridical.explanations.explain import attributions
from veridical.model.erase import budget
from veridical.retraining.roar.experiment import SPLITS, Bench, read_bench
from veridical.retraining.roar.mask import (
    Amount,
    Orders,
    Steps,
    Unit,
    gone,
    masked,
    oracle_order,
    order,
    positions_only,
    random_order,
)
from veridical.retraining.roar.point import is_done, read_point, train_point
from veridical.training.selection import BEST
from veridical.training.task import own_threads

PART = 1024  # texts whose explanations are one part: what a killed worker loses of them
RANDOM, ORACLE = "random", "oracle"
FIXED = {RANDOM: random_order, ORACLE: oracle_order}  # orders that no model has a say in: recursion changes nothing
TOP_TOKENS = tuple(range(1, 11))  # figure 5
TOP_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # figure 6


def place(measure: str) -> str:
    """A measure's folder: its spec, readable, and a hash of all its options."""
    if measure in FIXED:
        return measure
    choice = methods.choose(measure)
    identity = {"name": choice.entry.name, "options": dict(choice.options), "version": choice.entry.version}
    return f"{re.sub(r'[^A-Za-z0-9]+', '-', choice.label)[:60].strip('-')}-{store.stable_hash(identity)}"


def curve_place(measure: str, steps: Steps, recursive: bool) -> str:
    """The folder of a curve's points, in that of its seed."""
    if measure in FIXED:
        return measure
    return f"{place(measure)}/{steps.name if recursive else 'plain'}"


# -- cells --------------------------------------------------------------------------------------------------


def shared(*, out: str, seed: int, everything: bool) -> None:
    """Train on the whole texts (their weights are kept: all measures explain them), or with everything masked."""
    bench = read_bench(out, seed)
    if not everything:
        train_point(bench, bench.place / "whole", bench.encoded, keep=True)
        return
    every = {split: [np.flatnonzero(e.free) for e in bench.encoded[split]] for split in SPLITS}
    train_point(bench, bench.place / "masked", masked_texts(bench, every, Amount(100)))


def chain(*, out: str, seed: int, measure: str, recursive: bool, size: int, unit: Unit, last: int) -> None:
    """All points of one measure and seed, one after the other."""
    bench, steps = read_bench(out, seed), Steps(size, unit, last)
    here = bench.place / curve_place(measure, steps, recursive)
    if measure in FIXED:
        orders = {split: [FIXED[measure](e, seed) for e in bench.encoded[split]] for split in SPLITS}
        for amount in steps.amounts:
            train_point(bench, here / amount.name, masked_texts(bench, orders, amount))
        return
    choice = methods.choose(measure)
    held = bench.place / place(measure) / "order"
    explain(bench, choice, bench.place / "whole" / BEST, held)
    before: Amount | None = None
    for amount in steps.amounts:
        folder = here / amount.name
        if before is not None and recursive:
            held = explain_anew(bench, choice, here / before.name, held, before, here / before.name / BEST)
        if not is_done(folder):
            # The weights of the last point serve nobody, unless somebody asks for a few tokens more one day.
            keep = recursive and (amount != steps.amounts[-1] or unit == "token")
            train_point(bench, folder, masked_texts(bench, read_orders(bench, held), amount), keep=keep)
        before = amount


def leak(*, out: str, seed: int, measure: str, recursive: bool, size: int, unit: Unit, last: int, score: str) -> None:
    """Where a curve lies furthest above the baseline, train on the positions of the masks alone (appendix A).

    A classifier that sees only where a text is masked and how long it is should know no more than one that sees
    everything masked. If it does, the measure has told it the class.
    """
    bench, steps = read_bench(out, seed), Steps(size, unit, last)
    here = bench.place / curve_place(measure, steps, recursive)
    highest = worst_point(bench.place, measure, steps, recursive, score)
    if highest is None:
        return
    held = bench.place / place(measure) / "order"
    if recursive and highest != steps.amounts[0]:
        held = here / steps.amounts[steps.amounts.index(highest) - 1].name / "order"
    orders = read_orders(bench, held)
    texts = {}
    for split in SPLITS:
        positions = gone(orders[split], highest, bench.experiment.rounding)
        pairs = zip(bench.encoded[split], positions, strict=True)
        texts[split] = [positions_only(e, some, bench.mask, bench.filler) for e, some in pairs]
    train_point(bench, leak_place(here, highest), texts)


def leak_place(curve: Path, amount: Amount) -> Path:
    return curve / f"{amount.name}-positions"


def worst_point(seed: Path, measure: str, steps: Steps, recursive: bool, score: str) -> Amount | None:
    """The amount at which a seed's curve lies furthest above its baseline; none where it nowhere does."""
    excess: dict[Amount, float] = {}
    for amount in steps.amounts:
        point = read_point(seed / curve_place(measure, steps, recursive) / amount.name)
        floor = read_point(seed / RANDOM / amount.name)
        if point is not None and floor is not None:
            excess[amount] = point.test(score) - floor.test(score)
    highest = max(excess, key=lambda amount: (excess[amount], -amount.value), default=None)
    return highest if highest is not None and excess[highest] > 0 else None


# -- explanations -------------------------------------------------------------------------------------------


def masked_texts(bench: Bench, orders: Orders, amount: Amount) -> dict[str, list[Encoded]]:
    """Every split with so much of its texts masked."""
    texts = {}
    for split in bench.encoded:
        positions = gone(orders[split], amount, bench.experiment.rounding)
        pairs = zip(bench.encoded[split], positions, strict=True)
        texts[split] = [masked(e, some, bench.mask) for e, some in pairs]
    return texts


def explain_anew(
    bench: Bench, choice: Choice[Method], point: Path, held: Path, amount: Amount, weights: Path | None
) -> Path:
    """Explain a point's own texts with its own weights, which have then done their work; none: with those that the
    bench has."""
    new = point / "order"
    if _missing(bench, new):
        orders = read_orders(bench, held)
        before = {split: gone(orders[split], amount, bench.experiment.rounding) for split in bench.encoded}
        explain(bench, choice, weights, new, before)
    if weights is not None:
        store.remove_file(weights)
    return new


def _missing(bench: Bench, folder: Path) -> list[tuple[str, store.Part]]:
    texts = bench.encoded.items()
    every = [(split, part) for split, held in texts for part in store.parts(folder / split, len(held), PART)]
    return [(split, part) for split, part in every if not part.done]


def explain(
    bench: Bench, choice: Choice[Method], weights: Path | None, folder: Path, before: Orders | None = None
) -> None:
    """Write the order in which tokens go: those gone before, then by what the measure says of the gold class."""
    missing = _missing(bench, folder)
    if not missing:
        return
    if weights is not None:
        bench.clf.model.load_state_dict(load_file(weights))
    bench.clf.model.eval()
    for split, part in missing:
        if part.done:  # as it may be since: both kinds of ROAR begin with the same explanation
            continue
        texts = bench.encoded[split][part.start : part.stop]
        gone_before: Sequence[Any] = [()] * len(texts)
        if before is not None:
            gone_before = before[split][part.start : part.stop]
            texts = [masked(e, some, bench.mask) for e, some in zip(texts, gone_before, strict=True)]
        with own_threads(bench.threads, bench.clf.device):
            explanations = attributions(bench.clf, texts, choice, "gold")
        columns: dict[str, list[Any]] = {
            "order": [order(a.scores, a.encoded.free, some) for a, some in zip(explanations, gone_before, strict=True)],
            "seconds": [a.cost.seconds for a in explanations],
        }
        if before is None and split == "test":
            tops = [held_by_top(a) for a in explanations]
            columns["by_tokens"], columns["by_share"] = [top[0] for top in tops], [top[1] for top in tops]
        store.write_parquet(part.path, columns)


def read_orders(bench: Bench, folder: Path) -> Orders:
    """What `explain` wrote."""
    columns = {split: store.read_parts(folder / split)["order"].to_pylist() for split in bench.encoded}
    return {split: [np.asarray(positions, dtype=np.int32) for positions in rows] for split, rows in columns.items()}


def held_by_top(attribution: Attribution) -> tuple[list[float | None], list[float | None]]:
    """The share of a text's importance (absolute scores) that its top tokens hold, by number and by share of tokens
    (appendix E); none where it has no importance at all."""
    sizes = np.abs(attribution.scores[np.flatnonzero(attribution.encoded.free)].astype(np.float64))
    total, n = sizes.sum(), len(sizes)
    if total <= 0:
        return [None] * len(TOP_TOKENS), [None] * len(TOP_SHARES)
    held = np.minimum(np.cumsum(-np.sort(-sizes)) / total, 1.0)
    by_tokens: list[float | None] = [float(held[min(count, n) - 1]) for count in TOP_TOKENS]
    by_share: list[float | None] = [float(held[budget(n, share) - 1]) for share in TOP_SHARES]
    return by_tokens, by_share
