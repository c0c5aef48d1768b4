"""Processes, told apart across machines and time: of one that left its name somewhere one can ask if it still lives."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Process:
    """A process of some machine. Names no host."""

    machine: str
    process: int  # its number there
    started: str  # by its machine's count; empty where that is not told

    def is_here(self) -> bool:
        """Whether it is, or was, of this machine, so that one can ask for it."""
        return os.name == "posix" and self.machine == machine()

    def is_gone(self) -> bool:
        """Whether it is known that it has ended. Of other machines it is not."""
        if not self.is_here():
            return False
        try:
            os.kill(self.process, 0)  # asks only
        except (ProcessLookupError, OverflowError):
            return True
        except PermissionError:  # another user's
            return False
        return _started(self.process) not in ("", self.started)


def this_process() -> Process:
    number = os.getpid()
    return Process(machine(), number, _started(number))


@cache
def machine() -> str:
    """This machine since it was started, as far as it shares the numbers of its processes: 8 hex digits."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        known: Any = [boot, os.readlink("/proc/self/ns/pid")]  # a container has numbers of its own
    except OSError:
        known = platform.node()
    return hashlib.blake2b(json.dumps(known, separators=(",", ":")).encode(), digest_size=4).hexdigest()


def _started(process: int) -> str:
    """When a process was started, by its machine's count; empty where that is not told."""
    try:
        state, *fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "ended" if state in ("Z", "X") else fields[18]  # it may wait for its parent to notice
