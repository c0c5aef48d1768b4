"""A comparison of runs as booktabs tables that fit a column of a paper.

A table per metric, and one for what is true of the models themselves. A line per method and, small below it, the
intervals. A model whose name is long is a letter,
which the caption explains. From four models on a table takes both columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from string import ascii_uppercase

from veridical.audits.compare_table import Agreement, Entry, Table, decimals, heading, pairs, star_test, to_first
from veridical.core.statistics import ALPHA
from veridical.core.tables import tex
from veridical.page.words import short_names

NEEDS = r"% needs \usepackage{booktabs}"
IN_A_COLUMN = 3  # models
LONGEST = 10  # letters of a model's name that a narrow column holds
LATEX_MEASURES = {"tau": r"$\tau$", "jaccard": r"top 25\%"}


def to_latex(table: Table) -> str:
    """Per corpus a booktabs table for each metric, a column per model, and one on how alike each two models explain."""
    lines = [NEEDS]
    for corpus in dict.fromkeys(e.corpus for e in table.entries):
        here = [e for e in table.entries if e.corpus == corpus]
        of_models = tuple(dict.fromkeys(e.metric for e in here if not e.method))
        for metrics in (of_models, *((name,) for name in dict.fromkeys(e.metric for e in here if e.method))):
            if metrics:
                lines += [*_figures(table, corpus, metrics), ""]
        if any(a.corpus == corpus for a in table.agreements):
            lines += [*_alike(table, corpus), ""]
    return "\n".join([*lines, *(f"% {note}" for note in table.notes)]).rstrip() + "\n"


def column_names(models: Sequence[str]) -> list[str]:
    """The models' names, or letters where one of them is too long for the head of a column."""
    if all(len(name) <= LONGEST for name in models) or len(models) > len(ascii_uppercase):
        return list(models)
    return list(ascii_uppercase[: len(models)])


def _figures(table: Table, corpus: str, metrics: Sequence[str]) -> Iterator[str]:
    heads = column_names(table.models)
    tests = [t for t in to_first(table) if t.corpus == corpus and t.metric in metrics and t.p_holm < ALPHA]
    differs = {(t.metric, t.method, t.b) for t in tests}
    entries = [e for e in table.entries if e.corpus == corpus and e.metric in metrics]
    lines = list(dict.fromkeys((e.metric, e.method) for e in entries))
    rows = [r"\midrule"]
    for (metric, method), short in zip(lines, short_names([method for _, method in lines]), strict=True):
        of_model = {e.model: e for e in entries if (e.metric, e.method) == (metric, method)}
        stars = [(metric, method, model) in differs for model in table.models]
        rows += _lines(short if method else metric, [of_model.get(model) for model in table.models], stars)
    key = "; ".join(f"{head}: {model}" for head, model in zip(heads, table.models, strict=True) if head != model)
    star = f"; * differs from {heads[0]} ({star_test(table)}, Holm, p < {ALPHA})" if differs else ""
    what = ", ".join(f"{name} (lower is better)" if name in table.lower else name for name in metrics)
    gaps = " Texts without a value are left out." if any(e.undefined for e in entries) else ""
    caption = f"{corpus}: {what}. Means{_below(entries)}{star}.{gaps}{f' {key}.' if key else ''}"
    first = "method" if any(e.method for e in entries) else ""
    yield from _table(caption, [first, *map(tex, heads)], rows, wide=len(heads) > IN_A_COLUMN)


def _below(entries: Sequence[Entry]) -> str:
    """What stands under the means, for the caption."""
    if any(e.low is not None for e in entries):
        return ", below them 95% intervals"
    return ", below them the seeds' values" if any(len(e.values) > 1 for e in entries) else ""


def _alike(table: Table, corpus: str) -> Iterator[str]:
    heads = dict(zip(table.models, column_names(table.models), strict=True))
    rows: list[str] = []
    for name, alike in pairs(table):
        if name != corpus:
            continue
        rows += [r"\midrule", _across(3, rf"\emph{{{tex(heading(alike, heads))}}}")]
        methods = list(dict.fromkeys(a.method for a in alike))
        for method, short in zip(methods, short_names(methods), strict=True):
            figures = [a for measure in LATEX_MEASURES for a in alike if (a.method, a.measure) == (method, measure)]
            rows += _lines(short, figures, [False] * len(figures))
    key = "; ".join(f"{head}: {model}" for model, head in heads.items() if head != model)
    caption = (
        f"{corpus}: how alike models explain the same texts (Kendall's tau over all tokens, Jaccard overlap of the top "
        f"quarter), means, below them 95% intervals.{f' {key}.' if key else ''}"
    )
    yield from _table(caption, ["method", *LATEX_MEASURES.values()], rows)


def _lines(method: str, figures: Sequence[Entry | Agreement | None], stars: Sequence[bool]) -> Iterator[str]:
    """A line of means, and one of intervals if there are any."""
    means = [
        "--" if f is None or f.mean is None else tex(decimals(f.mean)) + ("$^*$" if star else "")
        for f, star in zip(figures, stars, strict=True)
    ]
    spans = [_span(f) for f in figures]
    yield " & ".join([tex(method), *means]) + (r" \\[-2pt]" if any(spans) else r" \\")
    if any(spans):
        yield " & ".join(["", *(rf"{{\tiny {span}}}" if span else "" for span in spans)]) + r" \\[1pt]"


def _span(figure: Entry | Agreement | None) -> str:
    """The interval, or the seeds' values where they are too few for one."""
    if figure is not None and figure.low is not None and figure.high is not None:
        return tex(f"[{decimals(figure.low)}, {decimals(figure.high)}]")
    values = figure.values if isinstance(figure, Entry) else ()
    return tex(" ".join(f"{value:.3f}" for value in values)) if len(values) > 1 else ""


def _across(columns: int, text: str) -> str:
    """A heading over all columns, broken where it is long."""
    return rf"\multicolumn{{{columns}}}{{@{{}}p{{.95\linewidth}}@{{}}}}{{\raggedright {text}}} \\"


def _table(caption: str, heads: Sequence[str], rows: Sequence[str], *, wide: bool = False) -> list[str]:
    kind = "table*" if wide else "table"
    return [
        rf"\begin{{{kind}}}",
        rf"\centering\footnotesize\setlength{{\tabcolsep}}{{{5 if len(heads) < IN_A_COLUMN + 1 else 2}pt}}",
        rf"\caption{{{tex(caption)}}}",
        rf"\begin{{tabular}}{{@{{}}l{'r' * (len(heads) - 1)}@{{}}}}",
        r"\toprule",
        " & ".join(heads) + r" \\",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
        rf"\end{{{kind}}}",
    ]
