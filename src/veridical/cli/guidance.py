"""The verb `veridical guidance`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from veridical.cli.speech import Json, Number
from veridical.core.spec import listed


def guidance(
    base: Annotated[
        list[str], typer.Option(metavar="RUN", help="A baseline run, or a folder with its seeds. May be repeated.")
    ],
    guided: Annotated[
        list[str],
        typer.Option(metavar="NAME=RUN", help="A guided run, or a folder with its seeds; runs of one name are seeds."),
    ],
    data: Annotated[str, typer.Option(metavar="DATA", help="What they were trained on: data with rationales.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for report.html and everything behind it.")],
    ood: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DATA", help="Data from other domains, with rationales or without; with commas or repeated."
        ),
    ] = None,
    split: Annotated[str, typer.Option(metavar="SPLIT", help="Split of the data.")] = "test",
    ood_split: Annotated[
        str | None, typer.Option(metavar="SPLIT", help="Split of the other corpora. [dim]\\[default: the same][/]")
    ] = None,
    limit: Annotated[int, Number(help="Texts that are explained, a seeded sample.")] = 200,
    ood_limit: Annotated[
        int | None, Number(help="The same of every other corpus. [dim]\\[default: as many][/]")
    ] = None,
    f1_limit: Annotated[int, Number(help="Texts of every corpus on which macro-F1 is measured.")] = 1000,
    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Methods, with commas or repeated; guided ones and witnesses come on top. "
            "[dim]\\[default: attention, rollout, input_x_gradient, alti, decompx][/]",
        ),
    ] = None,
    ood_method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Methods on the other corpora; guided ones come on top. "
            "[dim]\\[default: attention, rollout, input_x_gradient][/]",
        ),
    ] = None,
    witness: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Methods that tell what a prediction depends on. "
            "[dim]\\[default: occlusion, integrated_gradients, deeplift, decompx_classifier][/]",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="The first that compares with rationales decides. "
            "[dim]\\[default: auc, average_precision, recall_at_k, each of absolute scores][/]",
        ),
    ] = None,
    margin: Annotated[float, typer.Option(help="A change that stays within it is none.")] = 0.05,
    draws: Annotated[int, Number(help="How often words are drawn to be erased.")] = 8,
    by: Annotated[
        Literal["delete", "mask", "attention", "zero_id_attended"],
        typer.Option(metavar="HOW", help="How words are erased: delete, mask, attention, zero_id_attended."),
    ] = "delete",
    seed: Annotated[int, Number(help="Seed of the sample and of everything random.")] = 0,
    as_json: Json = False,
) -> None:
    """Find out whether guiding explanations changed what a model relies on, or only met the loss.

    Takes finished runs of a baseline and of conditions trained with `explanation` (or `saloss`, or REGEX), with seeds.

    Interrupted, the same command goes on; with more --guided it adds them to what is there.

    Example: veridical guidance --base runs/base --guided att=runs/att --data planted --out guidance
    """
    from veridical.cli.pos import named
    from veridical.probes.guidance.guidance import METRICS, WITNESSES
    from veridical.probes.guidance.guidance import guidance as run

    made = run(
        list(base),
        named(guided),
        data,
        out=out,
        ood=listed(ood),
        split=split,
        ood_split=ood_split,
        limit=limit,
        ood_limit=ood_limit,
        f1_limit=f1_limit,
        methods=method,
        ood_methods=ood_method,
        witnesses=witness or WITNESSES,
        metrics=metric or METRICS,
        margin=margin,
        draws=draws,
        by=by,
        seed=seed,
        progress=False if as_json else None,
    )
    if as_json:
        from veridical.core.store import plain

        typer.echo(json.dumps(plain(made.summary), indent=2, ensure_ascii=False))
        return
    home = made.summary.corpora[0].name
    typer.echo(f"\n{made.verdict}\n")
    for verdict in made.summary.verdicts:
        if verdict.corpus == home:
            typer.echo(f"{verdict.condition} ({verdict.outcome}): {verdict.sentence}")
            typer.echo("".join(f"  {line}\n" for line in verdict.details))
    typer.echo(str(made.page))
