"""The faithfulness of a model's explanations while a `transformers.Trainer` trains it.

    trainer.add_callback(FaithfulnessCallback(trainer, dev_texts, "attention,gradient", "decision_flip", every=100))

The figures go through `Trainer.log`, and so to whatever `report_to` names and into `state.log_history`. The training is
left as it would be without: its random numbers, modes, gradients and what it decided to log (`undisturbed`).
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from veridical.attribution import methods as all_methods
from veridical.audits.computable import computable
from veridical.audits.evaluate import evaluate
from veridical.audits.options import EvaluateOptions
from veridical.core.errors import InputError
from veridical.core.records import Given
from veridical.data.objects import examples_of
from veridical.metric import metrics as all_metrics
from veridical.model.classifier import Classifier
from veridical.model.lora import fold_adapters, has_adapters
from veridical.model.target import read_target

USUAL = EvaluateOptions()


class FaithfulnessCallback(TrainerCallback):
    """Explains and scores the same texts before training, every so many steps (or after each epoch), and at the end.

    The log has the mean over the texts as `<prefix>_<metric>/<method>`; what is undefined on all of them is left out.
    Of several processes the first one measures.

    Args:
        trainer: The `transformers.Trainer` that it is a callback of, with its tokenizer as `processing_class`.
        texts: The texts, in any form that `veridical.explain` takes.
        methods: Methods, as `veridical.evaluate` takes them.
        metrics: Metrics, as `veridical.evaluate` takes them.
        every: Steps between two measurements. Default: they are made after each epoch.
        target: The class to explain: `predicted`, `gold`, a name or an index.
        seed: The seed of what methods and metrics draw.
        budget: Padded tokens that the model is given at once.
        prefix: What the names in the log begin with.

    Example:
        >>> trainer.add_callback(veridical.FaithfulnessCallback(trainer, texts, "attention", every=100))
    """

    def __init__(
        self,
        trainer: Trainer,
        texts: Given,
        methods: str | Sequence[str] = USUAL.methods,
        metrics: str | Sequence[str] = USUAL.metrics or (),
        *,
        every: int | None = None,
        target: str | int = USUAL.target,
        seed: int = USUAL.seed,
        budget: int | None = None,
        prefix: str = "eval",
    ):
        if every is not None and (not isinstance(every, int) or isinstance(every, bool) or every < 1):
            raise InputError(f"every is {every!r}; it must be a number of steps, 1 or more, or None for each epoch.")
        self._clf = _classifier(trainer)
        self.trainer, self.every, self.prefix = trainer, every, prefix
        self.examples = examples_of(
            texts, "FaithfulnessCallback", labels=self._clf.labels, multilabel=self._clf.kind == "multi"
        )
        # Mistakes in names are told now, those that only the model can show before the first step.
        self.methods = [choice.label for choice in all_methods.choose_all(methods)]
        measures = computable(all_metrics.choose_all(metrics), self.examples, len(self.methods))
        self.metrics = [choice.label for choice in measures]
        read_target(target, self._clf.labels)
        self._how: dict[str, Any] = {"target": target, "seed": seed, "budget": budget}

    # -- when -----------------------------------------------------------------------------------------------

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if state.global_step == 0:  # not where a training is resumed
            self._report(state, control)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if self.every is not None and (state.global_step % self.every == 0 or state.global_step >= state.max_steps):
            self._report(state, control)

    def on_epoch_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if self.every is None:
            self._report(state, control)

    # -- what -----------------------------------------------------------------------------------------------

    def _report(self, state: TrainerState, control: TrainerControl) -> None:
        if not state.is_world_process_zero:
            return
        figures = self.measure()
        logs = control.should_log  # `log` takes it back: the trainer would leave out its own line of this step
        self.trainer.log(figures)
        control.should_log = logs

    def measure(self) -> dict[str, float]:
        """The figures of the model as it is now, by the names that the log has."""
        if self._clf.model is not self.trainer.model:  # another trial of a hyperparameter search
            self._clf = _classifier(self.trainer)
        with undisturbed(self._clf):
            clf = _folded(self._clf)
            found = evaluate(clf, self.examples, self.methods, self.metrics, device=str(clf.device), **self._how)
        subjects = dict.fromkeys((cell.metric, cell.method) for cell in found.cells)  # pairs of methods too
        means = {f"{self.prefix}_{metric}/{method}": found.mean(metric, method) for metric, method in subjects}
        return {name: value for name, value in means.items() if value is not None}


def _classifier(trainer: Trainer) -> Classifier:
    """The trainer's model as methods see it."""
    if not isinstance(trainer, Trainer):
        raise InputError(
            f"The callback logs through its trainer, but was given {type(trainer).__name__}; write "
            "trainer.add_callback(FaithfulnessCallback(trainer, texts))."
        )
    if trainer.processing_class is None:
        raise InputError("Explaining texts needs the tokenizer; pass processing_class=tokenizer to the trainer.")
    for name in ("fsdp", "deepspeed"):
        if getattr(trainer.args, name):
            raise InputError(f"Under {name} no process holds the whole model, so none can explain it; leave it out.")
    model: Any = trainer.model
    half = next((p.dtype for p in model.parameters() if p.is_floating_point() and p.itemsize < 4), None)
    if half is not None:
        raise InputError(
            f"The weights are {half}, in which explanations lose their digits; load them with dtype=torch.float32 "
            "and train with bf16=True or fp16=True."
        )
    return Classifier(model, trainer.processing_class)


def _folded(clf: Classifier) -> Classifier:
    """Of a model with adapters a copy of this moment: what reads weights would explain it as it was before training."""
    if not has_adapters(clf.model):
        return clf
    return Classifier(fold_adapters(copy.deepcopy(clf.model)), clf.tokenizer)


@contextmanager
def undisturbed(clf: Classifier) -> Iterator[None]:
    """Whatever is computed with the model inside, all random states, modes and gradients are as before afterwards."""
    kept = [(parameter, parameter.grad, parameter.requires_grad) for parameter in clf.model.parameters()]
    states = random.getstate(), np.random.get_state()
    device = clf.device
    of_mps = torch.mps.get_rng_state() if device.type == "mps" else None  # fork_rng knows devices by number only
    others = [] if device.type in ("cpu", "mps") else [device]
    try:
        with clf.still(), torch.random.fork_rng(devices=others, device_type=device.type if others else None):
            for parameter, _, _ in kept:
                parameter.grad = None  # what a method adds up there is not the training's
            yield
    finally:
        for parameter, gradient, trains in kept:
            parameter.requires_grad_(trains)
            parameter.grad = gradient
        random.setstate(states[0])
        np.random.set_state(states[1])
        if of_mps is not None:
            torch.mps.set_rng_state(of_mps)
