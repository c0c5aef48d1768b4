"""The grid: order, resumption, killed workers and parents, shards, failures; always the same files at the end."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toycells
import veridical.grid.job
import veridical.grid.local
from toycells import calls, grid, results
from veridical.core import store
from veridical.core.errors import InputError
from veridical.grid import liveness
from veridical.grid.job import error, mark, place
from veridical.grid.liveness import attempts, sign
from veridical.grid.pool import GridError, Job, _mine, part_of, run
from veridical.grid.status import grids
from watching import files_in, until

HERE = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _workers_find_toycells(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", str(HERE), prepend=os.pathsep)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The results of the toy grid, computed here, one cell after the other."""
    folder = tmp_path_factory.mktemp("undisturbed")
    for cell in grid(folder):
        toycells.walk(**cell.arguments)
    return results(folder)


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):  # it ended before the file was opened, or before it was read
        return True


# -- the ordinary course ------------------------------------------------------------------------------------


def test_a_grid_gives_what_its_calls_give_and_a_second_run_does_nothing(tmp_path, undisturbed, monkeypatch):
    told: list[str] = []
    cells = grid(tmp_path)
    run(cells[::-1], tmp_path, workers=2, tick=told.append)  # whatever the order, cells wait for what they need
    assert results(tmp_path) == undisturbed
    assert sorted(told) == sorted(cell.key for cell in cells)
    assert all(told.index(key) < told.index(cell.key) for cell in cells for key in cell.after)
    held = store.read_json(mark(tmp_path, "chain/3"))
    assert held["attempt"] == 1
    assert held["seconds"] >= 0
    assert held["veridical"]
    assert not [*tmp_path.rglob("*.running-*"), *tmp_path.rglob("*.error.txt")]

    monkeypatch.setattr(veridical.grid.local, "spawn", None)  # would fail
    run(cells, tmp_path, workers=2, tick=told.append)
    assert len(told) == len(cells)


def test_workers_have_one_thread_and_printing_cells_do_no_harm(tmp_path):
    run([Job("chatter", "toycells:chatter", {"folder": str(tmp_path)})], tmp_path, workers=1)
    (call,) = calls(tmp_path, "chatter")
    assert {json.loads(call.read_text())[f"{name}_NUM_THREADS"] for name in ("OMP", "MKL", "OPENBLAS")} == {"1"}


def test_another_call_under_the_same_key_is_computed(tmp_path):
    cell = Job("a", "toycells:note", {"folder": str(tmp_path), "name": "x"})
    run([cell], tmp_path)
    run([cell], tmp_path)
    run([Job("a", "toycells:note", {"folder": str(tmp_path), "name": "y"})], tmp_path)
    assert (len(calls(tmp_path, "x")), len(calls(tmp_path, "y"))) == (1, 1)


def test_grids_that_could_not_end_and_settings_that_make_no_sense(tmp_path):
    a, b = Job("a", "toycells:leave", after=("b",)), Job("b", "toycells:leave", after=("a",))
    for cells, words in [([a, b], "wait for it"), ([a], "not there"), ([Job("a", "x:y")] * 2, "two jobs")]:
        with pytest.raises(ValueError, match=words):
            run(cells, tmp_path)
    for key in ("", "/a", "a/", "../a", "a/.b", "a b", "a//b"):
        with pytest.raises(ValueError, match="key"):
            Job(key, "x:y")
    for wrong, words in [
        ({"engine": "slurm"}, "There is no engine 'slurm'"),
        ({"workers": 0}, "0 workers"),
        ({"address": "auto"}, "engine=.ray"),
        ({"shard": "0/8"}, "from 1"),
    ]:
        with pytest.raises(InputError, match=words):
            run([], tmp_path, **wrong)


# -- what goes wrong ----------------------------------------------------------------------------------------


def test_a_failing_cell_is_told_and_the_rest_goes_on(tmp_path):
    cells = [
        Job("fails", "toycells:fail_until", {"file": str(tmp_path / "there")}),
        Job("needs/it", "toycells:leave", after=("fails",)),
        Job("leaves", "toycells:leave"),
        Job("works", "toycells:note", {"folder": str(tmp_path), "name": "works"}),
    ]
    with pytest.raises(GridError, match=r"2 cells failed \(fails, leaves\); 1 that wait for them was not begun; .*why"):
        run(cells, tmp_path, workers=1)
    assert len(calls(tmp_path, "works")) == 1
    assert "RuntimeError: the file is not there" in error(tmp_path, "fails").read_text()
    assert "SystemExit: 3" in error(tmp_path, "leaves").read_text()
    assert not error(tmp_path, "needs/it").exists()

    (tmp_path / "there").touch()
    with pytest.raises(GridError, match="2 cells failed"):
        run(cells, tmp_path, workers=1)
    assert mark(tmp_path, "fails").exists()
    assert not error(tmp_path, "fails").exists()


def test_a_mistake_stops_the_grid_with_its_sentence(tmp_path):
    cells = [
        Job("wrong", "toycells:mistake", {"sentence": "There is no such thing; take another."}),
        Job("long", "toycells:note", {"folder": str(tmp_path), "name": "long", "pause": 600}),
    ]
    with pytest.raises(InputError, match=r"^There is no such thing; take another\.$"):
        run(cells, tmp_path, workers=2)
    assert not calls(tmp_path, "long")


def test_a_sentence_of_one_cell_is_its_own_where_others_are_done(tmp_path):
    """A training that breaks down, in a folder that has results: the rest goes on, this time and every time."""
    wrong = Job("b/wrong", "toycells:mistake", {"sentence": "It broke down; lower lr."})
    others = [Job(name, "toycells:note", {"folder": str(tmp_path), "name": name}) for name in ("a", "c", "d")]
    run(others[:1], tmp_path)
    for done in (["a", "c"], ["a", "c", "d"]):
        with pytest.raises(GridError, match=r"1 cell failed \(b/wrong\).* says why \(It broke down; lower lr\.\)"):
            run([wrong, *others[: len(done)]], tmp_path, workers=1)
        assert [name for name in "acd" if calls(tmp_path, name)] == done
    assert error(tmp_path, "b/wrong").read_text() == "It broke down; lower lr."
    assert grids(tmp_path)[0].count("failed") == 1


def test_a_freed_worker_does_not_wait_for_what_is_told(tmp_path):
    """Summaries of a grid may take seconds: the next cell is started first."""
    begun: list[bool] = []
    cells = [Job(name, "toycells:note", {"folder": str(tmp_path), "name": name}) for name in ("a", "b")]

    def tick(key: str) -> None:
        if key == "a":
            until(lambda: bool(calls(tmp_path, "b")))
        begun.append(bool(calls(tmp_path, "b")))

    run(cells, tmp_path, workers=1, tick=tick)
    assert begun == [True, True]


def test_a_cell_that_kills_its_worker_is_retried_and_given_up(tmp_path):
    cells = [Job("dies", "toycells:die"), Job("works", "toycells:note", {"folder": str(tmp_path), "name": "works"})]
    with pytest.raises(GridError, match=r"1 cell failed \(dies\); "):
        run(cells, tmp_path, workers=2, retries=2)
    said = error(tmp_path, "dies").read_text()
    assert "killed by signal 9" in said
    assert "farewell" in said
    assert len(attempts(place(tmp_path, "dies"))) == 3
    assert len(calls(tmp_path, "works")) == 1


def test_workers_killed_at_random_moments_change_nothing(tmp_path, undisturbed, monkeypatch):
    """Kill -9 of a worker, five times before the first cell can end and five more while the others run."""
    out, gate = tmp_path / "out", tmp_path / "gate"
    alive: list[subprocess.Popen[str]] = []
    spawn = veridical.grid.local.spawn

    def remembered() -> Any:
        worker = spawn()
        alive.append(worker.process)
        return worker

    monkeypatch.setattr(veridical.grid.local, "spawn", remembered)
    over, killed, chance = threading.Event(), [], random.Random(7)

    def kill() -> None:
        while len(killed) < 10 and not over.wait(chance.uniform(0.05, 0.4)):
            beating = files_in(out / "cells", "*.running-*")
            victims = [process for process in list(alive) if process.poll() is None]
            if beating and victims:
                os.kill(chance.choice(victims).pid, signal.SIGKILL)
                killed.append(len(beating))
            if len(killed) == 5:
                gate.touch()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        run(grid(out, pause=0.1, gate=str(gate)), out, workers=2, retries=100)
    finally:
        over.set()
        killer.join()
    assert len(killed) >= 5
    assert results(out) == undisturbed
    assert all(process.poll() is not None for process in alive)
    assert not list(out.rglob("*.running-*"))


def test_a_worker_killed_right_after_its_mark_has_done_its_cell(tmp_path):
    """Even where nothing may be tried again, and without a trace of the attempt."""
    last = Job("last", "toycells:mark_and_die", {"folder": str(tmp_path), "name": "last"})
    told: list[str] = []
    run([last], tmp_path, workers=1, retries=0, tick=told.append)
    assert told == ["last"]
    assert len(calls(tmp_path, "last")) == 1
    assert not attempts(place(tmp_path, "last"))


def test_traces_beside_a_mark_go_with_the_next_run(tmp_path):
    cells = grid(tmp_path)
    run(cells, tmp_path, workers=1)
    sign(place(tmp_path, "shared/0"), 1).touch()
    sign(place(tmp_path, "shared/0"), 2).touch()
    run(cells, tmp_path, workers=1)
    assert not list(tmp_path.rglob("*.running-*"))


PARENT = """
import signal, sys, toycells
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by what is started in the background
from pathlib import Path
from veridical.grid.pool import run
run(toycells.grid(Path(sys.argv[1]), gate=sys.argv[2]), sys.argv[1], workers=2)
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="a process does not tell its children here")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_workers_do_not_outlive_their_parent_and_the_grid_goes_on(how, tmp_path, undisturbed):
    never = str(tmp_path / "gate")  # no cell can end before the parent does
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path), never], stderr=subprocess.PIPE, text=True)
    until(lambda: len(files_in(tmp_path / "cells", "*.running-1")) == 2)
    children = [int(pid) for pid in Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()]
    assert len(children) == 2
    parent.send_signal(how)
    told = parent.communicate()[1]
    assert ("KeyboardInterrupt" in told) == (how == signal.SIGINT)
    until(lambda: all(map(is_gone, children)))
    assert results(tmp_path) != undisturbed
    # Their signs name processes that are gone: nobody has to wait until they are stale.
    assert all(attempts(place(tmp_path, f"shared/{i}")) for i in range(2))
    assert not any(liveness.is_alive(place(tmp_path, f"shared/{i}")) for i in range(2))
    run(grid(tmp_path), tmp_path, workers=2)
    assert results(tmp_path) == undisturbed


# -- several processes in one folder ------------------------------------------------------------------------


def test_what_another_process_works_on_is_left_alone_until_it_is_silent(tmp_path):
    cell = Job("a", "toycells:note", {"folder": str(tmp_path), "name": "a"})
    path = sign(place(tmp_path, "a"), 1)
    path.parent.mkdir()
    path.touch()
    os.utime(path, (time.time() - 10, time.time()))
    worker = threading.Thread(target=run, args=([cell], tmp_path))
    worker.start()
    time.sleep(1.5)  # longer than it waits between two looks
    assert not calls(tmp_path, "a")
    os.utime(path, (100, 110))
    worker.join()
    assert len(calls(tmp_path, "a")) == 1
    held = store.read_json(mark(tmp_path, "a"))
    assert held["attempt"] == 2
    assert held["seconds"] > 9.9  # with what the other one spent


def test_what_another_process_finishes_is_done_and_what_waited_for_it_begins(tmp_path):
    cell = Job("a", "toycells:note", {"folder": str(tmp_path), "name": "a"})
    then = Job("b", "toycells:note", {"folder": str(tmp_path), "name": "b"}, after=("a",))
    path = sign(place(tmp_path, "a"), 1)
    path.parent.mkdir()
    path.touch()
    told: list[str] = []
    worker = threading.Thread(target=run, args=([then, cell], tmp_path), kwargs={"tick": told.append})
    worker.start()
    until((tmp_path / "grid.json").exists)  # it has seen that the cell is not done
    store.write_json(mark(tmp_path, "a"), {"hash": cell.hash})
    path.unlink()
    worker.join()
    assert told == ["a", "b"]
    assert (len(calls(tmp_path, "a")), len(calls(tmp_path, "b"))) == (0, 1)


SHARD = """
import sys
from veridical.grid.pool import Job, run
out, shard = sys.argv[1:]
same = {"folder": out, "pause": 0.5}
shared = [Job(f"shared/{i}", "toycells:note", {**same, "name": f"shared{i}"}) for i in range(2)]
after = tuple(cell.key for cell in shared)
rest = [Job(f"own/{i}", "toycells:note", {**same, "name": f"own{i}"}, after=after) for i in range(4)]
run([*shared, *rest], out, shard=shard, workers=1)
"""


def test_shards_at_the_same_time_compute_every_cell_once(tmp_path):
    shards = [subprocess.Popen([sys.executable, "-c", SHARD, str(tmp_path), f"{i}/2"]) for i in (1, 2)]
    assert [shard.wait() for shard in shards] == [0, 0]
    for name in ("shared0", "shared1", "own0", "own1", "own2", "own3"):
        assert len(calls(tmp_path, name)) == 1


def test_shards_one_after_the_other_give_the_whole(tmp_path, undisturbed):
    cells = grid(tmp_path)
    run(cells, tmp_path, shard="2/3", workers=1)
    made = {key for cell in cells if mark(tmp_path, key := cell.key).exists()}
    assert made == {"shared/1", "chain/1", "shared/0", "chain/4"}  # dealt out to and fro: 0 1 2, 5 4 3
    for shard in ("1/3", "3/3"):
        run(cells, tmp_path, shard=shard, workers=1)
    assert results(tmp_path) == undisturbed


@given(data=st.data(), count=st.integers(0, 12), parts=st.integers(1, 5))
def test_shards_share_what_nobody_waits_for_and_have_all_they_need(data: st.DataObject, count: int, parts: int):
    cells: list[Job] = []
    for i in range(count):
        after = data.draw(st.lists(st.sampled_from([c.key for c in cells]), unique=True, max_size=3)) if cells else []
        cells.append(Job(f"c{i}", "x:y", after=tuple(after)))
    needed = {key for cell in cells for key in cell.after}
    shards = [_mine(cells, f"{i}/{parts}") for i in range(1, parts + 1)]
    own = [cell.key for shard in shards for cell in shard if cell.key not in needed]
    assert sorted(own) == sorted(cell.key for cell in cells if cell.key not in needed)
    for shard in shards:
        keys = [cell.key for cell in shard]
        assert len(set(keys)) == len(keys)
        assert all(key in keys for cell in shard for key in cell.after)
    assert {cell.key for shard in shards for cell in shard} == {cell.key for cell in cells}


@pytest.mark.parametrize("parts", [2, 5, 10])
def test_shards_get_as_many_of_the_costly_cells(parts):
    cost = {"cheap": 1, "fair": 2, "dear": 6, "also-dear": 6}
    cells = [Job(f"seed{seed}/{kind}/by-p10", "x:y") for seed in range(5) for kind in cost]
    loads = [sum(cost[c.key.split("/")[1]] for c in _mine(cells, f"{i}/{parts}")) for i in range(1, parts + 1)]
    assert max(loads) <= 1.25 * sum(loads) / parts


def test_shards_are_numbered_from_one():
    assert part_of("2/8") == (2, 8)
    for wrong in ("0/8", "9/8", "8", "a/b", "-1/8", "1/0", ""):
        with pytest.raises(InputError, match="--array=1-n"):
            part_of(wrong)
