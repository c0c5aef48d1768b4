"""Every branch of the audit's templates is rendered, so that a field which a record no longer has fails here."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from fake_audit import METRICS, Stored, fake

from veridical.audits.page import audit_page
from veridical.audits.record import ShownTexts
from veridical.page import render

TEMPLATES = ("audits/audit.html", "audits/audit_parts.html")


def lines(template: str) -> dict[int, str]:
    """The lines of the Python that a template becomes, but for those on a filter, a macro or an argument that is not
    there: a template that misses one fails whatever it is given."""
    environment = render._environment()
    source, name, _ = environment.loader.get_source(environment, template)  # type: ignore[union-attr]
    code = environment.compile(source, template, name, raw=True)
    tree, text = ast.parse(code), code.splitlines()

    def inside(node: ast.AST) -> Iterator[int]:
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.ExceptHandler):
                if isinstance(child, ast.Expr | ast.Assign):
                    yield child.lineno
                yield from inside(child)

    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {
        line: text[line - 1]
        for function in functions
        for line in inside(function)
        if "= undefined(" not in text[line - 1]
    }


def rendered(given: list[Stored]) -> dict[str, set[int]]:
    """The lines that run when these pages are made, by the end of the template's path."""
    ran: dict[str, set[int]] = {template: set() for template in TEMPLATES}
    paths = {str(Path(render.__file__).parent.parent / template): template for template in TEMPLATES}

    def local(frame: FrameType, event: str, argument: Any) -> Any:
        ran[paths[frame.f_code.co_filename]].add(frame.f_lineno)
        return local

    def every(frame: FrameType, event: str, argument: Any) -> Any:
        return local(frame, event, argument) if frame.f_code.co_filename in paths else None

    before = sys.gettrace()
    sys.settrace(every)
    try:
        for summary, examples in given:
            audit_page(summary, examples, "<section>ROAR</section>")
    finally:
        sys.settrace(before)
    return ran


def cases() -> list[Stored]:
    """Small audits that have between them all that a page can show, and lack all that it can do without."""
    full, texts = fake(
        ("lime:samples=9", "attention", "rollout", "random"),
        (*METRICS[:1], *METRICS[7:10], METRICS[14]),
        ("tweets",),
        truth=True,
    )
    people = [replace(cell, corpus="tweets") for cell in full.cells if cell.metric == "auc"]
    known = (("truth", "truth", "higher", (0, 1)),)
    few, none = fake(("gradient", "lime"), (*METRICS[:1], *known), ("tweets",), quick=True, enough=False, examples=0)
    return [
        (replace(full, cells=(*full.cells, *people)), texts),
        (replace(few, settings=replace(few.settings, controls=("gaussian",)), corpora=few.corpora[::-1]), none),
        (replace(full, metrics=(), corpora=full.corpora[:1]), ShownTexts(())),  # a truth by metrics that nobody knows
        (
            replace(
                few, **dict.fromkeys(("verdicts", "ranking", "cells", "diagnosticity", "agreement", "sparsity"), ())
            ),
            none,
        ),
    ]


def test_every_branch_is_rendered():
    ran = rendered(cases())
    for template in TEMPLATES:
        missed = {number: text for number, text in lines(template).items() if number not in ran[template]}
        assert not missed, template
