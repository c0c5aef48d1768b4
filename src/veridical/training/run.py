"""`Run`: what `veridical.train` returns. It prints its scores and displays in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from veridical.core import store
from veridical.core.errors import InputError, unknown
from veridical.core.frames import Columns, Tabular
from veridical.core.tables import to_text
from veridical.model.accuracy import Scores
from veridical.page.snippet import told

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOG = "train.jsonl"


@dataclass(frozen=True, slots=True, repr=False)
class Run(Tabular):
    """A finished training run. One that failed (no epoch kept the bound) has neither scores nor a model."""

    # The log: a row per step (loss, its terms, rates) and per epoch (`dev.*`), what else it has behind.
    COLUMNS: ClassVar[Columns] = {"step": int, "epoch": int, "loss": float, "best": bool, "seconds": float}

    folder: Path
    seed: int
    scores: Mapping[str, Scores]  # split -> macro_f1, accuracy, auroc, loss, calibration_error; terms, but on train
    epochs: int  # run
    best_epoch: int  # kept; 0: none
    seconds: float
    cut: Mapping[str, Mapping[str, int]]  # split -> texts that were too long, and the tokens they lost
    failed: str = ""  # why nothing was kept

    def __repr__(self) -> str:
        cells = self._cells()
        return "\n".join([self._sentence, *([to_text(cells)] if cells else []), str(self.folder)])

    def _repr_html_(self) -> str:
        cells = self._cells()
        places = range(1, len(cells[0])) if cells else ()
        return told(cells, right=places, title=str(self.folder), lead=self._sentence)

    @property
    def _sentence(self) -> str:
        if self.failed:
            return f"Run of seed {self.seed}, failed: {self.failed}"
        return f"Run of seed {self.seed}: {self.epochs} epochs, epoch {self.best_epoch} was kept."

    def _cells(self) -> list[list[str]]:
        names = dict.fromkeys(name for scores in self.scores.values() for name in scores)
        rows = [
            [split, *("" if (value := scores.get(name)) is None else f"{value:.3f}" for name in names)]
            for split, scores in self.scores.items()
        ]
        return [["split", *names], *rows] if rows else []

    def _rows(self) -> list[dict[str, Any]]:
        path = self.folder / LOG
        if not path.exists():
            raise InputError(f"There is no log {path}; the folder of this run has been moved or emptied.")
        return [row for row in store.read_jsonl(path) if "step" in row]

    def card(self, audit: str | Path | None = None, **how: Any) -> str:
        """Its model card, with the verdict of an audit (a folder): `training.card.model_card` has the options."""
        from veridical.training.card import model_card

        return model_card(self, audit, **how)

    def push_to_hub(self, repo_id: str, **how: Any) -> str:
        """Upload model, tokenizer, configuration and card: `training.hub.push` has the options, among them `audit`,
        `private`, `license`, `token`. Returns the address."""
        from veridical.training.hub import push

        return push(self, repo_id, **how)

    def plot(self, score: str = "loss", *, ax: Axes | None = None, figsize: tuple[float, float] | None = None) -> Axes:
        """A score on the dev split by epoch; of the loss also the mean over each epoch's training steps. Returns the
        Axes, those of `ax` or new ones."""
        from veridical.page.charts import Curve, curves

        rows = self._rows()
        looks = {row["epoch"]: row["dev"] for row in rows if "dev" in row}
        known = dict.fromkeys(["loss", *(name for dev in looks.values() for name in dev)])
        if score not in known:
            raise unknown("score in the log of this run", score, known)
        steps: dict[int, list[float]] = {}
        for row in rows:
            if "loss" in row:
                steps.setdefault(row["epoch"], []).append(row["loss"])
        trained = {epoch: sum(losses) / len(losses) for epoch, losses in steps.items()} if score == "loss" else {}
        dev = {epoch: scores.get(score) for epoch, scores in looks.items()}
        drawn = [
            Curve(name, list(held), list(held.values()))
            for name, held in (("training steps", trained), ("dev", dev))
            if held
        ]
        return curves(drawn, ("epoch", score), ax, figsize)
