"""`veridical fresh`: how well can the task be learnt from the words an explanation selects?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from veridical.cli.speech import Json, Number
from veridical.core.spec import listed


def fresh(
    data: Annotated[str, typer.Option(help="A name, hub:owner/name, a file or a folder, with train, dev and test.")],
    out: Annotated[Path, typer.Option(help="Folder for the runs, the rationales and the tables.")],
    model: Annotated[str, typer.Option(help="What is trained: minilm, bilstm, a folder, a hub id.")] = "minilm",
    method: Annotated[
        list[str] | None,
        typer.Option(help="Methods, as name:option=value, with commas or repeated. [dim]\\[default: attention][/]"),
    ] = None,
    objective: Annotated[
        list[str] | None,
        typer.Option(help="What a support model is trained for, terms with commas. Repeat it to compare several."),
    ] = None,
    support: Annotated[
        list[str] | None, typer.Option(help="Explain this finished run or model instead. May be repeated.")
    ] = None,
    ratio: Annotated[float, typer.Option(help="Share of a text's words that the rationale keeps.")] = 0.2,
    extractor: Annotated[
        Literal["topk", "contiguous"], typer.Option(help="The highest scored words, or the span with the highest sum.")
    ] = "topk",
    seeds: Annotated[int, Number(help="How many seeds: 0, 1, ... Intervals need five.")] = 1,
    ood: Annotated[list[str] | None, typer.Option(help="Data from other domains, with commas or repeated.")] = None,
    limit: Annotated[int | None, Number(help="At most so many examples of every split, a sample.")] = None,
    target: Annotated[str, typer.Option(help="Explained class: predicted, gold, a name or an index.")] = "predicted",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting: train.epochs=5, or rationale.epochs=5 for the second training only."),
    ] = None,
    style: Annotated[
        Literal["text", "csv", "latex"], typer.Option("--format", help="How the table is printed.")
    ] = "text",
    as_json: Json = False,
) -> None:
    """Train classifiers on explanations alone (FRESH), and compare them with full text.

    A model is trained on full text and explained; a new one is trained on the words that the explanation selects, and
    on as many random ones. The nearer its macro-F1 to that on full text, the more the explanation has found.
    Interrupted at any moment, the same command goes on.

    Example: veridical fresh --data hutto/movies --method attention,deeplift --ood hutto/amazon --seeds 5 --out fresh
    """
    from veridical.audits.compare_table import to_csv, to_latex, to_text
    from veridical.core.errors import unknown
    from veridical.retraining.fresh import fresh as run
    from veridical.training.config import TrainConfig, build, defaults, merge

    given = merge({}, settings or ())
    for key in given:
        if key not in ("train", "rationale"):
            raise unknown("table of settings", key, ("train", "rationale"))
    config = build(TrainConfig, given.get("train", {}), base=defaults(model), where="train")
    found = run(
        data,
        model,
        methods=method or ["attention"],
        out=out,
        objective=objective or "cross_entropy",
        support=support or (),
        ratio=ratio,
        extractor=extractor,
        seeds=seeds,
        ood=listed(ood),
        limit=limit,
        target=target,
        config=config,
        rationale_config=build(TrainConfig, given.get("rationale", {}), base=config, where="rationale"),
        progress=False if as_json else None,
    )
    if as_json:
        typer.echo(json.dumps(found.summary, indent=2, ensure_ascii=False))
        return
    typer.echo({"text": to_text, "csv": to_csv, "latex": to_latex}[style](found.table))
    typer.echo(str(found.folder))
