"""Tables: rows as CSV, columns and frames; cells as aligned text and LaTeX.

A row is a record or a mapping. What it nests becomes columns of its own, `change.low`; a sequence stays one value. The
columns are those of all rows, in the order in which they first appear. None and NaN are values that do not exist.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from veridical.core.errors import InputError
from veridical.core.store import plain

if TYPE_CHECKING:
    import pandas

Cells = Sequence[Sequence[str]]  # the header first


# -- rows ---------------------------------------------------------------------------------------------------


def to_columns(rows: Iterable[Any], columns: Iterable[str] = ()) -> dict[str, list[Any]]:
    """The values of every column, for a Parquet file; `columns` come first, and stand there without rows too."""
    flattened = [_flat(plain(row)) for row in rows]
    names = dict.fromkeys(chain(columns, *flattened))
    return {name: [row.get(name) for row in flattened] for name in names}


def to_csv(rows: Iterable[Any], columns: Iterable[str] = ()) -> str:
    """A line per row under a header; numbers to the last digit, sequences with spaces between their items.

    `columns` come first, and stand there without rows too.
    """
    held = to_columns(rows, columns)
    if not held:
        return ""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(held)
    writer.writerows([_cell(value) for value in row] for row in zip(*held.values(), strict=True))
    return text.getvalue()


def to_cells(rows: Iterable[Any], columns: Iterable[str] = (), *, digits: int = 3) -> list[list[str]]:
    """Rows as people read them, for text and LaTeX: so many digits after the point."""
    held = to_columns(rows, columns)
    shown = [[_rounded(value, digits) for value in row] for row in zip(*held.values(), strict=True)]
    return [list(held), *shown] if shown else []


def to_pandas(rows: Iterable[Any], columns: Iterable[str] = ()) -> pandas.DataFrame:
    """A data frame with a column for each of theirs."""
    try:
        import pandas
    except ImportError as missing:
        raise InputError("A data frame needs pandas, which is not installed; run `pip install pandas`.") from missing
    return pandas.DataFrame(to_columns(rows, columns))


def _flat(row: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flattened: dict[str, Any] = {}
    for key, value in row.items():
        flattened |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return flattened


def _cell(value: Any) -> str:
    """A value to the last digit, and nothing for one that does not exist; among others it is said to be undefined."""
    if isinstance(value, (list, dict)):
        items = [
            _cell(i) if _exists(i) else "undefined" for i in (value if isinstance(value, list) else value.values())
        ]
        return ("; " if any(" " in item for item in items) else " ").join(items)
    return str(value) if _exists(value) else ""


def _exists(value: Any) -> bool:
    return value is not None and value == value  # NaN is not itself


def _rounded(value: Any, digits: int) -> str:
    return f"{value:.{digits}f}" if isinstance(value, float) and _exists(value) else _cell(value)


# -- cells --------------------------------------------------------------------------------------------------


def to_text(cells: Cells, *, right: Collection[int] | None = None, indent: str = "") -> str:
    """Aligned lines. The columns numbered in `right` end at one place; without it, those of numbers do."""
    columns = list(zip(*cells, strict=True))
    if right is None:
        right = {place for place, (_, *values) in enumerate(columns) if all(map(_is_number, values))}
    widths = [max(map(len, column)) for column in columns]
    lines = (
        "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    )
    return "\n".join((indent + line).rstrip() for line in lines)


def _is_number(cell: str) -> bool:
    return re.fullmatch(r"([-+]?(\d[\d,]*(\.\d*)?(e[-+]?\d+)?|inf)%?)?", cell) is not None


def to_latex(cells: Cells, *, caption: str, names: int = 1) -> str:
    """A booktabs table whose first columns hold names; an empty row is a rule, a row of one cell a heading."""
    header, *rows = cells
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{tex(caption)}}}",
        rf"\begin{{tabular}}{{{'l' * names}{'r' * (len(header) - names)}}}",
        r"\toprule",
        " & ".join(map(tex, header)) + r" \\",
    ]
    if rows and rows[0]:
        lines.append(r"\midrule")
    for row in rows:
        if not row:
            lines.append(r"\midrule")
        elif len(row) == 1 < len(header):
            lines.append(rf"\multicolumn{{{len(header)}}}{{l}}{{{tex(row[0])}}} \\")
        else:
            lines.append(" & ".join(map(tex, row)) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"])


def tex(text: str) -> str:
    """Text as LaTeX prints it."""
    escaped = re.sub(r"([&%$#_{}])", r"\\\1", text.replace("\\", r"\textbackslash "))
    escaped = re.sub(r"(^|[ (\[])-(?=\d)", r"\1$-$", escaped)  # a minus sign, not a hyphen
    return escaped.replace("~", r"\textasciitilde ").replace("^", r"\textasciicircum ").replace("*", "$^*$")
