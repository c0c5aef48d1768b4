"""Jobs whose results are files, run in a pool of processes, in shards of an array job, or on Ray."""

from __future__ import annotations

from typing import Any

# `from veridical.grid import run` goes with version 0.3.
NOW = {"Cell": "Job", "GridError": "GridError", "Pool": "Pool", "cores": "cores", "run": "run"}


def __getattr__(name: str) -> Any:
    if name not in NOW:  # a module of this package that is yet to be imported, say
        raise AttributeError(f"module 'veridical.grid' has no attribute {name!r}")
    from veridical.core.moved import forward

    return forward("veridical.grid", "veridical.grid.pool", name, NOW[name])
