"""Every branch of the audit's templates is rendered, so that a field which a record no longer has fails here."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from types import FrameType
from typing import Any

from fake_audit import METRICS, Stored, before, fake, records
from fake_course import CHANCE

from veridical.audits.page import audit_page
from veridical.audits.record import ShownTexts
from veridical.audits.record_erased import BestShare, Familiarity, MaskTest
from veridical.core import store
from veridical.page import plots, render

TEMPLATES = ("audits/audit.html", "audits/audit_parts.html", "audits/audit_verdict.html")
TEMPLATES += ("audits/familiarity.html", "audits/best.html")


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
            audit_page(summary, examples, "<section>ROAR</section>", "<section>Shortcuts</section>")
    finally:
        sys.settrace(before)
    return ran


def cases() -> list[Stored]:
    """Small audits that have between them all that a page can show, and lack all that it can do without."""
    full, texts = fake(
        ("lime:samples=9", "attention", "rollout", "gradient", "lime", "occlusion", *CHANCE),
        (*METRICS[:1], *METRICS[7:10], METRICS[14]),
        ("tweets",),
        truth=True,
    )
    people = [replace(cell, corpus="tweets") for cell in full.cells if cell.metric == "auc"]
    known = (("truth", "truth", "higher", (0, 1)),)
    few, none = fake(("gradient", "lime"), (*METRICS[:1], *known), ("tweets",), quick=True, enough=False, examples=0)
    tables = ("verdicts", "ranking", "cells", "diagnosticity", "agreement", "sparsity", "looks", "net_curves")
    return [
        (replace(full, cells=(*full.cells, *people)), texts),
        partly((full, texts)),
        before((full, texts)),
        (replace(few, settings=replace(few.settings, controls=("gaussian",)), corpora=few.corpora[::-1]), none),
        (replace(full, metrics=(), corpora=full.corpora[:1]), ShownTexts(())),  # a truth by metrics that nobody knows
        (replace(few, **dict.fromkeys(tables, ())), none),
        before((replace(few, ranking=()), none)),
        planted(),
        *erased((few, none)),
    ]


def erased(given: Stored) -> list[Stored]:
    """What erased texts are to a model: foreign; familiar and tested; familiar where nothing could be tested."""
    summary, texts = given
    test = MaskTest("movies", "lime", 0.5, 24, 0.4, 0.1, "zero_id_attended", 0.9, 0.0, 60, "cannot tell")
    share = BestShare("movies", "lime", "sufficiency", None, 0)
    plain = Familiarity(0.0, "delete", 24, 0.9, 1.0, {"delete ~ mask": 0.8, "mask ~ attention": None}, "Foreign.")
    masked = replace(plain, ratio=1.0, by="mask", sentence="Familiar.")
    return [
        (replace(summary, familiarity=plain), texts),
        (replace(summary, familiarity=masked, mask_tests=(test,), best_shares=(share,)), texts),
        (replace(summary, familiarity=masked), texts),
        (replace(summary, familiarity=masked, settings=replace(summary.settings, budget="6000 passes")), texts),
        (replace(summary, familiarity=masked, settings=replace(summary.settings, budget="")), texts),
    ]


def planted() -> Stored:
    """Generated data, a model that knows no more than guessing, and fingerprints of everything."""
    summary, texts = fake(("gradient", "attention"), METRICS[:10], (), examples=2)
    renamed = store.plain((summary, texts))
    renamed = json.loads(json.dumps(renamed).replace('"movies"', '"planted:size=9"'))
    facts, shown = renamed[0], renamed[1]["texts"]
    facts["corpora"][0] |= {"accuracy_low": 0.3, "sha256": "a" * 64}
    facts["model"] |= {"hash": "b" * 16, "files": {"model.safetensors": "c" * 64}}
    facts["stamp"] |= {"code": "d" * 64, "command": "veridical audit x", "with": {"parts": "e" * 8}}
    return records(facts, shown)


def partly(given: Stored) -> Stored:
    """The same with gaps: a method that is not compared, not counted or not asked, and nobody let go."""
    summary, texts = given
    first, second, *others = summary.ranking
    second = replace(second, net_first=None, net_chance=None, passes=None)
    elsewhere = [standing for standing in others if (standing.corpus, standing.method) != ("tweets", first.method)]
    return (
        replace(
            summary,
            corpora=tuple(replace(corpus, majority=None, unmoved=None, seen=4) for corpus in summary.corpora),
            ranking=(first, second, *elsewhere),
            looks=tuple(replace(look, dropped=look.dropped[:1], shown=()) for look in summary.looks),
            stability=summary.stability[1:],
            spending=tuple(replace(row, budget=None, seconds_a_pass=None, without=()) for row in summary.spending),
        ),
        texts,
    )


def test_every_branch_is_rendered():
    ran = rendered(cases())
    for template in TEMPLATES:
        missed = {number: text for number, text in lines(template).items() if number not in ran[template]}
        assert not missed, (template, missed)


def test_names_beside_points_of_one_cost_do_not_overlap():
    names = (
        "attention_x_gradient",
        "input_x_gradient",
        "gradient_rollout",
        "gradient",
        "attnlrp",
        "attcat",
        "deeplift",
    )
    worth = (0.86, 0.88, 0.82, 0.72, 0.861, 0.821, 0.93)
    points = [
        plots.Point(m, name, 3.0 if m < 6 else 4.0, y, y - 0.1, min(1.0, y + 0.05), name)
        for m, (name, y) in enumerate(zip(names, worth, strict=True))
    ]
    drawn = plots.scatter(points, "x", "y", {1: "1", 1000: "1000"}, {1: "1", -1: "−1"}, "said")
    label = re.compile(r'<text class="name" x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)">(\w+)<')
    boxes = []
    for x, y, anchor, name in label.findall(drawn):
        left = float(x) - (plots.LETTER * len(name) if anchor == "end" else 0)
        boxes.append((left, float(y) - 10, left + plots.LETTER * len(name), float(y) + 2))
    assert len(boxes) == len(names)
    for a, b in combinations(boxes, 2):
        assert not (a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3])
