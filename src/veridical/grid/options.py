"""How a grid is computed: options that every verb with a grid has."""

from __future__ import annotations

from typing import Annotated, Literal

from veridical.core.options import Count, Help

Engine = Annotated[Literal["local", "ray"], Help("What computes: processes on this machine (local), or ray.")]
Workers = Annotated[Count | None, Help("Cells at once, a thread each.", default="one per core")]
Shard = Annotated[str | None, Help("Only the I-th of N parts, from 1, for array jobs on a shared disk.", "I/N")]
Address = Annotated[str | None, Help("A Ray cluster's address, with the engine ray.")]
DryRun = Annotated[bool, Help("Say what would run and what it would cost, and stop.")]
