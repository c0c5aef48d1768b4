"""`veridical audit`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from veridical.audits.options import AuditOptions
from veridical.cli.speech import tell
from veridical.core.options import Json

if TYPE_CHECKING:
    from veridical.audits.audit import Audit
    from veridical.audits.filing import Since


def audit(options: AuditOptions, as_json: Json = False) -> None:
    """Find out which explanation of a model to believe, and write a page that says so.

    Explains test texts with every method and scores every explanation. After 24, 48 and 96 texts methods that are
    shown to be behind are let go, and when nothing is open it stops.

    It says beforehand what it costs. Interrupted at any moment, the same command goes on.

    With --against an earlier audit it says what changed since, and ends with exit code 1 on a regression.

    Example: veridical audit runs/x --data hutto/movies --ood hutto/amazon,hutto/tweets --limit 100 --out audit
    """
    from veridical.audits.audit import audit as run
    from veridical.audits.record import SUMMARY

    result = run(**vars(options))
    if as_json:
        typer.echo((result.folder / SUMMARY).read_text(encoding="utf-8"), nl=False)
    else:
        print_audit(result)
    if result.since is not None and result.since.regressions:
        raise typer.Exit(1)


def print_changes(since: Since) -> None:
    """What changed since an earlier audit, and whether anything became worse."""
    from veridical.core.tables import to_text
    from veridical.page.words import p_value

    tell(f"\nSince {since.title}, {since.created}. {' '.join(since.differences)}\n")
    cells = [["corpus", "figure", "then", "now", "test", "p (worse), Holm", ""]]
    for change in since.changes:
        p = "" if change.p_holm is None else p_value(change.p_holm)
        words = (change.corpus, change.what, change.before, change.now, change.test or "none", p, change.outcome)
        cells.append([*words])
    if since.changes:
        typer.echo(to_text(cells))
    count = len(since.regressions)
    found = f"{count} regression{'' if count == 1 else 's'}" if count else "No regression"
    tell(f"\n{found} at level {since.level:g} (one-sided, Holm over all tests).")


def print_audit(result: Audit) -> None:
    """The verdict, the ranking and where the page lies."""
    from veridical.audits.finished import DECIDES, PLACES, ranking_table

    tell(f"\n{result.verdict}\n")
    if table := ranking_table(result.summary):
        typer.echo(table)
        tell(f"{PLACES} {DECIDES}")
    for note in result.summary.verdicts[0].notes:
        tell(note)
    if result.since is not None:
        print_changes(result.since)
    typer.echo(f"\nrecord {result.folder / 'record.html'}\nreport {result.page}")
