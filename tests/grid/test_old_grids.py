"""Grids that version 0.1 has begun: its hashes, marks and signs hold."""

from __future__ import annotations

import os

import pytest

import veridical.grid.job
from toycells import calls
from veridical.core import store
from veridical.grid.job import Job
from veridical.grid.pool import run
from veridical.grid.status import grids


@pytest.mark.parametrize(
    ("call", "arguments", "hash"),
    [
        ("veridical.roar:shared", {"out": "/data/roar", "seed": 0, "everything": False}, "e2dfffe5"),
        (
            "veridical.roar:chain",
            {"out": "/data/roar", "seed": 0, "measure": "random", "recursive": False}
            | {"size": 20, "unit": "percent", "last": 80},
            "2caf2813",
        ),
        (
            "veridical.roar:leak",
            {"out": "/data/roar", "seed": 1, "measure": "attention", "recursive": True}
            | {"size": 10, "unit": "percent", "last": 90, "score": "macro_f1"},
            "d7d812bd",
        ),
        (
            "veridical.recipe:type_logged",
            {"words": ["train", "--data", "planted"], "folder": "/data/paper", "log": "logs/table-3/train.txt"},
            "4857d330",
        ),
        ("mine:train", {"seed": 3}, "d0bcdac6"),
    ],
)
def test_hashes_are_those_of_version_0_1(call, arguments, hash):
    """Computed with its code: by another hash whatever is done would be done again."""
    assert Job("key", call, arguments).hash == hash
    assert call not in veridical.grid.job.JOBS or callable(veridical.grid.job._function(call))


def test_a_grid_of_version_0_1_is_found_done_and_gone_on_with(tmp_path):
    """As its code laid it out: marks with hashes, the empty sign of a killed worker, one that had let go."""
    notes = {name: {"folder": str(tmp_path), "name": name} for name in ("done", "killed", "ended")}
    hashes = {name: store.stable_hash(["toycells:note", arguments]) for name, arguments in notes.items()}
    rows = [{"key": f"seed0/{name}", "weight": 1.0, "after": [], "hash": hashes[name]} for name in notes]
    store.write_json(tmp_path / "grid.json", {"workers": 2, "cells": rows})
    facts = {"seconds": 2.5, "attempt": 1, "weight": 1.0, "call": "toycells:note", "hash": hashes["done"]}
    store.write_json(tmp_path / "cells" / "seed0" / "done.json", facts)
    for name, times in {"killed.running-1": (1000, 1004), "ended.running-1": (0, 7)}.items():
        (tmp_path / "cells" / "seed0" / name).touch()
        os.utime(tmp_path / "cells" / "seed0" / name, times)
    (before,) = grids(tmp_path)
    assert [(cell.state, cell.seconds) for cell in before.cells] == [("done", 2.5), ("missing", 4), ("missing", 7)]

    run([Job(f"seed0/{name}", "toycells:note", arguments) for name, arguments in notes.items()], tmp_path, workers=1)
    assert {name: len(calls(tmp_path, name)) for name in notes} == {"done": 0, "killed": 1, "ended": 1}
    assert grids(tmp_path)[0].state == "done"
    held = store.read_json(tmp_path / "cells" / "seed0" / "ended.json")
    assert (held["attempt"], held["seconds"] >= 7) == (2, True)
    assert not list(tmp_path.rglob("*.running-*"))


def test_the_old_name_of_a_job_works_with_a_warning():
    with pytest.warns(FutureWarning, match=r"veridical\.grid\.Cell is now veridical\.grid\.pool\.Job"):
        from veridical.grid import Cell
    assert Cell is Job
