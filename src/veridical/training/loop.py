"""The training loop. It stops anywhere and goes on as if it had not.

Why a resumed run equals an undisturbed one to the last bit: the order of examples, the learning rate and the
random numbers of a step are functions of (data seed, step), so the checkpoint is weights, optimiser and position, and
under a bound the multiplier.
"""

from __future__ import annotations

import dataclasses

from safetensors.torch import load_file

from veridical.core import store
from veridical.core.errors import BreakdownError
from veridical.core.progress import Report
from veridical.training.journal import CHECKPOINT, Journal, State
from veridical.training.rate import make_optimizer, order
from veridical.training.selection import BEST, failure, look, sentence
from veridical.training.step import step
from veridical.training.task import Task


def fit(task: Task, progress: bool | None = None) -> State:
    """Train from the checkpoint, or from the start, to the end; the classifier then has its best weights (and no
    particular ones if no epoch was eligible)."""
    main, lengths = task.accelerator.is_main_process, [len(e.ids) for e in task.encoded["train"]]
    optimizer = make_optimizer(task.clf.model, task.config)
    journal = Journal(task, optimizer)
    state = journal.open()
    title = f"training {store.slug(task.clf.name)}, seed {task.seed}"
    with Report(title, task.steps, done=state.step, progress=progress if main else False) as report:
        for note in task.notes():
            report.say(note)
        while not state.over(task):
            epoch = state.epoch + 1
            batches = order(lengths, task.config.batch, seed=task.data_seed, epoch=epoch)
            task.clf.model.train()
            with task.eager():
                for rows in batches[state.step - state.epoch * task.epoch_steps :]:
                    state, row = step(task, optimizer, rows, state)
                    state = journal.write(state, {"step": state.step, "epoch": epoch, **row})
                    report.advance(f"epoch {epoch}/{task.config.epochs}  loss {row['loss']:.3f}")
                    if state.step % task.save_steps == 0 and state.step < epoch * task.epoch_steps:
                        journal.save(state)
            state, row = look(task, dataclasses.replace(state, epoch=epoch))
            state = journal.write(state, row)
            report.say(sentence(row, task))
            journal.save(state)
        if main and not state.eligible:  # it reads the log, which is main's
            report.say(failure(task))
    journal.close()
    if state.eligible:
        _restore_best(task)
    return state


def _restore_best(task: Task) -> None:
    path = task.folder / BEST
    if not path.exists():
        store.remove_file(task.folder / CHECKPOINT)  # it is of no use without
        raise BreakdownError(f"{path} was deleted while it was needed; run the same again, to train from the start.")
    task.clf.model.load_state_dict(load_file(path))
