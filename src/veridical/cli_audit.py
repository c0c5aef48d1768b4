"""The verbs that measure: `evaluate`, `audit`, `compare`, `report`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from veridical.cli_group import Json, Number

Model = Annotated[str, typer.Argument(metavar="MODEL", help="A run folder, a model's folder or a hub id.")]
Names = Annotated[list[str] | None, typer.Option(help="As name:option=value, with commas or repeated.")]
Target = Annotated[str, typer.Option(help="Explained class: predicted, gold, a name or an index.")]
Split = Annotated[str, typer.Option(help="Which part of the data.")]


def evaluate(
    model: Model,
    data: Annotated[str, typer.Option(help="A name, hub:owner/name, a file or a folder.")],
    out: Annotated[Path, typer.Option(help="Folder for the scores.")],
    split: Split = "test",
    limit: Annotated[int, Number(help="How many texts, a seeded sample.")] = 200,
    method: Names = None,
    metric: Names = None,
    explanations: Annotated[
        list[Path] | None, typer.Option(help="Explanations made elsewhere (.parquet, .jsonl). May be repeated.")
    ] = None,
    target: Target = "predicted",
    seed: Annotated[int, Number(help="Seed of the sample and of everything random.")] = 0,
    as_json: Json = False,
) -> None:
    """Score explanations of a model with chosen metrics.

    Interrupted, the same command goes on. `veridical audit` ranks and reports as well.

    Example: veridical evaluate runs/x --data hutto/movies --method attention,lime --metric decision_flip --out scores
    """
    from veridical import store
    from veridical.alignment import to_attributions
    from veridical.audit import claim, corpora_of
    from veridical.cli_data import plain_table
    from veridical.evaluate import columns
    from veridical.evaluate import evaluate as run
    from veridical.exchange import read_explanations
    from veridical.model.load import load
    from veridical.progress import Report

    clf = load(model)
    (corpus,) = corpora_of(clf, data, (), split=split, limit=limit, seed=seed)
    claim(out, clf, [corpus], {"target": target, "split": split, "seed": seed})
    foreign = [a for path in explanations or () for a in to_attributions(clf, read_explanations(path), corpus.examples)]
    with Report("Evaluating", len(corpus.examples), progress=False if as_json else None) as report:
        found = run(
            clf,
            corpus.examples,
            method or ["attention", "input_x_gradient", "integrated_gradients", "random"],
            metric or ["sufficiency", "comprehensiveness", "decision_flip"],
            target=target,
            explanations=foreign,
            corpus=corpus.name,
            seed=seed,
            out=out,
            tick=lambda count: report.advance(steps=count),
        )
    path = out / "scores.parquet"
    store.write_parquet(path, columns(found.cells))
    means = found.table()
    if as_json:
        typer.echo(json.dumps(means, indent=2))
        return
    from rich.console import Console

    names = [name for name in next(iter(means.values())) if any(row[name] is not None for row in means.values())]
    table = plain_table("method", *names, right=tuple(names))
    for name, row in means.items():
        table.add_row(name, *("undefined" if row[m] is None else f"{row[m]:.3f}" for m in names))
    Console(highlight=False).print(table)
    typer.echo(str(path))


def audit(
    model: Model,
    data: Annotated[str, typer.Option(help="What the model is for: a name, hub:owner/name, a file or a folder.")],
    out: Annotated[Path, typer.Option(help="Folder for the report and everything behind it.")],
    ood: Annotated[list[str] | None, typer.Option(help="Data from other domains, with commas or repeated.")] = None,
    split: Split = "test",
    limit: Annotated[
        int | None, Number(help="Texts per corpus, a seeded sample. [dim]\\[default: 200, or 48 with --quick][/]")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", metavar="", help="A first verdict from cheap methods and metrics.")
    ] = False,
    method: Names = None,
    metric: Names = None,
    target: Target = "predicted",
    by: Annotated[
        Literal["delete", "mask", "attention", "zero_id_attended"], typer.Option(help="How tokens are erased.")
    ] = "delete",
    level: Annotated[Literal["token", "word"], typer.Option(help="What is erased at a time.")] = "token",
    seed: Annotated[int, Number(help="Seed of the sample and of everything random.")] = 0,
    as_json: Json = False,
) -> None:
    """Find out which explanation of a model to believe, and write a page that says so.

    Explains test texts with every method, scores every explanation with every metric that applies, ranks the methods
    with uncertainty. Interrupted at any moment, the same command goes on.

    Example: veridical audit runs/x --data hutto/movies --ood hutto/amazon,hutto/tweets --limit 100 --out audit
    """
    from veridical.audit import audit as run

    others = [name.strip() for part in ood or () for name in part.split(",") if name.strip()]
    made = run(
        model,
        data,
        out=out,
        ood=others,
        split=split,
        limit=limit,
        quick=quick,
        methods=method,
        metrics=metric,
        target=target,
        by=by,
        level=level,
        seed=seed,
        progress=False if as_json else None,
    )
    if as_json:
        typer.echo(json.dumps(made.summary, indent=2, ensure_ascii=False))
        return
    print_audit(made)


def print_audit(made: object) -> None:
    """The verdict, the ranking and where the page lies."""
    from rich.console import Console

    from veridical.audit import Audit
    from veridical.cli_data import plain_table

    assert isinstance(made, Audit)
    console = Console(highlight=False)
    home = made.summary["corpora"][0]["name"]
    console.print(f"\n{made.verdict}\n", markup=False)
    rows = [row for row in made.summary["ranking"] if row["corpus"] == home]
    if rows:
        table = plain_table("", "method", "mean rank", "95%", "beats shuffled", right=("mean rank",))
        for row in sorted(rows, key=lambda r: r["place"]):
            interval = "" if row["low"] is None else f"{row['low']:.2f} to {row['high']:.2f}"
            beats = {True: "yes", False: "no", None: "not tested"}[row["beats_control"]]
            table.add_row(str(row["place"]), row["method"], f"{row['mean_rank']:.2f}", interval, beats)
        console.print(table)
    if made.summary["quick_note"]:
        console.print(f"\n{made.summary['quick_note']}", markup=False)
    typer.echo(f"\nreport {made.page}")


def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of audits.")],
    style: Annotated[
        Literal["text", "csv", "latex"], typer.Option("--format", help="How the table is written.")
    ] = "text",
) -> None:
    """Compare audits: means with intervals over examples or seeds, tests between models.

    Example: veridical compare audits/seed0 audits/seed1 --format latex
    """
    from veridical import compare as module

    table = module.compare(runs)
    typer.echo({"text": module.to_text, "csv": module.to_csv, "latex": module.to_latex}[style](table))


def report(folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of an audit.")]) -> None:
    """Write an audit's page anew from its stored files, computing nothing.

    Example: veridical report audits/movies
    """
    from veridical import store
    from veridical.errors import InputError
    from veridical.report.audit import audit_page

    for name in ("summary.json", "examples.json"):
        if not (folder / name).exists():
            raise InputError(f"{folder} has no {name}; name the folder of a finished audit.")
    summary, examples = (store.read_json(folder / name) for name in ("summary.json", "examples.json"))
    store.write_text(folder / "report.html", audit_page(summary, examples))
    typer.echo(str(folder / "report.html"))
