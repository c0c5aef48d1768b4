"""Figures as one puts them into a paper, by matplotlib: every one draws into the Axes that it is given, or into new
ones, and leaves matplotlib's settings alone. Colours are apart for colour-blind readers, and shapes differ too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from veridical.core.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Size = tuple[float, float]  # inches
Bounds = tuple[float | None, float | None, float | None]  # mean, low, high

# Okabe and Ito's, the light yellow left out; with the shapes there are enough for ten.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
SHAPES = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h")
FOR, AGAINST, GREY = "#2563EB", "#D9580C", "#626A7A"
SOFT, LINE = "#5E626B", "#D5D7DD"
SMALL = 8.5  # points


@dataclass(frozen=True)
class Series:
    """Means with their intervals, by name."""

    name: str
    points: Mapping[str, Bounds]
    colour: str = ""  # in place of the next


def axes(ax: Axes | None, figsize: Size | None, usual: Size) -> Axes:
    """The Axes that were given, or those of a new figure."""
    if ax is not None:
        if figsize is not None:
            raise InputError("figsize is of a new figure, and ax is of one that is there; give one of the two.")
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as missing:
        raise InputError(
            "A plot needs matplotlib, which is not installed; run `pip install matplotlib`, or install veridical[plot]."
        ) from missing
    return pyplot.subplots(figsize=figsize or usual, layout="constrained")[1]


def plain(ax: Axes, *, grid: str | None = None) -> None:
    """Only the lines that carry something."""
    for side in ("top", "right", "left" if grid == "x" else "top"):
        ax.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        ax.spines[side].set_color(LINE)
    ax.tick_params(labelsize=SMALL, color=LINE)
    if grid == "x":
        ax.tick_params(axis="y", length=0)
    if grid is not None:
        ax.grid(axis=grid, color=LINE, linewidth=0.6)  # type: ignore[arg-type]
        ax.set_axisbelow(True)


def safe(text: str) -> str:
    """A text of a user's as it is: a dollar sign begins no formula."""
    return text.replace("$", r"\$")


def short(text: str, most: int = 28) -> str:
    return safe(text if len(text) <= most else f"{text[: most - 1]}…")


def bars(
    names: Sequence[str], values: Sequence[float], ax: Axes | None, figsize: Size | None, *, signed: bool, label: str
) -> Axes:
    """Horizontal bars from the top down."""
    ax = axes(ax, figsize, (4.8, 0.9 + 0.24 * max(1, len(names))))
    colours = [GREY if not signed else FOR if value >= 0 else AGAINST for value in values]
    hatches = ["////" if signed and value < 0 else "" for value in values]  # the sign shows without colour too
    drawn = ax.barh(range(len(names)), values, color=colours, height=0.72, zorder=2)
    for bar, hatch in zip(drawn, hatches, strict=True):
        bar.set(hatch=hatch, edgecolor="white", linewidth=0)
    plain(ax, grid="x")
    ax.set_yticks(range(len(names)), [short(name) for name in names])
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.axvline(0, color=SOFT, linewidth=0.8, zorder=3)
    ax.set_xlabel(label, fontsize=SMALL, color=SOFT)
    return ax


def intervals(
    series: Sequence[Series], label: str, ax: Axes | None, figsize: Size | None, *, order: Sequence[str] = ()
) -> Axes:
    """Points with their intervals, a row per name, those in `order` first; several series stand under each other in
    the row."""
    names = list(dict.fromkeys([*order, *(name for one in series for name in one.points)]))
    rows: dict[str, list[int]] = {
        name: [place for place, one in enumerate(series) if name in one.points] for name in names
    }
    most = max(map(len, rows.values()), default=1)
    ax = axes(ax, figsize, (6.2, 1.1 + (0.2 + 0.17 * most) * max(1, len(names))))
    for place, one in enumerate(series):
        colour, shape = one.colour or COLOURS[place % len(COLOURS)], SHAPES[place % len(SHAPES)]
        known: list[tuple[float, float]] = []
        for name, (mean, low, high) in one.points.items():
            if mean is None:
                continue
            y = names.index(name) + (rows[name].index(place) - (len(rows[name]) - 1) / 2) * 0.62 / most
            known.append((mean, y))
            if low is not None and high is not None:
                ax.plot([low, high], [y, y], color=colour, linewidth=1.4, zorder=2, solid_capstyle="butt")
        x, y = zip(*known, strict=True) if known else ((), ())
        style = {"linestyle": "none", "marker": shape, "markersize": 5, "color": colour, "zorder": 3}
        ax.plot(x, y, label=safe(one.name), **style)  # type: ignore[arg-type]
    plain(ax, grid="x")
    ax.set_yticks(range(len(names)), [short(name, 36) for name in names])
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlabel(label, fontsize=SMALL, color=SOFT)
    if len(series) > 1:
        ax.legend(**legend_above(ax, len(series)))
    elif series:
        ax.set_title(safe(series[0].name), fontsize=SMALL + 1, loc="left")
    return ax


def legend_above(ax: Axes, count: int) -> dict[str, Any]:
    """Where a legend hides nothing, and how it looks."""
    wide = ax.get_window_extent().width / ax.figure.dpi  # inches
    return {
        "loc": "lower left",
        "bbox_to_anchor": (0, 1.01),
        "ncols": max(1, min(count, int(wide // 1.5))),
        "frameon": False,
        "fontsize": SMALL,
        "borderaxespad": 0.0,
        "handletextpad": 0.5,
        "columnspacing": 1.4,
    }


@dataclass(frozen=True)
class Curve:
    """Values along an axis, with the bounds of their intervals where there are some."""

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float | None] = ()  # () where there are none
    high: Sequence[float | None] = ()
    baseline: bool = False  # drawn dashed and grey


def curves(given: Sequence[Curve], labels: tuple[str, str], ax: Axes | None, figsize: Size | None) -> Axes:
    """Lines with bands."""
    ax = axes(ax, figsize, (5.6, 3.8))
    place = 0
    for curve in given:
        colour = GREY if curve.baseline else COLOURS[place % len(COLOURS)]
        shape = "" if curve.baseline else SHAPES[place % len(SHAPES)]
        place += not curve.baseline
        whole = [i for i, bounds in enumerate(zip(curve.low, curve.high, strict=True)) if None not in bounds]
        if whole:
            low, high = ([bound[i] for i in whole] for bound in (curve.low, curve.high))
            ax.fill_between([curve.x[i] for i in whole], low, high, color=colour, alpha=0.15, linewidth=0)  # type: ignore[arg-type]
        known = [i for i, value in enumerate(curve.y) if value is not None]
        ax.plot(
            [curve.x[i] for i in known],
            [curve.y[i] for i in known],  # type: ignore[arg-type]
            color=colour,
            linestyle="--" if curve.baseline else "-",
            marker=shape,
            markersize=4,
            linewidth=1.5,
            label=safe(curve.name),
        )
    plain(ax, grid="y")
    ax.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[attr-defined]  epochs, per cent, tokens
    ax.set_xlabel(labels[0], fontsize=SMALL, color=SOFT)
    ax.set_ylabel(labels[1], fontsize=SMALL, color=SOFT)
    if given:
        ax.legend(**legend_above(ax, len(given)))
    return ax
