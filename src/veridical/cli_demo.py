"""What `veridical demo` prints at its end: a small table and the paths."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.text import Text

from veridical.attribution import methods
from veridical.cli_data import plain_table
from veridical.demo import Demo
from veridical.display import class_line, duration, pieces, printable, top
from veridical.explanation import Explanation


def print_demo(made: Demo) -> None:
    console = Console(highlight=False)
    scores = made.run.scores
    said = ", ".join(f"{split} {found['accuracy']:.1%}" for split, found in scores.items())
    console.print(f"\nAccuracy: {said}")
    texts = list(zip(*made.found.values(), strict=True))
    shown = _shown(texts)
    first = shown[0]
    console.print(Text.assemble("What made it say ", (class_line(first), "bold"), f" of “{printable(first.text)}”?\n"))
    numbers = ("per text", "forward", "backward")
    table = plain_table("method", "needs", *numbers, "strongest word", right=numbers, fold=("needs",))
    for one in shown:
        entry, own = methods[one.method.partition(":")[0]], made.found[one.method]
        means = [
            sum(values) / len(own) for values in zip(*((e.cost.forward, e.cost.backward) for e in own), strict=True)
        ]
        seconds = sum(e.cost.seconds for e in own) / len(own)
        needs = ", ".join(sorted(entry.needs)) or "nothing"
        table.add_row(one.method, needs, duration(seconds), *(f"{mean:.3g}" for mean in means), _strongest(one))
    console.print(table)
    agreed = sum(len(set(map(_strongest, same))) == 1 for same in texts)
    console.print(
        f"\nForward and backward are passes through the model per text. "
        f"All {len(shown)} methods name the same strongest word in {agreed} of {len(texts)} texts.\n"
    )
    for what, path in (("page", made.page), ("scores", made.scores), ("model", made.run.folder)):
        typer.echo(f"{what:<7}{path}")


def _strongest(one: Explanation) -> str:
    return ", ".join(piece.text for piece in top(pieces(one), 1))


def _shown(texts: list[tuple[Explanation, ...]]) -> tuple[Explanation, ...]:
    """The explanations of one text that a table row can hold: of middling length, rightly classified."""

    def unfit(same: tuple[Explanation, ...]) -> tuple[bool, int]:
        one = same[0]
        return int(one.probabilities.argmax()) != one.example.label, abs(len(one.words) - 12)

    return min(texts, key=unfit)
