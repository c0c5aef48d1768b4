"""Commands in processes that die: of a real SIGKILL, at the n-th change they make to a folder or some moments later.
Or that are interrupted or held there, have a file deleted under their hands, or a disk that takes no more.

A `Forge` is a process that has imported everything heavy once, does nothing itself, and forks for every command: so a
dozen kills cost a dozen commands, not a dozen starts of Python. Where to die is counted in changes of files, not in
seconds: the same seeds are the same places on a busy machine as on an idle one.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

HERE = Path(__file__).parent
ORDER = "MORTAL"  # of the environment: what a worker is told
CHANGES = {
    "os.rename": (0, 1),
    "os.remove": (0,),
    "os.mkdir": (0,),
    "os.rmdir": (0,),
}  # events, and where their paths are
PATIENCE = 300.0  # seconds; whoever takes longer hangs


@dataclass(frozen=True)
class Death:
    """When a process dies: at its n-th change below a folder, or `later` seconds after it."""

    folder: str
    change: int  # 0: it only counts
    later: float = 0.0
    worker: bool = False  # a worker of the grid dies, and with it the whole group
    suffix: str = ""  # only changes of paths that end so are counted
    tally: str = ""  # a file that grows by a byte with every change: one worker after another counts on
    deleted: str = ""  # it lives on, but this is deleted
    held: str = ""  # it lives on, but not before this file is there
    interrupted: bool = False  # its group gets SIGINT instead, as from a terminal


@dataclass(frozen=True)
class Ended:
    code: int  # negative: by this signal
    told: str  # on standard output and standard error


# -- inside a process that is to die ------------------------------------------------------------------------


def arm(death: Death) -> None:
    """From here on this process counts its changes, and dies at one of them."""
    changes = 0
    tally = os.open(death.tally, os.O_WRONLY | os.O_CREAT | os.O_APPEND) if death.tally else None

    def kill() -> None:
        if death.deleted:
            subprocess.run(["rm", "-r", death.deleted], check=True)
            return
        if death.held:
            while not os.path.exists(death.held):
                time.sleep(0.01)
            return
        if death.interrupted:
            os.killpg(os.getpgrp(), signal.SIGINT)
            return
        if death.worker:
            os.killpg(os.getpgrp(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal changes
        if not any(
            path.startswith(death.folder) and path.endswith(death.suffix) for path in _changed(event, arguments)
        ):
            return
        changes += 1
        if tally is not None:
            os.write(tally, b".")
            changes = os.fstat(tally).st_size
        if changes == death.change and death.later:
            threading.Timer(death.later, kill).start()
        elif changes == death.change:
            kill()

    sys.addaudithook(watch)


def arm_worker() -> None:
    if ORDER in os.environ and "veridical.grid.job" in sys.orig_argv:
        arm(Death(**json.loads(os.environ[ORDER])))


def _changed(event: str, arguments: tuple[Any, ...]) -> list[str]:
    """The paths that an event is about to change."""
    if event == "open":
        path, mode, flags = arguments
        written = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) if isinstance(flags, int) else "r" not in (mode or "r")
        paths = [path] if written else []
    else:
        paths = [arguments[place] for place in CHANGES.get(event, ())]
    return [os.path.abspath(os.fsdecode(path)) for path in paths if isinstance(path, (str, bytes, os.PathLike))]


# -- the forge ----------------------------------------------------------------------------------------------


class Forge:
    """As seen from a test: start a command, wait for its end."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # Nobody is to count as dead because the machine is busy.
            env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "VERIDICAL_STALE": "300"},
        )
        self._logs: dict[int, Path] = {}

    def __enter__(self) -> Forge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, at: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def start(self, words: list[str], log: Path, *, death: Death | None = None, file_size: int | None = None) -> int:
        """The number of a process that does what `veridical WORDS` does."""
        order = {"words": words, "log": str(log), "death": death and asdict(death), "file_size": file_size}
        log.write_text("")  # there is something to read from the start, and nothing of before
        pid = self._ask(order)
        self._logs[pid] = log
        return pid

    def wait(self, pid: int) -> Ended:
        code = self._ask({"wait": pid})
        return Ended(code, self._logs.pop(pid).read_text())

    def run(self, words: list[str], log: Path, **how: Any) -> Ended:
        return self.wait(self.start(words, log, **how))

    def _ask(self, order: dict[str, Any]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


_pipes: dict[int, tuple[int, str]] = {}  # what a process says that can write to no file


def serve() -> None:
    """Do what a test asks for, in processes of their own."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    sys.path.insert(0, str(HERE / "mortal"))  # for workers: they get this path
    import torch

    import veridical.audits.audit
    import veridical.cli.app
    import veridical.probes.guidance.guidance
    import veridical.retraining.fresh
    import veridical.retraining.roar.roar  # noqa: F401  all of them before anything is forked

    torch.set_num_threads(1)
    for line in sys.stdin:
        order = json.loads(line)
        answers.write(f"{_await(order['wait']) if 'wait' in order else _fork(order)}\n")


def _fork(order: dict[str, Any]) -> int:
    read, log = os.pipe() if order["file_size"] else (-1, os.open(order["log"], os.O_WRONLY))
    pid = os.fork()
    if pid:
        os.close(log)
        _pipes[pid] = (read, order["log"])
        return pid
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    # Streams remember of what was there before whether one can seek in it.
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    if order["file_size"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["file_size"], order["file_size"]))
    if order["death"]:
        death = Death(**order["death"])
        if death.worker:
            os.environ[ORDER] = json.dumps(order["death"])
        else:
            arm(death)
    from veridical.cli.app import main

    sys.argv[1:] = order["words"]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        main()
    except SystemExit as end:
        sys.stdout.flush()
        os._exit(end.code if isinstance(end.code, int) else 1)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(99)  # a traceback would have been shown


def _await(pid: int) -> int:
    """Its exit code; whoever hangs is killed, and told of by the code 98."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            pipe, log = _pipes.pop(pid)
            if pipe >= 0:
                Path(log).write_bytes(os.read(pipe, 1 << 16))
                os.close(pipe)
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return 98


if __name__ == "__main__":
    serve()
