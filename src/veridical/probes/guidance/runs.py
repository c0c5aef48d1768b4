"""What was trained: runs as seeds of a condition, and what each condition's objective guides."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from veridical.attribution import methods
from veridical.core import stored
from veridical.core.errors import InputError
from veridical.core.spec import INSIDE, Spec
from veridical.core.values import read
from veridical.training.bound import read_bounds
from veridical.training.term import Weighted
from veridical.training.term import objective as read_objective
from veridical.training.train import SCORES, read_run

# Terms beside `explanation` that pull an explanation towards something: which one.
PULLED = {"saloss": "attention", "explanation_guided": "attention"}


@dataclass(frozen=True)
class Trained:
    """One finished training run, a seed of its condition."""

    folder: Path
    seed: int
    dev: Mapping[str, float | None]  # scores on dev, terms included


@dataclass(frozen=True)
class Condition:
    """Runs that differ in their seed alone."""

    name: str
    objective: str
    bound: str  # empty: none
    select: str  # the dev score that chose the epochs that were kept
    runs: tuple[Trained, ...]
    failed: tuple[int, ...]  # seeds of which nothing was kept, because no epoch kept the bound

    @property
    def guides(self) -> tuple[str, ...]:
        """The attribution methods that the objective guides."""
        guided = []
        for term in read_objective(self.objective):
            if term.weight and term.name == "explanation":
                guided.append(methods.choose(Spec.read(term.choice.options["method"], INSIDE)).label)
            elif term.weight and term.name in PULLED:
                guided.append(PULLED[term.name])
        return tuple(dict.fromkeys(guided))

    @property
    def explanation(self) -> Weighted | None:
        """The term `explanation` of the objective."""
        return next((term for term in read_objective(self.objective) if term.name == "explanation"), None)

    @property
    def setting(self) -> str:
        """How the explanation loss entered: a weight, a bound, alone; empty where it did not."""
        term = self.explanation
        if term is None:
            return ""
        held = dict(read_bounds(self.bound)).get("explanation")
        if held is not None:
            return f"bound {held.name}"
        alone = all(each.weight == 0 for each in read_objective(self.objective) if each.name != "explanation")
        return "alone" if alone else f"weight {term.weight:g}"

    @property
    def dev_bound(self) -> float | None:
        """What the explanation loss on dev was held to."""
        held = dict(read_bounds(self.bound)).get("explanation")
        return None if held is None else read(held.name, tuple[float, ...], "the bound of explanation")[-1]


def condition(name: str, sources: Sequence[str | Path]) -> Condition:
    """The runs in these folders, each a run's or one that holds runs as seed0, seed1, ..."""
    folders = [folder for source in sources for folder in _runs_in(Path(source))]
    needed = ("objective", "model", "seed", "train.select")
    specs = [stored.read_fields(folder / "spec.json", *needed) for folder in folders]
    kinds = {
        (spec["objective"], spec.get("bound", ""), spec["model"], f"select={spec['train']['select']}") for spec in specs
    }
    if len(kinds) > 1:
        two = " and ".join(sorted(" ".join(filter(None, kind)) for kind in kinds)[:2])
        raise InputError(f"The runs of {name!r} were not trained alike ({two}); give every condition its own name.")
    runs, failed, seen = [], [], set()
    for folder, spec in zip(folders, specs, strict=True):
        if spec["seed"] in seen:
            raise InputError(f"Two runs of {name!r} have seed {spec['seed']}; name every run once.")
        seen.add(spec["seed"])
        run = read_run(folder)
        if run.failed:
            failed.append(run.seed)
        else:
            runs.append(Trained(folder, run.seed, run.scores.get("dev", {})))
    if not runs:
        raise InputError(f"Every run of {name!r} failed: no epoch kept its bound; raise the bound, or train on.")
    first = specs[0]
    return Condition(
        name, first["objective"], first.get("bound", ""), first["train"]["select"], tuple(runs), tuple(failed)
    )


def selection(conditions: Sequence[Condition]) -> str:
    """What has to be said of how epochs were chosen; empty where all conditions had one rule."""
    rules = {condition.name: condition.select for condition in conditions}
    if len(set(rules.values())) == 1:
        return ""
    listed = ", ".join(f"{name} by {rule}" for name, rule in rules.items())
    return (
        f"The epochs that were kept were chosen by different scores on dev ({listed}), so conditions differ in that "
        "too; train all of them with the setting train.select=loss."
    )


def _runs_in(folder: Path) -> list[Path]:
    if os.path.isfile(folder / "spec.json"):
        return [folder]
    # By number, so that seed10 does not come before seed2; `bound/` beside them holds the runs of a bound's search.
    within = folder.glob("seed*") if os.path.isdir(folder) else ()
    runs = [path for path in within if path.name[4:].isdigit() and (path / "spec.json").is_file()]
    if not runs:
        raise InputError(
            f"{folder} is no training run (no spec.json) and holds none (seed0, seed1, ...); name a folder that "
            f"`veridical train` finished ({SCORES})."
        )
    return sorted(runs, key=lambda path: int(path.name[4:]))
