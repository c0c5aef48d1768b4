"""`veridical list`: the registries, read from what registered itself."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from veridical.cli.speech import print_json
from veridical.core.options import Help, Json
from veridical.core.registry import Entry, options_of
from veridical.core.values import write

KINDS = ("methods", "metrics", "datasets", "terms")
Kind = Annotated[
    Literal["methods", "metrics", "datasets", "terms"] | None,
    Help("methods, metrics, datasets or terms.", "KIND", default="all of them", argument=True),
]
READS = {"layers": "a wired encoder"}  # needs whose name alone would not say what is meant


def list_(kind: Kind = None, as_json: Json = False) -> None:
    """List attribution methods, metrics, datasets and loss terms, with their options.

    Example: veridical list methods
    """
    held = {name: entries(name) for name in ([kind] if kind else KINDS)}
    if as_json:
        print_json(held)
    else:
        print_entries(held)


def entries(kind: str) -> list[dict[str, Any]]:
    """Name, options and what is true of every method, metric, dataset or term."""
    if kind == "methods":
        from veridical.attribution import methods

        return [
            {
                **_common(m, m.summary),
                "needs": sorted(m.needs),
                "signed": m.signed,
                "differentiable": m.differentiable,
                "complete": m.complete,
                "of_target": m.of_target,
            }
            for m in methods
        ]
    if kind == "metrics":
        from veridical.metric import metrics

        return [
            {
                **_common(m, m.summary),
                "needs": sorted(m.needs),
                "kind": m.kind,
                "better": m.better,
                "bounds": list(m.bounds),
            }
            for m in metrics
        ]
    if kind == "datasets":
        from veridical.data import datasets

        return [{**_common(source, source.about), "needs": source.needs} for source in datasets]
    from veridical.training.term import terms

    return [{**_common(term, _summary(term)), "needs": sorted(term.needs)} for term in terms]


def _common(entry: Entry, about: str) -> dict[str, Any]:
    options = {
        name: None if parameter.default is parameter.empty else parameter.default
        for name, parameter in options_of(entry.run).items()
    }
    return {"name": entry.name, "about": about, "options": options}


def _summary(entry: Entry) -> str:
    return (inspect.getdoc(entry.run) or "").split("\n\n")[0].replace("\n", " ")


def print_entries(held: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(highlight=False)
    for kind, rows in held.items():
        console.print(Text(kind.capitalize(), "bold underline"))
        for row in rows:
            facts = [name for name in ("signed", "differentiable", "complete") if row.get(name)]
            if "better" in row:
                facts += [row["kind"], f"{row['better']} is better"]
            needs = row["needs"] if isinstance(row["needs"], list) else [row["needs"]]
            words = [READS.get(need, str(need)) for need in needs if need]
            wants = [f"needs {_listed(words)}"] if words else []
            console.print(Text.assemble((row["name"], "bold"), ("  " + ", ".join([*wants, *facts]), "dim")))
            console.print(Padding(Text(row["about"]), (0, 0, 0, 2), expand=False))
            if row["options"]:
                written = {name: "none" if value is None else write(value) for name, value in row["options"].items()}
                options = "  ".join(f"{name}={value}" for name, value in written.items())
                console.print(Padding(Text(options, "cyan"), (0, 0, 0, 2), expand=False))
        console.print()


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
