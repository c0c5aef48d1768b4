"""Tables on the screen and in Markdown, results in JSON, and what they were measured on."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich.console import Console
from rich.table import Table


def show(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table(*head, title=title, title_justify="left")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def spread(values: Sequence[float]) -> str:
    """The median, and the smallest and largest where there are several."""
    middle = f"{statistics.median(values):.2f}"
    return f"{middle} (once)" if len(values) == 1 else f"{middle} ({min(values):.2f} to {max(values):.2f})"


def write_json(path: Path, found: object) -> Path:
    return write_text(path, json.dumps(found, indent=2) + "\n")


def write_text(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def machine(threads: int) -> dict[str, object]:
    """What the numbers were measured on; nothing that names the machine."""
    return {
        "cores": os.cpu_count(),
        "threads": threads,
        "processor": platform.machine(),
        "python": platform.python_version(),
        **{name: _version(name) for name in ("torch", "transformers", "captum", "interpreto", "veridical")},
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
