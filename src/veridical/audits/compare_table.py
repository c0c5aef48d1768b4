"""What a comparison of runs holds, and how it is written as text and CSV (LaTeX: compare_latex.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from veridical.audits.likeness import SHARE
from veridical.core import tables
from veridical.core.errors import lacking
from veridical.core.frames import Columns, Tabular, columns_of
from veridical.core.statistics import ALPHA
from veridical.model.erase import Level
from veridical.page.snippet import told

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Unit = Literal["texts", "seeds"]
Measure = Literal["tau", "jaccard"]
MEASURES: dict[Measure, str] = {"tau": "Kendall's tau", "jaccard": f"Jaccard of the top {SHARE:.0%}"}


@dataclass(frozen=True)
class Entry:
    """One model's figure for one metric of one method on one corpus."""

    corpus: str
    metric: str
    method: str  # "" for a figure of the model itself
    model: str
    mean: float | None
    low: float | None
    high: float | None
    unit: Unit  # what the interval is over
    n: int  # texts with a value, or runs
    undefined: int  # texts without one, over all runs
    values: tuple[float, ...]  # a run each


@dataclass(frozen=True)
class Test:
    """Two models on one metric of one method; effect and difference are positive where `a` is larger."""

    __test__ = False  # not a test of ours, whatever its name

    corpus: str
    metric: str
    method: str
    a: str
    b: str
    unit: Unit
    difference: float
    p_rank_sum: float
    p_holm: float  # of `p`, over the methods and pairs of models of this corpus and metric
    p_t: float | None  # Welch
    p_paired: float | None  # signed rank, where both were scored on the same texts
    effect: float  # Cliff's delta
    n: tuple[int, int]

    @property
    def p(self) -> float:
        """Of the paired test where the texts are the same, else of the rank sum."""
        return self.p_rank_sum if self.p_paired is None else self.p_paired


@dataclass(frozen=True)
class Agreement:
    """How alike two models explain the same texts by one method: a mean over texts with its interval.

    A text's value is its mean over the pairs of runs: each run of `a` with each of `b`, or each two seeds where both
    are one model.
    """

    corpus: str
    method: str
    a: str
    b: str
    measure: Measure
    level: Level  # of what was compared: words where the models' tokens differ
    mean: float | None
    low: float | None
    high: float | None
    n: int  # texts with a value
    undefined: int  # texts without one in any pair of runs
    values: tuple[float | None, ...]  # a pair of runs each
    runs: tuple[tuple[str, str], ...]  # their folders' names
    comparisons: int  # texts, over all pairs of runs
    other_class: int  # those in which the two runs explained different classes


@dataclass(frozen=True, repr=False)
class Table(Tabular):
    """Every figure of every model, every test between models, and what a reader has to know."""

    COLUMNS: ClassVar[Columns] = columns_of(Entry)  # a row per figure; behind them its test against the first model

    models: tuple[str, ...]
    entries: tuple[Entry, ...]
    tests: tuple[Test, ...]
    agreements: tuple[Agreement, ...]
    lower: frozenset[str]  # metrics of which lower is better
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return to_text(self).rstrip()

    def _repr_html_(self) -> str:
        return told(figure_cells(self), title=" against ".join(self.models), lead=" ".join(self.notes))

    def _rows(self) -> list[dict[str, Any]]:
        return to_rows(self)

    def plot(
        self,
        metric: str | None = None,
        *,
        corpus: str | None = None,
        ax: Axes | None = None,
        figsize: tuple[float, float] | None = None,
    ) -> Axes:
        """The methods' figures by one metric on one corpus, with a colour per model and 95% intervals; unless named, by
        the first metric of methods on the first corpus. Returns the Axes, those of `ax` or new ones."""
        from veridical.page.charts import Series, intervals

        corpora = list(dict.fromkeys(entry.corpus for entry in self.entries))
        if corpus is not None and corpus not in corpora:
            raise lacking("This comparison", "corpus", corpus, corpora)
        corpus = corpus or corpora[0]
        known = list(dict.fromkeys(entry.metric for entry in self.entries if entry.corpus == corpus))
        if metric is not None and metric not in known:
            raise lacking("This comparison", "metric", metric, known)
        metric = metric or next((e.metric for e in self.entries if e.corpus == corpus and e.method), known[0])
        series = [
            Series(
                model,
                {
                    entry.method or "(model)": (entry.mean, entry.low, entry.high)
                    for entry in self.entries
                    if (entry.corpus, entry.metric, entry.model) == (corpus, metric, model)
                },
            )
            for model in self.models
        ]
        drawn = [entry for entry in self.entries if (entry.corpus, entry.metric) == (corpus, metric)]
        what = ", 95% interval" if any(entry.low is not None for entry in drawn) else ""
        return intervals(series, f"{_named(self, metric)}, {corpus}{what}", ax, figsize)


# -- as text and CSV ----------------------------------------------------------------------------------------


def to_text(table: Table) -> str:
    """A block per corpus and metric, a line per method, a column per model; * marks a difference to the first.

    Below, a block per corpus and pair of models: how alike they explain.
    """
    lines = []
    for (corpus, metric), rows in blocks(table):
        cells = [["", *table.models], *([method or "(model)", *figures] for method, figures in rows)]
        lines += [
            f"{corpus}: {_named(table, metric)}{_count(table, corpus, metric)}",
            tables.to_text(cells, right=(), indent="  "),
            "",
        ]
    for corpus, alike in pairs(table):
        cells = [["", *MEASURES.values()], *([method, *figures] for method, figures in alike_rows(alike))]
        aligned = tables.to_text(cells, right=(), indent="  ")
        lines += [f"{corpus}: how alike models explain: {heading(alike)}", aligned, ""]
    if any(test.p_holm < ALPHA for test in to_first(table)):
        lines.append(f"* differs from {table.models[0]} ({star_test(table)}, Holm over the block, p < {ALPHA}).")
    if untested := untested_metrics(table):
        lines.append(f"Not tested between models: {', '.join(untested)}.")
    return "\n".join([*lines, *table.notes]).rstrip() + "\n"


TESTED = ("difference", "p_rank_sum", "p_holm", "p_t", "p_paired", "effect")
PAIR = ("level", "comparisons", "other_class")


def to_csv(table: Table) -> str:
    """A line per figure, beside it its test against the first model; then a line per agreement between models."""
    figure = [field.name for field in fields(Entry)]
    rows = to_rows(table)
    for a in table.agreements:
        named = {"metric": f"{a.measure} between models", "model": f"{a.a} ~ {a.b}", "unit": "texts"}
        rows.append({name: getattr(a, name) for name in (*figure, *PAIR) if name not in named} | named)
    return tables.to_csv(rows, [*figure, *_tested(None), "better", *PAIR])


def to_rows(table: Table) -> list[dict[str, Any]]:
    """A row per figure, beside it its test against the first model."""
    tests = {(t.corpus, t.metric, t.method, t.b): t for t in to_first(table)}
    return [
        asdict(e)
        | _tested(tests.get((e.corpus, e.metric, e.method, e.model)))
        | {"better": "lower" if e.metric in table.lower else "higher"}
        for e in table.entries
    ]


def figure_cells(table: Table) -> list[list[str]]:
    """What `to_text` shows in blocks as one table, a corpus and a metric named where they begin."""
    cells = [["corpus", "metric", "method", *table.models]]
    before = ""
    for (corpus, metric), rows in blocks(table):
        for place, (method, figures) in enumerate(rows):
            first = place == 0
            named = f"{_named(table, metric)}{_count(table, corpus, metric)}"
            said = [corpus if first and corpus != before else "", named if first else ""]
            cells.append([*said, method or "(model)", *figures])
        before = corpus
    return cells


def _tested(test: Test | None) -> dict[str, float | None]:
    """The test of the first model against another, from the side of the other: its line has it."""
    sign = {"difference": -1, "effect": -1}
    values = {name: None if test is None else getattr(test, name) for name in TESTED}
    return {f"{k}_to_first": v if v is None else sign.get(k, 1) * v for k, v in values.items()}


def star_test(table: Table) -> str:
    """By what the stars against the first model were found."""
    paired = [test.p_paired is not None for test in to_first(table)]
    if all(paired):
        return "signed rank, paired by text"
    return "signed rank where the texts are the same, else rank sum" if any(paired) else "rank sum"


def untested_metrics(table: Table) -> list[str]:
    """Figures that several models have and that no test compares."""
    tested = {(test.corpus, test.metric) for test in table.tests}
    models: dict[tuple[str, str], set[str]] = {}
    for entry in table.entries:
        models.setdefault((entry.corpus, entry.metric), set()).add(entry.model)
    return list(dict.fromkeys(key[1] for key, names in models.items() if len(names) > 1 and key not in tested))


def _count(table: Table, corpus: str, metric: str) -> str:
    """Of how many texts or seeds a block is, where all its figures are of as many."""
    counts = {(e.n, e.unit) for e in table.entries if (e.corpus, e.metric) == (corpus, metric)}
    if len(counts) != 1:
        return ""
    ((n, unit),) = counts
    return f", {n} {unit if n != 1 else unit[:-1]}"


def _named(table: Table, metric: str) -> str:
    return f"{metric} (lower is better)" if metric in table.lower else metric


def blocks(table: Table) -> Iterator[tuple[tuple[str, str], list[tuple[str, list[str]]]]]:
    """(corpus, metric) and its lines: method and what is shown for each model."""
    differs = {(t.corpus, t.metric, t.method, t.b) for t in to_first(table) if t.p_holm < ALPHA}
    entries = {(e.corpus, e.metric, e.method, e.model): e for e in table.entries}
    for corpus, metric in dict.fromkeys((e.corpus, e.metric) for e in table.entries):
        methods = dict.fromkeys(e.method for e in table.entries if (e.corpus, e.metric) == (corpus, metric))
        rows = []
        for method in methods:
            keys = [(corpus, metric, method, model) for model in table.models]
            figures = [f"{shown(entries.get(key))}{'*' if key in differs else ''}" for key in keys]
            if not _count(table, corpus, metric):
                counts = [f", n {entry.n}" if (entry := entries.get(key)) else "" for key in keys]
                figures = [f"{figure}{n}" for figure, n in zip(figures, counts, strict=True)]
            rows.append((method, figures))
        yield (corpus, metric), rows


def pairs(table: Table) -> Iterator[tuple[str, list[Agreement]]]:
    """A corpus and how alike two models explain it, by every method and measure."""
    for key in dict.fromkeys((a.corpus, a.a, a.b) for a in table.agreements):
        yield key[0], [a for a in table.agreements if (a.corpus, a.a, a.b) == key]


def alike_rows(alike: list[Agreement]) -> list[tuple[str, list[str]]]:
    """The lines of two models: a method and what is shown per measure."""
    return [
        (method, [shown(a) for name in MEASURES for a in alike if (a.method, a.measure) == (method, name)])
        for method in dict.fromkeys(a.method for a in alike)
    ]


def heading(agreements: list[Agreement], called: Mapping[str, str] | None = None) -> str:
    """Whose likeness it is, on what; `called` are other names for the models."""
    first = agreements[0]
    names = {name for pair in first.runs for name in pair}
    a, b = ((called or {}).get(name, name) for name in (first.a, first.b))
    who = f"{a} and {b}" if first.a != first.b else f"{len(names)} runs of {a}"
    most = max(agreements, key=lambda a: a.comparisons)
    sentence = f"{who}, {first.n + first.undefined} texts, {first.level} by {first.level}"
    if most.other_class:
        sentence += f"; they explain different classes in {most.other_class} of {most.comparisons} comparisons"
    return sentence


def to_first(table: Table) -> list[Test]:
    return [test for test in table.tests if test.a == table.models[0]]


def decimals(value: float) -> str:
    """Three of them, and no negative zero."""
    return f"{round(value, 3) + 0.0:.3f}"


def shown(figure: Entry | Agreement | None) -> str:
    """The mean, its interval or else the values behind it, and how many texts have none."""
    if figure is None:
        return "-"
    if figure.mean is None:
        return "undefined"
    text = decimals(figure.mean)
    if figure.low is not None and figure.high is not None:
        text += f" [{decimals(figure.low)}, {decimals(figure.high)}]"
    elif isinstance(figure, Entry) and len(figure.values) > 1:
        text += f" ({' '.join(f'{value:.3f}' for value in figure.values)})"
    return text + (f", {figure.undefined} undefined" if figure.undefined else "")
