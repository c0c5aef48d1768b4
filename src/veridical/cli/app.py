"""The command line: parse, call the library function of the same name, print the path written.

Heavy imports stand inside the verbs, so that `veridical --help` answers at once.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from veridical.cli import audit as cli_audit
from veridical.cli import data as cli_data
from veridical.cli import fresh as cli_fresh
from veridical.cli import guidance as cli_guidance
from veridical.cli import pos as cli_pos
from veridical.cli import roar as cli_roar
from veridical.cli import robustness as cli_robustness
from veridical.cli import run as cli_run
from veridical.cli import status as cli_status
from veridical.cli.search import ByMethods, ByTexts, Searched, Selected
from veridical.cli.speech import Json, Number, PlainGroup, With, say
from veridical.core.spec import listed

app = typer.Typer(cls=PlainGroup, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
app.add_typer(cli_data.app, name="data")

METHODS = "attention,integrated_gradients,occlusion"  # one that looks, one that differentiates, one that asks


def main() -> None:
    app(prog_name="veridical")


@app.callback(invoke_without_command=True)
def veridical(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", metavar="", help="Print the version.")] = False,
    with_: With = None,
) -> None:
    """Which explanation of your text classifier may you believe?

    Start with [bold]veridical demo[/]. Every verb has its own --help with an example.
    """
    if with_:
        from veridical.core.plugins import use

        use(*with_)
    if version:
        from veridical import __version__

        typer.echo(f"veridical {__version__}")
    elif ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


@app.command()
def demo(
    data: Annotated[str, typer.Option(help="What to train on.")] = "hutto/movies",
    model: Annotated[str, typer.Option(help="What to train: minilm, bilstm, a folder, a hub id.")] = "minilm",
    out: Annotated[Path, typer.Option(help="Where everything is written.")] = Path("runs/demo"),
    seed: Annotated[int, Number(help="Seed of the sample and of the training.")] = 0,
) -> None:
    """Fine-tune a small classifier, audit its explanations, write the report.

    A second run reuses what the first one finished.

    Example: veridical demo

    Without a package index: veridical demo --data planted --model bilstm
    """
    from veridical.cli.demo import demo as run
    from veridical.cli.demo_words import print_demo

    print_demo(run(data, model, out=out, seed=seed))


@app.command()
def train(
    data: Annotated[str | None, typer.Option(help="A name, hub:owner/name, a file or a folder.")] = None,
    model: Annotated[str | None, typer.Option(help="minilm, minilm:layers=3, bilstm, a folder, a hub id.")] = None,
    objective: Annotated[
        str | None, typer.Option(help="Terms on top of cross-entropy: a:weight=1,b:weight=0.01.")
    ] = None,
    seed: Annotated[str | None, typer.Option(help="A seed, or several: 0,1,2.")] = None,
    limit: Annotated[int | None, Number(help="At most so many examples of every split, a sample.")] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; several seeds get a folder each in it.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting: train.lr=3e-5, train.epochs=5. May be repeated."),
    ] = None,
    bound: Annotated[
        str | None,
        typer.Option(help="Hold a term below a value instead: TERM=0.035, TERM=TRAIN+DEV, or TERM=search."),
    ] = None,
    search: Searched = None,
    select: Selected = None,
    search_method: ByMethods = None,
    search_texts: ByTexts = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file with these options and a table \\[train].")] = None,
    as_json: Json = False,
) -> None:
    """Train a classifier, or go on with an interrupted run.

    Options given here win over --config. Killed at any moment, the same command goes on to the same result.

    Example: veridical train --data hutto/movies --model minilm --seed 0,1,2 --set train.epochs=4
    """
    from veridical.cli.search import print_search, search_job
    from veridical.cli.train import print_runs, run_job
    from veridical.training.config import train_job

    given = {"data": data, "model": model, "objective": objective, "limit": limit, "bound": bound, "out": out}
    flags = [f"{name}={value}" for name, value in given.items() if value is not None]
    if seed is not None:
        flags.append(f"seeds={'+'.join(listed(seed))}")
    job = train_job(config, [*(settings or ()), *flags])
    progress = False if as_json else None
    found = search_job(job, search, select=select, methods=search_method, texts=search_texts, progress=progress)
    if found is not None:
        print_search(found, as_json)
    else:
        print_runs(run_job(job, progress=progress), as_json)


@app.command()
def explain(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A run folder, a model's folder or a hub id.")],
    text: Annotated[list[str] | None, typer.Option(help="A text. May be repeated.")] = None,
    file: Annotated[str | None, typer.Option(help="A file with a text per line, or - for the input.")] = None,
    data: Annotated[str | None, typer.Option(help="A dataset to take texts from.")] = None,
    split: Annotated[str, typer.Option(help="Which part of --data.")] = "test",
    limit: Annotated[int, Number(help="How many texts of --data, a seeded sample.")] = 10,
    context: Annotated[str | None, typer.Option(help="A question or premise: read, not explained.")] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(help=f"Methods, as name:option=value, with commas or repeated. [dim]\\[default: {METHODS}][/]"),
    ] = None,
    target: Annotated[str, typer.Option(help="Explained class: predicted, gold, a name or an index.")] = "predicted",
    level: Annotated[Literal["word", "token"], typer.Option(help="What is highlighted.")] = "word",
    overlap: Annotated[int | None, Number(help="Explain too long texts in windows that share so many tokens.")] = None,
    as_json: Json = False,
    html: Annotated[Path | None, typer.Option(help="Write a page with the highlights.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the scores: a .parquet or .jsonl file.")] = None,
) -> None:
    """Show which words a classifier's decision rests on, according to one or several methods.

    Example: veridical explain runs/demo/hutto-movies-minilm/run --text "A warm, funny film." --method occlusion

    Example: veridical explain my-model --data hutto/amazon --limit 20 --html amazon.html
    """
    from veridical.attribution import methods
    from veridical.cli import explain as cli_explain
    from veridical.core import store
    from veridical.core.progress import Report
    from veridical.data.labels import relabel
    from veridical.explanations.exchange import check_format, write_explanations
    from veridical.explanations.explain import explain as run
    from veridical.model.load import load

    chosen = [choice.label for choice in methods.choose_all(method or [METHODS])]
    if out is not None:
        check_format(out)
    examples, labels = cli_explain.gather(text or [], file, data, context=context, split=split, limit=limit)
    clf = load(model)
    examples = relabel(examples, labels, clf.labels)
    windows = len(clf.encode(examples, overlap=overlap)) * len(chosen)
    with Report("Explaining", windows, progress=None if windows > 8 else False) as report:
        found = run(
            clf, examples, chosen, target=target, overlap=overlap, tick=lambda count: report.advance(steps=count)
        )
    if html is not None:
        from veridical.explanations.page import explain_page

        page = explain_page(found, model=model, data=f"{data} ({split})" if data else "", target=target, level=level)
        store.write_text(html, page)
    if out is not None:
        write_explanations(out, [one for explanations in found.values() for one in explanations])
    for path in filter(None, (html, out)):
        (say if as_json else typer.echo)(str(path))
    if as_json:
        typer.echo(cli_explain.as_json(found))
    elif html is None and out is None:
        cli_explain.show(found, level)


Kind = Literal["methods", "metrics", "datasets", "terms"]


@app.command("list")
def list_(
    kind: Annotated[
        Kind | None, typer.Argument(metavar="[KIND]", help="methods, metrics, datasets or terms; all without it.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List attribution methods, metrics, datasets and loss terms, with their options.

    Example: veridical list methods
    """
    from veridical.cli.list import entries, print_entries

    found = {name: entries(name) for name in ([kind] if kind else ["methods", "metrics", "datasets", "terms"])}
    if as_json:
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        print_entries(found)


for verb in (
    cli_audit.evaluate,
    cli_audit.audit,
    cli_audit.compare,
    cli_audit.report,
    cli_roar.roar,
    cli_fresh.fresh,
    cli_guidance.guidance,
    cli_robustness.robustness,
    cli_robustness.attack,
    cli_pos.pos,
    cli_run.run,
    cli_status.status,
):
    app.command()(verb)
