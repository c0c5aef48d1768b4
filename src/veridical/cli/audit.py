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

    Explains test texts with every method, scores every explanation with every metric that applies, ranks the methods.

    A ranking says which differences the texts can carry. Interrupted at any moment, the same command goes on.

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
    from veridical.core.tables import to_text

    summary = result.summary
    tell(f"\n{result.verdict}\n")
    cells = [["", "method", "mean rank", "95%", "beats its control"]]
    standings = [standing for standing in summary.ranking if standing.corpus == summary.corpora[0].name]
    for row in sorted(standings, key=lambda standing: standing.place):
        interval = "" if row.low is None else f"{row.low:.2f} to {row.high:.2f}"
        beats = {True: "yes", False: "no", None: "not tested"}[row.beats_control]
        cells.append([str(row.place), row.method, f"{row.mean_rank:.2f}", interval, beats])
    if standings:
        typer.echo(to_text(cells))
    if summary.quick_note:
        tell(f"\n{summary.quick_note}")
    typer.echo(f"\nreport {result.page}")
