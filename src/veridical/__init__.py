"""Veridical: which explanation of your text classifier may you believe?

The public verbs and records, each imported on first use, so that `import veridical` costs nothing.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names for type checkers
    from veridical.alignment import to_attributions as to_attributions
    from veridical.attack import attack as attack
    from veridical.attribute import attribute as attribute
    from veridical.audit import Audit as Audit
    from veridical.audit import audit as audit
    from veridical.config import TrainConfig as TrainConfig
    from veridical.data import load_data as load_data
    from veridical.errors import InputError as InputError
    from veridical.evaluate import Evaluation as Evaluation
    from veridical.evaluate import evaluate as evaluate
    from veridical.exchange import read_explanations as read_explanations
    from veridical.exchange import write_explanations as write_explanations
    from veridical.explain import explain as explain
    from veridical.explanation import Explanation as Explanation
    from veridical.fresh import Fresh as Fresh
    from veridical.fresh import fresh as fresh
    from veridical.guidance import Guidance as Guidance
    from veridical.guidance import guidance as guidance
    from veridical.model.classifier import Classifier as Classifier
    from veridical.model.load import load as load
    from veridical.pos import pos as pos
    from veridical.records import Attribution as Attribution
    from veridical.records import Cost as Cost
    from veridical.records import Dataset as Dataset
    from veridical.records import Example as Example
    from veridical.roar import Roar as Roar
    from veridical.roar import roar as roar
    from veridical.robustness import robustness as robustness
    from veridical.search import search as search
    from veridical.status import status as status
    from veridical.train import Run as Run
    from veridical.train import train as train
    from veridical.trainer import VeridicalTrainer as VeridicalTrainer

    __version__: str

_HOME = {
    "Attribution": "records",
    "Audit": "audit",
    "Classifier": "model.classifier",
    "Cost": "records",
    "Dataset": "records",
    "Evaluation": "evaluate",
    "Example": "records",
    "Explanation": "explanation",
    "Fresh": "fresh",
    "Guidance": "guidance",
    "InputError": "errors",
    "Roar": "roar",
    "Run": "train",
    "TrainConfig": "config",
    "VeridicalTrainer": "trainer",
    "attack": "attack",
    "attribute": "attribute",
    "audit": "audit",
    "evaluate": "evaluate",
    "explain": "explain",
    "fresh": "fresh",
    "guidance": "guidance",
    "load": "model.load",
    "load_data": "data",
    "pos": "pos",
    "read_explanations": "exchange",
    "roar": "roar",
    "robustness": "robustness",
    "search": "search",
    "status": "status",
    "to_attributions": "alignment",
    "train": "train",
    "write_explanations": "exchange",
}

__all__ = list(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("veridical")
    if name not in _HOME:
        raise AttributeError(f"module 'veridical' has no attribute {name!r}")
    return getattr(importlib.import_module(f"veridical.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


class _Package(types.ModuleType):
    """`veridical.explain` is the verb: importing the module of that name does not take its place."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOME and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
