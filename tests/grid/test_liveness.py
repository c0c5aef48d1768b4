"""Signs of life: whose turn it is, who counts as dead, and what is left of one that was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.process import machine
from veridical.grid import liveness
from veridical.grid.job import Job, compute, error, mark, place
from veridical.grid.liveness import Attempt, Turn, attempts, begin, is_alive, sign, wait, working
from watching import until


def started(thing: Path) -> Turn:
    turn = begin(thing)
    assert turn is not None
    return turn


def change(path: Path, **facts: object) -> None:
    """Rewrite what a sign says, but not its time."""
    times = path.stat()
    path.write_text(json.dumps({**json.loads(path.read_text()), **facts}))
    os.utime(path, (times.st_atime, times.st_mtime))


def test_a_turn_is_one_workers_until_the_thing_has_ended(tmp_path):
    thing = tmp_path / "deep" / "thing"
    assert not is_alive(thing)
    turn = started(thing)
    with working(turn):
        assert is_alive(thing)
        assert begin(thing) is None
    assert not list(thing.parent.iterdir())


def test_of_many_who_come_at_once_one_gets_the_turn(tmp_path):
    gate, turns = threading.Barrier(8), []

    def come() -> None:
        gate.wait()
        turns.append(begin(tmp_path / "thing"))

    comers = [threading.Thread(target=come) for _ in range(8)]
    for comer in comers:
        comer.start()
    for comer in comers:
        comer.join()
    assert sum(turn is not None for turn in turns) == 1


def test_a_sign_that_has_just_been_made_is_alive_for_other_threads(tmp_path, monkeypatch):
    thing, create, second = tmp_path / "thing", store.create, []

    def create_and_be_overtaken(path: Path, text: str) -> bool:
        made = create(path, text)
        monkeypatch.setattr(store, "create", create)
        other = threading.Thread(target=lambda: second.append(begin(thing)))
        other.start()
        other.join()
        return made

    monkeypatch.setattr(store, "create", create_and_be_overtaken)
    first = started(thing)
    assert second == [None]
    assert first.holds()


def test_who_gets_no_turn_leaves_nothing_behind(tmp_path, monkeypatch):
    before = set(liveness._turns)
    monkeypatch.setattr(store, "create", lambda path, text: False)
    assert begin(tmp_path / "thing") is None
    assert liveness._turns == before


def test_a_failure_ends_a_thing_too(tmp_path):
    with pytest.raises(ZeroDivisionError), working(started(tmp_path / "thing")):
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())


def test_it_is_alive_while_its_time_moves_on(tmp_path, monkeypatch):
    monkeypatch.setattr(liveness, "BEAT", 0.05)
    turn = started(tmp_path / "thing")
    path = sign(tmp_path / "thing", 1)
    os.utime(path, (0, 0))
    assert not is_alive(tmp_path / "thing")
    with working(turn):
        until(lambda: is_alive(tmp_path / "thing"))
        (attempt,) = attempts(tmp_path / "thing")
        assert attempt.begun == turn.begun


KILLED = """
import os, signal, sys
from pathlib import Path
from veridical.grid import liveness
with liveness.working(liveness.begin(Path(sys.argv[1]))):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_after_kill_9_nobody_waits_on_that_machine_and_others_do(tmp_path):
    thing = tmp_path / "thing"
    ended = subprocess.run([sys.executable, "-c", KILLED, str(thing)], check=False)
    assert ended.returncode == -signal.SIGKILL
    (attempt,) = attempts(thing)
    assert time.time() - attempt.seen < liveness.STALE
    assert not attempt.alive
    change(sign(thing, 1), machine="another")
    assert is_alive(thing), "from another machine only its time tells"
    change(sign(thing, 1), machine=machine())
    turn = started(thing)
    assert turn.attempt == 2


def test_a_number_that_another_process_has_got_since_is_not_the_workers(tmp_path):
    thing = tmp_path / "thing"
    started(thing)
    assert is_alive(thing)
    change(sign(thing, 1), started="1")
    assert not is_alive(thing)


def test_silence_counts_as_death_even_of_a_process_that_is_there(tmp_path):
    """A suspended one, say."""
    thing = tmp_path / "thing"
    first = started(thing)
    os.utime(sign(thing, 1), (first.begun, time.time() - liveness.STALE - 1))
    second = started(thing)
    assert (second.attempt, first.holds(), second.holds()) == (2, False, True)


def test_one_taken_for_dead_leaves_the_signs_of_the_others_alone(tmp_path):
    thing = tmp_path / "thing"
    first = started(thing)
    with working(first):
        os.utime(sign(thing, 1), (0, 0))
        second = started(thing)
    assert second.holds()
    assert is_alive(thing)
    with working(second):
        pass
    third = started(thing)  # under the number that the first had
    assert sign(thing, 1).exists()
    assert not first.holds()
    assert third.holds()


def test_who_waits_gets_the_turn_of_a_dead_one_or_finds_the_thing_done(tmp_path, monkeypatch):
    monkeypatch.setattr(liveness, "POLL", 0.01)
    thing, looks = tmp_path / "thing", []
    started(thing)

    def done() -> bool:
        looks.append(1)
        if len(looks) == 5:
            os.utime(sign(thing, 1), (0, 0))
        return len(looks) > 20

    turn = wait(thing, done)
    assert turn is not None
    assert (turn.attempt, len(looks)) == (2, 5)
    assert wait(thing, done) is None


def test_signs_of_old_versions_are_empty_and_go_by_their_time(tmp_path):
    thing, now = tmp_path / "thing", time.time()
    for attempt, (begun, seen) in enumerate([(0, 12.5), (now - 10, now)], start=1):  # let go; at work
        sign(thing, attempt).touch()
        os.utime(sign(thing, attempt), (begun, seen))
    dead, alive = attempts(thing)
    assert dead == Attempt(0, 12.5, False)
    assert (alive.alive, alive.seen - alive.begun) == (True, pytest.approx(10))
    assert begin(thing) is None
    os.utime(sign(thing, 2), (now - 110, now - 100))
    assert started(thing).before == pytest.approx(22.5)


def test_where_no_sign_can_be_written_there_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        begin(tmp_path / "file" / "thing")


def silenced(out: str, fails: bool) -> None:
    """A job whose worker is taken for dead while it works."""
    thing = place(out, "a")
    os.utime(sign(thing, 1), (0, 0))
    assert begin(thing) is not None
    if fails:
        raise RuntimeError("its folder is gone")


@pytest.mark.parametrize("fails", [True, False])
def test_of_a_job_that_was_taken_over_another_tells_the_end(tmp_path, fails):
    outcome = compute(tmp_path, Job("a", f"{__name__}:silenced", {"out": str(tmp_path), "fails": fails}))
    assert outcome.state == ("elsewhere" if fails else "done")
    assert not error(tmp_path, "a").exists()
    assert is_alive(place(tmp_path, "a"))
    assert mark(tmp_path, "a").exists() is not fails
    store.remove(sign(place(tmp_path, "a"), 2))
