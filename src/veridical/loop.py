"""The training loop. It stops anywhere and goes on as if it had not, and it runs on any number of processes.

Why a resumed run equals an undisturbed one to the last bit: the order of examples, the learning rate and the
random numbers of a step are functions of (seed, step), so the checkpoint is weights, optimiser and position.

Why two processes follow the curve of one: a step's batch is the same whoever computes it. Each process sums
the losses of its share, divided by the size of the whole batch, and the gradients are added up. This is done
here and not by a wrapper around the model, so that a term may run the model twice or differentiate twice.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from safetensors.torch import load_file, save_file

from veridical import store
from veridical.config import TrainConfig
from veridical.errors import InputError
from veridical.model.ask import batches_of, predict
from veridical.model.classifier import Classifier
from veridical.progress import Report
from veridical.records import Answers, Encoded
from veridical.schedule import make_optimizer, order, rate, set_rate
from veridical.scores import BETTER, Scores, score
from veridical.seed import seed_of
from veridical.term import Objective

CHECKPOINT, BEST, LOG = "checkpoint.pt", "best.safetensors", "train.jsonl"


@dataclass(frozen=True)
class Task:
    """What a run works on and with; nothing in it changes but the weights."""

    clf: Classifier
    objective: Objective
    config: TrainConfig
    seed: int
    encoded: dict[str, list[Encoded]]  # split -> encodings
    gold: dict[str, torch.Tensor]  # split -> labels, of the splits that have them
    folder: Path
    save_steps: int
    accelerator: Accelerator

    @property
    def epoch_steps(self) -> int:
        return math.ceil(len(self.encoded["train"]) / self.config.batch)

    @property
    def steps(self) -> int:
        return self.epoch_steps * self.config.epochs

    @property
    def cut(self) -> dict[str, dict[str, int]]:
        """Texts of each split that were too long for the model, and the tokens they lost."""
        return {
            split: {"texts": sum(e.cut > 0 for e in found), "tokens": sum(e.cut for e in found)}
            for split, found in self.encoded.items()
        }


@dataclass(frozen=True, slots=True)
class State:
    """Where a run stands. With the weights and the optimiser this is the checkpoint."""

    step: int = 0
    epoch: int = 0  # whole epochs, evaluated
    best: float | None = None
    best_epoch: int = 0
    lines: int = 0  # of the log
    seconds: float = 0.0

    def over(self, config: TrainConfig) -> bool:
        stale = self.epoch - self.best_epoch
        return self.epoch >= config.epochs or (config.patience is not None and stale >= config.patience)


def fit(task: Task, progress: bool | None = None) -> State:
    """Train from the checkpoint, or from the start, to the end; the classifier then has its best weights."""
    main = task.accelerator.is_main_process
    optimizer = make_optimizer(task.clf.model, task.config)
    state = _resume(task, optimizer)
    log = store.Log(task.folder / LOG, keep=state.lines) if main else None
    began = time.monotonic() - state.seconds

    def write(row: dict[str, Any]) -> None:
        nonlocal state
        state = dataclasses.replace(state, lines=state.lines + 1, seconds=time.monotonic() - began)
        if log is not None:
            log.append({**row, "seconds": round(state.seconds, 3)})

    def save() -> None:
        if log is not None:
            log.sync()
            weights = {"model": task.clf.model.state_dict(), "optimizer": optimizer.state_dict()}
            with store.replacing(task.folder / CHECKPOINT) as temporary:
                torch.save({"state": dataclasses.asdict(state), **weights}, temporary)

    if not state.lines:
        examples = {split: len(found) for split, found in task.encoded.items()}
        write({"steps": task.steps, "examples": examples, "cut": task.cut})
    lengths = [len(e.ids) for e in task.encoded["train"]]
    eager = any(one.choice.entry.eager for one in task.objective)
    title = f"training {store.slug(task.clf.name)}, seed {task.seed}"
    with Report(title, task.steps, done=state.step, progress=progress if main else False) as report:
        for split, lost in task.cut.items():
            if lost["texts"]:
                report.say(
                    f"{lost['texts']} of {len(task.encoded[split])} {split} texts are longer than the "
                    f"{task.clf.limit} tokens the model takes; {lost['tokens']} tokens were cut."
                )
        while not state.over(task.config):
            epoch = state.epoch + 1
            batches = order(lengths, task.config.batch, seed=task.seed, epoch=epoch)
            task.clf.model.train()
            with task.clf.eager() if eager else nullcontext():
                for rows in batches[state.step - state.epoch * task.epoch_steps :]:
                    row = _step(task, optimizer, rows, state.step)
                    state = dataclasses.replace(state, step=state.step + 1)
                    write({"step": state.step, "epoch": epoch, **row})
                    report.advance(f"epoch {epoch}/{task.config.epochs}  loss {row['loss']:.3f}")
                    if state.step % task.save_steps == 0 and state.step < epoch * task.epoch_steps:
                        save()
            state, row = _evaluate(task, dataclasses.replace(state, epoch=epoch))
            write(row)
            report.say(_sentence(row, task.config))
            save()
    if log is not None:
        log.close()
    task.accelerator.wait_for_everyone()
    task.clf.model.load_state_dict(load_file(task.folder / BEST))
    return state


def _resume(task: Task, optimizer: torch.optim.Optimizer) -> State:
    path = task.folder / CHECKPOINT
    if not path.exists():
        return State()
    held = torch.load(path, map_location="cpu", weights_only=True)
    task.clf.model.load_state_dict(held["model"])
    optimizer.load_state_dict(held["optimizer"])
    return State(**held["state"])


def _step(task: Task, optimizer: torch.optim.Optimizer, rows: list[int], step: int) -> dict[str, float]:
    """One update from one batch; returns what the log says of it."""
    clf, world, rank = task.clf, task.accelerator.num_processes, task.accelerator.process_index
    torch.manual_seed(seed_of("step", task.seed, step, rank))
    mine, share = rows[rank::world], 1 / len(rows)
    if not mine:  # too few rows for all: this process adds nothing, but touches the same parameters
        mine, share = rows[:1], 0.0
    needs = {need for one in task.objective for need in one.choice.entry.needs}
    runs = [(one.choice.entry.run, one.choice.options) for one in task.objective]
    weights = torch.tensor([one.weight for one in task.objective], device=clf.device)
    sums: Any = torch.zeros(len(task.objective), device=clf.device)
    optimizer.zero_grad()
    for part in batches_of([len(task.encoded["train"][i].ids) for i in mine], task.config.budget):
        picked = [mine[i] for i in part]
        batch = clf.collate([task.encoded["train"][i] for i in picked])
        labels = task.gold["train"][picked].to(clf.device)
        output = clf.forward(batch, attentions="attention" in needs, hidden="hidden" in needs)
        parts = torch.stack([run(clf, batch, output, labels, **options) for run, options in runs]) * share
        (parts * weights).sum().backward()
        sums += parts.detach()
    parameters = [p for p in clf.model.parameters() if p.grad is not None]
    if world > 1:
        _add_up(task.accelerator, parameters)
        sums = task.accelerator.reduce(sums, "sum")
    values: list[float] = sums.tolist()
    loss = sum(one.weight * value for one, value in zip(task.objective, values, strict=True))
    norm = float(torch.nn.utils.clip_grad_norm_(parameters, task.config.clip or math.inf))
    if not math.isfinite(loss) or not math.isfinite(norm):
        raise InputError(
            f"Training broke down at step {step + 1}: the loss is {loss}, the norm of its gradient {norm}; "
            f"lower lr ({task.config.lr:g}) and head_lr ({task.config.head_lr:g}), or set clip=1."
        )
    rates = set_rate(optimizer, rate(step, task.steps, task.config))
    optimizer.step()
    named = {one.choice.entry.name: value for one, value in zip(task.objective, values, strict=True)}
    return {"loss": loss, **named, "norm": norm, **{f"{part}_lr": value for part, value in rates.items()}}


def _add_up(accelerator: Accelerator, parameters: Sequence[torch.nn.Parameter]) -> None:
    """Every process gets the sum of all processes' gradients."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    flat: Any = accelerator.reduce(torch.cat([g.flatten() for g in gradients]), "sum")
    for gradient, added in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
        gradient.copy_(added.view_as(gradient))


def _evaluate(task: Task, state: State) -> tuple[State, dict[str, Any]]:
    """Score the dev split at the end of an epoch and keep the weights if they are the best so far."""
    select = task.config.select
    dev: Scores = score(ask_all(task, "dev"), task.gold["dev"], task.clf.kind) if "dev" in task.gold else {}
    if select == "last":
        value, better = None, True
    else:
        value = dev[select]
        if value is None:
            raise InputError(f"select={select} is undefined on this dev split; choose select=accuracy or loss.")
        sign = 1 if BETTER[select] == "higher" else -1
        better = state.best is None or sign * value > sign * state.best
    if better:
        state = dataclasses.replace(state, best=value, best_epoch=state.epoch)
        if task.accelerator.is_main_process:
            # Copies, because safetensors refuses tensors that share memory.
            weights = {name: t.detach().cpu().clone() for name, t in task.clf.model.state_dict().items()}
            with store.replacing(task.folder / BEST) as temporary:
                save_file(weights, temporary)
    return state, {"step": state.step, "epoch": state.epoch, "dev": dev, "best": better}


def ask_all(task: Task, split: str) -> Answers:
    """The classifier's answers on a split, shared out over the processes, the same on all of them."""
    world, rank = task.accelerator.num_processes, task.accelerator.process_index
    mine = predict(task.clf, task.encoded[split][rank::world])
    if world == 1:
        return mine
    parts: list[Answers] = gather_object([mine])
    logits = np.empty((len(task.encoded[split]), len(task.clf.labels)), dtype=np.float32)
    for i, part in enumerate(parts):
        logits[i::world] = part.logits
    return Answers(logits, task.clf.probabilities(torch.from_numpy(logits)).numpy())


def _sentence(row: dict[str, Any], config: TrainConfig) -> str:
    dev = "  ".join(f"{name} {value:.4f}" for name, value in row["dev"].items() if value is not None)
    kept = "  (best so far)" if row["best"] and config.select != "last" else ""
    return f"epoch {row['epoch']}/{config.epochs}  dev: {dev or 'none'}{kept}"
