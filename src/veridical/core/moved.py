"""Addresses that the documentation showed before 0.2 and that have moved since: they work for one more release.

`install` adds a finder that answers for them alone, so that the folders hold no files that only say where others went.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MOVED = {
    "veridical.bounds": "veridical.training.bound_search",
    "veridical.collator": "veridical.training.collator",
    "veridical.compare": "veridical.audits.compare",
    "veridical.config": "veridical.training.config",
    "veridical.erase": "veridical.model.erase",
    "veridical.errors": "veridical.core.errors",
    "veridical.guidance": "veridical.probes.guidance.guidance",
    "veridical.model.share": "veridical.model.decompose.share",
    "veridical.model.trace": "veridical.model.decompose.trace",
    "veridical.records": "veridical.core.records",
    "veridical.registry": "veridical.core.registry",
    "veridical.report": "veridical.page.render",
    "veridical.report.roar": "veridical.retraining.roar.page",
    "veridical.robustness": "veridical.probes.robustness",
    "veridical.search": "veridical.training.search",
    "veridical.seed": "veridical.core.seed",
    "veridical.store": "veridical.core.store",
    "veridical.term": "veridical.training.term",
    "veridical.trainer": "veridical.training.trainer",
}


class Alias(ModuleType):
    """A module under its old address; where that was a verb's name too (`veridical.search`), calling it is the verb."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(importlib.import_module(MOVED[self.__name__]), name)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return getattr(self, self.__name__.rpartition(".")[2])(*arguments, **options)


class Finder:
    """Answers for the addresses of `MOVED`, with a warning."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in MOVED else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        warnings.warn(
            f"{spec.name} is now {MOVED[spec.name]}; the old address goes with version 0.3.",
            FutureWarning,
            stacklevel=2,
        )
        alias = Alias(spec.name)
        alias.__path__ = []  # `veridical.report.roar` is looked for in `veridical.report`
        return alias

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run: what is asked of it is looked up."""


def forward(package: str, home: str, name: str, now: str | None = None) -> Any:
    """A name that stood in a package itself and now stands in one of its modules, perhaps under another (`now`)."""
    now = now or name
    if not name.startswith("__"):
        module = importlib.import_module(home)
        if hasattr(module, now):
            warnings.warn(
                f"{package}.{name} is now {home}.{now}; the old address goes with version 0.3.", FutureWarning, 3
            )
            return getattr(module, now)
    raise AttributeError(f"module {package!r} has no attribute {name!r}")


def install() -> None:
    """From now on the old addresses can be imported."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.append(Finder())  # type: ignore[arg-type]
