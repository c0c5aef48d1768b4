"""The cells of a grid in this process, one after the other, and a benchmark small enough to be run that way."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from toy import toy
from veridical.core import store
from veridical.grid import job as cell
from veridical.retraining.roar.roar import Roar, roar

TINY: dict[str, Any] = {"epochs": 2, "batch": 8, "lr": 1e-2, "head_lr": 1e-2}
MODEL = "bilstm:hidden=8:embedding=8"


def run_here(
    cells: Iterable[cell.Job], out: str | Path, *, tick: Callable[[str], None] | None = None, **engine: Any
) -> None:
    """In place of `grid.run`: no workers to start, and what a cell raises comes through."""
    done: set[str] = set()
    for one in cells:
        assert done.issuperset(one.after), "a cell comes before one that it waits for"
        if not cell.is_done(out, one.key, one.hash):
            module, _, name = cell.JOBS.get(one.call, one.call).partition(":")
            getattr(importlib.import_module(module), name)(**one.arguments)
            store.write_json(cell.mark(out, one.key), {"hash": one.hash})
            if tick is not None:
                tick(one.key)
        done.add(one.key)


def small(out: Path, **asked: Any) -> Roar:
    """Recursive ROAR on a few short texts; two points between the ends."""
    settings: dict[str, Any] = {"methods": "attention", "seeds": 1, "config": TINY, "progress": False}
    settings |= {} if "tokens" in asked else {"step": 40}
    data = asked.pop("data", None) or toy(train=24, dev=8, test=12)
    return roar(data, asked.pop("model", MODEL), out=out, **{**settings, **asked})
