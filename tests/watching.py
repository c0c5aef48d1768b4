"""Folders that another process changes, seen from a test."""

from __future__ import annotations

import fnmatch
import os
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 120.0  # seconds; more than anything takes on a machine with much else to do


def files_in(folder: Path, pattern: str = "*") -> list[Path]:
    """The files in a folder whose names match, while others write and remove in it: what is gone when we come to it is
    no file.

    `Path.rglob` raises where a folder is removed between being listed and being entered; `os.walk` passes it over.
    """
    return sorted(
        Path(parent) / name for parent, _, names in os.walk(folder) for name in fnmatch.filter(names, pattern)
    )


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another process or thread will do."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)
