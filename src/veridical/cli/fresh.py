"""`veridical fresh`."""

from __future__ import annotations

import typer

from veridical.cli.speech import Style, print_json
from veridical.core.options import Json
from veridical.retraining.options import FreshOptions


def fresh(options: FreshOptions, style: Style = "text", as_json: Json = False) -> None:
    """Train classifiers on explanations alone (FRESH), and compare them with full text.

    A model is trained on full text and explained; a new one is trained on the words that the explanation selects, and
    on as many random ones. The nearer its macro-F1 to that on full text, the more the explanation has found.
    Interrupted at any moment, the same command goes on.

    Example: veridical fresh --data hutto/movies --method attention,deeplift --ood hutto/amazon --seeds 5 --out fresh
    """
    from veridical.audits.compare_latex import to_latex
    from veridical.audits.compare_table import to_csv, to_text
    from veridical.retraining.fresh import fresh as run

    result = run(**vars(options))
    if as_json:
        print_json(result.summary)
        return
    typer.echo({"text": to_text, "csv": to_csv, "latex": to_latex}[style](result.table))
    typer.echo(str(result.folder))
