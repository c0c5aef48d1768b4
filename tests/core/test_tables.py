"""One writer of tables: what stands in the rows stands in the file."""

from __future__ import annotations

import csv
import io
import math
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import veridical
from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.tables import tex, to_cells, to_columns, to_csv, to_latex, to_pandas, to_text


@dataclass(frozen=True, slots=True)
class Bounds:
    low: float
    high: float | None


@dataclass(frozen=True)
class Figure:
    method: str
    mean: float | None
    bounds: Bounds
    values: tuple[float | None, ...] = ()


FIGURES = [Figure("lime", 0.1 + 0.2, Bounds(-1.0, None), (0.5, None)), Figure("random", math.nan, Bounds(0.0, 2.5))]


def test_csv_of_records():
    assert to_csv(FIGURES) == (
        "method,mean,bounds.low,bounds.high,values\n"
        "lime,0.30000000000000004,-1.0,,0.5 undefined\n"
        "random,,0.0,2.5,\n"
    )  # fmt: skip


def test_a_column_that_only_a_later_row_has_is_kept():
    rows = [{"a": 1}, {"a": 2, "b": {"c": True}}]
    assert to_csv(rows) == "a,b.c\n1,\n2,True\n"
    assert to_columns(rows) == {"a": [1, 2], "b.c": [None, True]}


def test_given_columns_come_first_and_drop_none():
    assert to_csv([{"a": 1, "b": 2}], ["b", "c"]) == "b,c,a\n2,,1\n"
    assert to_csv([], ["b", "c"]) == "b,c\n"
    assert to_csv([]) == ""


def test_csv_can_be_read_back():
    rows = [{"text": 'said "no",\nthen left', "path": "a b"}, {"text": "Grüße", "path": ""}]
    text = to_csv(rows)
    assert "\r" not in text
    assert list(csv.DictReader(io.StringIO(text, newline=""))) == rows


def test_csv_of_what_is_nested():
    row = {
        "points": [{"x": 1, "y": 2}, {"x": 3, "y": None}],
        "pairs": ((1, 2), (3, 4)),
        "names": ["a b", "c"],
        "flags": [True, ""],
        "array": np.array([0.5, np.nan]),
        "none": [],
    }
    assert to_csv([row]).splitlines()[1] == "1 2; 3 undefined,1 2; 3 4,a b; c,True ,0.5 undefined,"


def test_csv_of_figures_with_their_values():
    rows = [{"a": 1, "f": {"mean": 0.5, "values": [0.4, 0.6]}, "points": [{"x": 1, "y": 2}]}, {"a": 2}]
    assert to_csv(rows) == "a,f.mean,f.values,points\n1,0.5,0.4 0.6,1 2\n2,,,\n"


def test_no_other_module_writes_csv():
    root = Path(veridical.__file__).parent
    writers = {
        path.relative_to(root) for path in root.rglob("*.py") if re.search(r"csv\.\w*[wW]riter", path.read_text())
    }
    assert writers == {Path("core/tables.py")}


def test_columns_keep_sequences_for_parquet(tmp_path):
    store.write_parquet(tmp_path / "x.parquet", to_columns(FIGURES))
    table = store.read_parquet(tmp_path / "x.parquet")
    assert table["values"].to_pylist() == [[0.5, None], []]
    assert table["bounds.high"].to_pylist() == [None, 2.5]


def test_text_of_records():
    assert to_text(to_cells(FIGURES, digits=2)) == (
        "method  mean  bounds.low  bounds.high  values\n"
        "lime    0.30       -1.00               0.5 undefined\n"
        "random              0.00         2.50"
    )
    assert to_text(to_cells([])) == ""


def test_text_of_cells():
    cells = [["", "one", "two"], ["a", "0.5 [0.1, 0.9]", "1,200"], ["long", "-", "-3%"]]
    assert to_text(cells, indent="  ") == (
        "        one               two\n  a     0.5 [0.1, 0.9]  1,200\n  long  -                 -3%"
    )
    assert to_text(cells, right=()).splitlines()[2] == "long  -               -3%"
    assert to_text(cells, right=[1]).splitlines()[2] == "long               -  -3%"


def test_latex():
    cells = [["metric", "mean_x"], ["a & b", "-0.5*"], [], ["a heading"], ["c", "1"]]
    assert to_latex(cells, caption="50% of it") == "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            r"\caption{50\% of it}",
            r"\begin{tabular}{lr}",
            r"\toprule",
            r"metric & mean\_x \\",
            r"\midrule",
            r"a \& b & $-$0.5$^*$ \\",
            r"\midrule",
            r"\multicolumn{2}{l}{a heading} \\",
            r"c & 1 \\",
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def test_every_sign_that_latex_reads_is_escaped():
    escaped = tex("a\\b {c} 1~2 x^2 $5 #1 d_e & 10%")
    assert not re.search(r"(?<!\\)[&%$#_{}~^]", escaped.replace(r"\textbackslash ", "")), escaped


def test_pandas():
    pytest.importorskip("pandas")
    frame = to_pandas(FIGURES)
    assert list(frame.columns) == ["method", "mean", "bounds.low", "bounds.high", "values"]
    assert frame["mean"].isna().tolist() == [False, True]
    assert frame["bounds.low"].dtype == float


def test_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="pip install pandas"):
        to_pandas(FIGURES)


def test_the_module_needs_neither_torch_nor_pandas():
    code = "import sys, veridical.core.tables; print({'torch', 'pandas', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
