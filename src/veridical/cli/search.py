"""`veridical train --search`: its options, and what it prints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from veridical.cli.speech import Number
from veridical.core.errors import InputError

if TYPE_CHECKING:
    from veridical.training.config import TrainJob
    from veridical.training.search import Search

Searched = Annotated[
    list[str] | None,
    typer.Option(
        "--search", help="Train with each value, keep the best on dev: TERM.weight=1e-2,1e-3,1e-4. May be repeated."
    ),
]
Selected = Annotated[
    str | None,
    typer.Option(
        "--select",
        help="What --search judges by: a metric, or dev macro_f1, loss, ... [dim]\\[default: decision_flip][/]",
    ),
]
ByMethods = Annotated[
    list[str] | None,
    typer.Option("--search-method", help="Methods that --search measures. [dim]\\[default: SaLoss's four][/]"),
]
ByTexts = Annotated[
    int | None, Number("--search-texts", help="Dev texts that --search explains. [dim]\\[default: 200][/]")
]


def search_job(
    job: TrainJob,
    over: Sequence[str] | None,
    *,
    select: str | None = None,
    methods: Sequence[str] | None = None,
    texts: int | None = None,
    progress: bool | None = None,
) -> Search | None:
    """The search that a training job asks for; none where it asks for none."""
    given = {"select": select, "methods": methods, "texts": texts}
    given = {name: value for name, value in given.items() if value is not None}
    if not over:
        if given:
            raise InputError("--select, --search-method and --search-texts go with --search; say what is searched.")
        return None
    if job.bound is not None:
        raise InputError(f"--search tries weighted sums, but --bound {job.bound} was given too; leave one of them out.")
    from veridical.attribution import methods as known
    from veridical.training.search import search

    if methods is not None:
        given["methods"] = [choice.label for choice in known.choose_all(methods)]
    return search(
        job.data,
        job.model,
        over=over,
        objective=job.objective,
        seeds=job.seeds,
        config=job.train,
        limit=job.limit,
        out=job.out,
        progress=progress,
        **given,  # type: ignore[arg-type]
    )


def print_search(found: Search, as_json: bool) -> None:
    """A line per candidate, the best named, then where everything lies."""
    from rich.console import Console

    from veridical.cli.data import plain_table
    from veridical.core.store import plain, slug
    from veridical.training.search import REFERENCE

    if as_json:
        typer.echo(json.dumps(plain(found), indent=2, ensure_ascii=False))
        return
    console = Console(highlight=False)
    measured = bool(found.candidates[0].by_method)
    columns = [
        found.select,
        *(["of random"] if measured else []),
        *(["macro_f1"] if found.select != "macro_f1" else []),
    ]
    table = plain_table("objective", *columns, "", right=columns)
    for place, one in enumerate(found.candidates):
        values = {
            "macro_f1": one.dev.get("macro_f1"),
            "of random": one.by_method.get(REFERENCE),
            found.select: one.value,
        }
        shown = ["undefined" if values[name] is None else f"{values[name]:.3f}" for name in columns]
        table.add_row(one.objective, *shown, "best" if place == found.best else "")
    console.print(table)
    if measured:
        names = [method for method in found.candidates[0].by_method if method != REFERENCE]
        console.print(
            f"{found.select} ({found.better} is better) on {found.texts} dev texts, the mean of {', '.join(names)}; "
            "random explanations beside it for reference, macro_f1 of the dev predictions. The file has each method.",
            soft_wrap=True,
        )
    typer.echo(str(found.folder / f"{slug(found.select)}.csv"))
    for folder in found.winner.folders:
        typer.echo(str(folder))
