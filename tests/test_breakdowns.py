"""What breaks on the way: a full disk, a read-only folder, no home, deleted files, a second writer, Ctrl-C.

Each ends in one sentence and an exit code that tells, never in a traceback, and what is done is kept: the same command
goes on to the results that it would have had.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from killing import Death, Forge
from test_kills import TRAINED, WORKS, Work, contents, typed, undisturbed
from test_kills import runs as runs  # a fixture
from watching import files_in, until

TRAIN = WORKS[0]
ALONE = [work for work in WORKS if not work.grid]  # who works in a folder alone
# Grids start workers, which takes long; what is true of them is tried less often.
ALL = [work if not work.grid else pytest.param(work, marks=pytest.mark.kill) for work in WORKS]


@pytest.fixture(scope="module")
def forge() -> Iterator[Forge]:
    with Forge() as forge:
        yield forge


def sentence(told: str) -> str:
    """The last line that a command said; it said no more than lines of progress before."""
    assert "Traceback" not in told
    return told.strip().splitlines()[-1]


# -- a disk that takes no more ------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [100, 2000], ids=["at once", "later"])
@pytest.mark.parametrize("work", ALL, ids=lambda work: work.name)
def test_a_full_disk_has_a_sentence_and_with_room_it_goes_on(
    work: Work, size: int, forge: Forge, runs: Path, tmp_path: Path
):
    out = tmp_path / "out"
    ended = forge.run(typed(work, runs, out), tmp_path / "log", file_size=size)
    assert ended.code == 1, ended.told
    # A line of a log that fits in part is cut short without a reason from the system: then it is told as want of space.
    assert re.search(r"cannot be written \((File too large|No space left on device)\); make room", sentence(ended.told))
    assert not files_in(out, ".tmp-*")
    assert forge.run(typed(work, runs, out), tmp_path / "log").code == 0
    assert contents(out)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_an_answer_that_cannot_be_printed_has_a_sentence():
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "veridical", "list"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert ended.returncode == 1
    assert "No space left on device" in sentence(ended.stderr)


MOUNTED = """
set -e
mount -t tmpfs -o size=$1 none $2
cp -r $3 $2/old
test $4 = rw || mount -o remount,$4 $2
shift 4
exec "$@"
"""


def mounted(disk: Path, old: Path, how: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A command that sees a small disk of its own at `disk`, with a copy of a run on it; only it sees the disk."""
    if shutil.which("unshare") is None:
        pytest.skip("nobody may mount a disk here: there is no unshare")
    tried = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(disk)], capture_output=True)
    if tried.returncode:
        pytest.skip(f"nobody may mount a disk here: {tried.stderr.decode().strip()}")
    command = ["unshare", "-rm", "sh", "-c", MOUNTED, "sh", "200k", str(disk), str(old), how]
    command += [sys.executable, "-m", "veridical", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_a_disk_that_is_full_indeed(runs: Path, tmp_path: Path):
    words = [
        "train",
        "--data",
        "planted:size=30",
        "--model",
        "bilstm:hidden=64:embedding=64",
        "--out",
        f"{tmp_path}/new",
    ]
    ended = mounted(tmp_path, runs / "base", "rw", *words)
    assert ended.returncode == 1
    assert "cannot be written (No space left on device); make room" in sentence(ended.stderr)


def test_a_read_only_folder_is_refused_before_any_work_and_what_is_done_is_read(runs: Path, tmp_path: Path):
    refused = mounted(tmp_path, runs / "base", "ro", "train", *TRAINED, "--out", f"{tmp_path}/new")
    assert refused.returncode == 2
    assert "cannot be written" in sentence(refused.stderr)
    assert len(refused.stderr.splitlines()) == 1
    done = mounted(tmp_path, runs / "base", "ro", "train", *TRAINED, "--out", f"{tmp_path}/old")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("home", [None, "/proc/nowhere"])
def test_nothing_needs_a_home(home: str | None, tmp_path: Path):
    kept = {key: value for key, value in os.environ.items() if key not in ("HOME", "XDG_CACHE_HOME", "HF_HOME")}
    command = [sys.executable, "-m", "veridical", "train", *TRAINED, "--out", str(tmp_path / "out")]
    environment = kept if home is None else {**kept, "HOME": home}
    ended = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


# -- deleted files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [  # a checkpoint is opened and then renamed: the first two changes are of the first
        ("best.safetensors", 4, "best.safetensors was deleted while it was needed; run the same again"),
        ("train.jsonl", 2, "train.jsonl was deleted while it was written; delete its folder and start again."),
    ],
)
def test_a_file_of_a_run_deleted_under_its_hands(
    name: str, change: int, told: str, forge: Forge, runs: Path, tmp_path: Path
):
    expected, _ = undisturbed(forge, TRAIN, runs, tmp_path, False)
    out = tmp_path / "out"
    death = Death(str(out), change, suffix="checkpoint.pt", deleted=str(out / name))
    ended = forge.run(typed(TRAIN, runs, out), tmp_path / "log", death=death)
    assert ended.code == 1, ended.told
    assert told in sentence(ended.told)
    if "delete its folder" in told:
        out.rename(tmp_path / "deleted")
    assert forge.run(typed(TRAIN, runs, out), tmp_path / "log").code == 0
    assert contents(out) == expected


def test_a_part_deleted_in_mid_run_is_made_again(forge: Forge, runs: Path, tmp_path: Path):
    work = next(work for work in WORKS if work.name == "evaluate")
    expected, changes = undisturbed(forge, work, runs, tmp_path, False)
    out = tmp_path / "out"
    death = Death(str(out), changes - 2, deleted=str(out / "scores"))
    ended = forge.run(typed(work, runs, out), tmp_path / "log", death=death)
    assert ended.code in (0, 1), ended.told
    assert "Traceback" not in ended.told
    assert forge.run(typed(work, runs, out), tmp_path / "log").code == 0
    assert contents(out) == expected


# -- two writers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("work", ALONE, ids=lambda work: work.name)
def test_a_second_writer_waits_and_spoils_nothing(work: Work, forge: Forge, runs: Path, tmp_path: Path):
    expected, _ = undisturbed(forge, work, runs, tmp_path, False)
    out = tmp_path / "out"
    first, gate = begun(work, forge, runs, tmp_path)
    second = forge.start(typed(work, runs, out), tmp_path / "second")
    until(lambda: f"Another process is at work in {out}" in (tmp_path / "second").read_text())
    gate.touch()
    for writer in (first, second):
        ended = forge.wait(writer)
        assert ended.code == 0, ended.told
    assert contents(out) == expected


def begun(work: Work, forge: Forge, runs: Path, root: Path) -> tuple[int, Path]:
    """A process that has its sign in the folder `out`, and goes on when the file is there. It cannot end before,
    however long the test takes to go on."""
    out, gate = root / "out", root / "gate"
    held = Death(str(out), 2, suffix="spec.json", held=str(gate))  # which is opened, and then renamed
    first = forge.start(typed(work, runs, out), root / "first", death=held)
    until(lambda: bool(files_in(out, ".work.running-1")))
    return first, gate


def test_a_second_writer_with_other_settings_is_refused_at_once(forge: Forge, runs: Path, tmp_path: Path):
    out = tmp_path / "out"
    first = forge.start(
        typed(TRAIN, runs, out),
        tmp_path / "first",
        death=Death(str(out), 1, suffix="stamp.json", held=str(tmp_path / "gate")),
    )
    until((out / "spec.json").exists)
    ended = forge.run([*typed(TRAIN, runs, out), "--seed", "5"], tmp_path / "second")
    (tmp_path / "gate").touch()
    assert ended.code == 2
    assert "holds a run with other settings: seed is 0 there and 5 now" in sentence(ended.told)
    assert forge.wait(first).code == 0


@pytest.mark.kill
@pytest.mark.parametrize("work", [work for work in WORKS if work.grid], ids=lambda work: work.name)
def test_grids_share_a_folder(work: Work, forge: Forge, runs: Path, tmp_path: Path):
    expected, _ = undisturbed(forge, work, runs, tmp_path, False)
    writers = [forge.start(typed(work, runs, tmp_path / "out"), tmp_path / f"log-{number}") for number in range(2)]
    for writer in writers:
        ended = forge.wait(writer)
        assert ended.code == 0, ended.told
    assert contents(tmp_path / "out") == expected


# -- Ctrl-C -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("work", ALL, ids=lambda work: work.name)
def test_an_interrupt_ends_in_a_sentence_and_keeps_what_is_done(work: Work, forge: Forge, runs: Path, tmp_path: Path):
    expected, changes = undisturbed(forge, work, runs, tmp_path, False)
    out = tmp_path / "out"
    if work.grid:  # its workers take seconds to start, and are at work for seconds
        process = forge.start(typed(work, runs, out), tmp_path / "log")
        until(lambda: bool(files_in(out, "*.running-1")))
        os.killpg(process, signal.SIGINT)
    else:
        death = Death(str(out), changes // 2, interrupted=True)
        process = forge.start(typed(work, runs, out), tmp_path / "log", death=death)
    ended = forge.wait(process)
    assert ended.code == 130, ended.told
    assert sentence(ended.told) == "Interrupted: run the same command again to go on from what is saved."
    assert forge.run(typed(work, runs, out), tmp_path / "log").code == 0
    assert contents(out) == expected


STUBBORN = """
import time
from pathlib import Path
from veridical.attribution import method

@method("stubborn", signed=False, of_target=False)
def stubborn(clf, batch, target):
    \"\"\"Takes its time, and more of it when it is to end.\"\"\"
    try:
        Path("begun").touch()
        time.sleep(600)
    finally:
        Path("ending").touch()
        time.sleep(600)
"""


def test_a_second_interrupt_leaves_at_once(runs: Path, tmp_path: Path):
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    words = ["explain", str(runs / "base"), "--text", "good", "--method", "stubborn", "--with", "stubborn.py"]
    process = subprocess.Popen(
        [sys.executable, "-m", "veridical", *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    for sign in ("begun", "ending"):
        until((tmp_path / sign).exists)
        process.send_signal(signal.SIGINT)
    told = process.communicate(timeout=120)[1]
    assert process.returncode == -signal.SIGINT
    assert "Traceback" not in told
