"""The page of `veridical guidance`: a pure function of the stored summary, computing nothing but layout."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from veridical.page import plots
from veridical.page.render import render
from veridical.page.words import figure, interval, p_value
from veridical.probes.guidance.page_plots import Spot, histogram, key, lines, spots

Row = Mapping[str, Any]
OUTCOMES = {
    "changed": "changed what the model relies on",
    "hacked": "the loss was hacked",
    "mixed": "explanations moved, reliance not shown to",
    "unmoved": "nothing moved",
    "unclear": "cannot be told",
}
STATES = {"raised": "▲", "lowered": "▼", "unchanged": "≈", "unclear": "?"}


def guidance_page(summary: Row) -> str:
    """One self-contained HTML page. The shape of `summary` is what `guidance` stores."""
    return render(
        "probes/guidance/guidance.html",
        s=summary,
        page=Page(summary),
        num=figure,
        span=interval,
        p=p_value,
        behind=behind,
    )


def behind(row: Row) -> str:
    """What stands under a mean: its interval, or the seeds' values."""
    if row["low"] is not None:
        return interval(row["low"], row["high"])
    return "  ".join(figure(value) for value in row["values"]) if len(row["values"]) > 1 else ""


def short(spec: str) -> str:
    """A metric's name: that scores count by size is said once, not in every head."""
    return spec.replace(":abs=true", "")


class Page:
    """The summary as the template reads it."""

    def __init__(self, summary: Row):
        self.s = summary
        self.names = [one["name"] for one in summary["conditions"]]
        self.outcomes, self.states, self.short, self.key = OUTCOMES, STATES, short, key
        self.home = summary["corpora"][0]["name"]
        self.marked = [c["name"] for c in summary["corpora"] if c["rationales"]]
        plausible = [m for m in summary["settings"]["metrics"] if any(c["what"] == m for c in summary["changes"])]
        self.metric = plausible[0]  # the one that decides

    def place(self, name: str) -> int:
        return self.names.index(name)

    def verdicts(self, corpus: str) -> list[Row]:
        return [one for one in self.s["verdicts"] if one["corpus"] == corpus]

    def setting(self, value: Any) -> str:
        if isinstance(value, list):
            return ", ".join(map(str, value))
        return value if isinstance(value, str) else json.dumps(value)

    # -- reliance ------------------------------------------------------------------------------------------

    def reliance(self, corpus: str) -> dict[str, Any] | None:
        rows = [row for row in self.s["reliance"] if row["corpus"] == corpus]
        if not rows:
            return None
        values = [v for row in rows for v in (*row["value"]["values"], row["value"]["low"], row["value"]["high"])]
        scale = plots.linear([0.0, *values], 0, 100)
        return {
            "axis": plots.axis(scale),
            "rows": [
                row
                | {
                    "plot": plots.row(
                        [plots.Mark(row["value"]["mean"], *self._ends(row["value"]))],
                        scale,
                        f"{row['condition']}: {figure(row['value']['mean'])}",
                    ),
                    "change": self.change(corpus, "reliance", row["condition"], ""),
                }
                for row in rows
            ],
        }

    def _ends(self, row: Row) -> tuple[float | None, float | None]:
        """The interval, or else from the least to the largest of the seeds' values."""
        if row["low"] is not None:
            return row["low"], row["high"]
        return (min(row["values"]), max(row["values"])) if len(row["values"]) > 1 else (None, None)

    def change(self, corpus: str, what: str, condition: str, method: str) -> Row | None:
        wanted = (corpus, what, condition, method)
        found = (c for c in self.s["changes"] if (c["corpus"], c["what"], c["condition"], c["method"]) == wanted)
        return next(found, None)

    # -- plausibility --------------------------------------------------------------------------------------

    def metrics(self, corpus: str) -> list[str]:
        return list(dict.fromkeys(row["metric"] for row in self.s["explanations"] if row["corpus"] == corpus))

    def grid(self, corpus: str, metric: str) -> dict[str, Any]:
        """Conditions by methods, each cell with the mean and, next to the baseline's, which way it went."""
        rows = [r for r in self.s["explanations"] if (r["corpus"], r["metric"]) == (corpus, metric)]
        methods = list(dict.fromkeys(row["method"] for row in rows))
        own = {(row["condition"], row["method"]): row for row in rows}
        lines_ = []
        for name in self.names:
            cells = []
            for method in methods:
                row = own.get((name, method))
                change = self.change(corpus, metric, name, method)
                cells.append({"row": row, "change": change})
            lines_.append({"name": name, "cells": cells})
        texts = sorted({row["texts"] for row in rows})
        return {"methods": methods, "lines": lines_, "texts": texts}

    # -- layers and special tokens -------------------------------------------------------------------------

    def layers(self, corpus: str) -> list[dict[str, Any]]:
        rows = [r for r in self.s["layers"] if (r["corpus"], r["metric"]) == (corpus, self.metric)]
        titles = {
            "attention": "attention of the layer",
            "rollout": "rollout up to the layer",
            "alti:rollout=false": "ALTI of the layer alone",
            "alti": "ALTI up to the layer",
            "decompx": "DecompX up to the layer",
        }
        return [
            {
                "title": titles[technique],
                "plot": lines(
                    self._series([r for r in rows if r["technique"] == technique]),
                    f"{titles[technique]}: {short(self.metric)} per layer and condition on {corpus}",
                    x_label="layer",
                    y_label=short(self.metric),
                ),
            }
            for technique in dict.fromkeys(row["technique"] for row in rows)
        ]

    def specials(self, corpus: str) -> Any:
        rows = [row for row in self.s["specials"] if row["corpus"] == corpus]
        said = f"Share of attention on tokens that are not explained, per layer and condition on {corpus}"
        return lines(self._series(rows), said, x_label="layer", y_label="share of attention") if rows else None

    def _series(self, rows: Sequence[Row]) -> list[tuple[int, list[float | None]]]:
        return [
            (self.place(name), [row["mean"] for row in sorted(own, key=lambda r: r["layer"])])
            for name, own in groupby(rows, key=lambda row: row["condition"])
        ]

    # -- how alike explanations are ------------------------------------------------------------------------

    def alike(self, corpus: str) -> list[dict[str, Any]]:
        found = []
        for name in self.names[1:]:
            rows = [r for r in self.s["alike"] if (r["corpus"], r["condition"]) == (corpus, name)]
            panels = [
                row
                | {
                    "plot": histogram(
                        row["histogram"],
                        row["histogram_base"],
                        self.place(name),
                        f"{row['method']}: tau of {name} to the baseline {figure(row['to_base'])}, between seeds of "
                        f"the baseline {figure(row['within_base'])}",
                    )
                }
                for row in rows
            ]
            if panels:
                found.append({"name": name, "place": self.place(name), "panels": panels})
        return found

    def heat(self, corpus: str) -> list[dict[str, Any]]:
        found = []
        for name in self.names:
            rows = [r for r in self.s["between_methods"] if (r["corpus"], r["condition"]) == (corpus, name)]
            methods = list(dict.fromkeys(m for row in rows for m in (row["a"], row["b"])))
            pairs = [
                plots.Pair(
                    methods.index(row["a"]),
                    methods.index(row["b"]),
                    row["tau"],
                    f"{row['a']} and {row['b']}: {figure(row['tau'])}",
                )
                for row in rows
            ]
            if pairs:
                said = f"Kendall's tau between methods in {name} on {corpus}"
                plot = plots.heat_map(methods, range(len(methods)), pairs, said)
                found.append({"name": name, "place": self.place(name), "plot": plot})
        return found

    # -- over runs -----------------------------------------------------------------------------------------

    def tradeoff(self) -> list[dict[str, Any]]:
        found = []
        for guide in dict.fromkeys(row["guide"] for row in self.s["tradeoff"]):
            rows = [row for row in self.s["tradeoff"] if row["guide"] == guide]
            points, bounds = [], []
            for row in rows:
                loss, term, place = row["cross_entropy"], row["explanation"], self.place(row["condition"])
                if loss["mean"] is None or term["mean"] is None:
                    continue
                said = f"{row['condition']} ({row['setting']}): cross-entropy {figure(loss['mean'])}, explanation loss "
                points.append(Spot(place, term["mean"], loss["mean"], said + figure(term["mean"]), row["setting"]))
                if len(loss["values"]) == len(term["values"]) > 1:
                    points += [
                        Spot(place, x, y, f"{row['condition']}, a seed", faint=True)
                        for x, y in zip(term["values"], loss["values"], strict=True)
                    ]
                bounds += [row["dev_bound"]] if row["dev_bound"] is not None else []
            if points:
                said = f"Cross-entropy against explanation loss on dev, {guide}"
                plot = spots(
                    points, said, x_label="explanation loss on dev", y_label="cross-entropy on dev", verticals=bounds
                )
                found.append({"guide": guide, "method": rows[0]["method"], "plot": plot})
        return found

    def foretold(self, corpus: str) -> dict[str, Any] | None:
        rows = [row for row in self.s["foretold"] if row["corpus"] == corpus]
        if not rows:
            return None
        shown = [row for row in rows if not row["method"]]
        shown += [row for row in rows if row["where"] == self.home and self._telling(row)][:1]
        shown += [row for row in rows if row["where"] == corpus and row["what"] == self.metric][-1:]
        return {"rows": rows, "n": max(row["n"] for row in rows), "plots": [self._plane(row) for row in shown]}

    def _telling(self, row: Row) -> bool:
        """The paper takes DecompX with the head; without it the first witness."""
        witnesses = self.s["settings"]["witnesses"]
        wanted = "decompx_classifier" if "decompx_classifier" in witnesses else next(iter(witnesses), "")
        return row["what"] == self.metric and row["method"] == wanted

    def named(self, row: Row) -> str:
        of = f" of {row['method']}" if row["method"] else ""
        what = {"macro_f1": "macro-F1", "reliance": "reliance"}.get(row["what"], short(row["what"]))
        return f"{what}{of} on {row['where']}"

    def _plane(self, row: Row) -> dict[str, Any]:
        points = [
            Spot(self.place(p["condition"]), p["x"], p["y"], f"{p['condition']} seed {p['seed']}")
            for p in row["points"]
        ]
        title = self.named(row)
        plot = spots(points, f"{title} against macro-F1 on {row['corpus']}", x_label=title, y_label="macro-F1")
        return {"title": title, "row": row, "plot": plot}

    def f1(self) -> list[dict[str, Any]]:
        own = {(r["corpus"], r["condition"]): r for r in self.s["predictions"] if r["score"] == "macro_f1"}
        return [
            {"corpus": corpus["name"], "role": corpus["role"], "cells": cells}
            for corpus in self.s["corpora"]
            if any(cells := [own.get((corpus["name"], name)) for name in self.names])
        ]
