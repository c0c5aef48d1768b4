"""`veridical data list | show | fetch`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veridical.cli.speech import print_json
from veridical.core.options import A_DATASET, DATA, Checked, Help, Json
from veridical.core.ranges import at_least

if TYPE_CHECKING:
    from rich.table import Table

NEEDS = {None: "nothing", "index": "a package index, once", "hub": "the hub, once", "path": "files of yours"}
Shown = Annotated[str, Help(f"{DATA}.", "DATA", argument=True), A_DATASET]
Count = Annotated[int, Help("How many examples to print.", "N"), at_least(0)]
Names = Annotated[
    Sequence[str],
    Help("Datasets or assets (minilm, mpnet, smollm2, glove-6b-50d, vader).", "NAME...", argument=True),
    Checked("veridical.data", "insist_on_fetchable"),
]


def list_(as_json: Json = False) -> None:
    """List the datasets known by name, and what each needs.

    Example: veridical data list
    """
    from rich.console import Console
    from rich.text import Text

    from veridical.data import datasets

    if as_json:
        print_json([{"name": source.name, "about": source.about, "needs": source.needs} for source in datasets])
        return
    table = plain_table("dataset", "needs", "about", fold=("about",))
    for source in datasets:
        table.add_row(Text(source.name), NEEDS[source.needs], Text(source.about))
    Console().print(table)


def show(spec: Shown, examples: Count = 3, as_json: Json = False) -> None:
    """Show sizes, labels, lengths and some examples of a dataset.

    Example: veridical data show hutto/movies
    """
    from rich.console import Console
    from rich.text import Text

    from veridical.data import describe, load_data
    from veridical.explanations.display import printable

    dataset = load_data(spec)
    about = describe(dataset)
    if as_json:
        print_json(about)
        return
    console = Console()
    console.print(Text(dataset.name, "bold"))
    if dataset.about:
        console.print(dataset.about, markup=False, highlight=False)
    console.print(_splits(about["splits"]))
    for split, held in list(dataset.splits.items())[:1]:
        for example in held[:examples]:
            label = _names(example.label, dataset.labels)
            context = f"  (context: {example.context})" if example.context is not None else ""
            console.print(
                Text.assemble(
                    (f"{split} {example.id}  {label}  ", "dim"), printable(example.text), (printable(context), "dim")
                )
            )


def fetch(names: Names) -> None:
    """Fetch what needs a package index or the hub now, so that later work needs neither.

    Example: veridical data fetch minilm hutto/movies
    """
    from veridical.core import assets
    from veridical.data import load_data
    from veridical.model.names import ENCODERS

    for name in names:
        if name in ENCODERS:
            from veridical.model.embedded import folder_of

            typer.echo(f"{name}: {folder_of(name)}")
        elif name in assets.ASSETS:
            typer.echo(f"{name}: {assets.fetch(name)}")
        else:
            sizes = {split: len(held) for split, held in load_data(name).splits.items()}
            typer.echo(f"{name}: {', '.join(f'{n:,} {split}' for split, n in sizes.items())}")


def plain_table(*columns: str, right: Sequence[str] = (), fold: Sequence[str] | None = None) -> Table:
    """A table without borders: it reads well in a terminal and survives being piped. In a narrow terminal the
    columns of `fold` (without it, all) are broken into lines."""
    from rich.table import Table

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
