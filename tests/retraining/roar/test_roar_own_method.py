"""A method of a user's own, outside the tree, through ROAR in two worker processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import veridical
from veridical.core import store

METHOD = '''
import os

import torch

from veridical.attribution import method


@method("later", signed=False, of_target=False)
def later(clf, batch, target, *, power: int = 1):
    """The later a token stands, the higher it scores."""
    target(clf.forward(batch).logits)
    with open(f"{__file__}.{os.getpid()}.seen", "w"):
        """So that the test knows which processes have called it."""
    return torch.arange(batch.ids.shape[1], dtype=torch.float32).expand(batch.ids.shape) ** power
'''
ASK = "roar --data planted:size=24 --model bilstm:hidden=8:embedding=8 --method later:power=2,later --seeds 1 --step 50"
SET = "--no-leakage --set train.epochs=1 --workers 2 --out out"


@pytest.mark.parametrize("way", ["file", pytest.param("entry point", marks=pytest.mark.slow)])
def test_a_method_outside_the_tree_works_in_workers(tmp_path: Path, way: str):
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    elsewhere.mkdir()
    store.write_text(home / "own_methods.py", METHOD)
    path, options = [str(Path(veridical.__file__).parents[1])], []
    if way == "file":
        options = ["--with", "../home/own_methods.py"]
    else:
        info = home / "own_methods-1.0.dist-info"
        store.write_text(info / "METADATA", "Metadata-Version: 2.1\nName: own-methods\nVersion: 1.0\n")
        store.write_text(info / "entry_points.txt", "[veridical]\nmine = own_methods\n")
        path.append(str(home))
    words = [*ASK.split(), *SET.split(), *options]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "veridical", *words]
    ended = subprocess.run(command, cwd=elsewhere, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    folder = elsewhere / "out"
    summary = store.read_json(folder / "summary.json")
    assert {curve["measure"] for curve in summary["curves"]} == {"random", "later", "later:power=2"}
    assert len(list(home.glob("*.seen"))) > 1, "its workers have called it, not the command's process alone"
    marks = [store.read_json(path) for path in (folder / "cells" / "seed0").glob("later*/*.json")]
    assert [set(mark["with"]) for mark in marks] == [{"own_methods"}] * 2
