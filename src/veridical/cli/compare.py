"""`veridical compare`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from veridical.cli.speech import Style, say
from veridical.core.options import Help
from veridical.core.place import A_FILE, check_page

RUNS = "Folders that `veridical audit` wrote, with or without a name for the model; several of one name are seeds."
Runs = Annotated[Sequence[str], Help(RUNS, "NAME=RUN...", argument=True, commas=False)]
Page = Annotated[str | None, Help("Write a page with the tables, the tests and plots.", "FILE"), A_FILE]

Controls = Annotated[bool, Help("Rows for random orders and oracles too.")]


def compare(runs: Runs, style: Style = "text", html: Page = None, controls: Controls = False) -> None:
    """Put audits side by side: figures with intervals, tests between models, and how alike models explain.

    Runs of one name, or whose models differ only in the seed, are one model: the mean over seeds, with an interval
    from five on.

    A single run has intervals over its texts. Other models are tested against the first one named.

    Audit all models on the same texts: the same --data, --split, --limit and --seed.

    Example: veridical compare plain=audits/bert-seed0 guided=audits/bert-guided-seed0 --html compare.html
    """
    check_page(html, "--html")
    from veridical.audits import compare as module

    table = module.compare(runs, controls=controls)
    if html is not None:
        from veridical.audits.compare_page import compare_page
        from veridical.core import store

        store.write_text(html, compare_page(table))
    typer.echo({"text": module.to_text, "csv": module.to_csv, "latex": module.to_latex}[style](table))
    if html is not None:
        say(html)  # apart from the table, which a program may read
