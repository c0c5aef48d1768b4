"""A run's folder for one process: who comes with other settings is refused at once, who comes with the same waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from veridical.core import store
from veridical.core.place import SPEC
from veridical.grid.liveness import alone


@contextmanager
def claimed(folder: str | Path, spec: Any) -> Iterator[None]:
    """The folder is this spec's and this process's while the block runs, and free of what killed ones left."""
    store.claim(folder, spec)  # before it waits
    with alone(folder):
        store.claim(folder, spec)  # another process may have begun meanwhile
        store.clean(folder)
        if not (Path(folder) / SPEC).exists():
            store.write_json(Path(folder) / SPEC, spec)
        yield
