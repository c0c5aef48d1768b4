"""Every verb that keeps its work, killed with SIGKILL again and again: what it ends with is what it would have been.

The places are drawn with fixed seeds: at a change of its folder, right before it takes effect, or some moments after.
"""

from __future__ import annotations

import csv
import io
import json
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from killing import Death, Forge
from veridical.core.store import TEMPORARY
from watching import files_in

DATA, MODEL = "planted:size=30", "bilstm:hidden=8:embedding=8"
FAST = ("--set", "train.epochs=2", "--set", "train.batch=8", "--set", "train.lr=0.01")
TRAINED = ("--data", DATA, "--model", MODEL, *FAST)
CHEAP = ("--data", DATA, "--method", "attention,random", "--metric", "decision_flip,auc")
RECIPE = f"""
[[item]]
what = "table 1"
train = "veridical train {" ".join(TRAINED)} --seed 0,1 --out runs"
command = "veridical evaluate runs/seed0 {" ".join(CHEAP)} --out scores"
status = "run"
"""


@dataclass(frozen=True)
class Work:
    """A command, without its --out; RUNS has the runs `base` and `att`, an audit of `base`, and a recipe."""

    name: str
    words: tuple[str, ...]
    grid: bool = False  # it has workers, which are killed too


GUIDED = ("--base", "RUNS/base", "--guided", "att=RUNS/att", "--method", "attention", "--witness", "input_x_gradient")
ROAR = ("--method", "attention", "--seeds", "1", "--step", "40", "--no-leakage", "--workers", "1")
TERMS = "saloss:weight=0.1,virtual_adversarial:weight=0.5,input_gradient:weight=0.01"
BOUND = (
    "--objective",
    "explanation:method=input_x_gradient",
    "--bound",
    "explanation=0.2+9",
    "--set",
    "train.select=loss",
)
WORKS = (
    Work("train", ("train", *TRAINED)),
    Work("evaluate", ("evaluate", "RUNS/base", *CHEAP, "--split", "train")),
    Work("audit", ("audit", "RUNS/base", *CHEAP)),
    Work("shortcuts", ("shortcuts", "RUNS/audit", "--method", "attention", "--texts", "6", "--min-texts", "2")),
    Work("fresh", ("fresh", *TRAINED, "--set", "train.epochs=1")),
    Work("guidance", ("guidance", *GUIDED, "--data", DATA)),
    Work("roar", ("roar", *TRAINED, *ROAR), grid=True),
    Work("run", ("run", "RUNS/recipe.toml", "--workers", "1"), grid=True),
)
TRAININGS = (
    Work("terms", ("train", *TRAINED, "--objective", TERMS)),
    Work("bounded", ("train", *TRAINED, *BOUND)),
)


@pytest.fixture(scope="module")
def forge() -> Iterator[Forge]:
    with Forge() as forge:
        yield forge


@pytest.fixture(scope="module")
def runs(forge: Forge, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    for name, objective in (("base", "cross_entropy"), ("att", "explanation:weight=2")):
        words = ["train", *TRAINED, "--objective", objective, "--out", str(root / name)]
        assert forge.run(words, root / "log.txt").code == 0
    audited = ["audit", str(root / "base"), *CHEAP, "--limit", "2", "--out", str(root / "audit")]
    assert forge.run(audited, root / "log.txt").code == 0
    (root / "recipe.toml").write_text(RECIPE)
    return root


def typed(work: Work, runs: Path, out: Path) -> list[str]:
    return [*(word.replace("RUNS", str(runs)) for word in work.words), "--out", str(out)]


# -- what is compared ---------------------------------------------------------------------------------------

CLOCKS = {"seconds", "time", "created", "attempt", "weight"}  # a cell's weight is the time that it may take


def contents(folder: Path) -> dict[str, Any]:
    """Every file of a folder, without its clocks. Of logs and of pages, which are made of other files, the names."""
    held = {str(path.relative_to(folder)): path for path in files_in(folder)}
    folders = [parent for parent, _, _ in os.walk(folder)]  # an empty one is a leftover too
    left = [name for name in [*held, *folders] if TEMPORARY in name or ".running-" in name or "checkpoint" in name]
    assert not left
    return {name: _content(path) for name, path in held.items() if path.stem not in ("time", "timing")}


def _content(path: Path) -> Any:
    kind = path.suffix
    if kind == ".html" or "logs" in path.parts:
        return None
    if kind == ".parquet":
        columns = pyarrow.parquet.ParquetFile(path).read().to_pydict()
        return {name: repr(column) for name, column in columns.items() if name not in CLOCKS}
    if kind == ".csv":
        return [_untimed(row) for row in csv.DictReader(io.StringIO(path.read_text()))]
    if kind in (".json", ".jsonl"):
        lines = [path.read_text()] if kind == ".json" else path.read_text().splitlines()
        return [_untimed(json.loads(line)) for line in lines]
    return path.read_bytes()


def _untimed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _untimed(inner) for key, inner in value.items() if key not in CLOCKS}
    return [_untimed(inner) for inner in value] if isinstance(value, list) else value


# -- kills --------------------------------------------------------------------------------------------------


def undisturbed(forge: Forge, work: Work, runs: Path, root: Path, worker: bool) -> tuple[dict[str, Any], int]:
    """What it comes to, and how many changes it makes on its way. Cells know the folder they are in by its name: it is
    the one that is killed later, and is moved out of the way."""
    out, tally = root / "out", root / "tally"
    ended = forge.run(typed(work, runs, out), root / "log", death=Death(str(out), 0, worker=worker, tally=str(tally)))
    assert ended.code == 0, ended.told
    expected = contents(out)
    out.rename(root / "whole")
    return expected, tally.stat().st_size


def killed(forge: Forge, work: Work, runs: Path, out: Path, change: int, later: float, worker: bool = False) -> bool:
    """Whether it was killed, as it is unless it ended before its moment came."""
    log, tally = (out.with_name(f"{out.name}.{name}") for name in ("log", "tally"))
    tally.unlink(missing_ok=True)
    ended = forge.run(typed(work, runs, out), log, death=Death(str(out), change, later, worker, tally=str(tally)))
    assert ended.code in (0, -9), ended.told
    return ended.code == -9


@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.name)
def test_killed_twice_it_goes_on_to_the_same_results(work: Work, forge: Forge, runs: Path, tmp_path: Path):
    chance, out = random.Random(work.name), tmp_path / "out"
    expected, changes = undisturbed(forge, work, runs, tmp_path, work.grid)
    # In the first half of its changes, so that enough of them are left for the second time.
    assert killed(forge, work, runs, out, chance.randint(1, changes // 2), 0, work.grid)
    assert killed(forge, work, runs, out, chance.randint(1, 3), chance.uniform(0, 0.05))
    ended = forge.run(typed(work, runs, out), tmp_path / "log")
    assert ended.code == 0, ended.told
    assert contents(out) == expected


@pytest.mark.kill
@pytest.mark.parametrize("worker", [False, True], ids=["itself", "worker"])
@pytest.mark.parametrize("work", [*WORKS, *TRAININGS], ids=lambda work: work.name)
def test_killed_anywhere_it_goes_on_to_the_same_results(
    work: Work, worker: bool, forge: Forge, runs: Path, tmp_path: Path
):
    if worker and not work.grid:
        pytest.skip("it has no workers")
    chance = random.Random(f"{work.name} {worker}")
    expected, changes = undisturbed(forge, work, runs, tmp_path, worker)
    for number in range(6 if work.grid else 16):
        out = tmp_path / "out"
        # Every other time some moments after a change: it may have ended by then. At the change itself it cannot have.
        later = chance.uniform(0, 2 if work.grid else 0.2) if number % 2 else 0
        assert killed(forge, work, runs, out, chance.randint(1, changes), later, worker) or later
        killed(forge, work, runs, out, chance.randint(1, changes), 0, worker)  # unless too little was left to do
        ended = forge.run(typed(work, runs, out), tmp_path / "log")
        assert ended.code == 0, ended.told
        assert contents(out) == expected
        out.rename(tmp_path / f"out-{number}")
