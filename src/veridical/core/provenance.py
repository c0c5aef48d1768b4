"""Who made a result, so that others can tell whether they hold the same things: fingerprints of files, of texts and of
this package's own code, and the command that was typed."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import sys
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from veridical.core.store import plain

WEIGHTS = (".safetensors", ".json", ".txt", ".model")  # of a model's folder, what decides what it says
NOT_WEIGHTS = ("spec.json", "stamp.json", "scores.json")


@cache
def code_hash() -> str:
    """SHA-256 of every Python file of this package, by path: an edited copy of a version is not that version."""
    root = Path(str(files("veridical")))
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py"), key=lambda path: path.relative_to(root).as_posix()):
        digest.update(f"{path.relative_to(root).as_posix()}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def rows_hash(rows: Iterable[Any]) -> str:
    """SHA-256 of rows, each as a line of JSON without spaces and without letters beyond ASCII."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(plain(row), ensure_ascii=True, separators=(",", ":")).encode() + b"\n")
    return digest.hexdigest()


def file_hashes(given: object) -> dict[str, str]:
    """SHA-256 of the files of a model's folder, or of a run's, as `sha256sum` says it; none for what is no folder."""
    if not isinstance(given, (str, Path)) or not os.path.isdir(given):
        return {}
    folder = Path(given) / "model" if (Path(given) / "model").is_dir() else Path(given)
    held = sorted(path for path in folder.iterdir() if path.suffix in WEIGHTS and path.name not in NOT_WEIGHTS)
    return {path.name: _file_hash(path) for path in held if path.is_file()}


def _file_hash(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def typed_command() -> str:
    """The command line of this process, if it is one of `veridical`; else nothing: a script's own is not ours."""
    program = Path(sys.argv[0]) if sys.argv and sys.argv[0] else Path()
    ours = program.stem == "veridical" or (program.name == "__main__.py" and program.parent.name == "veridical")
    return shlex.join(["veridical", *sys.argv[1:]]) if ours else ""


def python_call(name: str, values: dict[str, Any]) -> str:
    """A call as one would type it; an object that has no short form stands as its type."""
    return f"{name}({', '.join(f'{key}={_typed(value)}' for key, value in values.items())})"


def _typed(value: Any) -> str:
    if isinstance(value, Path):
        return repr(str(value))
    simple = value is None or isinstance(value, (str, int, float))
    several = isinstance(value, (list, tuple)) and all(isinstance(item, (str, int, float)) for item in value)
    return repr(value) if simple or several else f"<{type(value).__name__}>"
