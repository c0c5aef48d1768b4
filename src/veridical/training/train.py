"""`train`: from data and the name of a model to a run folder with a trained classifier, its scores and log.

    spec.json            what was asked for; its hash is in the folder's name
    stamp.json           versions, platform, threads, time
    train.jsonl          a row per step and per epoch
    model/               the best epoch's classifier, in safetensors: veridical.load reads the run folder
    predictions.parquet  id, split, mark of the text, gold label and class probabilities of every example
    scores.json          written last: a run that has it is done
    tensorboard/         the log as TensorBoard reads it, if it was asked for

While a run is under way `checkpoint.pt` and `best.safetensors` stand beside them; the same call goes on from
there.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator

from veridical.core import store, stored
from veridical.core.device import device_of, said_device
from veridical.core.errors import InputError
from veridical.core.options import takes
from veridical.core.progress import Report
from veridical.core.records import Answers, Dataset, Example, Given
from veridical.data import load_data
from veridical.data.split import text_mark
from veridical.grid.claim import claimed
from veridical.grid.liveness import WORK, forget
from veridical.model.accuracy import BINS, Scores, score, targets
from veridical.model.load import create
from veridical.model.lora import add_adapters, fold_adapters
from veridical.model.memory import move
from veridical.model.names import recorded
from veridical.training.bound import constrain
from veridical.training.bound import label as bound_label
from veridical.training.config import TrainConfig
from veridical.training.journal import CHECKPOINT, LOG, State
from veridical.training.loop import fit
from veridical.training.low_rank import insist_on_low_rank
from veridical.training.options import TrainOptions
from veridical.training.run import Run
from veridical.training.selection import BEST, failure
from veridical.training.task import Task, ask_all, measure, meeting, own_threads, prepare
from veridical.training.term import label as objective_label
from veridical.training.term import objective as read_objective
from veridical.training.tracker import FOLDER as EVENTS
from veridical.training.tracker import Tracker

SCORES = "scores.json"


@takes(TrainOptions)
def train(options: TrainOptions) -> Run:
    """Train a classifier, or go on with a run that was interrupted; a finished run is returned at once.

    A run under a bound may fail, which `Run.failed` says. Killed at any moment, the same call resumes it to the same
    result; a checkpoint is written after every epoch and every `save_steps` steps. Under `accelerate launch` the
    processes share every batch.

    Returns:
        The finished run: `.folder`, which `load` takes, `.scores` by split, and `.failed`, why nothing was kept.

    Example:
        >>> run = veridical.train("hutto/movies", "minilm", limit=2000, config={"epochs": 4})
        >>> run.scores["test"]["accuracy"]
    """
    model, seed, limit, config = options.model, options.seed, options.limit, options.settings()
    chosen, bounds = constrain(read_objective(options.objective), options.bound)
    insist_on_low_rank(config, chosen, model)
    dataset = _dataset(options.data, limit)
    _check(dataset, config, bounded=bool(bounds))
    name = objective_label(chosen)
    about = {"name": dataset.name, "limit": limit, "hash": _fingerprint(dataset)}
    spec = {"data": about, "model": recorded(model), "objective": name, "seed": seed, "train": config}
    if bounds:
        spec["bound"] = bound_label(bounds)
        name = f"{name}-{spec['bound']}"
    named = store.run_folder("runs", data=dataset.name, model=model, objective=name, seed=seed, spec=spec)
    folder = named if options.out is None else Path(options.out)
    store.claim(folder, spec)
    accelerator = meeting()
    accelerator.wait_for_everyone()  # all have looked at the folder before one of them writes to it
    tracked = options.report_to == "tensorboard"
    if (folder / SCORES).exists():
        if accelerator.is_main_process:
            _tidy(folder, tracked)
        return read_run(folder)
    threads, device = _threads(folder, config), _device(accelerator)
    with own_threads(threads, device):
        clf = create(model, dataset, seed=seed, max_length=config.max_length, dropout=config.dropout)
        if config.lora is not None:
            add_adapters(clf.model, config.lora, seed)
        move(clf, device)
        held = {split: examples for split, examples in dataset.splits.items() if examples}
        encoded = {split: clf.encode(examples) for split, examples in held.items()}
        gold = {
            split: targets(examples, dataset.labels, dataset.multilabel)
            for split, examples in held.items()
            if all(e.label is not None for e in examples)
        }
        task = prepare(
            clf,
            encoded,
            gold,
            config=config,
            seed=seed,
            folder=folder,
            chosen=chosen,
            bounds=bounds,
            save_steps=options.save_steps,
            accelerator=accelerator,
            tracked=tracked,
        )
        _trained(task, spec, device, threads, options.progress)  # only now: what is refused has claimed no folder
    return read_run(folder)


def _tidy(folder: Path, tracked: bool) -> None:
    """Remove what only resuming needed, had the run not been killed just before it did; track it, if it was not."""
    store.clean(folder)
    _drop_checkpoints(folder)
    forget(folder / WORK)
    if tracked and not (folder / EVENTS).is_dir():
        Tracker(folder, store.read_jsonl(folder / LOG)).close()


def _trained(task: Task, spec: Any, device: torch.device, threads: int, progress: bool | None) -> None:
    """Train in a folder that no other process writes to, unless one has done it meanwhile."""
    main = task.accelerator.is_main_process
    with claimed(task.folder, spec) if main else nullcontext():
        task.accelerator.wait_for_everyone()
        if (task.folder / SCORES).exists():
            return
        if main and not (task.folder / "stamp.json").exists():
            processes = task.accelerator.num_processes
            facts = store.stamp(threads=threads, device=str(device), processes=processes, seed=task.seed)
            store.write_json(task.folder / "stamp.json", facts)
        state = fit(task, progress)
        texts = sum(map(len, task.encoded.values()))
        # Of a large model this takes minutes, of which a line tells now and then.
        with Report(
            "Scoring the kept model", texts, progress=progress if main else False, unit="texts", late=True
        ) as report:
            _finish(task, state, report)


def train_seeds(
    data: Given | Path,
    model: str = "minilm",
    *,
    seeds: Sequence[int],
    out: str | Path | None = None,
    **same: Any,
) -> list[Run]:
    """The same training for several seeds, a run folder each: with `out`, its subfolders seed0, seed1, ..."""
    data = for_several(data)
    folders = {seed: None if out is None else Path(out) / f"seed{seed}" for seed in seeds}
    return [train(data, model, seed=seed, out=folder, **same) for seed, folder in folders.items()]


def for_several(data: Given | Path) -> str | Path | Dataset:
    """Data for more than one training: a generator could be read once."""
    return data if isinstance(data, (str, Path)) else load_data(data)


def read_run(folder: str | Path) -> Run:
    """The record of a finished run."""
    folder = Path(folder)
    if not (folder / SCORES).exists():
        raise InputError(f"{folder} is not a finished run (it has no {SCORES}); train it to its end first.")
    facts = ("scores", "epochs", "best_epoch", "seconds", "cut")
    spec, held = stored.read_fields(folder / "spec.json", "seed"), stored.read_fields(folder / SCORES, *facts)
    kept = {key: held[key] for key in facts}
    return Run(folder=folder, seed=spec["seed"], failed=held.get("failed", ""), **kept)


def _device(accelerator: Accelerator) -> torch.device:
    """Where this process trains: on what was asked for, or one of several processes where it has its place."""
    if accelerator.num_processes == 1:
        return said_device() or device_of()
    said = said_device()
    if said is not None and (said.index is not None or said.type != accelerator.device.type):
        raise InputError(
            f"The device is {said}, but {accelerator.num_processes} processes train together, each on its own of the "
            f"kind {accelerator.device.type}; leave the device out, or start one process."
        )
    return accelerator.device


def _finish(task: Task, state: State, report: Report) -> None:
    """Write what a finished run holds, `scores.json` last, and drop what only resuming needed."""
    record = {
        "scores": _keep(task, state, report) if state.eligible else {},
        "epochs": state.epoch,
        "best_epoch": state.best_epoch if state.eligible else 0,
        "steps": state.step,
        "seconds": state.seconds,
        "cut": task.cut,
        "labels": task.clf.labels,
        "calibration_bins": BINS,
    }
    if task.accelerator.is_main_process:
        if not state.eligible:
            record["failed"] = failure(task)
        store.write_json(task.folder / SCORES, record)
        _drop_checkpoints(task.folder)
    task.accelerator.wait_for_everyone()


def _keep(task: Task, state: State, report: Report) -> dict[str, Scores]:
    """Write the model and its predictions; returns the scores of every split that has labels."""
    if task.config.lora is not None:
        fold_adapters(task.clf.model)  # what is saved needs no adapters, and the predictions are those of what is saved
    answers: dict[str, Answers] = {}
    scores: dict[str, Scores] = {}
    for split in task.encoded:
        if split == "train" or split not in task.gold:  # what the terms are on train, the log says
            answers[split] = ask_all(task, split)
            if split in task.gold:
                scores[split] = score(answers[split], task.gold[split], task.clf.kind)
        else:
            answers[split], scores[split] = measure(task, split, state.epoch)
        report.advance(split, steps=len(task.encoded[split]))
    if task.accelerator.is_main_process:
        with store.replacing(task.folder / "model") as temporary:
            task.clf.save(temporary)
        found = [(split, e.example) for split, all_found in task.encoded.items() for e in all_found]
        store.write_parquet(
            task.folder / "predictions.parquet",
            {
                "id": [example.id for _, example in found],
                "split": [split for split, _ in found],
                "mark": [text_mark(example.text) for _, example in found],
                "label": [example.label for _, example in found],
                "probabilities": [row for each in answers.values() for row in each.probabilities.tolist()],
            },
        )
    return scores


def _drop_checkpoints(folder: Path) -> None:
    for name in (CHECKPOINT, BEST):
        store.remove_file(folder / name)


def _dataset(data: Given | Path, limit: int | None) -> Dataset:
    if limit is not None and not isinstance(data, (str, Path)):
        raise InputError(f"limit={limit} applies to data that is loaded by name; give the Dataset fewer examples.")
    return load_data(data, limit=limit)


def _threads(folder: Path, config: TrainConfig) -> int:
    """What the settings say, else what the run was begun with, else what torch would take."""
    if config.threads is not None:
        return config.threads
    stamp = folder / "stamp.json"
    return stored.read_fields(stamp, "threads")["threads"] if stamp.exists() else torch.get_num_threads()


def _fingerprint(dataset: Dataset) -> str:
    rows = {
        split: [(e.id, e.text, e.label, e.context, e.rationale) for e in examples]
        for split, examples in dataset.splits.items()
    }
    return store.stable_hash([dataset.labels, dataset.multilabel, rows])


def _check(dataset: Dataset, config: TrainConfig, *, bounded: bool) -> None:
    if not dataset.splits.get("train"):
        raise InputError(
            f"{dataset.name} has no train split (has {', '.join(dataset.splits) or 'none'}); use other data, or name "
            "the splits of yours in a column `split` or as the keys of a dict."
        )
    if len(dataset.labels) < 2 and not dataset.multilabel:
        named = f"only the class {dataset.labels[0]!r}" if dataset.labels else "no class"
        raise InputError(
            f"{dataset.name} has {named}, so there is nothing to learn; give texts of two classes or more."
        )
    if bounded and config.select == "last":
        raise InputError("Under a bound the kept epoch is chosen on dev; set select=loss, not last.")
    needed = ["train"] if config.select == "last" else ["train", "dev"]
    if not dataset.splits.get(needed[-1]):
        raise InputError(
            f"{dataset.name} has no dev split to choose the best epoch by {config.select}; add one, "
            "or set select=last to keep the last epoch."
        )
    for split, examples in dataset.splits.items():
        for example in examples:
            _check_label(dataset, split, example, required=split in needed)


def _check_label(dataset: Dataset, split: str, example: Example, *, required: bool) -> None:
    where = f"Example {example.id!r} of the {split} split of {dataset.name}"
    if example.label is None:
        if required:
            raise InputError(f"{where} has no label; label it or leave it out.")
        return
    if isinstance(example.label, tuple) is not dataset.multilabel:
        kind = "a tuple of class indices" if dataset.multilabel else "one class index"
        raise InputError(f"{where} has label {example.label!r}; this data needs {kind}.")
    for index in example.label if isinstance(example.label, tuple) else (example.label,):
        if not 0 <= index < len(dataset.labels):
            raise InputError(
                f"{where} has label {index}, outside the {len(dataset.labels)} labels the model learns "
                f"(0 to {len(dataset.labels) - 1}: {', '.join(dataset.labels[:10])}); mend one or the other."
            )
