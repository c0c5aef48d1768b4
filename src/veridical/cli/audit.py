"""`veridical audit`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from veridical.audits.options import AuditOptions
from veridical.cli.speech import tell
from veridical.core.options import Json

if TYPE_CHECKING:
    from veridical.audits.audit import Audit


def audit(options: AuditOptions, as_json: Json = False) -> None:
    """Find out which explanation of a model to believe, and write a page that says so.

    Explains test texts with every method and scores every explanation. After 24, 48 and 96 texts methods that are
    shown to be behind are let go, and when nothing is open it stops.

    It says beforehand what it costs. Interrupted at any moment, the same command goes on.

    Example: veridical audit runs/x --data hutto/movies --ood hutto/amazon,hutto/tweets --limit 100 --out audit
    """
    from veridical.audits.audit import audit as run
    from veridical.audits.record import SUMMARY

    result = run(**vars(options))
    if as_json:
        typer.echo((result.folder / SUMMARY).read_text(encoding="utf-8"), nl=False)
    else:
        print_audit(result)


def print_audit(result: Audit) -> None:
    """The verdict, the ranking and where the page lies."""
    from veridical.audits.finished import ranking_table

    tell(f"\n{result.verdict}\n")
    if table := ranking_table(result.summary):
        typer.echo(table)
    for note in result.summary.verdicts[0].notes:
        tell(note)
    typer.echo(f"\nreport {result.page}")
