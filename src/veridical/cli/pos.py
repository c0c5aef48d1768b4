"""`veridical pos`."""

from __future__ import annotations

from pathlib import Path

import typer

from veridical.cli.speech import print_json
from veridical.core.options import Json
from veridical.probes.options import PosOptions


def pos(options: PosOptions, as_json: Json = False) -> None:
    """Compare which parts of speech the explanations of models rest on.

    Example: veridical pos baseline=runs/x saloss=runs/y --data hutto/movies --out pos
    """
    from veridical.probes.pos import pos as run
    from veridical.probes.pos import to_text

    result = run(**vars(options))
    if as_json:
        print_json(result)
        return
    typer.echo(to_text(result))
    if options.out is not None:
        for name in ("pos.csv", "pos.svg"):
            typer.echo(str(Path(options.out) / name))
