"""The figures of docs/soft-faithfulness.md and of its recipe's claims, from audits of several seeds.

    python -m benchmarks.soft sst=soft/sst0,soft/sst1,soft/sst2 ag=soft/ag0,soft/ag1,soft/ag2

Every audit has the four metrics against Gaussian draws and against shuffled scores. It may have others, such as
soft_sufficiency:mode=attention: how much more diagnostic dropout is than these is told as well. Diagnosticity is told
seed by seed, a tie counting as lost, as in the paper's equation, and half; then a mean over seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from veridical.audits.diagnosticity import Diagnosticity, credit, outcomes
from veridical.audits.evaluate import read_cells
from veridical.audits.record import AuditSummary, read_summary
from veridical.core.spec import base_name
from veridical.probes.guidance.change import interval

METRICS = {
    "comprehensiveness": "NC",
    "soft_comprehensiveness": "Soft-NC",
    "sufficiency": "NS",
    "soft_sufficiency": "Soft-NS",
}
CONTROLS = ("gaussian", "permutation")


def called(metric: str) -> str | None:
    """The paper's name of a metric, with its options behind it; None of any other metric."""
    name, _, options = metric.partition(":")
    return f"{METRICS[name]} {options}".rstrip() if name in METRICS else None


def rows_of(summary: AuditSummary, control: str) -> dict[tuple[str, str], Diagnosticity]:
    """By the paper's name of the metric and the method; "" is all methods together."""
    home = summary.corpora[0].name
    rows = [row for row in summary.diagnosticity if row.corpus == home and row.control == control]
    return {(name, row.method): row for row in rows if (name := called(row.metric))}


def held(seed: Collection[tuple[str, str]], *names: str) -> list[str]:
    """Those of the metrics that an audit has."""
    return [name for name in names if any(name == metric for metric, _ in seed)]


def _by_seed(values: Sequence[float]) -> str:
    return f"{np.mean(values):.3f} [{', '.join(f'{value:.4f}' for value in values)}]"


def told(task: str, summaries: Sequence[AuditSummary], control: str) -> None:
    seeds = [rows_of(summary, control) for summary in summaries]
    methods = dict.fromkeys(method for _, method in seeds[0])
    for method in methods:
        for name in dict.fromkeys(name for name, _ in seeds[0]):
            rows = [seed[name, method] for seed in seeds]
            strict, half = ([getattr(row, kind) for row in rows] for kind in ("strict", "value"))
            texts = "/".join(str(row.n) for row in rows)
            told_of = f"strict {_by_seed(strict)}; half {_by_seed(half)}; n {texts}"
            print(f"{task} {control} {method or 'all methods'} {name}: {told_of}")
    for name in held(seeds[0], "NC", "NS"):
        curves = np.array([[np.nan if value is None else value for value in seed[name, ""].curve] for seed in seeds])
        means, seeded = np.round(curves.mean(0), 3).tolist(), curves.round(3).tolist()
        print(f"{task} {control} {name} by ratio: {means}; seeds {seeded}")


def credits(folder: Path, control: str, ratio: int | None = None) -> dict[tuple[str, str], dict[str, float]]:
    """What every pair counts, a tie as lost: by metric and method, text by text. At one ratio, or of the score."""
    scores: dict[tuple[str, str, str, str], float] = {}
    home = read_summary(folder).corpora[0].name
    for cell in read_cells(folder / "scores.parquet"):
        if cell.corpus == home and (name := called(cell.metric)) and cell.score.value is not None:
            of = (name, cell.method, cell.example, cell.control)
            value = cell.score.value if ratio is None or not cell.score.curve else cell.score.curve[ratio]
            scores[of] = np.nan if value is None else value
    found: dict[tuple[str, str], dict[str, float]] = {}
    for metric, method, text, kind in scores:
        other = scores.get((metric, method, text, control))
        if kind == "" and other is not None and base_name(method) != "random":
            outcome = outcomes(np.array([scores[metric, method, text, ""]]), np.array([other]))
            found.setdefault((metric, method), {})[text] = float(credit(outcome, "strict")[0])
    for metric in dict.fromkeys(name for name, _ in found):  # all methods together: a text's mean over them
        each = [by_text for (name, _), by_text in found.items() if name == metric]
        texts = dict.fromkeys(text for by_text in each for text in by_text)
        found[metric, ""] = {t: float(np.mean([by_text[t] for by_text in each if t in by_text])) for t in texts}
    return found


def difference(a: Sequence[dict[str, float]], b: Sequence[dict[str, float]]) -> str:
    """The first less the second, of seeds each, with a 95% interval over texts and seeds."""
    texts = sorted({t for seed in a for t in seed} & {t for seed in b for t in seed})
    first, second = (np.array([[seed.get(t, np.nan) for t in texts] for seed in side]) for side in (a, b))
    gap, low, high, _ = interval(second, first)
    return f"{gap:+.3f} ({low:+.3f} to {high:+.3f}), {len(texts)} texts"


def differences(task: str, folders: Sequence[Path], control: str) -> None:
    """What the claims compare."""
    seeds = [credits(folder, control) for folder in folders]
    methods = dict.fromkeys(method for _, method in seeds[0])
    for method in methods:
        others = [(name.split()[0], name) for name, of in seeds[0] if " " in name and not of]
        for a, b in (("Soft-NC", "NC"), ("Soft-NS", "NS"), ("NC", "NS"), ("Soft-NC", "Soft-NS"), *others):
            if (a, method) not in seeds[0] or (b, method) not in seeds[0]:
                continue
            gap = difference([seed[a, method] for seed in seeds], [seed[b, method] for seed in seeds])
            print(f"{task} {control} {method or 'all methods'}: {a} less {b}: {gap}")
    for metric in held(seeds[0], "NC", "Soft-NC", "NS", "Soft-NS"):
        gap = difference([seed[metric, "deeplift"] for seed in seeds], [seed[metric, "attention"] for seed in seeds])
        print(f"{task} {control} {metric}: DeepLift less attention: {gap}")
    first, last = ([credits(folder, control, ratio) for folder in folders] for ratio in (0, -1))
    for metric in held(seeds[0], "NC", "NS"):
        gap = difference([seed[metric, ""] for seed in last], [seed[metric, ""] for seed in first])
        print(f"{task} {control} {metric}: at the largest ratio less at the smallest: {gap}")


def spread(task: str, summaries: Sequence[AuditSummary], control: str) -> None:
    """The standard deviation over methods, metric by metric."""
    for name in held(rows_of(summaries[0], control), *METRICS.values()):
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
            per_seed += [np.nanmean(np.array(home, dtype=float), axis=0)] if home else []
        print(f"{task} {METRICS[metric]} by ratio: " + "; ".join(str(row.round(3).tolist()) for row in per_seed))


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for given in sys.argv[1:]:
        task, _, folders = given.partition("=")
        summaries = [read_summary(Path(folder)) for folder in folders.split(",")]
        for control in (each for each in CONTROLS if rows_of(summaries[0], each)):
            told(task, summaries, control)
            differences(task, [Path(folder) for folder in folders.split(",")], control)
            spread(task, summaries, control)
        curves(task, summaries)


if __name__ == "__main__":
    main()
