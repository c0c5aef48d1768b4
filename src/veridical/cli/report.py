"""`veridical report`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from veridical.core.errors import InputError
from veridical.core.options import Help
from veridical.core.place import A_SOURCE
from veridical.core.readable import shown_path

Folder = Annotated[str, Help("A folder that `veridical audit` wrote.", "DIR", argument=True), A_SOURCE]
RoarFolder = Annotated[
    str | None, Help("A folder that `veridical roar` wrote: show it as a section of the page.", "DIR"), A_SOURCE
]


def report(folder: Folder, roar: RoarFolder = None) -> None:
    """Write an audit's report.html anew from its stored files, for instance after an update; nothing is measured.

    Example: veridical report audits/movies --roar roar/movies
    """
    _insist(folder, ("summary.json", "examples.json"), "name the folder of a finished audit")
    if roar is not None:
        _insist(roar, ("summary.json", "time.json", "curves.parquet"), "name a folder that `veridical roar` wrote")
    from veridical.audits.audit import RETRAINING, retraining_of
    from veridical.audits.filing import PAGE, RECORD, read_record
    from veridical.audits.filing_page import record_page
    from veridical.audits.page import audit_page
    from veridical.audits.record import read_examples, read_summary
    from veridical.audits.shortcuts.page import section_of
    from veridical.core import store
    from veridical.retraining.roar.page import audit_section
    from veridical.retraining.roar.record import read_copy, write_copy

    place = Path(folder)
    if roar is not None:
        write_copy(place / "roar.json", Path(roar))
    if (place / "roar.json").exists():
        store.write_text(place / RETRAINING, audit_section(*read_copy(place / "roar.json")))
    sections = retraining_of(place), section_of(place)
    store.write_text(place / "report.html", audit_page(read_summary(place), read_examples(place), *sections))
    if (place / RECORD).exists():
        store.write_text(place / PAGE, record_page(read_record(place / RECORD)))
    typer.echo(str(place / "report.html"))


def _insist(folder: str, names: tuple[str, ...], remedy: str) -> None:
    for name in names:
        if not os.path.exists(Path(folder) / name):
            raise InputError(f"{shown_path(folder)} has no {name}; {remedy}.")
