"""`veridical roar`: does masking what a measure calls important hurt more than masking at random?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from veridical.cli.speech import Json, Number

if TYPE_CHECKING:
    from veridical.retraining.roar.roar import Estimate, Roar


def roar(
    data: Annotated[str, typer.Option(help="A name, hub:owner/name, a file or a folder, with train, dev and test.")],
    out: Annotated[Path, typer.Option(help="Folder for report.html and everything behind it.")],
    model: Annotated[str, typer.Option(help="What is trained: bilstm, minilm, a folder, a hub id.")] = "bilstm",
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Measures, as name:option=value, with commas or repeated; oracle, where the data has rationales. "
            "[dim]\\[default: the paper's: attention, gradient over the vocabulary, and the absolute values of "
            "input x gradient and integrated gradients][/]"
        ),
    ] = None,
    seeds: Annotated[
        int | None, Number(help="How many seeds: 0, 1, ... A verdict takes five. [dim]\\[default: 5][/]")
    ] = None,
    step: Annotated[
        int | None, Number(help="Per cent of the tokens masked at a time, 1 to 50. [dim]\\[default: 10][/]")
    ] = None,
    tokens: Annotated[int | None, Number(help="Mask one token at a time instead, up to so many.")] = None,
    plain: Annotated[
        bool, typer.Option("--plain", metavar="", help="Run ROAR without recursion too, to compare.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", metavar="", help="A first answer: one seed in steps of 20%.")
    ] = False,
    score: Annotated[
        Literal["macro_f1", "accuracy", "micro_f1"] | None,
        typer.Option(
            help="What curves show. [dim]\\[default: accuracy for bAbI and planted, micro_f1 for SNLI, macro_f1 "
            "elsewhere][/]"
        ),
    ] = None,
    leakage: Annotated[
        bool, typer.Option(help="Where a curve lies above random, train on the positions of the masks alone.")
    ] = True,
    interval: Annotated[
        Literal["bca", "percentile", "t"],
        typer.Option(help="Over seeds: the paper's bootstrap, a plain one, Student's."),
    ] = "bca",
    limit: Annotated[int | None, Number(help="At most so many examples of every split, a sample.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the trainings: train.epochs=100. May be repeated.")
    ] = None,
    engine: Annotated[
        Literal["local", "ray"], typer.Option(help="Where cells run: local processes, or Ray.")
    ] = "local",
    address: Annotated[str | None, typer.Option(help="Of a Ray cluster.")] = None,
    workers: Annotated[int | None, Number(help="Processes side by side. [dim]\\[default: one per core][/]")] = None,
    shard: Annotated[str | None, typer.Option(help="Of an array job: 1/8 to 8/8.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", metavar="", help="Say what it would cost, from a short timing, and stop.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Retrain on texts without their allegedly important tokens: Recursive ROAR.

    It takes hundreds of trainings, and first says how long. The page is rewritten whenever a cell is done. Interrupted
    at any moment the same command goes on; more seeds, methods or smaller steps add to what the folder holds.

    Example: veridical roar --data babi/1:size=2000 --method attention,gradient:over=vocabulary --quick --out roar

    Then: veridical roar --data babi/1:size=2000 --method attention,gradient:over=vocabulary --out roar
    """
    from veridical.core.errors import unknown
    from veridical.retraining.roar.roar import PAPER
    from veridical.retraining.roar.roar import roar as run
    from veridical.training.config import merge

    given = merge({}, settings or ())
    for key in given:
        if key != "train":
            raise unknown("table of settings", key, ("train",))
    found = run(
        data,
        model,
        methods=method or PAPER,
        out=out,
        seeds=seeds,
        step=step,
        tokens=tokens,
        plain=plain,
        quick=quick,
        score=score,
        leakage=leakage,
        interval=interval,
        limit=limit,
        config=given.get("train", {}),
        engine=engine,
        workers=workers,
        shard=shard,
        address=address,
        dry_run=dry_run,
        progress=False if as_json else None,
    )
    if as_json:
        from veridical.core.store import plain as as_plain

        typer.echo(json.dumps(as_plain(found.cost if dry_run else found.summary), indent=2, ensure_ascii=False))
    elif dry_run:
        print_cost(found.cost)
    else:
        print_roar(found)


def print_cost(cost: Estimate) -> None:
    """What would be run, by measure."""
    from rich.console import Console

    from veridical.cli.data import plain_table
    from veridical.retraining.roar.timing import spell

    table = plain_table(
        "", "trainings", "explanations", "of one core", right=("trainings", "explanations", "of one core")
    )
    for row in cost.rows:
        table.add_row(row.measure, str(row.trainings), str(row.explanations), spell(row.seconds))
    table.add_row("together", str(cost.trainings), str(cost.explanations), spell(cost.seconds))
    Console(highlight=False).print(table)


def print_roar(found: Roar) -> None:
    """The answer, the areas and where the page lies."""
    from rich.console import Console

    from veridical.cli.data import plain_table

    console = Console(highlight=False)
    console.print(f"\n{found.summary.answer}\n", markup=False)
    what = f"{found.summary.areas[0].what}, %"  # a mean gap is in points of the score: also of a hundred
    table = plain_table("measure", what, "95%", "seeds", "verdict", right=(what, "seeds"))
    for area in found.summary.areas:
        name = area.measure if area.recursive else f"{area.measure}, not recursive"
        mean = "" if area.mean is None else f"{100 * area.mean:.1f}"
        bounds = "" if area.low is None or area.high is None else f"{100 * area.low:.1f} to {100 * area.high:.1f}"
        table.add_row(name, mean, bounds, str(area.n), area.verdict)
    console.print(table)
    typer.echo(f"\nreport {found.page}")
