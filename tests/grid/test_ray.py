"""The Ray engine: a local Ray, Ray's simulated cluster with a node killed in mid-run, and its authentication."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import veridical.grid.ray
from toycells import calls, grid, results
from veridical.core import store
from veridical.core.errors import InputError
from veridical.grid import liveness
from veridical.grid.job import mark, place
from veridical.grid.pool import GridError, Job, run
from watching import until

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install 'veridical[ray]'"
)
SMALL = {"object_store_memory": 80 * 2**20, "include_dashboard": False}


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Workers find the toy cells; no token of this machine's user is touched; a busy machine's memory is no matter."""
    settings = {
        "HOME": str(tmp_path_factory.mktemp("home")),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": "a-token-for-the-tests-only",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_memory_monitor_refresh_ms": "0",
        "VERIDICAL_STALE": "5",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]), prepend=os.pathsep)
    monkeypatch.setattr("veridical.grid.liveness.STALE", 5.0)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The toy grid's results from the local engine."""
    folder = tmp_path_factory.mktemp("undisturbed")
    run(grid(folder), folder, workers=2)
    return results(folder)


def processes(word: str) -> list[str]:
    """Command lines of running processes that hold a word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has ended meanwhile
        if word in line:
            found.append(line)
    return found


@needs_ray
def test_a_local_ray_of_two_workers(tmp_path, undisturbed):
    import ray

    cells = [
        *grid(tmp_path),
        Job("dies", "toycells:die"),
        Job("fails", "toycells:fail_until", {"file": str(tmp_path / "nowhere")}),
        Job("notes", "toycells:note", {"folder": str(tmp_path), "name": "notes"}),
    ]
    told: list[str] = []
    with pytest.raises(GridError, match=r"2 cells failed \((fails, dies|dies, fails)\)"):
        run(cells, tmp_path, engine="ray", workers=2, retries=1, tick=told.append)
    assert sorted(told) == sorted(cell.key for cell in cells if cell.key not in ("dies", "fails"))
    (call,) = calls(tmp_path, "notes")
    seen = json.loads(call.read_text())
    assert seen["OMP_NUM_THREADS"] == "1"
    assert seen["RAY_AUTH_MODE"] == "token"
    assert "RuntimeError: the file is not there" in (tmp_path / "cells" / "fails.error.txt").read_text()
    assert len(liveness.attempts(place(tmp_path, "dies"))) == 2
    assert {name: held for name, held in results(tmp_path).items() if "calls" not in name} == undisturbed
    # Nothing is left: no Ray in this process, none beside it.
    assert not ray.is_initialized()
    until(lambda: not processes("veridical-ray-"))


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A head and one more node, a core each."""
    import ray
    from ray.cluster_utils import Cluster

    with tempfile.TemporaryDirectory(prefix="veridical-ray-", ignore_cleanup_errors=True) as place:
        monkeypatch.setenv("RAY_TMPDIR", place)
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **SMALL})
        try:
            yield made
        finally:
            ray.shutdown()
            made.shutdown()
    until(lambda: not processes(place))


ASK = """
import sys
from ray._raylet import GcsClient
print("in", len(GcsClient(address=sys.argv[1]).internal_kv_keys(b"", b"")))
"""


@needs_ray
def test_a_node_killed_in_mid_run_changes_nothing_and_strangers_are_not_let_in(
    cluster, tmp_path, undisturbed, monkeypatch
):
    node = cluster.add_node(num_cpus=1, object_store_memory=SMALL["object_store_memory"])
    cluster.wait_for_nodes()
    out, gate = tmp_path / "out", tmp_path / "gate"
    cells = grid(out, gate=str(gate))

    def kill() -> None:
        """When both nodes are in the middle of a cell that others wait for; neither can end it before."""
        try:
            until(lambda: all((out / f"shared{i}" / "2.json").exists() for i in range(2)))
            cluster.remove_node(node, allow_graceful=False)
            until(lambda: not all(liveness.is_alive(place(out, f"shared/{i}")) for i in range(2)))
        finally:
            gate.touch()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        run(cells, out, engine="ray", address=cluster.address)
    finally:
        killer.join()
    assert results(out) == undisturbed
    assert sorted(store.read_json(mark(out, f"shared/{i}"))["attempt"] for i in range(2)) == [1, 2]

    monkeypatch.setenv("VERIDICAL_WITH", "json")  # which the machines of the cluster do not have
    note = Job("note", "toycells:note", {"folder": str(tmp_path), "name": "note"})
    run([note], tmp_path / "note", engine="ray", address=cluster.address)
    (call,) = calls(tmp_path, "note")
    assert json.loads(call.read_text())["VERIDICAL_WITH"] == "json"

    for token, allowed in ((os.environ["RAY_AUTH_TOKEN"], True), ("another-token", False)):
        stranger = [sys.executable, "-c", ASK, cluster.address]
        asked = subprocess.run(stranger, env={**os.environ, "RAY_AUTH_TOKEN": token}, capture_output=True, text=True)
        assert asked.stdout.startswith("in ") == allowed
        assert ("AuthenticationError" in asked.stderr) != allowed


def test_without_authentication_nothing_is_started(tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(InputError, match=r"RAY_AUTH_MODE=disabled lets anyone .* set RAY_AUTH_MODE=token"):
        run(grid(tmp_path), tmp_path, engine="ray")


def test_without_ray_there_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install 'veridical\[ray\]'"):
        run(grid(tmp_path), tmp_path, engine="ray")


def test_machines_must_see_the_folder_and_have_the_same_version(tmp_path):
    cell = store.plain(grid(tmp_path)[0])
    found = veridical.grid.ray._compute(str(tmp_path), cell, "0")
    assert (found["state"], "install the same" in found["text"]) == ("mistake", True)
    here = veridical.grid.ray.version("veridical")
    found = veridical.grid.ray._compute(str(tmp_path / "elsewhere"), cell, here)
    assert (found["state"], "does not see" in found["text"]) == ("mistake", True)
    store.write_json(tmp_path / "grid.json", {})
    assert veridical.grid.ray._compute(str(tmp_path), cell, here)["state"] == "done"
