"""Where an audit's model and data lay, so that what comes after it finds them: `sources.json`.

It says where, not what: for that there are hashes in `summary.json`, and whoever reads the model or the texts holds
them against these.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from veridical.core import stored
from veridical.core.settings import read_toml

SOURCES, CONFIG = "sources.json", "config.toml"


@dataclass(frozen=True)
class Sources:
    """As they were named; None: it was an object in Python."""

    SCHEMA: ClassVar[int] = 1

    model: str | None = None
    data: str | None = None


def write_sources(folder: Path, model: Any, data: Any) -> None:
    stored.write(folder / SOURCES, Sources(_named(model), _named(data)))


def read_sources(folder: Path) -> Sources:
    """Of an audit from before they were kept what was typed, if it was."""
    if (folder / SOURCES).exists():
        return stored.read(folder / SOURCES, Sources)
    if (folder / CONFIG).exists():
        typed = read_toml(folder / CONFIG)
        model, data = typed.get("model"), typed.get("data")
        return Sources(model if isinstance(model, str) else None, data if isinstance(data, str) else None)
    return Sources()


def _named(given: Any) -> str | None:
    """A path from the root, since whoever reads it may stand elsewhere; a name as it is."""
    if not isinstance(given, (str, Path)):
        return None
    return os.path.abspath(given) if os.path.exists(given) else str(given)
