"""Loss terms inside `transformers.Trainer`: a fine-tuning script keeps its trainer and gets an objective.

    trainer = VeridicalTrainer(model, args, ..., processing_class=tokenizer, objective="saloss:weight=1e-3")

Cross-entropy is the loss the trainer computes anyway (label smoothing, its own `compute_loss_func`, several labels),
bit for bit. Terms are added to it. `compute_loss_func` would not do: it never sees the inputs.

How a term is scaled. A term's value for an update is its sum over all examples of the update divided by its size over
all of them: over the batches that are accumulated, and over the processes. The sizes are known before the first of the
batches runs (`get_batch_samples`), so each batch adds its share. Two things the trainer does to a loss are undone: it
divides by the number of accumulated batches unless the loss is scaled already, and gradients of several processes are
averaged, not added. A third is followed, so that weights keep their meaning: the heads of most encoders take the number
of examples of an update and ignore it, and the trainer, which trusts them, weighs their mean over a batch as if it were
a share of the update's; the loss grows with accumulation and processes, and terms are made to grow with it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Literal

import torch
from transformers import Trainer

from veridical.core.errors import Caution, InputError
from veridical.core.records import Batch, Encoded, Output
from veridical.core.seed import Draw
from veridical.model.classifier import Classifier, class_logits
from veridical.model.mask import note_ratio
from veridical.training.collator import CARRIED, EXTRA, Carrier
from veridical.training.config import TrainConfig
from veridical.training.masking import Masks, masked_inputs, masks, some_rows
from veridical.training.term import BASE, Ready, ready
from veridical.training.term import objective as read_objective
from veridical.training.trainer_batch import as_batch, term_sizes, without, word_vectors

KEEPS = {"attention": "attentions", "hidden": "hidden_states"}  # what a term needs -> what the model calls it


class VeridicalTrainer(Trainer):
    """`Trainer` with `objective`: terms with weights on top of its loss, as `veridical train --objective` takes them.

    It needs the tokenizer (`processing_class`). The dataset is the one the script has: rows with `input_ids`,
    `attention_mask`, labels, and where a term learns from rationales a column `rationale` of 0 or 1 for each token. Of
    pairs the terms look at the part numbered `segment`. The log holds each term beside the loss, unweighted;
    evaluation leaves `eval_loss` as it is and adds `eval_<term>` and `eval_objective`, the weighted sum.

    Args:
        *args: What `transformers.Trainer` takes.
        objective: Terms on top of its loss, each with a weight: `"saloss:weight=1e-3"`.
        segment: Of pairs, the part that the terms look at: 0 or 1.
        mask: Mask texts at random in training, up to this share of their tokens, so that erasure by the mask token is
            nothing new to the model; 0: none. Terms look at whole texts only, and evaluation masks nothing.
        mask_rows: The chance of a text to be masked in a step.
        **kwargs: What `transformers.Trainer` takes by name.

    Example:
        >>> VeridicalTrainer(model, args, train_dataset=rows, processing_class=tokenizer, objective="saloss:weight=0.1")
    """

    def __init__(
        self,
        *args: Any,
        objective: str = BASE,
        segment: Literal[0, 1] = 0,
        mask: float = 0.0,
        mask_rows: float = 0.5,
        **kwargs: Any,
    ):
        self._objective = read_objective(objective)
        self._masking = TrainConfig(mask=mask, mask_rows=mask_rows)  # which says what is wrong with them
        alone = len(self._objective) == 1 and self._objective[0].weight == 1
        self._plain = alone and not mask  # nothing to add: stay out of the way
        self._prepared: tuple[Classifier, tuple[Ready, ...]] | None = None
        self._sizes: dict[str, float] = {}  # of the update under way, by term; under "" its examples
        self._told: dict[str, torch.Tensor] = {}  # sums over updates since the last log, this process's share
        self._updates = 0
        self._shares: bool | None = None  # whether the model's loss of a batch is its share of an update
        self._measured: dict[str, float] = {}  # sums over an evaluation; under "term:size" what to divide by
        super().__init__(*args, **kwargs)
        note_ratio(self.model, mask)
        if self._plain:
            return
        if self.processing_class is None:
            raise InputError("An objective needs the tokenizer; pass processing_class=tokenizer.")
        if self.args.n_gpu > 1:
            raise InputError(
                f"One process drives {self.args.n_gpu} devices here, which terms cannot follow; start one per device "
                "(torchrun or accelerate launch)."
            )
        for name in ("fp16_full_eval", "bf16_full_eval"):
            if getattr(self.args, name):
                raise InputError(f"Terms are measured in float32; leave {name} out.")
        for name in ("fsdp", "deepspeed", "torch_compile"):
            if getattr(self.args, name):
                raise InputError(f"Terms look inside the model, which {name} hides; leave {name} out.")
        self.data_collator = Carrier(self.processing_class, self.data_collator, segment=segment)
        self._switch(self.model)

    # -- what the terms work with ---------------------------------------------------------------------------

    def call_model_init(self, trial: Any = None) -> Any:
        self._prepared = None
        model = self._switch(super().call_model_init(trial))
        note_ratio(model, self._masking.mask)
        return model

    def _switch(self, model: Any) -> Any:
        """Fused attention returns no weights and has no second derivative on a CPU."""
        if any(one.choice.entry.eager for one in self._objective) and hasattr(model, "set_attn_implementation"):
            model.set_attn_implementation("eager")
        return model

    def _terms(self) -> tuple[Classifier, tuple[Ready, ...]]:
        """The model as terms see it, and the terms, prepared on the train split when they are first needed."""
        if self._prepared is None or self._prepared[0].model is not self.model:
            clf = Classifier(self.model, self.processing_class)
            if clf.kind == "one_logit":
                raise InputError("This model has one output and learns by regression; terms are for classifiers.")
            half = next((p.dtype for p in clf.model.parameters() if p.is_floating_point() and p.itemsize < 4), None)
            if half is not None:
                raise InputError(
                    f"The weights are {half}, in which terms vanish or overflow; load them with dtype=torch.float32 "
                    "and train with bf16=True or fp16=True."
                )
            encoded, labels = self._train_split() if any(o.choice.entry.prepare for o in self._objective) else ([], [])
            gold = torch.tensor(labels)
            with torch.enable_grad():  # evaluation may come first, and guides are tried by differentiating
                self._prepared = clf, ready(self._objective, clf, encoded, gold)
        return self._prepared

    def _masks(self, clf: Classifier) -> Masks | None:
        return masks(clf, self._masking, self._seed)

    @property
    def _seed(self) -> int:
        return self.args.seed if self.args.data_seed is None else self.args.data_seed

    def _train_split(self) -> tuple[list[Encoded], list[Any]]:
        named = " and ".join(one.name for one in self._objective if one.choice.entry.prepare)
        rows: Any = self.train_dataset
        if rows is None or not hasattr(rows, "__len__"):
            raise InputError(f"{named} is prepared on all training texts; give a train_dataset that has a length.")
        collator: Any = self.data_collator
        encoded, labels = [], []
        for index in range(len(rows)):
            row = rows[index]
            encoded.append(collator.encode(row))
            found = next((row[key] for key in ("labels", "label", "label_ids") if key in row), None)
            if found is None:
                raise InputError(f"Row {index} of train_dataset has no labels; {named} is prepared on labelled texts.")
            labels.append(found.tolist() if hasattr(found, "tolist") else found)
        return encoded, labels

    def _set_signature_columns_if_needed(self) -> None:
        super()._set_signature_columns_if_needed()
        columns: list[str] = self._signature_columns  # type: ignore[assignment]
        if not self._plain:
            columns += [name for name in EXTRA if name not in columns]

    # -- the loss -------------------------------------------------------------------------------------------

    def get_batch_samples(self, epoch_iterator: Iterator, num_batches: int, device: torch.device) -> tuple[list, Any]:
        samples, items = super().get_batch_samples(epoch_iterator, num_batches, device)
        if not self._plain and samples:
            clf, terms = self._terms()
            if any("labels" not in sample for sample in samples):
                raise InputError(
                    f"A batch has no labels (it has: {', '.join(samples[0])}); terms are for labelled data."
                )
            masks, step = self._masks(clf), self.state.global_step
            sizes = term_sizes(terms, [(sample[CARRIED], sample["labels"]) for sample in samples], masks, step)
            if self.accelerator.num_processes > 1:
                total: Any = torch.tensor(list(sizes.values()), dtype=torch.float64, device=device)
                sizes = dict(zip(sizes, self.accelerator.reduce(total, "sum").tolist(), strict=True))  # type: ignore[union-attr]
            self._sizes = sizes
            self._updates += 1
        return samples, items

    def compute_loss(
        self,
        model: torch.nn.Module,
        inputs: Mapping[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        if self._plain:
            return super().compute_loss(model, dict(inputs), return_outputs, num_items_in_batch)
        clf, terms = self._terms()
        inputs = dict(inputs)
        encoded, labels = inputs.pop(CARRIED), inputs.get("labels")
        if labels is None:
            raise InputError(f"The batch has no labels (it has: {', '.join(inputs)}); terms are for labelled data.")
        if (labels.dim() == 2) is not (clf.kind == "multi"):
            raise InputError(
                f"The labels have {labels.dim()} dimensions and problem_type is {clf.model.config.problem_type!r}; "
                "for several labels per text set model.config.problem_type='multi_label_classification'."
            )
        batch = as_batch(inputs, encoded)
        training, masks, whole = model.training, self._masks(clf), None
        if training and masks is not None:
            inputs, whole = masked_inputs(masks, inputs, encoded, self.state.global_step)
        # A term may differentiate also where it is only measured.
        with nullcontext() if training else torch.enable_grad():
            with word_vectors(clf) as seen:
                base, outputs = self._own_loss(model, inputs, terms, num_items_in_batch)
            output = Output(
                logits=class_logits(outputs["logits"], clf.kind),
                embeddings=seen[0],
                attentions=tuple(outputs.get("attentions") or ()),
                hidden=tuple(outputs.get("hidden_states") or ()),
            )
            if whole is not None and len(terms) > 1:
                found = self._of_whole(clf, inputs, encoded, labels, terms, whole)
            else:
                found = self._losses(clf, batch, output, labels, terms)
        if not training:
            grown = self._growth(clf, inputs, num_items_in_batch, 1)
            self._measure(terms, encoded, labels, base / grown, found)
            loss = base
        else:
            grown = self._growth(clf, inputs, num_items_in_batch, self.current_gradient_accumulation_steps)
            loss = self._add(terms, base, found, num_items_in_batch, grown)
        return (loss, without(outputs, clf.model.config)) if return_outputs else loss

    def _of_whole(
        self,
        clf: Classifier,
        inputs: Mapping[str, Any],
        encoded: Sequence[Encoded],
        labels: torch.Tensor,
        terms: Sequence[Ready],
        whole: Sequence[int],
    ) -> dict[str, tuple[torch.Tensor, Any]]:
        """The terms on the texts that are not masked, which have a pass of their own."""
        if not whole:
            return {one.name: (torch.zeros((), device=labels.device), {}) for one in terms if one.name != BASE}
        needs = {need for one in terms for need in one.term.needs}
        batch = as_batch(some_rows(inputs, whole), [encoded[row] for row in whole])
        output = clf.forward(batch, attentions="attention" in needs, hidden="hidden" in needs)
        return self._losses(clf, batch, output, labels[list(whole)], terms)

    def _losses(
        self, clf: Classifier, batch: Batch, output: Output, labels: torch.Tensor, terms: Sequence[Ready]
    ) -> dict[str, tuple[torch.Tensor, Any]]:
        draw = Draw(self._seed, self.state.global_step)
        try:
            return {one.name: one.loss(clf, batch, output, labels, draw) for one in terms if one.name != BASE}
        except RuntimeError as problem:
            if self.accelerator.mixed_precision == "no" or "appears to not have been used in the graph" not in str(
                problem
            ):
                raise
            raise InputError(
                f"In mixed precision {type(clf.model).__name__} returns copies of its attention weights, by which its "
                "output cannot be differentiated; train in float32, or guide by a method without attention gradients."
            ) from problem

    def _own_loss(
        self, model: torch.nn.Module, inputs: dict[str, Any], terms: Sequence[Ready], items: Any
    ) -> tuple[torch.Tensor, Any]:
        """The loss that the trainer would compute, and an output that holds what the terms need."""
        needs = {need for one in terms for need in one.term.needs}
        asked = {"output_attentions": True} if "attention" in needs else {}
        asked |= {"output_hidden_states": True} if "hidden" in needs else {}
        found: Any = super().compute_loss(model, {**inputs, **asked}, True, items)
        base, outputs = found
        for need in needs:
            if not outputs.get(KEEPS[need]):
                raise InputError(f"{type(self.model).__name__} returned no {KEEPS[need]}, which the objective needs.")
        return base, outputs

    def _divided(self, items: Any) -> int:
        """What the trainer will divide the loss by: the rule is that of its `training_step`."""
        scaled = self.loss_is_scaled_for_ga
        if scaled is None:
            scaled = (self.model_accepts_loss_kwargs and items is not None) or self.compute_loss_func is not None
        return 1 if scaled else self.current_gradient_accumulation_steps

    def _growth(self, clf: Classifier, inputs: Mapping[str, Any], items: Any, batches: int) -> int:
        """How many times too much the trainer's own loss of one of so many batches weighs."""
        world = self.accelerator.num_processes
        trusted = self.model_accepts_loss_kwargs and items is not None and self.loss_is_scaled_for_ga is not False
        elsewhere = self.compute_loss_func is not None or self.label_smoother is not None  # not the model's loss
        if batches * world == 1 or not trusted or elsewhere:
            return 1
        if self._shares is None:
            with clf.still(), torch.no_grad():
                one, two = (float(clf.model(**inputs, num_items_in_batch=n)["loss"]) for n in (1, 2))
            self._shares = abs(one - two) > 0.25 * abs(one)  # a share halves, a mean over the batch stays
            if not self._shares:
                warnings.warn(
                    f"{type(clf.model).__name__} ignores num_items_in_batch, so the trainer's loss grows with the "
                    "accumulated batches and processes; terms grow with it, so that their weights keep their meaning.",
                    Caution,
                    stacklevel=2,
                )
        if self._shares:
            return 1
        return batches * (world if self.args.average_tokens_across_devices else 1)

    def _add(
        self,
        terms: Sequence[Ready],
        base: torch.Tensor,
        found: Mapping[str, tuple[torch.Tensor, Any]],
        items: Any,
        grown: int,
    ) -> torch.Tensor:
        """The whole objective for this batch, scaled as the trainer expects it; and a note of it for the log."""
        divided, world = self._divided(items), self.accelerator.num_processes
        weights = {one.name: one.weight for one in terms}
        loss = weights[BASE] * base
        self._note(BASE, base / divided / grown)
        for name, (own, figures) in found.items():
            share = world / self._sizes[name] if self._sizes[name] else 0.0
            loss = loss + weights[name] * grown * divided * share * own
            self._note(name, share * own)
            for key, figure in figures.items():
                self._note(f"{name}.{key}", world * figure / self._sizes[""])
        return loss

    def _note(self, name: str, value: torch.Tensor) -> None:
        self._told[name] = self._told.get(name, torch.zeros((), device=value.device)) + value.detach().float()

    # -- the log --------------------------------------------------------------------------------------------

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        if "loss" in logs and self._told:  # the trainer's log of training; all processes come here
            means: Any = torch.stack(list(self._told.values()))
            if self.accelerator.num_processes > 1:
                means = self.accelerator.reduce(means, "mean")
            logs |= dict(zip(self._told, (means / self._updates).tolist(), strict=True))
            self._told, self._updates = {}, 0
        super().log(logs, *args, **kwargs)

    # -- evaluation -----------------------------------------------------------------------------------------

    def prediction_step(
        self, model: torch.nn.Module, inputs: dict[str, Any], prediction_loss_only: bool, ignore_keys: Any = None
    ) -> tuple[Any, Any, Any]:
        if any(inputs.get(name) is None for name in self.label_names):  # nothing to measure: the model is asked alone
            inputs = {key: value for key, value in inputs.items() if key != CARRIED}
        return super().prediction_step(model, inputs, prediction_loss_only, ignore_keys)

    def evaluation_loop(
        self,
        dataloader: Any,
        description: str,
        prediction_loss_only: bool | None = None,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "eval",
    ) -> Any:
        self._measured = {}
        output = super().evaluation_loop(
            dataloader, description, prediction_loss_only, ignore_keys, metric_key_prefix=metric_key_prefix
        )
        if self._measured and output.metrics is not None:
            output.metrics.update({f"{metric_key_prefix}_{name}": value for name, value in self._means().items()})
        return output

    def _measure(
        self,
        terms: Sequence[Ready],
        encoded: Sequence[Encoded],
        labels: torch.Tensor,
        base: torch.Tensor,
        found: Mapping[str, tuple[torch.Tensor, Any]],
    ) -> None:
        sums = {f"{name}.{key}": figure for name, (_, own) in found.items() for key, figure in own.items()}
        sums |= {name: loss for name, (loss, _) in found.items()} | {BASE: base * len(encoded)}
        sizes = term_sizes(terms, [(encoded, labels)])
        for name, value in {**sums, **{f"{name}:size": size for name, size in sizes.items()}}.items():
            self._measured[name] = self._measured.get(name, 0.0) + float(value)

    def _means(self) -> dict[str, float]:
        """Every term and figure over the evaluated split, and the weighted sum of the terms; a term with nothing to say
        there is left out, and counts as 0 in the sum."""
        sums = self._measured
        if self.accelerator.num_processes > 1:
            total: Any = torch.tensor(list(sums.values()), dtype=torch.float64, device=self.args.device)
            sums = dict(zip(sums, self.accelerator.reduce(total, "sum").tolist(), strict=True))  # type: ignore[union-attr]
        # The trainer's loss is per example, and so are figures; a term may count something else.
        by = {name: sums.get(f"{name}:size" if name != BASE else ":size", sums[":size"]) for name in sums}
        means = {name: value / by[name] for name, value in sums.items() if ":size" not in name and by[name]}
        whole = sum(one.weight * means.get(one.name, 0.0) for one in self._objective)
        del means[BASE]  # it is the loss
        return {**means, "objective": whole}
