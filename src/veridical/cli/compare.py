"""`veridical compare`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from veridical.cli.speech import Style
from veridical.core.options import Help
from veridical.core.place import A_SOURCE

WRITTEN = "Folders that `veridical audit` wrote."
Runs = Annotated[Sequence[str], Help(WRITTEN, "DIR...", argument=True, commas=False), A_SOURCE]


def compare(runs: Runs, style: Style = "text") -> None:
    """Put audits side by side: means with intervals, tests between models, and how alike models explain.

    Runs whose models differ only in the seed are one model: the mean over seeds, with an interval from five on.

    A single run has intervals over its texts. Other models are tested against the first one named.

    Audit all models on the same texts: the same --data, --split, --limit and --seed.

    Example: veridical compare audits/bert-seed0 audits/bert-seed1 audits/roberta-seed0 --format latex
    """
    from veridical.audits import compare as module

    table = module.compare(runs)
    typer.echo({"text": module.to_text, "csv": module.to_csv, "latex": module.to_latex}[style](table))
