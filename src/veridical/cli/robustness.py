"""The verbs that put a model to the test: `robustness` of its explanations, and `attack` on its predictions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from veridical.cli.speech import Json, Number, say
from veridical.core.errors import InputError
from veridical.core.spec import listed

Models = Annotated[list[str], typer.Argument(metavar="MODEL...", help="Run folders, models' folders or hub ids.")]
Data = Annotated[str, typer.Option(help="A name, hub:owner/name, a file or a folder.")]
Split = Annotated[str, typer.Option(help="Which part of the data.")]
Style = Annotated[Literal["text", "csv"], typer.Option("--format", help="How the table is written.")]
Seed = Annotated[int, Number(help="Seed of the sample and of everything random.")]


def robustness(
    models: Models,
    data: Data,
    split: Split = "test",
    limit: Annotated[int, Number(help="How many texts, a seeded sample.")] = 200,
    method: Annotated[list[str] | None, typer.Option(help="As name:option=value, with commas or repeated.")] = None,
    untrained: Annotated[
        str | None,
        typer.Option(
            help="The model that learnt nothing: head, weights, none, or an encoder for a new head. "
            "[dim]\\[default: what the first run began with, else head][/]"
        ),
    ] = None,
    target: Annotated[str, typer.Option(help="Explained class: predicted, gold, a name or an index.")] = "predicted",
    share: Annotated[float, typer.Option(help="Share of the tokens that is compared.")] = 0.25,
    level: Annotated[Literal["token", "word"], typer.Option(help="What is compared.")] = "token",
    seed: Seed = 0,
    style: Style = "text",
    as_json: Json = False,
) -> None:
    """Test whether explanations depend on what a model learnt, and only on that.

    Overlap of the most important tokens between models that differ in their initialisation only (should be high), and
    between them and an untrained model (should be low). What the models differ in is said below the table: runs of
    several seeds also saw their texts in another order, unless trained with --set train.data_seed=0.

    Example: veridical robustness runs/x/seed0 runs/x/seed1 runs/x/seed2 --data hutto/movies --limit 100
    """
    from veridical.attribution import methods
    from veridical.core import store
    from veridical.core.progress import Report
    from veridical.data import load_data
    from veridical.data.labels import relabel
    from veridical.model.load import load
    from veridical.probes.robustness import robustness as run
    from veridical.probes.robustness import to_csv, to_text

    chosen = methods.choose_all(method or ["attention_x_gradient"])
    found = load_data(data, limit=limit, splits=[split], seed=seed)
    examples = list(found.splits[split])
    if target == "gold":
        examples = relabel(examples, found.labels, load(models[0]).labels)
    total = len(examples) * len(chosen) * (len(models) + (untrained != "none"))
    with Report("Explaining", total, progress=False if as_json else None) as report:
        table = run(
            models,
            examples,
            [choice.label for choice in chosen],
            untrained=untrained,
            target=target,
            share=share,
            level=level,
            seed=seed,
            tick=lambda count: report.advance(steps=count),
        )
    if as_json:
        typer.echo(json.dumps(store.plain(table), indent=2, ensure_ascii=False))
    else:
        typer.echo((to_csv if style == "csv" else to_text)(table), nl=False)


def attack(
    models: Models,
    data: Data,
    split: Split = "test",
    limit: Annotated[int, Number(help="How many texts, a seeded sample.")] = 400,
    change: Annotated[
        list[str] | None,
        typer.Option(
            help="contract, extend, number, name, location, with commas or repeated. [dim]\\[default: all][/]"
        ),
    ] = None,
    entities: Annotated[
        str,
        typer.Option(help="Who finds names and locations: lists, a spaCy pipeline, or auto (it if there, else lists)."),
    ] = "auto",
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option(help="Write every text as it became: a .jsonl file.")] = None,
    style: Style = "text",
    as_json: Json = False,
) -> None:
    """Attack right predictions with changes that leave a text's meaning alone (CheckList).

    Contractions, numbers, names of people and places. Several models are attacked with the same texts.

    Example: veridical attack runs/x runs/y --data hutto/movies --limit 200 --out attacked.jsonl
    """
    from veridical.core import store
    from veridical.core.progress import Report
    from veridical.data import load_data
    from veridical.data.labels import relabel
    from veridical.model.load import load
    from veridical.probes.attack import attack as run
    from veridical.probes.attack import to_csv, to_rows, to_text
    from veridical.probes.checklist import CHANGES

    if out is not None and out.suffix != ".jsonl":
        raise InputError(f"--out {out} does not end in .jsonl, which is what is written; name such a file.")
    changes = listed(change or CHANGES)
    found = load_data(data, limit=limit, splits=[split], seed=seed)
    made = {}
    with Report("Attacking", len(models) * len(found.splits[split]), progress=False if as_json else None) as report:
        for name, model in zip(_apart(models), models, strict=True):
            clf = load(model)
            examples = relabel(list(found.splits[split]), found.labels, clf.labels)
            made[name] = run(
                clf,
                examples,
                changes=changes,
                entities=entities,
                seed=seed,
                tick=lambda count: report.advance(steps=count),
            )
    if as_json:
        figures = {name: {**one.summary, "entities": one.entities} for name, one in made.items()}
        typer.echo(json.dumps(figures, indent=2))
    else:
        typer.echo((to_csv if style == "csv" else to_text)(made), nl=False)
    if out is not None:
        store.write_jsonl(out, to_rows(made))
        (say if as_json or style == "csv" else typer.echo)(str(out))


def _apart(models: Sequence[str]) -> list[str]:
    """The models as they were named; a model is attacked once."""
    for name in models:
        if list(models).count(name) > 1:
            raise InputError(f"The model {name!r} is named twice; name each once.")
    return list(models)
