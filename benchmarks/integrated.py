"""Integrated gradients on the embedded encoder: how many nodes the rules take, and how far their scores are off.

The truth is Gauss's rule with 160 nodes. A text's error is the summed size of the differences over that of the scores.
"""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.results import machine, markdown, show, write_json, write_text
from benchmarks.subject import arguments, subject
from veridical.attribution import methods
from veridical.explanations.explain import attributions

TRUTH = "integrated_gradients:steps=160"
RULES = (
    "integrated_gradients",
    "integrated_gradients:steps=24",
    "integrated_gradients:rule=nested",
    "integrated_gradients:rule=nested:tolerance=0.01",
)


def main() -> None:
    options = arguments(__doc__ or "", texts=20).parse_args()
    torch.set_num_threads(options.threads)
    measured = subject(options.model, options.texts, options.budget)

    def scores(spec: str) -> tuple[list[np.ndarray], list[float], list[float]]:
        found = attributions(measured.clf, measured.encoded, methods.choose(spec), budget=options.budget)
        gaps = [0.0 if a.gap is None else a.gap for a in found]
        return [a.scores.astype(np.float64) for a in found], [a.cost.backward for a in found], gaps

    true, _, _ = scores(TRUTH)
    rows, kept = [], {}
    for spec in RULES:
        found, nodes, gaps = scores(spec)
        errors = [float(np.abs(a - b).sum() / np.abs(b).sum()) for a, b in zip(found, true, strict=True)]
        kept[spec] = {"nodes": float(np.mean(nodes)), "errors": errors, "gaps": gaps}
        shown = (np.median(errors), np.quantile(errors, 0.9), max(errors))
        rows.append((spec, f"{np.mean(nodes):.1f}", *(f"{error:.2%}" for error in shown), f"{max(gaps):.2%}"))
    head = ("rule", "nodes, mean", "error, median", "nine of ten below", "largest", "largest gap")
    show(f"{len(true)} texts", head, rows)
    print(write_json(options.out / "integrated.json", {"machine": machine(options.threads), "rules": kept}))
    print(write_text(options.out / "integrated.md", markdown(head, rows) + "\n"))


if __name__ == "__main__":
    main()
