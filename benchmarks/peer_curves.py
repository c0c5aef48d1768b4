"""Deletion and insertion curves by interpreto, where it is installed, and the same curves as questions to Veridical.

Tokens are replaced by the mask token, the highest scored first (deletion), or all but the highest scored (insertion),
from none to all of them; a curve's value is the area under the explained class's probability.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from benchmarks.subject import Subject
from veridical.core.records import Attribution, Explained
from veridical.explanations.explain import explained
from veridical.model.ask import Asker, ask, predict
from veridical.model.erase import erase, ranked_units

Areas = dict[str, list[float]]  # of each curve, per explanation

STEPS = 512  # more than a text has tokens: interpreto then goes token by token


def ours(subject: Subject, given: Sequence[Attribution]) -> Areas:
    """`given` are explanations of the subject's texts, method after method."""
    whole = predict(subject.clf, subject.encoded, budget=subject.budget)
    seen = []
    for number, a in enumerate(given):
        row = number % len(subject.encoded)
        plain = explained(subject.clf, a.encoded, a.target, whole.logits[row], whole.probabilities[row])
        seen.append(replace(plain, scores=a.scores))
    areas = [area for area, _ in ask(subject.clf, [_areas(ex) for ex in seen], budget=subject.budget)]
    return {"deletion": [d for d, _ in areas], "insertion": [i for _, i in areas]}


def _areas(ex: Explained) -> Asker[tuple[float, float]]:
    order = [p for group in ranked_units(ex) for p in group]
    n = len(order)
    answers = yield [
        *(erase(ex, order[:k], "mask") for k in range(n + 1)),
        *(erase(ex, order[k:], "mask") for k in range(n + 1)),
    ]
    p = answers.probabilities[:, ex.target].astype(np.float64).reshape(2, n + 1)
    deletion, insertion = (float(np.trapezoid(curve)) / n for curve in p)
    return deletion, insertion


class Curves:
    """interpreto's two metrics of the same explanations."""

    def __init__(self, subject: Subject, given: Sequence[Attribution], batch: int):
        library: Any = importlib.import_module("interpreto")
        base: Any = importlib.import_module("interpreto.attributions.base")
        measures: Any = importlib.import_module("interpreto.attributions.metrics")
        model, tokenizer = copy.deepcopy(subject.clf.model), copy.deepcopy(subject.clf.tokenizer)
        self.metrics = {
            name: kind(model, tokenizer, batch_size=batch, n_perturbations=STEPS)
            for name, kind in (("deletion", measures.Deletion), ("insertion", measures.Insertion))
        }
        self.outputs = []
        for a in given:
            free = np.flatnonzero(a.encoded.free)
            encoding: Any = tokenizer(a.example.text, return_tensors="pt", return_offsets_mapping=True)  # type: ignore
            self.outputs.append(
                base.AttributionOutput(
                    attributions=torch.from_numpy(a.scores[free])[None],
                    elements=tokenizer.convert_ids_to_tokens([a.encoded.ids[i] for i in free]),  # type: ignore
                    model_inputs_to_explain=encoding,
                    targets=torch.tensor([a.target]),
                    model_task=base.ModelTask.CLASSIFICATION,
                    granularity=library.Granularity.TOKEN,
                )
            )

    def __call__(self) -> Areas:
        found = {}
        for name, metric in self.metrics.items():
            outputs = [copy.copy(output) for output in self.outputs]
            for output in outputs:  # it writes into the encodings it is given
                output.model_inputs_to_explain = copy.copy(output.model_inputs_to_explain)
            _, curves = metric.evaluate(outputs)
            found[name] = [float(torch.trapezoid(curve) / (len(curve) - 1)) for (curve,) in curves]
        return found
