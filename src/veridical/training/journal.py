"""Where a training run stands, and how that outlives the process: the log, and the checkpoint to go on from."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from veridical.core import store
from veridical.model.accuracy import BETTER
from veridical.training.bound import Multiplier
from veridical.training.run import LOG as LOG
from veridical.training.task import Task
from veridical.training.tracker import Tracker

CHECKPOINT = "checkpoint.pt"


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
        done = patience is not None and (stale >= patience or perfect)
        return self.epoch >= task.config.epochs or done or self._has_enough(task)

    def _has_enough(self, task: Task) -> bool:
        enough = task.config.enough
        if enough is None or self.best is None or not self.eligible:
            return False
        sign = 1 if BETTER.get(task.config.select, "lower") == "higher" else -1
        return sign * self.best >= sign * enough


class Journal:
    """The log and the checkpoint of a run. Every process has one; the main process's writes the files."""

    def __init__(self, task: Task, optimizer: torch.optim.Optimizer):
        self.task, self.optimizer = task, optimizer
        self._began = time.monotonic()
        self._log: store.Log | None = None
        self._tracker: Tracker | None = None

    def open(self) -> State:
        """The state that was saved last, with its weights in the model and the optimiser; or the first."""
        state = self._resumed()
        self._began = time.monotonic() - state.seconds
        if self.task.accelerator.is_main_process:
            self._log = store.Log(self.task.folder / LOG, keep=state.lines)
            if self.task.tracked:
                self._tracker = Tracker(self.task.folder, store.read_jsonl(self.task.folder / LOG))
        if not state.lines:
            examples = {split: len(encoded) for split, encoded in self.task.encoded.items()}
            state = self.write(state, {"steps": self.task.steps, "examples": examples, "cut": self.task.cut})
        return state

    def _resumed(self) -> State:
        path = self.task.folder / CHECKPOINT
        if not path.exists():
            return State(multipliers=tuple(Multiplier() for _ in self.task.bounds))
        held = torch.load(path, map_location="cpu", weights_only=True)
        self.task.clf.model.load_state_dict(held["model"])
        self.optimizer.load_state_dict(held["optimizer"])
        multipliers = tuple(Multiplier(**fields) for fields in held["state"]["multipliers"])
        return State(**{**held["state"], "multipliers": multipliers})

    def write(self, state: State, row: Mapping[str, Any]) -> State:
        """The state with one more line in the log."""
        state = dataclasses.replace(state, lines=state.lines + 1, seconds=time.monotonic() - self._began)
        if self._log is not None:
            self._log.append({**row, "seconds": round(state.seconds, 3)})
        if self._tracker is not None:
            self._tracker.add(row)
        return state

    def save(self, state: State) -> None:
        """From here a run that is killed goes on."""
        if self._tracker is not None:
            self._tracker.flush()
        if self._log is not None:
            self._log.sync()
            weights = {"model": self.task.clf.model.state_dict(), "optimizer": self.optimizer.state_dict()}
            with store.writing(self.task.folder / CHECKPOINT) as file:  # a file, for torch tells nothing of a full disk
                torch.save({"state": dataclasses.asdict(state), **weights}, file)

    def close(self) -> None:
        """When all processes are here, the files are whole."""
        if self._log is not None:
            self._log.sync()
            self._log.close()
        if self._tracker is not None:
            self._tracker.close()
        self.task.accelerator.wait_for_everyone()
