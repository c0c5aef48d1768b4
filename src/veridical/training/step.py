"""One update of the weights from one batch, on any number of processes.

Why two processes follow the curve of one: a step's batch is the same whoever computes it. Each process sums
the losses of its share, divided by each term's size of the whole batch, and the gradients are added up. This is done
here and not by a wrapper around the model, so that a term may run the model twice or differentiate twice.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import torch
from accelerate import Accelerator

from veridical.core.errors import InputError
from veridical.core.seed import seed_of
from veridical.model.ask import batches_of
from veridical.model.memory import attempt, room_for, too_long, whole_model
from veridical.training.bound import climb
from veridical.training.journal import State
from veridical.training.rate import rate, set_rate
from veridical.training.task import Task, run_terms, seed_torch, sizes_of

Row = dict[str, float | None]  # of the log


def step(task: Task, optimizer: torch.optim.Optimizer, rows: list[int], state: State) -> tuple[State, Row]:
    """Where the run stands after an update from these examples, and what the log says of it."""
    sizes = sizes_of(task, rows, state.step)
    held = {bound.term: multiplier.value for bound, multiplier in zip(task.bounds, state.multipliers, strict=True)}
    weights = {ready.name: held.get(ready.name, ready.weight) for ready in task.terms}
    means = _fitting(task, optimizer, rows, state.step, weights, sizes)
    parameters = [p for p in task.parameters if p.grad is not None]
    if task.accelerator.num_processes > 1:
        _add_up(task.accelerator, parameters)
    loss = sum(weight * means[name] for name, weight in weights.items())
    loss -= sum(held[bound.term] * bound.train for bound in task.bounds if sizes[bound.term])
    with whole_model(task.clf, "Clipping the gradient"):
        norm = _clipped(parameters, task.config.clip)
    if not math.isfinite(loss) or not math.isfinite(norm):
        raise InputError(
            f"Training broke down at step {state.step + 1}: the loss is {loss}, the norm of its gradient {norm}; "
            f"lower lr ({task.config.lr:g}) and head_lr ({task.config.head_lr:g}), or set clip=1."
        )
    factor = rate(state.step, task.steps, task.config)
    rates = set_rate(optimizer, factor)
    with whole_model(task.clf, "The optimiser's memory"):  # which the first step makes
        optimizer.step()
    multipliers = tuple(
        climb(multiplier, means[bound.term] - bound.train, bound.lr * factor) if sizes[bound.term] else multiplier
        for bound, multiplier in zip(task.bounds, state.multipliers, strict=True)
    )
    row: Row = {"loss": loss, **means}
    row |= {name: None for name, size in sizes.items() if not size}  # nothing in this batch that it is about
    row |= {f"{name}.multiplier": value for name, value in held.items()}
    row |= {"norm": norm, **{f"{part}_lr": value for part, value in rates.items()}}
    return dataclasses.replace(state, step=state.step + 1, multipliers=multipliers), row


def _fitting(
    task: Task,
    optimizer: torch.optim.Optimizer,
    rows: list[int],
    step: int,
    weights: dict[str, float],
    sizes: dict[str, float],
) -> dict[str, float]:
    """`_backward` in passes that fit into memory: the step is begun anew with passes of half the size when one does
    not, for half a gradient may have been added up."""
    room = room_for(task.clf, "training", task.config.budget)
    means: dict[str, torch.Tensor] = {}

    def run() -> None:
        seed_torch(seed_of("step", task.data_seed, step, task.accelerator.process_index), task.clf.device)
        optimizer.zero_grad()
        means.update(_backward(task, rows, step, weights, sizes, room.tokens))

    lengths = [len(task.encoded["train"][i].ids) for i in rows]
    while not attempt(run, room, task.clf):
        if room.tokens <= max(lengths):
            raise too_long(max(lengths), task.clf)
        room.shrink(len(rows), max(lengths))
    summed: Any = torch.stack(list(means.values()))
    if task.accelerator.num_processes > 1:
        summed = task.accelerator.reduce(summed, "sum")
    return dict(zip(means, summed.tolist(), strict=True))


def _backward(
    task: Task, rows: list[int], step: int, weights: dict[str, float], sizes: dict[str, float], tokens: int
) -> dict[str, torch.Tensor]:
    """Run this process's share of the batch, so many tokens at a time, and add its gradients up; returns what it gives
    to every term's and figure's mean over the whole batch."""
    world, rank = task.accelerator.num_processes, task.accelerator.process_index
    mine, part_of = rows[rank::world], 1.0
    if not mine:  # too few rows for all: this process adds nothing, but touches the same parameters
        mine, part_of = rows[:1], 0.0
    shares = {name: part_of / size if size else 0.0 for name, size in sizes.items()}
    means: dict[str, torch.Tensor] = {}
    for part in batches_of([len(task.encoded["train"][i].ids) for i in mine], tokens):
        _, losses, figures = run_terms(task, "train", [mine[i] for i in part], step)
        parts = {name: loss * shares[name] for name, loss in losses.items()}
        torch.stack([weights[name] * loss for name, loss in parts.items()]).sum().backward()
        parts |= {name: figure * part_of / len(rows) for name, figure in figures.items()}
        means = {name: means.get(name, 0.0) + value.detach() for name, value in parts.items()}
    return means


def _clipped(parameters: Sequence[torch.nn.Parameter], largest: float | None) -> float:
    """The norm of all gradients together, which are then scaled down to `largest` if there is one."""
    norm = torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    if largest is not None:
        torch.nn.utils.clip_grads_with_norm_(parameters, largest, norm)
    return float(norm)


def _add_up(accelerator: Accelerator, parameters: Sequence[torch.nn.Parameter]) -> None:
    """Every process gets the sum of all processes' gradients."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    flat: Any = accelerator.reduce(torch.cat([g.flatten() for g in gradients]), "sum")
    for gradient, added in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
        gradient.copy_(added.view_as(gradient))
