"""A run's log as TensorBoard shows it: `<run>/tensorboard/`, written while the run trains.

The log, `train.jsonl`, stays what counts. Opening a tracker writes all that the log has so far and has TensorBoard
forget what an earlier process wrote, so that a run that was killed and went on, or is tracked only from its second
start on, looks as if nothing had happened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veridical.core.errors import InputError

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

FOLDER = "tensorboard"


def insist_on_tracker(report_to: str) -> None:
    """Refuse a tracker that is not installed."""
    if report_to == "tensorboard" and find_spec("tensorboard") is None:
        raise InputError(
            "report_to is tensorboard, which is not installed; run `pip install tensorboard` (the extra "
            "`veridical[tensorboard]`), or leave it out: the log, train.jsonl, holds the same."
        )


class Tracker:
    """Rows of a run's log as scalars: `train/loss` by steps, `dev/macro_f1` at the last step of each epoch."""

    def __init__(self, folder: Path, rows: Sequence[Mapping[str, Any]]):
        from torch.utils.tensorboard import SummaryWriter

        self._writer: SummaryWriter = SummaryWriter(str(folder / FOLDER), purge_step=0)
        for row in rows:
            self.add(row)

    def add(self, row: Mapping[str, Any]) -> None:
        """One row of the log; the first, which counts texts and steps, has nothing to draw."""
        if "step" not in row:
            return
        step = row["step"]
        if "dev" in row:
            self._draw("dev", row["dev"], step)
            self._draw("dev_masked", row.get("dev_masked", {}), step)
        else:
            self._draw("train", {key: row[key] for key in row if key not in ("step", "seconds")}, step)

    def _draw(self, split: str, figures: Mapping[str, Any], step: int) -> None:
        for name, value in figures.items():
            if isinstance(value, (int, float)):  # a term that has nothing to say of a batch is None
                self._writer.add_scalar(f"{split}/{name}", value, step)

    def flush(self) -> None:
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()
