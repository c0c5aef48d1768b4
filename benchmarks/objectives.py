"""What an objective adds to training: time and peak memory of its steps relative to those of cross-entropy.

The embedded encoder on movie sentences, each objective in a fresh process, its run between two of cross-entropy alone.
Times are of the steps themselves, the first left out; loading, preparing priors and scoring are not in them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.memory import peak
from benchmarks.results import machine, markdown, show, spread, write_json, write_text
from benchmarks.subject import DATA

REGEX = "virtual_adversarial:weight=0.5,input_gradient:weight=0.01,explanation_guided:weight=0.01"
GUIDED = "explanation:source=lexicon"
OBJECTIVES: dict[str, float | None] = {  # and how many times cross-entropy's steps it may take
    "saloss:weight=0.1": 1.3,
    GUIDED: 1.3,
    f"{GUIDED}:method=rollout": 1.3,
    f"{GUIDED}:method=input_x_gradient": 3.5,
    f"{GUIDED}:method=frozen_gradient": None,
    f"{GUIDED}:method=alti": None,
    "input_gradient:weight=0.01": 3.5,
    "virtual_adversarial:weight=0.5": 4.0,
    "explanation_guided:weight=0.01": None,
    REGEX: 9.0,
}


def step_seconds(objective: str, steps: int, threads: int) -> float:
    """The median step of a short run."""
    import veridical
    from veridical.data import load_data
    from veridical.training.config import TrainConfig

    data = load_data(DATA)
    few = {"train": data.splits["train"][: steps * 32]}
    config = TrainConfig(epochs=1, batch=32, select="last", threads=threads)
    with tempfile.TemporaryDirectory() as folder:
        veridical.train(
            type(data)(data.name, data.labels, few),
            "minilm",
            objective=objective,
            config=config,
            out=Path(folder) / "run",
            progress=False,
        )
        rows = [json.loads(line) for line in (Path(folder) / "run" / "train.jsonl").read_text().splitlines()]
    at = [row["seconds"] for row in rows if "loss" in row]
    return statistics.median(b - a for a, b in pairwise(at))


def child(objective: str, steps: int, repeats: int, threads: int) -> dict[str, Any]:
    before = step_seconds("cross_entropy", steps, threads)
    held, ratios = peak(), []
    for _ in range(repeats):
        own = step_seconds(objective, steps, threads)
        after = step_seconds("cross_entropy", steps, threads)
        ratios.append(2 * own / (before + after))
        before = after
    return {"objective": objective, "ratios": ratios, "plain_peak": held, "peak": peak(), "plain_step": before}


def table(rows: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    head = ["objective", "time, cross-entropy = 1", "at most", "holds", "peak, MB", "of cross-entropy's"]
    body = []
    for row in rows:
        limit, ratio = OBJECTIVES[row["objective"]], statistics.median(row["ratios"])
        body.append(
            [
                row["objective"],
                spread(row["ratios"]),
                "" if limit is None else f"{limit:g}",
                "" if limit is None else "yes" if ratio <= limit else "NO",
                f"{row['peak']:.0f}",
                f"{row['peak'] / row['plain_peak']:.2f}",
            ]
        )
    return head, body


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10, help="of each run, 32 sentences each (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="(default: %(default)s)")
    parser.add_argument("--child", metavar="OBJECTIVE", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(child(given.child, given.steps, given.repeats, given.threads)))
        return
    rows = []
    for objective in OBJECTIVES:
        command = [sys.executable, "-m", "benchmarks.objectives", "--child", objective, "--steps", str(given.steps)]
        command += ["--repeats", str(given.repeats), "--threads", str(given.threads)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print(f"{objective}: {statistics.median(rows[-1]['ratios']):.2f}", file=sys.stderr, flush=True)
    show("Training steps, relative to cross-entropy", *table(rows))
    print(write_json(given.out / "objectives.json", {"machine": machine(given.threads), "rows": rows}))
    print(write_text(given.out / "objectives.md", markdown(*table(rows)) + "\n"))


if __name__ == "__main__":
    main()
