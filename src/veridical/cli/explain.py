"""What `veridical explain` reads and prints around the library function of the same name."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from veridical.core.errors import InputError
from veridical.core.records import Example
from veridical.explanations.display import Level, as_rich, class_line, cost_line, legend, printable
from veridical.explanations.exchange import to_row
from veridical.explanations.explanation import Explanation


def gather(
    text: Sequence[str], file: str | None, data: str | None, *, context: str | None, split: str, limit: int
) -> tuple[list[Example], tuple[str, ...]]:
    """The texts to explain and, if they come from a dataset, the names of its labels."""
    given = [name for name, value in (("--text", text), ("--file", file), ("--data", data)) if value]
    if len(given) != 1:
        what = f"{' and '.join(given)} were given together" if given else "There is no text to explain"
        raise InputError(f'{what}; give one of --text "...", --file texts.txt (or -) and --data NAME.')
    if data:
        if context is not None:
            raise InputError("--context goes with --text or --file; data brings its own.")
        from veridical.data import load_data

        found = load_data(data, limit=limit, splits=[split])
        return list(found.splits[split]), found.labels
    texts = list(text) if text else _lines(str(file))
    return [Example(str(place), one, context=context) for place, one in enumerate(texts, 1)], ()


def _lines(file: str) -> list[str]:
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        lines = [line for line in raw.decode("utf-8-sig").splitlines() if line.strip()]
    except OSError as problem:
        raise InputError(f"{file} cannot be read ({problem.strerror}); name a text file, or - for input.") from problem
    except UnicodeDecodeError as problem:
        raise InputError(f"{file} is not UTF-8 ({problem.reason}); save it as UTF-8.") from problem
    if not lines:
        raise InputError(f"{'The input' if file == '-' else file} holds no text; write one text per line.")
    return lines


def as_json(found: Mapping[str, Sequence[Explanation]]) -> str:
    """A list of the rows that --out writes, with the words and their scores beside the tokens."""
    rows: list[dict[str, Any]] = [
        {
            **to_row(one),
            "options": json.loads(to_row(one)["options"]),
            "labels": list(one.labels),
            "words": list(one.words),
            "word_scores": one.word_scores.tolist(),
        }
        for explanations in found.values()
        for one in explanations
    ]
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    return f"[\n{lines}\n]"


def show(found: Mapping[str, Sequence[Explanation]], level: Level) -> None:
    """Every text with the highlights of every method under each other."""
    console = Console(highlight=False)
    colour = console.color_system is not None and not console.no_color
    for same in zip(*found.values(), strict=True):
        console.print(_heading(same[0]))
        if same[0].example.context is not None:
            console.print(_indented(Text(f"context: {printable(same[0].example.context)}", "dim"), 2))
        for one in same:
            about = f"explains {class_line(one)}: {cost_line(one.cost)}"
            console.print(_indented(Text.assemble((one.method, "bold"), " ", (about, "dim")), 2))
            console.print(_indented(as_rich(one, level, colour=colour), 4))
        console.print()
    signed = any(one.signed for explanations in found.values() for one in explanations)
    console.print(legend(signed, colour=colour))


def _indented(text: Text, by: int) -> Padding:
    return Padding(text, (0, 0, 0, by), expand=False)


def _heading(one: Explanation) -> Text:
    order = sorted(range(len(one.labels)), key=lambda i: -one.probabilities[i])[:4]
    likely = ", ".join(f"{one.labels[i]} {one.probabilities[i]:.3f}" for i in order)
    gold = ""
    if one.example.label is not None:
        held = one.example.label if isinstance(one.example.label, tuple) else (one.example.label,)
        gold = f"  gold {', '.join(one.labels[i] for i in held)}"
    return Text.assemble((one.example.id, "bold"), f"  {likely}", (gold, "dim"))
