"""Jobs whose results are files, run in a pool of processes, in shards of an array job, or on Ray."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:  # `from veridical.grid import run` goes with version 0.3
    from veridical.core.moved import forward

    return forward("veridical.grid", "veridical.grid.pool", name)
