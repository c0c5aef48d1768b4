"""The same methods by interpreto, where it is installed.

It takes texts or single encodings; it is given encodings, so that tokenising counts on no side. Its scores are not
ours (it averages |gradient x input| over the width, and its occlusion masks), so only its time is compared.
"""

from __future__ import annotations

import copy
import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

from benchmarks.subject import Subject

INSTALL = "not installed: pip install interpreto==0.5.2"


def installed() -> bool:
    return importlib.util.find_spec("interpreto") is not None


class Interpreto:
    """interpreto's explainers on a subject; `batch` is how many rows it puts through the model at once."""

    def __init__(self, subject: Subject):
        self.model = copy.deepcopy(subject.clf.model)  # it changes the configuration of the model it is given
        self.tokenizer: Any = copy.deepcopy(subject.clf.tokenizer)
        self.encodings = [
            self.tokenizer(e.example.text, return_tensors="pt", return_offsets_mapping=True) for e in subject.encoded
        ]

    def input_x_gradient(self, batch: int) -> Callable[[], object]:
        return self._ready("Saliency", batch)

    def integrated_gradients(self, batch: int, steps: int = 50) -> Callable[[], object]:
        return self._ready("IntegratedGradients", batch, n_perturbations=steps)

    def occlusion(self, batch: int) -> Callable[[], object]:
        return self._ready("Occlusion", batch)

    def _ready(self, explainer: str, batch: int, **options: Any) -> Callable[[], object]:
        library = importlib.import_module("interpreto")
        by_token = library.Granularity.TOKEN
        made = getattr(library, explainer)(self.model, self.tokenizer, batch, by_token, **options)
        # It writes into the encodings it is given.
        return lambda: made.explain([copy.copy(encoding) for encoding in self.encodings])
