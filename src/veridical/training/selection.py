"""Which epoch of a run is kept: a look at dev after every epoch, and what to say where none may be kept."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from safetensors.torch import save_file

from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.records import Answers
from veridical.model.accuracy import BETTER, Scores, score
from veridical.training.bound import SLACK
from veridical.training.journal import LOG, State
from veridical.training.masking import pooled
from veridical.training.task import Task, ask_texts, measure

BEST = "best.safetensors"


def look(task: Task, state: State) -> tuple[State, dict[str, Any]]:
    """Measure the dev split at the end of an epoch and keep the weights if they are the best so far; returns where the
    run stands, and what the log says of the epoch."""
    answers, dev = measure(task, "dev", state.epoch) if "dev" in task.gold else (None, {})
    if wild := [name for name, figure in dev.items() if figure is not None and not math.isfinite(figure)]:
        raise InputError(
            f"Training broke down in epoch {state.epoch}: {wild[0]} on dev is {dev[wild[0]]}; lower lr "
            f"({task.config.lr:g}) and head_lr ({task.config.head_lr:g}), or set clip=1."
        )
    eligible = all(bound.holds(dev) for bound in task.bounds)
    masked, judged = (None, dev) if answers is None else _with_masks(task, answers, dev)
    value, better = _judged(task.config.select, judged, state.best)
    if eligible and not state.eligible:  # from here on only eligible epochs count
        state, better = dataclasses.replace(state, eligible=state.epoch), True
    elif state.eligible and not eligible:
        better = False
    if better:
        state = dataclasses.replace(state, best=value, best_epoch=state.epoch)
    if better and eligible and task.accelerator.is_main_process:
        # Copies, because safetensors refuses tensors that share memory.
        weights = {name: t.detach().cpu().clone() for name, t in task.clf.model.state_dict().items()}
        with store.replacing(task.folder / BEST, apart=True) as temporary:
            save_file(weights, temporary)
    row = {"step": state.step, "epoch": state.epoch, "dev": dev, "best": better and eligible}
    if masked is not None:
        row |= {"dev_masked": masked, "dev_pooled": judged}
    return state, {**row, "eligible": eligible} if task.bounds else row


def _with_masks(task: Task, whole: Answers, dev: Scores) -> tuple[Scores | None, Scores]:
    """After masked training: the scores of dev's masked copy, and those of both together, which choose the epoch. What
    terms there are is of the whole texts."""
    if task.masks is None:
        return None, dev
    gold = task.gold["dev"]
    answers = ask_texts(task, task.masks.copy(task.encoded["dev"], "dev"))
    both = {**dev, **pooled(whole, answers, gold, task.clf.kind)}
    if (objective := dev.get("objective")) is not None:
        both["objective"] = objective + task.terms[0].weight * ((both["loss"] or 0.0) - (dev["loss"] or 0.0))
    return score(answers, gold, task.clf.kind), both


def _judged(select: str, dev: Scores, best: float | None) -> tuple[float | None, bool]:
    """An epoch's dev score, and whether it is better than the best so far. Of `last` every epoch is."""
    if select == "last":
        return None, True
    value = dev[select]
    if value is None:
        raise InputError(f"select={select} is undefined on this dev split; choose select=accuracy or loss.")
    sign = 1 if BETTER.get(select, "lower") == "higher" else -1
    return value, best is None or sign * value > sign * best


def failure(task: Task) -> str:
    """Why a run under a bound has nothing to keep."""
    rows = store.read_jsonl(task.folder / LOG)
    last = [row for row in rows if "loss" in row][-task.epoch_steps :]
    reasons, advice = [], "Raise it, or train on."
    for bound in task.bounds:
        best = min(row["dev"][bound.term] for row in rows if "dev" in row)
        reasons.append(
            f"{bound.term} has to be below {SLACK * bound.dev:.4g} on dev ({SLACK:g} times its bound) and was at best "
            f"{best:.4g}"
        )
        steps = [row[bound.term] for row in last if row[bound.term] is not None]
        train = sum(steps) / len(steps) if steps else math.inf
        if best >= SLACK * bound.dev and train < bound.train:
            reasons[-1] += (
                f"; its train loss ({train:.4g}) is within the train bound ({bound.train:.4g}), which asks no more"
            )
            advice = "Lower the train bound."
    return f"No epoch keeps the bound, so no weights are kept: {'; '.join(reasons)}. {advice}"


def sentence(row: dict[str, Any], task: Task) -> str:
    """An epoch in a line, from its row in the log."""
    dev = "  ".join(f"{name} {value:.4f}" for name, value in row["dev"].items() if value is not None)
    if "dev_masked" in row:
        select = task.config.select if row["dev_masked"].get(task.config.select) is not None else "macro_f1"
        value = row["dev_masked"][select]
        dev += "" if value is None else f"  masked: {select} {value:.4f}"
    kept = "  (best so far)" if row["best"] and task.config.select != "last" else ""
    bound = "" if row.get("eligible", True) else "  (over the bound)"
    return f"epoch {row['epoch']}/{task.config.epochs}  dev: {dev or 'none'}{kept}{bound}"
