"""The page of `veridical compare`: a pure function of its table, computing nothing but layout."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from veridical.audits.compare_table import (
    MEASURES,
    Entry,
    Table,
    Test,
    alike_rows,
    heading,
    pairs,
    star_test,
    to_first,
    untested_metrics,
)
from veridical.core.statistics import ALPHA
from veridical.page import plots
from veridical.page.plots import Mark
from veridical.page.render import render
from veridical.page.words import figure, interval, p_value, prose, said


@dataclass(frozen=True)
class ModelCell:
    """A model's figure, and whether it differs from the first's."""

    entry: Entry | None
    differs: bool


@dataclass(frozen=True)
class MethodRow:
    method: str  # "" for a figure of the model itself
    cells: tuple[ModelCell, ...]
    plot: Markup


@dataclass(frozen=True)
class MetricBlock:
    """One metric on one corpus: a row per method, a column per model."""

    corpus: str
    metric: str
    better: str
    rows: tuple[MethodRow, ...]
    axis: Markup


@dataclass(frozen=True)
class AlikeBlock:
    corpus: str
    title: str
    rows: tuple[tuple[str, list[str]], ...]


def compare_page(table: Table) -> str:
    """One self-contained HTML page: every figure of every model, every test, and what a reader has to know."""
    keys = dict.fromkeys((e.corpus, e.metric) for e in table.entries)
    return render(
        "audits/compare.html",
        title=" against ".join(table.models) if len(table.models) < 4 else f"{len(table.models)} models side by side",
        table=table,
        blocks=[_block(table, *key) for key in keys],
        alike=[AlikeBlock(corpus, heading(rows), tuple(alike_rows(rows))) for corpus, rows in pairs(table)],
        measures=list(MEASURES.values()),
        tests=_by_metric(table),
        alpha=ALPHA,
        star_test=star_test(table),
        untested=untested_metrics(table),
        shape=lambda k: plots.shape(k, k),
        num=figure,
        span=interval,
        p=p_value,
        prose=prose,
    )


def _block(table: Table, corpus: str, metric: str) -> MetricBlock:
    entries = {(e.method, e.model): e for e in table.entries if (e.corpus, e.metric) == (corpus, metric)}
    ends = [end for e in entries.values() for end in (e.mean, e.low, e.high)]
    scale = plots.linear(ends, 3, 97)
    here = [test for test in to_first(table) if (test.corpus, test.metric) == (corpus, metric)]
    differs = {(test.method, test.b) for test in here if test.p_holm < ALPHA}
    rows = []
    for method in dict.fromkeys(method for method, _ in entries):
        cells = tuple(ModelCell(entries.get((method, m)), (method, m) in differs) for m in table.models)
        marks = [
            Mark(cell.entry.mean, cell.entry.low, cell.entry.high, shape=k, colour=k) if cell.entry else Mark(None)
            for k, cell in enumerate(cells)
        ]
        words = "; ".join(f"{c.entry.model} {said(c.entry.mean, c.entry.low, c.entry.high)}" for c in cells if c.entry)
        rows.append(MethodRow(method, cells, plots.row(marks, scale, words)))
    better = "↓ lower is better" if metric in table.lower else "↑ higher is better"
    return MetricBlock(corpus, metric, better, tuple(rows), plots.axis(scale))


def _by_metric(table: Table) -> dict[tuple[str, str], list[Test]]:
    tests: dict[tuple[str, str], list[Test]] = {}
    for test in table.tests:
        tests.setdefault((test.corpus, test.metric), []).append(test)
    return tests
