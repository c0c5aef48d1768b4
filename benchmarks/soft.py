"""The figures of docs/soft-faithfulness.md and of its recipe's claims, from audits of several seeds.

    python -m benchmarks.soft sst=soft/sst0,soft/sst1,soft/sst2 ag=soft/ag0,soft/ag1,soft/ag2

Every audit has the four metrics against Gaussian draws and against shuffled scores. Diagnosticity is told seed by seed,
a tie counting as lost, as in the paper's equation, and half; then a mean over seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from veridical.audits.diagnosticity import Diagnosticity
from veridical.audits.record import AuditSummary, read_summary
from veridical.core.spec import base_name

METRICS = {
    "comprehensiveness": "NC",
    "soft_comprehensiveness": "Soft-NC",
    "sufficiency": "NS",
    "soft_sufficiency": "Soft-NS",
}
CONTROLS = ("gaussian", "permutation")


def rows_of(summary: AuditSummary, control: str) -> dict[tuple[str, str], Diagnosticity]:
    """By the paper's name of the metric and the method; "" is all methods together."""
    home = summary.corpora[0].name
    rows = [row for row in summary.diagnosticity if row.corpus == home and row.control == control]
    return {(METRICS[base_name(row.metric)], row.method): row for row in rows if base_name(row.metric) in METRICS}


def _by_seed(values: Sequence[float]) -> str:
    return f"{np.mean(values):.3f} [{', '.join(f'{value:.4f}' for value in values)}]"


def told(task: str, summaries: Sequence[AuditSummary], control: str) -> None:
    seeds = [rows_of(summary, control) for summary in summaries]
    methods = [method for name, method in seeds[0] if name == "NC"]
    for method in methods:
        for name in METRICS.values():
            rows = [seed[name, method] for seed in seeds]
            strict, half = ([getattr(row, kind) for row in rows] for kind in ("strict", "value"))
            texts = "/".join(str(row.n) for row in rows)
            told_of = f"strict {_by_seed(strict)}; half {_by_seed(half)}; n {texts}"
            print(f"{task} {control} {method or 'all methods'} {name}: {told_of}")
    for a, b in (("Soft-NC", "NC"), ("Soft-NS", "NS"), ("NC", "NS"), ("Soft-NC", "Soft-NS")):
        gaps = [seed[a, ""].strict - seed[b, ""].strict for seed in seeds]
        print(f"{task} {control} all methods, strict: {a} less {b}: {_by_seed(gaps)}")
    for name in ("NC", "NS"):
        curves = np.array([[value or np.nan for value in seed[name, ""].curve] for seed in seeds])
        means, seeded = np.round(curves.mean(0), 3).tolist(), curves.round(3).tolist()
        print(f"{task} {control} {name} by ratio: {means}; seeds {seeded}")


def spread(task: str, summaries: Sequence[AuditSummary], control: str) -> None:
    """The standard deviation over methods, metric by metric."""
    for name in METRICS.values():
        values = []
        for summary in summaries:
            rows = rows_of(summary, control)
            strict = [row.strict for (metric, method), row in rows.items() if metric == name and method]
            values.append(float(np.std(strict, ddof=1)))
        print(f"{task} {control} spread over methods {name}: {_by_seed(values)}")


def curves(task: str, summaries: Sequence[AuditSummary]) -> None:
    """NC and NS by ratio (figure 2), mean over methods but random."""
    for metric in ("comprehensiveness", "sufficiency"):
        per_seed = []
        for summary in summaries:
            cells = [c for c in summary.cells if base_name(c.metric) == metric and base_name(c.method) != "random"]
            home = [c.curve for c in cells if c.corpus == summary.corpora[0].name and c.curve]
            per_seed.append(np.nanmean(np.array(home, dtype=float), axis=0))
        print(f"{task} {METRICS[metric]} by ratio: " + "; ".join(str(row.round(3).tolist()) for row in per_seed))


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for given in sys.argv[1:]:
        task, _, folders = given.partition("=")
        summaries = [read_summary(Path(folder)) for folder in folders.split(",")]
        for control in CONTROLS:
            told(task, summaries, control)
            spread(task, summaries, control)
        curves(task, summaries)


if __name__ == "__main__":
    main()
