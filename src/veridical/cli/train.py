"""`veridical train`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import typer

from veridical.cli.speech import print_json, tell
from veridical.core.errors import InputError
from veridical.core.options import Data, Json, shared
from veridical.training.options import Searched, SearchOptions, SeedsOptions

if TYPE_CHECKING:
    from veridical.core.records import Dataset
    from veridical.training.search import Search
    from veridical.training.train import Run

COLUMNS = ("accuracy", "macro_f1", "calibration_error", "loss")


@dataclass(frozen=True)
class JobOptions(SearchOptions):
    """One training, several, or a search."""

    data: Data = "hutto/movies"
    _: KW_ONLY
    over: Searched = ()


def train(options: JobOptions, as_json: Json = False) -> None:
    """Train a classifier, or go on with an interrupted run.

    Killed at any moment, the same command goes on to the same result.

    Example: veridical train --data hutto/movies --model minilm --seed 0,1,2 --set train.epochs=4
    """
    _check(options)
    if options.over:
        from veridical.training.search import search

        print_search(search(**vars(options)), as_json)
    else:
        from veridical.data import load_data
        from veridical.training.jobs import train_all

        runs = train_all(**shared(SeedsOptions, options))
        notes = [] if as_json else guesses(runs, load_data(options.data, limit=options.limit))
        print_runs(runs, as_json, notes)


def _check(options: JobOptions) -> None:
    """What goes together, and what does not."""
    usual = JobOptions()
    chosen = [getattr(options, name) != getattr(usual, name) for name in ("select", "methods", "texts")]
    if any(chosen) and not options.over:
        raise InputError("--select, --search-method and --search-texts go with --search; say what is searched.")
    if options.over and options.bound is not None:
        raise InputError(
            f"--search tries weighted sums, but --bound {options.bound} was given too; leave one of them out."
        )


def guesses(runs: Sequence[Run], data: Dataset) -> list[str]:
    """Of each run that is not shown to know more than which class is most frequent, that it is so; on test, or on dev
    where there is none."""
    from veridical.core.statistics import proportion

    split = "test" if data.splits.get("test") else "dev"
    labels = [example.label for example in data.splits.get(split, ()) if isinstance(example.label, int)]
    if data.multilabel or not labels:
        return []
    majority = max(Counter(labels).values()) / len(labels)
    notes: list[str] = []
    for run in runs:
        accuracy = run.scores.get(split, {}).get("accuracy")
        if accuracy is None:
            continue
        low, high = proportion(round(accuracy * len(labels)), len(labels))
        if low <= majority:
            notes.append(
                f"seed {run.seed} is right on {accuracy:.0%} of the {len(labels)} {split} texts (95% interval "
                f"{low:.0%} to {high:.0%}), and always saying the most frequent class would be on {majority:.0%}: it "
                "is not shown to be better than that."
            )
    return notes


def print_runs(runs: Sequence[Run], as_json: bool, notes: Sequence[str] = ()) -> None:
    """The scores of every run and split, what is to be said of them, then the folders; once, however many processes
    trained. Exit code 1 if a run failed: its bound was not met."""
    from accelerate import PartialState

    if not PartialState().is_main_process:
        return
    if as_json:
        print_json(list(runs))
    else:
        _show(runs, notes)
    if any(run.failed for run in runs):  # after all seeds have had their turn
        raise typer.Exit(1)


def _show(runs: Sequence[Run], notes: Sequence[str]) -> None:
    from veridical.core.tables import to_text

    cells = [["seed", "split", *COLUMNS]]
    for run in runs:
        if run.failed:
            cells.append([str(run.seed), "failed", *("" for _ in COLUMNS)])
        for split, scores in run.scores.items():
            values = (scores.get(name) for name in COLUMNS)
            cells.append([str(run.seed), split, *("" if value is None else f"{value:.3f}" for value in values)])
    typer.echo(to_text(cells))
    for note in notes:
        tell(note)
    for run in runs:
        if run.failed:
            typer.echo(f"seed {run.seed} failed: {run.failed}")
    for run in runs:
        typer.echo(str(run.folder))


def print_search(result: Search, as_json: bool) -> None:
    """A line per candidate, the best named, then where everything lies."""
    from veridical.core.store import slug
    from veridical.core.tables import to_text
    from veridical.training.search import candidate_cells

    if as_json:
        print_json(result)
        return
    cells = candidate_cells(result)
    typer.echo(to_text(cells, right=range(1, len(cells[0]) - 1)))
    if result.texts:
        tell(f"{result.sentence} The file has each method.")
    typer.echo(str(result.folder / f"{slug(result.select)}.csv"))
    for folder in result.winner.folders:
        typer.echo(str(folder))
