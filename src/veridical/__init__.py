"""Veridical: which explanation of your text classifier may you believe?

The public verbs and records, each imported on first use, so that `import veridical` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from veridical.core import moved

if TYPE_CHECKING:  # the same names for type checkers
    from veridical.audits.audit import audit as audit
    from veridical.audits.compare import compare as compare
    from veridical.audits.evaluate import evaluate as evaluate
    from veridical.audits.evaluation import Evaluation as Evaluation
    from veridical.audits.finished import Audit as Audit
    from veridical.audits.shortcuts.record import Shortcuts as Shortcuts
    from veridical.audits.shortcuts.shortcuts import shortcuts as shortcuts
    from veridical.core.errors import InputError as InputError
    from veridical.core.plugins import use as use
    from veridical.core.records import Attribution as Attribution
    from veridical.core.records import Cost as Cost
    from veridical.core.records import Dataset as Dataset
    from veridical.core.records import Example as Example
    from veridical.data import load_data as load_data
    from veridical.explanations.alignment import to_attributions as to_attributions
    from veridical.explanations.attribute import attribute as attribute
    from veridical.explanations.collected import Explanations as Explanations
    from veridical.explanations.collected import ExplanationsByMethod as ExplanationsByMethod
    from veridical.explanations.exchange import read_explanations as read_explanations
    from veridical.explanations.exchange import write_explanations as write_explanations
    from veridical.explanations.explain import explain as explain
    from veridical.explanations.explain import explain_iter as explain_iter
    from veridical.explanations.explanation import Explanation as Explanation
    from veridical.grid.status import status as status
    from veridical.model.classifier import Classifier as Classifier
    from veridical.model.load import load as load
    from veridical.playground.serve import serve as serve
    from veridical.probes.attack import attack as attack
    from veridical.probes.guidance.guidance import Guidance as Guidance
    from veridical.probes.guidance.guidance import guidance as guidance
    from veridical.probes.pos import pos as pos
    from veridical.probes.robustness import robustness as robustness
    from veridical.probes.validation.finished import Validation as Validation
    from veridical.probes.validation.validate import validate as validate
    from veridical.retraining.fresh import fresh as fresh
    from veridical.retraining.fresh_result import Fresh as Fresh
    from veridical.retraining.roar.finished import Roar as Roar
    from veridical.retraining.roar.roar import roar as roar
    from veridical.training.callback import FaithfulnessCallback as FaithfulnessCallback
    from veridical.training.config import TrainConfig as TrainConfig
    from veridical.training.run import Run as Run
    from veridical.training.search import search as search
    from veridical.training.train import train as train
    from veridical.training.trainer import VeridicalTrainer as VeridicalTrainer

    __version__: str

_HOME = {
    "Attribution": "core.records",
    "Audit": "audits.finished",
    "Classifier": "model.classifier",
    "Cost": "core.records",
    "Dataset": "core.records",
    "Evaluation": "audits.evaluation",
    "Example": "core.records",
    "Explanation": "explanations.explanation",
    "Explanations": "explanations.collected",
    "ExplanationsByMethod": "explanations.collected",
    "FaithfulnessCallback": "training.callback",
    "Fresh": "retraining.fresh_result",
    "Guidance": "probes.guidance.guidance",
    "InputError": "core.errors",
    "Roar": "retraining.roar.finished",
    "Run": "training.run",
    "Shortcuts": "audits.shortcuts.record",
    "TrainConfig": "training.config",
    "Validation": "probes.validation.finished",
    "VeridicalTrainer": "training.trainer",
    "attack": "probes.attack",
    "attribute": "explanations.attribute",
    "audit": "audits.audit",
    "compare": "audits.compare",
    "evaluate": "audits.evaluate",
    "explain": "explanations.explain",
    "explain_iter": "explanations.explain",
    "fresh": "retraining.fresh",
    "guidance": "probes.guidance.guidance",
    "load": "model.load",
    "load_data": "data",
    "pos": "probes.pos",
    "read_explanations": "explanations.exchange",
    "roar": "retraining.roar.roar",
    "robustness": "probes.robustness",
    "search": "training.search",
    "serve": "playground.serve",
    "shortcuts": "audits.shortcuts.shortcuts",
    "status": "grid.status",
    "to_attributions": "explanations.alignment",
    "train": "training.train",
    "use": "core.plugins",
    "validate": "probes.validation.validate",
    "write_explanations": "explanations.exchange",
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


moved.install()
