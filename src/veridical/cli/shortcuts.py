"""`veridical shortcuts`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from veridical.audits.options import ShortcutsOptions
from veridical.cli.speech import print_json, tell
from veridical.core.errors import InputError
from veridical.core.options import Json
from veridical.core.readable import shown_path

if TYPE_CHECKING:
    from veridical.audits.shortcuts.record import Shortcuts


def shortcuts(options: ShortcutsOptions, as_json: Json = False) -> None:
    """Find the words that a model relies on, and what it does without them.

    From the explanations that an audit believes: words that have more of them than their frequency gives and go with a
    class, each against a permutation. Then they are erased wherever they stand, beside other words of like frequency.

    Words that are marked in the data, or belong to its rule, are listed apart. The audit's page gets a section on it.

    Example: veridical shortcuts audits/movies --texts 200
    """
    if not os.path.isfile(os.path.join(options.audit, "summary.json")):  # a look that needs no import
        raise InputError(f"{shown_path(options.audit)} has no summary.json; name the folder of a finished audit.")
    from veridical.audits.shortcuts.record import FILE, FOLDER
    from veridical.audits.shortcuts.shortcuts import shortcuts as run

    found = run(**vars(options))
    if as_json:
        print_json(found)
        return
    print_shortcuts(found)
    inside = options.out is None
    place = Path(options.audit) / FOLDER if options.out is None else Path(options.out)
    typer.echo(f"\nfound  {place / FILE}" + (f"\nreport {Path(options.audit) / 'report.html'}" if inside else ""))


def print_shortcuts(found: Shortcuts) -> None:
    """What was found, the flagged words and what is to be said of them."""
    from veridical.audits.shortcuts.record import flagged_table

    tell(f"\n{found.sentence}\n")
    if table := flagged_table(found):
        typer.echo(table + "\n")
    for note in found.notes:
        tell(note)
