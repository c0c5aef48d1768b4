"""What `veridical status` says of grids, from their files alone."""

from __future__ import annotations

import json
import os
import time

import pytest
from typer.testing import CliRunner

from veridical.cli.app import app
from veridical.core import store
from veridical.grid.job import Job, error, mark, place
from veridical.grid.liveness import sign
from veridical.grid.status import grids


def test_status_counts_and_estimates(tmp_path):
    folder = tmp_path / "grid"
    cells = [
        Job("done", "x:y", weight=2),
        Job("running", "x:y", weight=3),
        Job("failed", "x:y"),
        Job("killed", "x:y"),
        Job("missing/one", "x:y", weight=4),
    ]
    rows = [{"key": cell.key, "weight": cell.weight, "after": [], "hash": cell.hash} for cell in cells]
    store.write_json(folder / "grid.json", {"workers": 2, "cells": rows})
    assert grids(folder)[0].remaining is None
    shown = CliRunner().invoke(app, ["status", str(folder)]).stdout
    assert f"{folder}: stopped, 5 cells: 5 missing" in shown
    assert "no estimate" in shown

    store.write_json(mark(folder, "done"), {"hash": cells[0].hash, "seconds": 20.0, "attempt": 1})
    store.write_text(error(folder, "failed"), "why")
    now = time.time()
    for key, seen in (("running", now), ("killed", now - 1000)):
        sign(place(folder, key), 1).touch()
        os.utime(sign(place(folder, key), 1), (seen - 5, seen))
    (found,) = grids(tmp_path)
    assert [cell.state for cell in found.cells] == ["done", "running", "failed", "missing", "missing"]
    assert (found.state, found.workers) == ("running", 1)
    # Ten seconds for a weight of one: what is left of 30, 10, 10 and 40.
    assert found.remaining == pytest.approx(25 + 10 + 5 + 40)
    shown = CliRunner().invoke(app, ["status", str(folder)]).stdout
    assert "5 cells: 1 done, 1 running, 1 failed, 2 missing" in shown
    assert "running  running: 5 s" in shown
    assert str(error(folder, "failed")) in shown
    assert "about 80 s to go, 1 at once" in shown
    (plain,) = json.loads(CliRunner().invoke(app, ["status", str(folder), "--json"]).stdout)
    assert plain["cells"][1]["key"] == "running"


def test_status_of_a_finished_grid_and_of_nothing(tmp_path):
    assert CliRunner().invoke(app, ["status", str(tmp_path)]).stdout.strip() == "No runs yet."
    store.write_json(tmp_path / "grid.json", {"workers": 2, "cells": []})
    assert CliRunner().invoke(app, ["status", str(tmp_path)]).stdout.strip() == f"{tmp_path}: done, 0 cells:"
    store.write_json(tmp_path / "audit" / "spec.json", {"model": "m"})  # not a run, and not broken either
    assert "broken" not in CliRunner().invoke(app, ["status", str(tmp_path)]).stdout
