"""Where progress is shown: in a terminal, in a notebook, in a log; and where it is not."""

from __future__ import annotations

import sys
import threading
import types

import pytest

import veridical
from tiny import TEXTS, tiny
from veridical.core import progress
from veridical.core.progress import Picture, Report, for_work, in_notebook


def shown(capsys, **how) -> str:
    with Report("Working", 4, **how) as report:
        for _ in range(4):
            report.advance()
    return capsys.readouterr().err


def test_a_log_has_lines_only_if_somebody_asks(capsys):
    assert shown(capsys) == ""
    assert shown(capsys, progress=False) == ""
    assert shown(capsys, progress=True).count("Working: ") == 4


def test_a_terminal_has_a_bar_unless_somebody_refuses(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "4/4" in shown(capsys)
    assert "4/4" in shown(capsys, progress=True)
    assert shown(capsys, progress=False) == ""


def test_work_inside_other_work_shows_nothing_of_its_own(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with Report("Outer", 2, progress=False):
        assert shown(capsys) == ""
    assert "Working" in shown(capsys)


def test_little_work_is_not_worth_a_bar():
    assert for_work(None, 8) is False
    assert for_work(None, 9) is None
    assert for_work(True, 1) is True


@pytest.fixture
def notebook(monkeypatch) -> list[str]:
    """What is displayed in a notebook that is none."""
    seen: list[str] = []

    class Handle:
        def update(self, shown: str) -> None:
            seen.append(shown)

    def display(shown: str, *, display_id: bool) -> Handle:
        seen.append(f"new {shown}")
        return Handle()

    shell = types.SimpleNamespace(kernel=object())
    module = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(HTML=str, display=display))
    monkeypatch.setattr(progress, "OFTEN", 0.0)
    return seen


def test_a_notebook_has_one_picture_that_is_redrawn(notebook, capsys):
    assert in_notebook()
    with Report("<Working>", 4) as report:
        report.advance("<b>", steps=3)
        report.say("a line")
    assert capsys.readouterr() == ("a line\n", "")  # nothing in red
    first, middle, last = notebook
    assert first.startswith("new ")
    assert "3 of 4 &lt;b&gt;" in middle
    assert 'value="3" max="4"' in middle
    assert "<progress" not in last  # it is over, and a line stays
    assert "&lt;Working&gt;: 3 of 4" in last


def test_explain_and_evaluate_show_their_progress(notebook):
    clf = veridical.load(*tiny("bert"))
    veridical.explain(clf, list(TEXTS), "gradient")
    assert notebook == []  # too little
    veridical.explain(clf, list(TEXTS), ["gradient", "attention"])
    assert "12 of 12" in notebook[-1]
    list(veridical.explain_iter(clf, list(TEXTS), "gradient", progress=True))
    assert "6 of 6" in notebook[-1]
    veridical.evaluate(clf, list(TEXTS), ["gradient"], ["decision_flip"], progress=True)
    assert "Evaluating: 6 of 6" in notebook[-1]
    before = len(notebook)
    veridical.explain(clf, list(TEXTS), ["gradient", "attention"], progress=False)
    assert len(notebook) == before


def test_time_is_told():
    shown = Picture("x", 10).html(5, "", 65.0)
    assert "1:05" in shown
    assert "about 1:05 left" in shown


def test_a_terminal_shell_is_no_notebook(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace()))
    assert not in_notebook()
    monkeypatch.delitem(sys.modules, "IPython")
    assert not in_notebook()


def test_work_that_lasts_shows_that_it_moves_and_names_its_unit(capsys, monkeypatch):
    monkeypatch.setattr(progress, "QUIET", 0.01)
    asked = threading.Semaphore(0)

    def moving() -> str:
        asked.release()
        return "7 passes"

    with Report("Working", 4, progress=True, unit="texts x methods", moving=moving, late=True) as report:
        assert asked.acquire(timeout=10)
        report.advance(steps=2)
        for _ in range(3):
            assert asked.acquire(timeout=10)
        report.advance(steps=2)
        for _ in range(3):
            assert asked.acquire(timeout=10)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("Working: 0 of 4 texts x methods  7 passes  after 0.0 min")
    assert "min left" not in lines[0]
    assert any(line.startswith("Working: 2 of 4 texts x methods  7 passes  after 0.0 min, about 0.0") for line in lines)
    assert lines[-1].startswith("Working: 4 of 4 texts x methods  7 passes  after 0.0 min, at its last part")


def test_little_work_that_is_over_at_once_says_nothing(capsys):
    assert shown(capsys, progress=True, late=True) == ""
