"""`veridical roar`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from veridical.cli.speech import print_json, tell
from veridical.core.options import Json
from veridical.retraining.options import RoarOptions

if TYPE_CHECKING:
    from veridical.retraining.roar.roar import Estimate, Roar


def roar(options: RoarOptions, as_json: Json = False) -> None:
    """Retrain on texts without their allegedly important tokens: Recursive ROAR.

    It takes hundreds of trainings, and first says how long. The page is rewritten whenever a cell is done. Interrupted
    at any moment the same command goes on; more seeds, methods or smaller steps add to what the folder holds.

    Example: veridical roar --data babi/1:size=2000 --method attention,gradient:over=vocabulary --quick --out roar

    Then: veridical roar --data babi/1:size=2000 --method attention,gradient:over=vocabulary --out roar
    """
    from veridical.retraining.roar.roar import roar as run

    result = run(**vars(options))
    if as_json:
        print_json(result.cost if options.dry_run else result.summary)
    elif options.dry_run:
        print_cost(result.cost)
    else:
        print_roar(result)


def print_cost(cost: Estimate) -> None:
    """What would be run, by measure."""
    from veridical.core.tables import to_text
    from veridical.retraining.roar.finished import cost_cells

    typer.echo(to_text(cost_cells(cost), right=(1, 2, 3)))


def print_roar(result: Roar) -> None:
    """The answer, the areas and where the page lies."""
    from veridical.core.tables import to_text
    from veridical.retraining.roar.finished import area_cells

    tell(f"\n{result.summary.answer}\n")
    typer.echo(to_text(area_cells(result.summary), right=(1, 3)))
    typer.echo(f"\nreport {result.page}")
