"""Folders that another process changes, seen from a test."""

from __future__ import annotations

import os
from pathlib import Path


def files_in(folder: Path) -> int:
    """How many files a folder holds, while others write and remove in it: what is gone when we come to it is no file.

    `Path.rglob` raises where a folder is removed between being listed and being entered; `os.walk` passes it over.
    """
    return sum(len(names) for _, _, names in os.walk(folder))
