"""`veridical validate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from veridical.cli.speech import print_json, tell
from veridical.core.options import Json
from veridical.probes.options import ValidateOptions

if TYPE_CHECKING:
    from veridical.probes.validation.validate import Validation


def validate(options: ValidateOptions, as_json: Json = False) -> None:
    """Audit the auditor: how often is its verdict wrong where the truth is known?

    Trains models in worlds whose deciding words are known, explains and scores them, and holds every panel of metrics
    against the truth. Interrupted at any moment the same command goes on; more seeds add to what the folder holds.

    Example: veridical validate --seeds 0-4 --fresh 5-9 --out validation
    """
    from veridical.probes.validation.validate import validate as run

    result = run(**vars(options))
    if as_json:
        print_json(result.summary)
    else:
        print_validation(result)


def print_validation(result: Validation) -> None:
    """The answer, the errors of every panel and where the page lies."""
    from veridical.core.tables import to_text
    from veridical.probes.validation.finished import RIGHT, error_cells

    summary = result.summary
    tell(f"\n{summary.answer}\n")
    typer.echo(to_text(error_cells(summary), right=RIGHT))
    for row in summary.worlds:
        if row.skipped:
            typer.echo(f"not counted: {row.key}, {row.skipped}")
    typer.echo(f"\nreport {result.page}")
