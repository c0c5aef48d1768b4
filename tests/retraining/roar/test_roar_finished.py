"""How a benchmark prints, displays, plots and becomes a table."""

from __future__ import annotations

import pytest
from made_up import EVEN, GOOD, made_up

from veridical.core.errors import InputError
from veridical.retraining.roar.finished import Estimate, Roar, Share
from veridical.retraining.roar.summary import write_summary
from veridical.retraining.roar.timing import Timing

TIMING = Timing(epoch=1.0, scoring=0.0, epochs=2, stops_early=False, texts=40, explain={GOOD: 1.0})
COST = Estimate(3, 12, 4, 60.0, 60.0, (Share(GOOD, 12, 4, 60.0),), TIMING)


@pytest.fixture(scope="module")
def roar(tmp_path_factory) -> Roar:
    folder = tmp_path_factory.mktemp("roar")
    return Roar(folder, write_summary(folder, made_up(folder)), COST)


def test_it_prints_the_answer_and_the_areas(roar):
    text = repr(roar)
    assert " ".join(text.split()).startswith(roar.summary.answer)
    assert "significantly below random" in text
    assert text.endswith(f"report {roar.page}")


def test_a_dry_run_prints_what_it_would_cost(tmp_path):
    dry = Roar(tmp_path, None, COST)
    assert repr(dry).startswith("3 cells: 12 trainings of 2 epochs")
    assert "together" in dry._repr_html_()
    with pytest.raises(InputError, match="A dry run trains nothing"):
        dry.to_pandas()


def test_a_notebook_has_the_same_and_the_way_to_the_page(roar):
    html = roar._repr_html_()
    assert roar.summary.answer in html
    assert f'href="{roar.page.as_posix()}"' in html
    assert html.count("<tr>") == 1 + len(roar.summary.areas)


def test_a_row_per_measure_and_amount(roar):
    frame = roar.to_pandas()
    assert list(frame) == list(Roar.COLUMNS)
    assert len(frame) == sum(len(curve.masked) for curve in roar.summary.curves)
    chosen = frame[(frame.measure == GOOD) & frame.recursive]
    assert chosen.masked.tolist() == list(range(0, 101, 10))
    assert roar.to_dataset().num_rows == len(frame)


def test_curves(roar):
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot

    ax = roar.plot()
    names = [line.get_label() for line in ax.get_lines()]
    assert names[0] == "masked at random"
    assert ax.get_lines()[0].get_linestyle() == "--"
    assert len(names) == 4
    assert len({line.get_color() for line in ax.get_lines()}) == 4
    assert ax.get_ylabel() == "macro-F1"
    assert len(roar.plot(recursive=False).get_lines()) == 4
    pyplot.close("all")
    assert EVEN in roar.summary.measures
