"""The search for a bound: how low does a term get when nothing else is minimised?

Explanation regularisation, appendix H: the term alone is trained for with three seeds. The bound of the dev loss is
the mean over seeds of its lowest epoch; that of the train loss is 1.5 times the same of the train loss (the mean over
an epoch's steps, dropout on), or `search:looser=1.1` times. Every run is an ordinary one, resumed and reused like any
other.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Literal

from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.records import Dataset
from veridical.core.spec import Spec
from veridical.core.statistics import mean
from veridical.core.values import read
from veridical.training.bound import SEARCH, hold, read_bounds
from veridical.training.config import TrainConfig, defaults
from veridical.training.term import objective as read_objective
from veridical.training.train import Run, train_seeds

SEEDS = (0, 1, 2)
LOOSER = 1.5  # the train bound, in units of the lowest train loss


def is_searched(bound: str | None) -> bool:
    """Whether a spec leaves a bound to be found."""
    return any(value.name == SEARCH for _, value in read_bounds(bound))


def search_bound(
    data: str | Path | Dataset,
    model: str = "minilm",
    *,
    bound: str,
    objective: str = "cross_entropy",
    seeds: Sequence[int] = SEEDS,
    config: TrainConfig | None = None,
    limit: int | None = None,
    out: str | Path | None = None,
    report_to: Literal["none", "tensorboard"] = "none",
    progress: bool | None = None,
) -> str:
    """`explanation=search` with numbers in its place, for `train(..., bound=...)`. The runs of the search go to `out`,
    or where runs go."""
    if not seeds:
        raise InputError("A bound is searched with at least one seed; give seeds=(0, 1, 2).")
    given = config or defaults(model, bound)
    if given.select == "last":
        raise InputError("select is 'last', and a bound decides which epochs may be kept; set select=loss.")
    alone = dataclasses.replace(given, select="objective")
    asked = read_bounds(bound)
    looser = {name: _looser(name, value) for name, value in asked}
    # Some number where one is to be found, so that all else is checked before the search.
    chosen, _ = hold(read_objective(objective), [(name, _with_numbers(value, "1")) for name, value in asked])
    bounds = []
    for name, value in asked:
        if value.name == SEARCH:
            term = next(term for term in chosen if term.name == name)
            spec = f"cross_entropy:weight=0,{term.label}"
            folder = None if out is None else Path(out) / name
            same = {"config": alone, "limit": limit, "report_to": report_to, "progress": progress}
            runs = train_seeds(data, model, objective=spec, seeds=seeds, out=folder, **same)
            train, dev = (sum(lows) / len(lows) for lows in zip(*(lowest(run, name) for run in runs), strict=True))
            value = _with_numbers(value, f"{looser[name] * train:.4g}+{dev:.4g}")
        bounds.append(f"{name}={value.write()}")
    return ",".join(bounds)


def _looser(name: str, value: Spec) -> float:
    """The train bound, in units of the lowest train loss."""
    who = f"looser, of the search for the bound of term {name!r}"
    looser = read(value.options.get("looser", LOOSER), float, who) if value.name == SEARCH else LOOSER
    if not 1 <= looser < math.inf:
        raise InputError(f"{who}, is {looser:g}; it must be 1 or more: nothing lower was reached.")
    return looser


def _with_numbers(value: Spec, numbers: str) -> Spec:
    """A bound with numbers in place of the search, and without the option that is the search's own."""
    if value.name != SEARCH:
        return value
    return Spec(numbers, {key: text for key, text in value.options.items() if key != "looser"})


def lowest(run: Run, name: str) -> tuple[float, float]:
    """A term's lowest train and dev loss over the epochs of a run."""
    rows = store.read_jsonl(run.folder / "train.jsonl")
    epochs = groupby((row for row in rows if "loss" in row), key=lambda row: row["epoch"])
    train = [mean(row[name] for row in steps) for _, steps in epochs]
    dev = [row["dev"][name] for row in rows if "dev" in row]
    if None in dev:
        raise InputError(f"Term {name!r} says nothing of the dev split, so no bound can be found; use other data.")
    return min((loss for loss in train if loss is not None), default=math.inf), min(dev)


search = search_bound  # its name where the documentation had it before 0.2; goes with 0.3
