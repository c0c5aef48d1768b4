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
    from veridical.retraining.roar.timing import spell

    cells = [["", "trainings", "explanations", "of one core"]]
    for row in cost.rows:
        cells.append([row.measure, str(row.trainings), str(row.explanations), spell(row.seconds)])
    cells.append(["together", str(cost.trainings), str(cost.explanations), spell(cost.seconds)])
    typer.echo(to_text(cells, right=(1, 2, 3)))


def print_roar(result: Roar) -> None:
    """The answer, the areas and where the page lies."""
    from veridical.core.tables import to_text

    tell(f"\n{result.summary.answer}\n")
    what = f"{result.summary.areas[0].what}, %"  # a mean gap is in points of the score: also of a hundred
    cells = [["measure", what, "95%", "seeds", "verdict"]]
    for area in result.summary.areas:
        name = area.measure if area.recursive else f"{area.measure}, not recursive"
        mean = "" if area.mean is None else f"{100 * area.mean:.1f}"
        interval = "" if area.low is None or area.high is None else f"{100 * area.low:.1f} to {100 * area.high:.1f}"
        cells.append([name, mean, interval, str(area.n), area.verdict])
    typer.echo(to_text(cells, right=(1, 3)))
    typer.echo(f"\nreport {result.page}")
