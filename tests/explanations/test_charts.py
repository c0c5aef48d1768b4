"""Figures: what is drawn, into which Axes, and that matplotlib is left as it was."""

from __future__ import annotations

import io
import sys

import pytest
from test_display import made

from veridical.core.errors import InputError
from veridical.explanations.collected import Explanations, ExplanationsByMethod

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")

SIGNED = made("a fine $1 film", [0.1, 1.0, -0.4, 0.2])
UNSIGNED = made("a fine $1 film", [0.1, 1.0, 0.4, 0.2], signed=False)


@pytest.fixture(autouse=True)
def _settings_stay():
    before = dict(matplotlib.rcParams)
    yield
    pyplot.close("all")
    assert dict(matplotlib.rcParams) == before


def saved(ax) -> str:
    page = io.BytesIO()
    ax.figure.savefig(page, format="svg")
    return page.getvalue().decode()


def test_bars_are_the_words_with_their_scores():
    ax = SIGNED.plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "fine", r"\$1", "film"]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([0.1, 1.0, -0.4, 0.2])
    assert ax.patches[2].get_facecolor() != ax.patches[1].get_facecolor()
    assert ax.patches[2].get_hatch()  # the sign shows without colour
    assert len({bar.get_facecolor() for bar in UNSIGNED.plot().patches}) == 1
    assert "<svg" in saved(ax)


def test_of_a_long_text_the_strongest_words_are_drawn_in_reading_order():
    long = made(" ".join(f"w{i}" for i in range(40)), [float(i % 37) for i in range(40)])
    ax = long.plot()
    words = [label.get_text() for label in ax.get_yticklabels()]
    assert len(words) == 30
    assert words == sorted(words, key=lambda word: int(word[1:]))
    assert "w0" not in words
    assert "the 30 strongest of 40 words" in ax.get_xlabel()


def test_into_axes_that_are_there():
    figure, (left, right) = pyplot.subplots(1, 2)
    assert SIGNED.plot(ax=left) is left
    assert Explanations([SIGNED, UNSIGNED]).plot(ax=right) is right
    assert "<svg" in saved(left)
    assert tuple(SIGNED.plot(figsize=(3, 2)).figure.get_size_inches()) == (3, 2)
    with pytest.raises(InputError, match="figsize is of a new figure"):
        SIGNED.plot(ax=left, figsize=(3, 2))
    assert figure is left.figure


def test_heat_maps_have_a_row_per_method_or_text():
    both = ExplanationsByMethod(first=Explanations([SIGNED, SIGNED]), second=Explanations([UNSIGNED, UNSIGNED]))
    ax = both.plot(1)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "fine", r"\$1", "film"]
    assert len(ax.collections) == 2  # those with a sign and those without have colours of their own
    assert len(ax.get_yticklabels()) == 2
    assert {text.get_text() for text in ax.get_legend().get_texts()} == {
        "for the class",
        "against it",
        "matters (no sign)",
    }
    ax = Explanations([SIGNED, made("short", [1.0])]).plot()
    assert [text.get_text() for text in ax.texts] == ["a", "fine", r"\$1", "film", "short"]
    assert "<svg" in saved(ax)


def test_without_matplotlib_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match="A plot needs matplotlib, which is not installed"):
        SIGNED.plot()
