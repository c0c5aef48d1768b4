"""The summary of an audit, indexed, and views of it for the template: layout, nothing computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from veridical.audits.page_examples import packed
from veridical.audits.ranking import RIVALS
from veridical.core.spec import base_name
from veridical.explanations.display import duration
from veridical.page import plots
from veridical.page.plots import Curve, Mark, Pair, Point, Scale
from veridical.page.words import figure, said, short_names

Record = Mapping[str, Any]
SHARE = Scale(0, 1, 3, 97, (0, 0.5, 1))  # of a row that shows a share


class View:
    """What the template asks of a summary. Methods go by their index in it, `m`."""

    def __init__(self, summary: Record):
        self.summary = summary
        self.methods: Sequence[Record] = summary["methods"]
        self.metrics: Sequence[Record] = summary["metrics"]
        self.specs = [method["name"] for method in self.methods]
        self.names = short_names(self.specs)
        self.index = {spec: m for m, spec in enumerate(self.specs)}
        self.metric_index = {metric["name"]: k for k, metric in enumerate(self.metrics)}
        self.control = next((spec for spec in self.specs if base_name(spec) == "random"), None)
        # The model's own domain leads; the others follow as they were given.
        self.corpora = sorted(summary["corpora"], key=lambda corpus: corpus["role"] != "in")
        self.cells = {(cell["corpus"], cell["metric"], cell["method"]): cell for cell in summary["cells"]}
        controls = summary["settings"].get("controls") or ["permutation"]
        self.shuffled = "permutation" in controls  # the control that ranks, where there are several
        self.rival = RIVALS["permutation" if self.shuffled else controls[0]]
        self.rankings = {(one["corpus"], one["method"]): one for one in summary["ranking"]}

    def data(self, examples: Sequence[Record]) -> dict[str, Any]:
        corpora = {corpus["name"]: k for k, corpus in enumerate(self.corpora)}
        home = self.corpora[0]["name"]
        return {
            "methods": self.specs,
            "signed": [method["signed"] for method in self.methods],
            "corpora": list(corpora),
            "labels": self.summary["model"]["labels"],
            "orders": [self.order(home), *(self.order(home, metric) for metric in self.of_kind("faithfulness"))],
            "examples": [packed(one, self.index, corpora, self.summary["model"]["labels"]) for one in examples],
        }

    def of_kind(self, kind: str) -> list[Record]:
        return [metric for metric in self.metrics if metric["kind"] == kind]

    def order(self, corpus: str, metric: Record | None = None) -> list[int]:
        """Methods best first, by place or by one metric; those without a value last, as they were listed."""

        def key(m: int) -> tuple[bool, float]:
            if metric is None:
                rank = self.rankings.get((corpus, self.specs[m]))
                return rank is None, rank["place"] if rank else 0
            cell = self.cells.get((corpus, metric["name"], self.specs[m]))
            mean = cell["mean"] if cell else None
            return mean is None, 0 if mean is None else -mean if metric["better"] == "higher" else mean

        return sorted(range(len(self.specs)), key=key)

    def corpus(self, corpus: Record) -> dict[str, Any]:
        """All there is to show of one corpus."""
        name = corpus["name"]
        where = self.corpora.index(corpus)
        return {
            **corpus,
            "index": where,
            "verdict": next((one for one in self.summary["verdicts"] if one["corpus"] == name), None),
            "ranking": self.ranking(name),
            "weights": self.weights(name),
            "panels": {
                kind: [panel for metric in self.of_kind(kind) if (panel := self.panel(name, metric))]
                for kind in ("faithfulness", "plausibility", "agreement", "shape", "truth")
            },
            "curves": [view for metric in self.of_kind("faithfulness") if (view := self.curves(where, metric))],
            "trust": self.trust(name),
            "trust_by_method": _grouped(self.here("diagnosticity", name), "metric"),
            "tests": self.here("metric_tests", name),
            "tests_by_method": [] if where else self.here("metric_tests_by_method", name),
            "agreement": self.agreement(name),
            "sparsity": self.sparsity(where),
            # Metric by metric only for the own domain: over four corpora these tests would outweigh all the rest.
            "comparisons": _grouped(
                (one for one in self.here("comparisons", name) if not where or not one["metric"]), "metric"
            ),
            "cells": _grouped(self.here("cells", name), "metric"),
            "undefined": self.undefined(name),
        }

    def here(self, table: str, corpus: str) -> list[Record]:
        return [one for one in self.summary[table] if one["corpus"] == corpus]

    # -- ranking and metrics

    def rank_scale(self) -> Scale:
        count = max([2, *Counter(one["corpus"] for one in self.summary["ranking"]).values()])
        return Scale(1, count, 3, 97, (1, count) if count < 5 else (1, round((1 + count) / 2), count))

    def ranking(self, corpus: str) -> dict[str, Any]:
        scale, rows = self.rank_scale(), []
        found = [self.rankings[key] for m in self.order(corpus) if (key := (corpus, self.specs[m])) in self.rankings]
        for k, one in enumerate(found):
            mark = Mark(one["mean_rank"], one["low"], one["high"], hollow=one["method"] == self.control)
            rows.append(
                {
                    **one,
                    "m": self.index[one["method"]],
                    "new_group": k > 0 and found[k - 1]["group"] != one["group"],
                    "plot": plots.row([mark], scale, f"mean rank {said(mark.value, mark.low, mark.high)}"),
                }
            )
        return {"rows": rows, "axis": plots.axis(scale)}

    def panel(self, corpus: str, metric: Record) -> dict[str, Any] | None:
        """One metric over the methods, dots with intervals."""
        cells = {
            m: cell for m in self.order(corpus) if (cell := self.cells.get((corpus, metric["name"], self.specs[m])))
        }
        if not cells:
            return None
        ends = [cell[end] for cell in cells.values() for end in ("mean", "low", "high")]
        scale = plots.linear(ends, 3, 97, metric["bounds"])
        floor = cells.get(self.index.get(self.control or "", -1))
        reference = floor["mean"] if floor else None
        rows = []
        for m, cell in cells.items():
            mark = Mark(cell["mean"], cell["low"], cell["high"], hollow=self.specs[m] == self.control)
            words = said(mark.value, mark.low, mark.high)
            rows.append({**cell, "m": m, "plot": plots.row([mark], scale, words)})
        return {
            "metric": metric,
            "key": self.metric_index[metric["name"]],
            "rows": rows,
            "axis": plots.axis(scale) if any(end is not None for end in ends) else "",
            "undefined": sum(cell["undefined"] for cell in cells.values()),
            "weight": self.weights(corpus).get(metric["name"]),
            "reference": None if reference is None else scale(reference) / 100,
        }

    def weights(self, corpus: str) -> Mapping[str, float]:
        """What each metric counted for in the ranking."""
        return next((one["weights"] for one in self.summary["verdicts"] if one["corpus"] == corpus), {})

    def ranked(self) -> list[int]:
        """Methods that took part in the ranking of the own domain, best first; oracles do not."""
        home = self.corpora[0]["name"]
        found = [m for m in self.order(home) if (home, self.specs[m]) in self.rankings]
        return found or self.order(home)

    def undefined(self, corpus: str) -> list[dict[str, Any]]:
        found = []
        for metric in self.metrics:
            cells = [c for spec in self.specs if (c := self.cells.get((corpus, metric["name"], spec)))]
            missing = sum(cell["undefined"] for cell in cells)
            if missing:
                asked = missing + sum(cell["n"] for cell in cells)
                found.append({"key": self.metric_index[metric["name"]], "missing": missing, "asked": asked})
        return found

    # -- curves

    def curves(self, where: int, metric: Record) -> dict[str, Any] | None:
        corpus, ratios = self.corpora[where]["name"], metric["ratios"]
        cells = [
            (m, cell)
            for m in self.order(corpus)
            if (cell := self.cells.get((corpus, metric["name"], self.specs[m])))
            and any(value is not None for value in cell["curve"])
        ]
        if not ratios or not cells:
            return None
        back, panels = plots.small_multiples(
            [Curve(cell["curve"], cell["curve_low"], cell["curve_high"]) for _, cell in cells],
            ratios,
            [_curve_said(self.specs[m], metric["name"], ratios, cell["curve"]) for m, cell in cells],
            f"curves-{where}-{self.metric_index[metric['name']]}",
            metric["bounds"],
        )
        return {
            "metric": metric,
            "key": self.metric_index[metric["name"]],
            "back": back,
            "panels": [
                {"m": m, "mean": cell["mean"], "plot": plot, **cell}
                for (m, cell), plot in zip(cells, panels, strict=True)
            ],
        }

    def sparsity(self, where: int) -> dict[str, Any] | None:
        corpus = self.corpora[where]["name"]
        by_method = {self.index[one["method"]]: one for one in self.here("sparsity", corpus)}
        found = [(m, by_method[m]) for m in self.order(corpus) if m in by_method]
        if not found:
            return None
        shares = found[0][1]["shares"]
        back, panels = plots.small_multiples(
            [Curve(one["mass"]) for _, one in found],
            shares,
            [_curve_said(self.specs[m], "share of the total score", shares, one["mass"]) for m, one in found],
            f"sparsity-{where}",
            (0, 1),
            diagonal=True,
        )
        rows = [{**one, "m": m, "plot": plot} for (m, one), plot in zip(found, panels, strict=True)]
        return {"back": back, "panels": rows, "shares": shares}

    # -- how far to trust, agreement, domains, cost, truth

    def trust(self, corpus: str) -> dict[str, Any]:
        """Diagnosticity of every metric over all methods, the controls one under the other."""
        found = [one for one in self.here("diagnosticity", corpus) if not one["method"]]
        controls = sorted({one["control"] for one in found}, key=lambda name: (name != "permutation", name))
        scale = SHARE
        rows = []
        for metric in self.metrics:
            of = [one for one in found if one["metric"] == metric["name"]]
            of.sort(key=lambda one: controls.index(one["control"]))
            if of:
                marks = [Mark(d["value"], d["low"], d["high"], hollow=controls.index(d["control"]) > 0) for d in of]
                words = "; ".join(f"{d['control']} {said(d['value'], d['low'], d['high'])}" for d in of)
                rows.append(
                    {
                        "key": self.metric_index[metric["name"]],
                        "controls": of,
                        "value": of[0]["value"],
                        "weight": self.weights(corpus).get(metric["name"]),
                        "plot": plots.row(marks, scale, words),
                    }
                )
        rows.sort(key=lambda one: (one["value"] is None, -(one["value"] or 0)))
        return {"rows": rows, "controls": controls, "axis": plots.axis(scale, ("0", "0.5 chance", "1"))}

    def agreement(self, corpus: str) -> dict[str, Any] | None:
        pairs = [one for one in self.here("agreement", corpus) if one["a"] != one["b"]]
        if not pairs:
            return None
        order = self.order(corpus)

        def drawn(what: str, title: str) -> Markup:
            cells = []
            for one in pairs:
                a, b = self.index[one["a"]], self.index[one["b"]]
                words = f"tau {figure(one['tau'])}, overlap {figure(one['jaccard'])}"
                cells.append(Pair(a, b, one[what], f"{self.names[a]}, {self.names[b]}: {words}"))
            return plots.heat_map(self.names, order, cells, f"{title} between methods on {corpus}; table below")

        return {"pairs": pairs, "tau": drawn("tau", "Kendall tau"), "jaccard": drawn("jaccard", "Overlap")}

    def domains(self) -> list[dict[str, Any]]:
        """Mean rank of every method on every corpus, a mark for each."""
        rows = []
        for m in self.ranked():
            ranks = [self.rankings.get((corpus["name"], self.specs[m])) for corpus in self.corpora]
            marks = [
                Mark(one["mean_rank"], one["low"], one["high"], shape=k) if one else Mark(None)
                for k, one in enumerate(ranks)
            ]
            words = "; ".join(
                f"{corpus['name']} {figure(mark.value)}" for corpus, mark in zip(self.corpora, marks, strict=True)
            )
            rows.append({"m": m, "ranks": ranks, "plot": plots.row(marks, self.rank_scale(), f"mean rank: {words}")})
        return rows

    def f1(self, corpus: Record) -> Markup:
        words = f"macro F1 {figure(corpus['macro_f1'])}"
        return plots.row([Mark(corpus["macro_f1"], shape=corpus["index"])], SHARE, words)

    def f1_axis(self) -> Markup:
        return plots.axis(SHARE)

    def cost(self) -> Markup | None:
        home = self.corpora[0]["name"]
        points = []
        for m, method in enumerate(self.methods):
            rank = self.rankings.get((home, method["name"]))
            if rank is not None and rank["mean_rank"] is not None and method["seconds"] is not None:
                seconds = max(method["seconds"], 1e-6)  # a logarithmic axis has no zero
                words = f"{method['name']}: {duration(seconds)} per text, mean rank {figure(rank['mean_rank'])}"
                place = (seconds, rank["mean_rank"], rank["low"], rank["high"])
                points.append(Point(m, self.names[m], *place, words))
        if len(points) < 2:
            return None
        scale = plots.logarithmic([point.x for point in points], 0, 1)
        return plots.scatter(
            points,
            len(points),
            "time per text, logarithmic →",
            "↑ better: mean rank",
            {value: f"{value * 1e6:g} µs" if value < 1e-3 else duration(value) for value in scale.ticks},
            "Time per text against mean rank; the numbers are in the table beside",
        )

    def truth(self) -> list[dict[str, Any]]:
        found = []
        for one in self.summary["truth"] or ():
            metric = next((metric for metric in self.metrics if metric["name"] == one["metric"]), None)
            scale = plots.linear(one["values"], 3, 97, metric["bounds"] if metric else ())
            rows = [
                {
                    "name": name,
                    "m": self.index.get(name),
                    "value": value,
                    "planted": name in ("oracle", "random", "inverted oracle"),
                    "plot": plots.row([Mark(value)], scale, figure(value)),
                }
                for name, value in zip(one["order"], one["values"], strict=True)
            ]
            key = self.metric_index.get(one["metric"])
            found.append({**one, "key": key, "rows": rows, "axis": plots.axis(scale)})
        return found


def _curve_said(method: str, what: str, shares: Iterable[float], values: Iterable[float | None]) -> str:
    pairs = list(zip(shares, values, strict=True))
    pairs = pairs[:: 1 + len(pairs) // 8]  # some of a long curve: this is read aloud
    points = ", ".join(f"{figure(value)} at {share:.0%}" for share, value in pairs)
    return f"{method}, {what}: {points}"


def _grouped(records: Iterable[Record], key: str) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for one in records:
        found.setdefault(one[key], []).append(one)
    return found
