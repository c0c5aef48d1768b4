"""Figures of explanations: an explanation's bars, several methods' heat map of a text, several texts' heat map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from veridical.explanations.display import Piece, class_line, pieces, printable
from veridical.explanations.explanation import Explanation
from veridical.page import charts
from veridical.page.charts import Size, safe, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WORDS = 30  # most that are drawn of one text
TEXTS, BESIDE = 12, 14  # most texts of a heat map, most words of each


def bars(explanation: Explanation, ax: Axes | None, figsize: Size | None) -> Axes:
    """The words with their scores, in reading order."""
    words = _scored(explanation)
    kept = sorted(sorted(range(len(words)), key=lambda i: -abs(words[i].weight))[:WORDS])
    some = f", the {WORDS} strongest of {len(words)} words" if len(words) > WORDS else ""
    ax = charts.bars(
        [printable(words[i].text) for i in kept],
        [words[i].score or 0.0 for i in kept],
        ax,
        figsize,
        signed=explanation.signed,
        label=f"{_meaning(explanation)}{some}",
    )
    ax.set_title(safe(f"{explanation.method} explains {class_line(explanation)}"), fontsize=9.5, loc="left")
    return ax


def methods_heat(same: Sequence[Explanation], ax: Axes | None, figsize: Size | None) -> Axes:
    """Several methods' explanations of one text: words in columns, methods in rows."""
    words = [_scored(explanation) for explanation in same]
    shown = min(WORDS, max(map(len, words)))
    longest = max((len(word.text) for word in words[0][:shown]), default=0)
    size = (2.2 + 0.36 * shown, 0.8 + 0.09 * min(longest, 28) + 0.34 * len(same))
    ax = charts.axes(ax, figsize, (max(4.0, size[0]), size[1]))
    _cells(ax, [[word.weight for word in row[:shown]] for row in words], [one.signed for one in same])
    names = [short(printable(word.text)) for word in words[0][:shown]]
    ax.set_xticks(range(shown), names, rotation=45, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(same)), [short(_name(one, same), 40) for one in same])
    more = f", the first {shown} of {len(words[0])} words" if len(words[0]) > shown else ""
    ax.set_title(safe(f"{_shared_class(same)}{more}"), fontsize=9.5, loc="left")
    _legend(ax, same)
    return ax


def texts_heat(explanations: Sequence[Explanation], ax: Axes | None, figsize: Size | None) -> Axes:
    """One method's explanations of several texts: a row per text, its words in their cells."""
    some = list(explanations[:TEXTS])
    words = [_scored(explanation)[:BESIDE] for explanation in some]
    shown = max(map(len, words), default=0)
    ax = charts.axes(ax, figsize, (1.8 + 0.82 * max(3, shown), 0.7 + 0.34 * len(some)))
    _cells(ax, [[word.weight for word in row] for row in words], [one.signed for one in some])
    for y, row in enumerate(words):
        for x, word in enumerate(row):
            dark = abs(word.weight) > (0.85 if word.weight < 0 else 0.6)  # orange is lighter than blue
            colour = "white" if dark else "black"
            ax.text(x, y, short(printable(word.text), 12), ha="center", va="center", fontsize=7.5, color=colour)
    ax.set_xticks([])
    ax.set_yticks(range(len(some)), [short(f"{one.example.id}: {class_line(one)}", 30) for one in some])
    method = some[0].method if some else ""
    more = f", the first {len(some)} of {len(explanations)} texts" if len(explanations) > len(some) else ""
    cut = f", the first {BESIDE} words" if any(len(_scored(one)) > BESIDE for one in some) else ""
    ax.set_title(safe(f"{method}{more}{cut}"), fontsize=9.5, loc="left")
    _legend(ax, some)
    return ax


def _scored(explanation: Explanation) -> list[Piece]:
    return [piece for piece in pieces(explanation) if piece.score is not None]


def _meaning(explanation: Explanation) -> str:
    return f"score for {explanation.question}" if explanation.signed else "score, without a sign"


def _name(explanation: Explanation, same: Sequence[Explanation]) -> str:
    alike = all(one.question == same[0].question for one in same)
    return explanation.method if alike else f"{explanation.method} ({explanation.question})"


def _shared_class(same: Sequence[Explanation]) -> str:
    alike = all(one.question == same[0].question for one in same)
    return f"explained: {class_line(same[0])}" if alike else "each explains a class of its own"


def _cells(ax: Axes, weights: Sequence[Sequence[float]], signed: Sequence[bool]) -> None:
    """Coloured cells, each over the largest of its row: blue for, orange against, grey without a sign."""
    import numpy as np
    from matplotlib.colors import LinearSegmentedColormap

    columns = max(map(len, weights), default=0)
    grid = np.full((len(weights), max(1, columns)), np.nan)
    for row, values in zip(grid, weights, strict=True):
        row[: len(values)] = values
    signs = np.array(signed, dtype=bool)[:, None] & np.ones_like(grid, dtype=bool)
    diverging = LinearSegmentedColormap.from_list("for and against", [charts.AGAINST, "#FFFFFF", charts.FOR])
    growing = LinearSegmentedColormap.from_list("matters", ["#FFFFFF", charts.GREY])
    edges = np.arange(grid.shape[1] + 1) - 0.5, np.arange(grid.shape[0] + 1) - 0.5
    for held, colours, low in ((signs, diverging, -1), (~signs, growing, 0)):
        masked = np.ma.masked_invalid(np.where(held, np.abs(grid) if low == 0 else grid, np.nan))
        if masked.count():
            ax.pcolormesh(*edges, masked, cmap=colours, vmin=low, vmax=1, edgecolors="white", linewidth=1.2)
    ax.set_ylim(grid.shape[0] - 0.5, -0.5)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.tick_params(length=0, labelsize=charts.SMALL)


def _legend(ax: Axes, shown: Sequence[Explanation]) -> None:
    """What the colours mean, beside the cells."""
    from matplotlib.patches import Patch

    signs = {explanation.signed for explanation in shown}
    meant = [(charts.FOR, "for the class"), (charts.AGAINST, "against it")] if True in signs else []
    meant += [(charts.GREY, "matters (no sign)")] if False in signs else []
    patches = [Patch(facecolor=colour, label=label) for colour, label in meant]
    where = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0, "handlelength": 1.0}
    ax.legend(handles=patches, frameon=False, fontsize=charts.SMALL, **where)
