"""What `veridical demo` prints at its end: how good the classifier is, which explanation to believe, and the paths."""

from __future__ import annotations

import typer
from rich.console import Console

from veridical.cli.audit import print_audit
from veridical.cli.demo import Demo


def print_demo(made: Demo) -> None:
    said = ", ".join(f"{split} {found['accuracy']:.1%}" for split, found in made.run.scores.items())
    Console(highlight=False).print(f"\nAccuracy: {said}")
    print_audit(made.audit)
    typer.echo(f"model  {made.run.folder}")
