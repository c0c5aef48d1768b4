"""`veridical guidance`."""

from __future__ import annotations

import typer

from veridical.cli.speech import print_json
from veridical.core.options import Json
from veridical.probes.options import GuidanceOptions


def guidance(options: GuidanceOptions, as_json: Json = False) -> None:
    """Find out whether guiding explanations changed what a model relies on, or only met the loss.

    Takes finished runs of a baseline and of conditions trained with `explanation` (or `saloss`, or REGEX), with seeds.

    Interrupted, the same command goes on; with more --guided it adds them to what is there.

    Example: veridical guidance --base runs/base --guided att=runs/att --data planted --out guidance
    """
    from veridical.probes.guidance.guidance import guidance as run

    result = run(**vars(options))
    if as_json:
        print_json(result.summary)
        return
    home = result.summary.corpora[0].name
    typer.echo(f"\n{result.verdict}\n")
    for verdict in result.summary.verdicts:
        if verdict.corpus == home:
            sentence = "" if verdict.sentence == result.verdict else verdict.sentence  # of one condition it is above
            typer.echo(f"{verdict.condition} ({verdict.outcome}): {sentence}".rstrip(": "))
            typer.echo("".join(f"  {line}\n" for line in verdict.details))
    typer.echo(str(result.page))
