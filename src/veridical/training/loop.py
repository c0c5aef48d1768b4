"""The training loop. It stops anywhere and goes on as if it had not, and it runs on any number of processes.

Why a resumed run equals an undisturbed one to the last bit: the order of examples, the learning rate and the
random numbers of a step are functions of (data seed, step), so the checkpoint is weights, optimiser and position, and
under a bound the multiplier.

Why two processes follow the curve of one: a step's batch is the same whoever computes it. Each process sums
the losses of its share, divided by each term's size of the whole batch, and the gradients are added up. This is done
here and not by a wrapper around the model, so that a term may run the model twice or differentiate twice.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from accelerate import Accelerator
from safetensors.torch import load_file, save_file

from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.progress import Report
from veridical.core.seed import seed_of
from veridical.model.accuracy import BETTER
from veridical.model.ask import batches_of
from veridical.training.bound import SLACK, Multiplier, climb
from veridical.training.rate import make_optimizer, order, rate, set_rate
from veridical.training.task import Task, measure, run_terms, seed_torch

CHECKPOINT, BEST, LOG = "checkpoint.pt", "best.safetensors", "train.jsonl"


@dataclass(frozen=True, slots=True)
class State:
    """Where a run stands. With the weights and the optimiser this is the checkpoint."""

    step: int = 0
    epoch: int = 0  # whole epochs, evaluated
    eligible: int = 0  # the first epoch that may be kept: under a bound, that keeps it; 0: none yet
    best: float | None = None  # of the eligible epochs; while there is none, of all
    best_epoch: int = 0
    multipliers: tuple[Multiplier, ...] = ()  # of the bounds
    lines: int = 0  # of the log
    seconds: float = 0.0

    def over(self, task: Task) -> bool:
        patience = task.config.patience
        if patience is not None and task.bounds and self.eligible:
            patience = max(1, patience // 2)  # as released: halved, and counted anew, once an epoch is eligible
        stale = self.epoch - self.best_epoch
        perfect = self.eligible > 0 and self.best == 1.0 and BETTER.get(task.config.select) == "higher"
        return self.epoch >= task.config.epochs or (patience is not None and (stale >= patience or perfect))


def fit(task: Task, progress: bool | None = None) -> State:
    """Train from the checkpoint, or from the start, to the end; the classifier then has its best weights (and no
    particular ones if no epoch was eligible)."""
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
    title = f"training {store.slug(task.clf.name)}, seed {task.seed}"
    with Report(title, task.steps, done=state.step, progress=progress if main else False) as report:
        why = "the model takes" if task.config.max_length is None else "of max_length"
        for split, lost in task.cut.items():
            if lost["texts"]:
                report.say(
                    f"{lost['texts']} of {len(task.encoded[split])} {split} texts are longer than the "
                    f"{task.clf.limit} tokens {why}; {lost['tokens']} tokens were cut."
                )
        while not state.over(task):
            epoch = state.epoch + 1
            batches = order(lengths, task.config.batch, seed=task.data_seed, epoch=epoch)
            task.clf.model.train()
            with task.eager():
                for rows in batches[state.step - state.epoch * task.epoch_steps :]:
                    state, row = _step(task, optimizer, rows, state)
                    write({"step": state.step, "epoch": epoch, **row})
                    report.advance(f"epoch {epoch}/{task.config.epochs}  loss {row['loss']:.3f}")
                    if state.step % task.save_steps == 0 and state.step < epoch * task.epoch_steps:
                        save()
            state, row = _evaluate(task, dataclasses.replace(state, epoch=epoch))
            write(row)
            report.say(_sentence(row, task))
            save()
        if main and not state.eligible:  # it reads the log, which is main's
            report.say(failure(task))
    if log is not None:
        log.close()
    task.accelerator.wait_for_everyone()
    if state.eligible:
        task.clf.model.load_state_dict(load_file(task.folder / BEST))
    return state


def _resume(task: Task, optimizer: torch.optim.Optimizer) -> State:
    path = task.folder / CHECKPOINT
    if not path.exists():
        return State(multipliers=tuple(Multiplier() for _ in task.bounds))
    held = torch.load(path, map_location="cpu", weights_only=True)
    task.clf.model.load_state_dict(held["model"])
    optimizer.load_state_dict(held["optimizer"])
    multipliers = tuple(Multiplier(**one) for one in held["state"]["multipliers"])
    return State(**{**held["state"], "multipliers": multipliers})


def _step(
    task: Task, optimizer: torch.optim.Optimizer, rows: list[int], state: State
) -> tuple[State, dict[str, float | None]]:
    """One update from one batch; returns where the run stands then, and what the log says of the step."""
    clf, world, rank = task.clf, task.accelerator.num_processes, task.accelerator.process_index
    seed_torch(seed_of("step", task.data_seed, state.step, rank), clf.device)
    mine, part_of = rows[rank::world], 1.0
    if not mine:  # too few rows for all: this process adds nothing, but touches the same parameters
        mine, part_of = rows[:1], 0.0
    whole, gold = [task.encoded["train"][i] for i in rows], task.gold["train"][rows]
    sizes = {one.name: one.size(whole, gold) for one in task.terms}
    shares = {name: part_of / size if size else 0.0 for name, size in sizes.items()}
    held = {bound.term: multiplier.value for bound, multiplier in zip(task.bounds, state.multipliers, strict=True)}
    weights = {one.name: held.get(one.name, one.weight) for one in task.terms}
    means: dict[str, torch.Tensor] = {}
    optimizer.zero_grad()
    for part in batches_of([len(task.encoded["train"][i].ids) for i in mine], task.config.budget):
        _, losses, figures = run_terms(task, "train", [mine[i] for i in part], state.step)
        parts = {name: loss * shares[name] for name, loss in losses.items()}
        torch.stack([weights[name] * loss for name, loss in parts.items()]).sum().backward()
        parts |= {name: figure * part_of / len(rows) for name, figure in figures.items()}
        means = {name: means.get(name, 0.0) + value.detach() for name, value in parts.items()}
    parameters = [p for p in clf.model.parameters() if p.grad is not None]
    summed: Any = torch.stack(list(means.values()))
    if world > 1:
        _add_up(task.accelerator, parameters)
        summed = task.accelerator.reduce(summed, "sum")
    named = dict(zip(means, summed.tolist(), strict=True))
    loss = sum(weight * named[name] for name, weight in weights.items())
    loss -= sum(held[bound.term] * bound.train for bound in task.bounds if sizes[bound.term])
    norm = _clipped(parameters, task.config.clip)
    if not math.isfinite(loss) or not math.isfinite(norm):
        raise InputError(
            f"Training broke down at step {state.step + 1}: the loss is {loss}, the norm of its gradient {norm}; "
            f"lower lr ({task.config.lr:g}) and head_lr ({task.config.head_lr:g}), or set clip=1."
        )
    factor = rate(state.step, task.steps, task.config)
    rates = set_rate(optimizer, factor)
    optimizer.step()
    multipliers = tuple(
        climb(multiplier, named[bound.term] - bound.train, bound.lr * factor) if sizes[bound.term] else multiplier
        for bound, multiplier in zip(task.bounds, state.multipliers, strict=True)
    )
    row: dict[str, float | None] = {"loss": loss, **named}
    row |= {name: None for name, size in sizes.items() if not size}  # nothing in this batch that it is about
    row |= {f"{name}.multiplier": value for name, value in held.items()}
    row |= {"norm": norm, **{f"{part}_lr": value for part, value in rates.items()}}
    return dataclasses.replace(state, step=state.step + 1, multipliers=multipliers), row


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


def _evaluate(task: Task, state: State) -> tuple[State, dict[str, Any]]:
    """Measure the dev split at the end of an epoch and keep the weights if they are the best so far."""
    select = task.config.select
    dev = measure(task, "dev", state.epoch)[1] if "dev" in task.gold else {}
    if wild := [name for name, figure in dev.items() if figure is not None and not math.isfinite(figure)]:
        raise InputError(
            f"Training broke down in epoch {state.epoch}: {wild[0]} on dev is {dev[wild[0]]}; lower lr "
            f"({task.config.lr:g}) and head_lr ({task.config.head_lr:g}), or set clip=1."
        )
    eligible = all(bound.holds(dev) for bound in task.bounds)
    if select == "last":
        value, better = None, True
    else:
        value = dev[select]
        if value is None:
            raise InputError(f"select={select} is undefined on this dev split; choose select=accuracy or loss.")
        sign = 1 if BETTER.get(select, "lower") == "higher" else -1
        better = state.best is None or sign * value > sign * state.best
    if eligible and not state.eligible:  # from here on only eligible epochs count
        state, better = dataclasses.replace(state, eligible=state.epoch), True
    elif state.eligible and not eligible:
        better = False
    if better:
        state = dataclasses.replace(state, best=value, best_epoch=state.epoch)
    if better and eligible and task.accelerator.is_main_process:
        # Copies, because safetensors refuses tensors that share memory.
        weights = {name: t.detach().cpu().clone() for name, t in task.clf.model.state_dict().items()}
        with store.replacing(task.folder / BEST) as temporary:
            save_file(weights, temporary)
    row = {"step": state.step, "epoch": state.epoch, "dev": dev, "best": better and eligible}
    return state, {**row, "eligible": eligible} if task.bounds else row


def failure(task: Task) -> str:
    """Why a run under a bound has nothing to keep."""
    rows = store.read_jsonl(task.folder / LOG)
    last = [row for row in rows if "loss" in row][-task.epoch_steps :]
    said, advice = [], "Raise it, or train on."
    for bound in task.bounds:
        best = min(row["dev"][bound.term] for row in rows if "dev" in row)
        said.append(
            f"{bound.term} has to be below {SLACK * bound.dev:.4g} on dev ({SLACK:g} times its bound) and was at best "
            f"{best:.4g}"
        )
        steps = [row[bound.term] for row in last if row[bound.term] is not None]
        train = sum(steps) / len(steps) if steps else math.inf
        if best >= SLACK * bound.dev and train < bound.train:
            said[-1] += (
                f"; its train loss ({train:.4g}) is within the train bound ({bound.train:.4g}), which asks no more"
            )
            advice = "Lower the train bound."
    return f"No epoch keeps the bound, so no weights are kept: {'; '.join(said)}. {advice}"


def _sentence(row: dict[str, Any], task: Task) -> str:
    dev = "  ".join(f"{name} {value:.4f}" for name, value in row["dev"].items() if value is not None)
    kept = "  (best so far)" if row["best"] and task.config.select != "last" else ""
    bound = "" if row.get("eligible", True) else "  (over the bound)"
    return f"epoch {row['epoch']}/{task.config.epochs}  dev: {dev or 'none'}{kept}{bound}"
