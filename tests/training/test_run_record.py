"""How a finished run prints, displays, plots and becomes a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from veridical.core import store
from veridical.core.errors import InputError
from veridical.training.run import LOG, Run


@pytest.fixture
def run(tmp_path) -> Run:
    dev = {"macro_f1": 0.5, "loss": 0.7}
    rows = [
        {"steps": 2, "examples": {"train": 4}, "seconds": 0.1},
        {"step": 1, "epoch": 1, "loss": 0.9, "lr": 0.1, "seconds": 0.2},
        {"step": 2, "epoch": 1, "loss": 0.7, "lr": 0.1, "seconds": 0.3},
        {"step": 2, "epoch": 1, "dev": dev, "best": True, "seconds": 0.4},
        {"step": 3, "epoch": 2, "loss": 0.5, "lr": 0.1, "seconds": 0.5},
        {"step": 3, "epoch": 2, "dev": {**dev, "loss": None}, "best": False, "seconds": 0.6},
    ]
    store.write_jsonl(tmp_path / LOG, rows)
    return Run(tmp_path, 3, {"dev": {"macro_f1": 0.5, "auroc": None}}, 2, 1, 1.0, {})


def test_it_prints_its_scores(run):
    assert repr(run).splitlines() == [
        "Run of seed 3: 2 epochs, epoch 1 was kept.",
        "split  macro_f1  auroc",
        "dev       0.500",
        str(run.folder),
    ]
    assert "0.500" in run._repr_html_()
    failed = Run(Path("x"), 0, {}, 2, 0, 1.0, {}, failed="no epoch kept <b>.")
    assert repr(failed) == "Run of seed 0, failed: no epoch kept <b>.\nx"
    assert "&lt;b&gt;" in failed._repr_html_()


def test_its_table_is_the_log(run):
    frame = run.to_pandas()
    assert list(frame) == [*Run.COLUMNS, "lr", "dev.macro_f1", "dev.loss"]
    assert frame.step.tolist() == [1, 2, 2, 3, 3]
    assert run.to_dataset()[2]["best"] is True
    with pytest.raises(InputError, match="There is no log"):
        Run(run.folder / "gone", 0, {}, 1, 1, 1.0, {}).to_pandas()


def test_curves_by_epoch(run):
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot

    trained, dev = run.plot().get_lines()
    assert trained.get_ydata().tolist() == pytest.approx([0.8, 0.5])
    assert dev.get_xdata().tolist() == [1]  # undefined in the second
    assert len(run.plot("macro_f1").get_lines()) == 1
    with pytest.raises(InputError, match="There is no score in the log of this run 'f1'"):
        run.plot("f1")
    pyplot.close("all")
