"""Write the tables of methods.md and metrics.md anew from what is registered: `python docs/tables.py`.

A table stands between `<!-- methods -->` and `<!-- /methods -->`; a test says when it is out of date.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import get_args

from veridical.attribution import Method, methods
from veridical.core import store
from veridical.core.registry import Entry, options_of
from veridical.metric import Kind, Metric, metrics

DOCS = Path(__file__).parent


def method_rows() -> list[Sequence[str]]:
    """The plainest first: those that need nothing, then by what they need."""

    def cost(method: Method) -> tuple[bool, ...]:
        return tuple(need in method.needs for need in ("questions", "gradient", "layers", "attention"))

    rows = [("method", "what it says of a token", "needs", "signed", "passes per text")]
    for method in sorted(filter(_is_built_in, methods), key=cost):
        needs = ", ".join(sorted(method.needs)) or "nothing"
        rows.append((f"`{method.name}`", method.summary, needs, "yes" if method.signed else "no", method.passes))
    return rows


def metric_rows() -> list[Sequence[str]]:
    """By kind, faithfulness first."""

    def kind(metric: Metric) -> int:
        return get_args(Kind).index(metric.kind)

    rows = [("metric", "what it says of an explanation", "kind", "better", "order alone")]
    for metric in sorted(filter(_is_built_in, metrics), key=kind):
        rows.append((f"`{metric.name}`", metric.summary, metric.kind, metric.better, _order(metric)))
    return rows


def _order(metric: Metric) -> str:
    if metric.kind != "faithfulness":
        return ""
    if "scale" in options_of(metric.run):
        return "with `scale=rank`"
    return "yes" if metric.order else "no"


def _is_built_in(entry: Entry) -> bool:
    return entry.run.__module__.startswith("veridical.")


def table(rows: Iterable[Sequence[str]]) -> str:
    head, *body = [[cell.rstrip(".").replace("|", r"\|") for cell in row] for row in rows]
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def pages() -> dict[Path, str]:
    """The pages as they should be."""
    texts = {}
    for name, rows in (("methods", method_rows()), ("metrics", metric_rows())):
        path = DOCS / f"{name}.md"
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, _, after = path.read_text(encoding="utf-8").partition(begin)
        texts[path] = f"{before}{begin}{table(rows)}\n{end}{after.partition(end)[2]}"
    return texts


if __name__ == "__main__":
    for page, text in pages().items():
        store.write_text(page, text)
        print(page)
