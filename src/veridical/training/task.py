"""What a training run works on, one pass of its terms over some of it, and what is known of a whole split."""

from __future__ import annotations

import atexit
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object

from veridical.core.records import Answers, Batch, Encoded
from veridical.core.seed import Draw, seed_of
from veridical.model.accuracy import Scores, score
from veridical.model.ask import predict
from veridical.model.classifier import Classifier
from veridical.model.flat import Flat, flat_of
from veridical.model.mask import note_ratio
from veridical.model.memory import run_all
from veridical.training.bound import Bound
from veridical.training.config import TrainConfig
from veridical.training.masking import Masks, masks
from veridical.training.options import SAVE_STEPS
from veridical.training.term import BASE, Objective, Ready, objective, ready

Sums = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Task:
    """What a run works on and with; nothing in it changes but the weights."""

    clf: Classifier
    terms: tuple[Ready, ...]  # cross-entropy first
    bounds: tuple[Bound, ...]
    config: TrainConfig
    seed: int
    encoded: dict[str, list[Encoded]]  # split -> encodings
    gold: dict[str, torch.Tensor]  # split -> labels, of the splits that have them
    folder: Path
    save_steps: int
    accelerator: Accelerator
    tracked: bool = False  # its log goes to TensorBoard too
    masks: Masks | None = None  # None: texts are trained on as they are

    @property
    def data_seed(self) -> int:
        """Of all that is random once the weights are drawn."""
        return self.seed if self.config.data_seed is None else self.config.data_seed

    @property
    def epoch_steps(self) -> int:
        return math.ceil(len(self.encoded["train"]) / self.config.batch)

    @property
    def steps(self) -> int:
        return self.epoch_steps * self.config.epochs

    @cached_property
    def parameters(self) -> tuple[torch.nn.Parameter, ...]:
        """The model's, in its order: listing them anew in every step took a twentieth of a small one."""
        return tuple(self.clf.model.parameters())

    @cached_property
    def _flat(self) -> dict[str, Flat]:
        return {}

    def batch(self, split: str, rows: Sequence[int]) -> Batch:
        """Some examples of a split, as the model takes them."""
        if split not in self._flat:
            self._flat[split] = flat_of(self.clf, self.encoded[split])
        return self._flat[split].batch(self.clf, rows)

    def eager(self) -> AbstractContextManager[None]:
        return self.clf.eager() if any(ready.term.eager for ready in self.terms) else nullcontext()

    @property
    def cut(self) -> dict[str, dict[str, int]]:
        """Texts of each split that were too long for the model, and the tokens they lost."""
        return {
            split: {"texts": sum(e.cut > 0 for e in found), "tokens": sum(e.cut for e in found)}
            for split, found in self.encoded.items()
        }

    def notes(self) -> Iterator[str]:
        """What was cut, in a sentence per split: never in silence."""
        why = "the model takes" if self.config.max_length is None else "of max_length"
        for split, lost in self.cut.items():
            if lost["texts"]:
                yield (
                    f"{lost['texts']} of {len(self.encoded[split])} {split} texts are longer than the "
                    f"{self.clf.limit} tokens {why}; {lost['tokens']} tokens were cut."
                )


def meeting() -> Accelerator:
    """What processes that train together meet through. The same for every training of a process, wherever its model is:
    accelerate allows no other."""
    accelerator = Accelerator(cpu=not torch.accelerator.is_available())  # else processes would not meet on CPUs
    if accelerator.num_processes > 1:
        atexit.unregister(_part)
        atexit.register(_part)
    return accelerator


def _part() -> None:
    """Processes that met part before the interpreter ends: threads of theirs that are found running then abort it."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def prepare(
    clf: Classifier,
    encoded: Mapping[str, list[Encoded]],
    gold: Mapping[str, torch.Tensor],
    *,
    config: TrainConfig,
    seed: int,
    folder: Path,
    chosen: Objective | None = None,
    bounds: tuple[Bound, ...] = (),
    save_steps: int = SAVE_STEPS,
    accelerator: Accelerator | None = None,
    tracked: bool = False,
) -> Task:
    """A task on these texts: without an objective of cross-entropy alone, its terms prepared on the train split."""
    terms = ready(chosen or objective(BASE), clf, encoded["train"], gold["train"])
    accelerator = accelerator or meeting()
    drawn = masks(clf, config, seed if config.data_seed is None else config.data_seed)
    note_ratio(clf.model, config.mask)
    return Task(
        clf, terms, bounds, config, seed, dict(encoded), dict(gold), folder, save_steps, accelerator, tracked, drawn
    )


def run_terms(task: Task, split: str, rows: Sequence[int], step: int) -> tuple[torch.Tensor, Sums, Sums]:
    """One pass over some examples of a split, at a step: class logits [B, C], the sum of every term, and the sums of
    their figures, called `term.figure`. In training some of the texts may be masked."""
    labels = task.gold[split][list(rows)].to(task.clf.device)
    if task.masks is None or split != "train":
        return _pass(task, task.batch(split, rows), labels, step, task.terms)
    encoded = [task.encoded[split][i] for i in rows]
    drawn = task.masks.drawn(encoded, step)
    if len(task.terms) == 1:  # cross-entropy, of masked and whole texts alike: one pass
        mixed = [text if new is None else new for text, new in zip(encoded, drawn, strict=True)]
        return _pass(task, task.clf.collate(mixed), labels, step, task.terms)
    return _two_passes(task, encoded, drawn, labels, step)


def _two_passes(
    task: Task, encoded: Sequence[Encoded], drawn: Sequence[Encoded | None], labels: torch.Tensor, step: int
) -> tuple[torch.Tensor, Sums, Sums]:
    """The whole texts with all terms, the masked ones with cross-entropy alone. A part of one pass would not do: what
    differentiates the output by the word embeddings needs those of its own pass."""
    logits = torch.empty(0)
    losses: Sums = {one.name: torch.zeros((), device=task.clf.device) for one in task.terms}
    figures: Sums = {}
    places = (
        [i for i, new in enumerate(drawn) if new is None],
        [i for i, new in enumerate(drawn) if new is not None],
    )
    for rows, terms in zip(places, (task.terms, task.terms[:1]), strict=True):
        if rows:
            texts = [drawn[i] or encoded[i] for i in rows]
            some, added, told = _pass(task, task.clf.collate(texts), labels[rows], step, terms)
            logits = torch.empty(len(encoded), some.shape[1], device=some.device) if not len(logits) else logits
            logits[rows] = some.detach()
            losses = {name: losses[name] + added.get(name, 0.0) for name in losses}
            figures |= told
    return logits, losses, figures


def _pass(
    task: Task, batch: Batch, labels: torch.Tensor, step: int, terms: Sequence[Ready]
) -> tuple[torch.Tensor, Sums, Sums]:
    needs = {need for one in terms for need in one.term.needs}
    output = task.clf.forward(batch, attentions="attention" in needs, hidden="hidden" in needs)
    draw = Draw(task.data_seed, step)
    losses = {term.name: term.loss(task.clf, batch, output, labels, draw) for term in terms}
    figures = {f"{name}.{key}": value for name, (_, held) in losses.items() for key, value in held.items()}
    return output.logits, {name: loss for name, (loss, _) in losses.items()}, figures


def sizes_of(task: Task, rows: Sequence[int], step: int) -> dict[str, float]:
    """What every term's sum over a batch of training texts is divided by; terms beside cross-entropy count whole texts
    only."""
    encoded, gold = [task.encoded["train"][i] for i in rows], task.gold["train"][list(rows)]
    sizes = {one.name: one.size(encoded, gold) for one in task.terms[:1]}
    if len(task.terms) > 1:
        drawn = [None] * len(rows) if task.masks is None else task.masks.drawn(encoded, step)
        whole = [i for i, new in enumerate(drawn) if new is None]
        seen, labels = [encoded[i] for i in whole], gold[whole]
        sizes |= {one.name: one.size(seen, labels) if seen else 0.0 for one in task.terms[1:]}
    return sizes


def measure(task: Task, split: str, epoch: int) -> tuple[Answers, Scores]:
    """Answers on a split and everything known of it: scores, terms with their figures, the whole objective.

    Shared out over the processes, the same on all of them. A term is None where it has nothing to say.
    """
    encoded, gold = task.encoded[split], task.gold[split]
    if len(task.terms) == 1:  # cross-entropy, which is among the scores
        answers = ask_all(task, split)
        found = score(answers, gold, task.clf.kind)
        return answers, {**found, "objective": found["loss"]} if task.config.select == "objective" else found
    world, rank = task.accelerator.num_processes, task.accelerator.process_index
    seed_torch(seed_of("measure", task.data_seed, epoch, split, rank), task.clf.device)
    mine, step, most = range(len(encoded))[rank::world], epoch * task.epoch_steps, task.config.batch
    logits = np.empty((len(mine), len(task.clf.labels)), dtype=np.float32)
    sums: dict[str, float] = {}

    def run(rows: list[int]) -> None:
        passes = [(part, *_values(task, split, [mine[i] for i in part], step)) for part in _no_wider(rows, most)]
        for part, answered, losses in passes:  # only now that all of them fitted into memory
            logits[part] = answered
            sums.update({name: sums.get(name, 0.0) + value for name, value in losses.items()})

    with task.clf.still(), task.eager():
        run_all(task.clf, [len(encoded[i].ids) for i in mine], run, work="measure", budget=task.config.budget)
    gathered = [(logits, sums)] if world == 1 else gather_object([(logits, sums)])
    answers = _answers(task, [part for part, _ in gathered], len(encoded))
    found = score(answers, gold, task.clf.kind)
    sizes = {one.name: one.size(encoded, gold) for one in task.terms}
    for name in gathered[0][1]:
        size = sizes.get(name, len(encoded))  # figures are per example
        found[name] = sum(part.get(name, 0.0) for _, part in gathered) / size if size else None
    found["objective"] = _objective(task, found)
    del found["cross_entropy"]  # the scores call it loss
    return answers, found


def _no_wider(rows: Sequence[int], most: int) -> Iterator[list[int]]:
    """Passes of at most so many examples: terms that differentiate hold the whole pass in memory, several times over,
    and the splits that are measured should not need more of it than a step of training."""
    for start in range(0, len(rows), most):
        yield list(rows[start : start + most])


def _values(task: Task, split: str, rows: Sequence[int], step: int) -> tuple[np.ndarray, dict[str, float]]:
    """What `run_terms` finds, as numbers: nothing that it differentiated outlives the call."""
    logits, losses, figures = run_terms(task, split, rows, step)
    return logits.detach().float().cpu().numpy(), {name: float(v.detach()) for name, v in {**losses, **figures}.items()}


def _objective(task: Task, found: Scores) -> float | None:
    """The weighted sum of the terms that have no bound."""
    bounded, whole = {bound.term for bound in task.bounds}, 0.0
    for one in task.terms:
        if one.weight and one.name not in bounded:
            value = found[one.name]
            if value is None:
                return None
            whole += one.weight * value
    return whole


def ask_all(task: Task, split: str) -> Answers:
    """The classifier's answers on a split, shared out over the processes, the same on all of them."""
    return ask_texts(task, task.encoded[split])


def ask_texts(task: Task, encoded: Sequence[Encoded]) -> Answers:
    """The same on any texts."""
    world, rank = task.accelerator.num_processes, task.accelerator.process_index
    mine = predict(task.clf, encoded[rank::world], finite=False)  # a breakdown is told apart
    if world == 1:
        return mine
    parts: list[Answers] = gather_object([mine])
    return _answers(task, [part.logits for part in parts], len(encoded))


def _answers(task: Task, parts: Sequence[np.ndarray], count: int) -> Answers:
    """From the processes' logits, in the order of the split."""
    logits = np.empty((count, len(task.clf.labels)), dtype=np.float32)
    for i, part in enumerate(parts):
        logits[i :: len(parts)] = part
    return Answers(logits, task.clf.probabilities(torch.from_numpy(logits)).numpy())


def seed_torch(seed: int, device: torch.device) -> None:
    """`torch.manual_seed`, which notes where it was called from for every kind of device that has not begun to work:
    a millisecond. On a CPU its generator is the only one."""
    if device.type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


@contextmanager
def own_threads(threads: int, device: torch.device) -> Iterator[None]:
    """So many threads inside (results are equal to the last bit for equal threads only); the caller's number and random
    state are as they were afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        # Of a CPU there is one state; Apple's GPUs have no state by device.
        others = [] if device.type in ("cpu", "mps") else [device]
        with torch.random.fork_rng(devices=others, device_type=device.type if others else None):
            yield
    finally:
        torch.set_num_threads(before)
