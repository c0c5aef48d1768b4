"""How evaluations and audits print, display, plot and become tables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fake_audit import SCRIPT, fake

import veridical
from tiny import TEXTS, tiny
from veridical.audits.evaluation import Evaluation
from veridical.audits.finished import LISTS, Audit
from veridical.core.errors import InputError
from veridical.core.records import Cell, Score


def cell(method: str, metric: str, value: float | None, example: int, control: str = "") -> Cell:
    return Cell("home", str(example), method, metric, Score(value, (0.5, None)), control)


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    values = {"attention": [0.1, 0.2, 0.3, 0.4, 0.5, None], "lime": [0.5, 0.5, 0.5, None, None, None]}
    metrics = ("decision_flip", "sufficiency", "own<b>metric")
    cells = [
        cell(method, metric, value, place)
        for metric in metrics
        for method, of_method in values.items()
        for place, value in enumerate(of_method)
    ]
    return Evaluation((*cells, cell("lime", "sufficiency", 9.0, 0, "permutation")), {"attention": (), "lime": ()})


def test_an_evaluation_prints_mean_interval_count_and_what_is_undefined(evaluation):
    header, *lines = repr(evaluation).splitlines()
    assert header.split() == ["metric", "method", "mean", "95%", "interval", "n", "undefined"]
    assert lines[0].split()[:3] == ["decision_flip", "attention", "0.300"]
    assert lines[0].split()[-2:] == ["5", "1"]
    assert " to " in lines[0]
    assert lines[1].split() == ["lime", "0.500", "3", "3"]  # no interval of three
    assert len(lines) == 6
    assert str(evaluation) == repr(evaluation)


def test_its_figures_leave_controls_out(evaluation):
    found = evaluation.estimates["sufficiency", "lime"]
    assert (found.mean, found.n, found.undefined, found.low) == (0.5, 3, 3, None)
    assert evaluation.mean("sufficiency", "lime") == 0.5
    assert evaluation.table()["attention"]["decision_flip"] == pytest.approx(0.3)


def test_a_notebook_says_which_way_is_better_and_escapes(evaluation):
    html = evaluation._repr_html_()
    assert re.search(r"decision_flip <span class=\"soft\">lower is better", html)
    assert re.search(r"sufficiency <span class=\"soft\">higher is better", html)
    assert "own&lt;b&gt;metric" in html
    assert "<b>" not in html
    assert "no scores" in Evaluation((), {"lime": ()})._repr_html_()
    assert repr(Evaluation((), {"lime": ()})) == "Evaluation of lime: no scores"


def test_its_table_is_that_of_its_cells(evaluation):
    frame = evaluation.to_pandas()
    assert list(frame) == list(Evaluation.COLUMNS)
    assert len(frame) == len(evaluation.cells)
    assert frame.value.isna().sum() == 12
    assert evaluation.to_dataset()[0]["curve"] == [0.5, None]


def test_a_real_one_has_what_was_asked():
    clf = veridical.load(*tiny("bert"))
    found = veridical.evaluate(clf, list(TEXTS), ["attention", "gradient"], ["agreement", "decision_flip"])
    assert "attention ~ gradient" in repr(found)
    assert set(found.to_pandas().metric) == {"agreement", "decision_flip"}


@pytest.fixture(scope="module")
def audit() -> Audit:
    return Audit(Path("some where/audit"), fake()[0])


def test_an_audit_prints_its_verdict_its_ranking_and_where_it_lies(audit):
    text = repr(audit)
    assert " ".join(text.split()).startswith(" ".join(audit.verdict.split()))
    assert text.endswith("report some where/audit/report.html")
    first = min(audit.summary.ranking, key=lambda row: row.place).method
    assert re.search(rf"^ ?1  {first} +believe", text, re.MULTILINE)
    assert max(map(len, text.splitlines())) < 140


def test_a_notebook_shows_the_lists_and_the_way_to_the_page(audit):
    html = audit._repr_html_()
    for key, name in LISTS.items():
        for method in getattr(audit.summary.verdicts[0], key):
            assert re.search(rf"<dt>{name}</dt><dd>.*<code>{method}</code>", html)
    assert '<a href="some where/audit/report.html" target="_blank">' in html
    assert SCRIPT not in html


def test_its_table_has_a_row_per_method_and_corpus(audit):
    frame = audit.to_pandas()
    assert list(frame) == list(Audit.COLUMNS)
    assert len(frame) == len(audit.summary.ranking)
    assert str(frame.dtypes["p_no_better"]) == "float64"
    assert audit.to_dataset().features["list"].dtype == "string"


def test_plots(evaluation, audit):
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot

    ax = evaluation.plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["attention", "lime"]
    assert "decision_flip, lower is better" in {text.get_text() for text in ax.get_legend().get_texts()}
    one = evaluation.plot("sufficiency")
    assert one.get_title("left") == "sufficiency, higher is better"
    with pytest.raises(InputError, match=r"There is no metric in this evaluation 'suficiency'\. Did you mean"):
        evaluation.plot("suficiency")
    ax = audit.plot()
    home = audit.summary.corpora[0].name
    ranked = sorted((row for row in audit.summary.ranking if row.corpus == home), key=lambda row: row.place)
    assert [label.get_text() for label in ax.get_yticklabels()] == [row.method for row in ranked]
    assert audit.plot(audit.summary.corpora[1].name) is not ax
    with pytest.raises(InputError, match="There is no corpus in this audit 'x'"):
        audit.plot("x")
    pyplot.close("all")
