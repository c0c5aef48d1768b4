"""Memory and time per text of an evaluation as texts grow, each count in a fresh process.

Time is a multiple of one forward pass over the same texts, measured right before and after in the same process.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from benchmarks.memory import peak
from benchmarks.overhead import METHODS, applying
from benchmarks.results import machine, markdown, show, write_json, write_text
from benchmarks.subject import arguments, forward_pass, mean_length, subject, trained
from benchmarks.timing import clock

COUNTS = (100, 300, 1000)
QUICK_METHODS = (
    *("attention", "rollout", "attention_x_gradient", "gradient", "input_x_gradient", "frozen_gradient", "random"),
)
QUICK_METRICS = ("sufficiency", "comprehensiveness", "decision_flip")


def child(model: str, count: int, full: bool, threads: int, budget: int) -> dict[str, float]:
    """Evaluate `count` texts here, with files as an audit writes them."""
    import torch

    import veridical

    torch.set_num_threads(threads)
    held = subject(model, count, budget)
    methods, metrics = (METHODS, applying()) if full else (QUICK_METHODS, QUICK_METRICS)
    controls = ("permutation",) if full else ()

    def run(texts: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            veridical.evaluate(
                held.clf, held.examples[:texts], methods, metrics, controls=controls, out=folder, budget=budget
            )

    run(1)  # loads what is loaded once
    work = forward_pass(held).run

    def unit() -> float:  # short, so the median of several
        return statistics.median(clock(work)[0] for _ in range(5))

    before, first = peak(), unit()
    seconds, _ = clock(lambda: run(count))
    after = unit()
    return {
        "texts": count,
        "mean_tokens": mean_length(held.encoded),
        "before": before,
        "peak": peak(),
        "seconds": seconds,
        "passes": 2 * seconds / (first + after),
    }


def growth(model: str, counts: Sequence[int], *, full: bool, threads: int, budget: int) -> list[dict[str, float]]:
    rows = []
    for count in counts:
        command = [sys.executable, "-m", "benchmarks.growth", "--child", "full" if full else "quick", "--model", model]
        command += ["--texts", str(count), "--threads", str(threads), "--budget", str(budget)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)  # what is known if the next is interrupted
    return rows


def table(rows: Sequence[dict[str, float]]) -> tuple[list[str], list[list[str]]]:
    head = ["texts", "tokens per text", "before, MB", "peak, MB", "seconds per text", "forward passes"]
    return head, [
        [
            f"{r['texts']}",
            f"{r['mean_tokens']:.1f}",
            f"{r['before']:.0f}",
            f"{r['peak']:.0f}",
            f"{r['seconds'] / r['texts']:.2f}",
            f"{r['passes']:.0f}",
        ]
        for r in rows
    ]


def main() -> None:
    parser: argparse.ArgumentParser = arguments(__doc__ or "")
    parser.add_argument("--counts", default=",".join(map(str, COUNTS)), help="of the growth (default: %(default)s)")
    parser.add_argument(
        "--full", type=int, default=200, help="texts of one run with all metrics, 0: none (%(default)s)"
    )
    parser.add_argument("--child", choices=("quick", "full"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(child(given.model, given.texts, given.child == "full", given.threads, given.budget)))
        return
    model = str(trained(given.model))
    counts = [int(count) for count in given.counts.split(",") if count]
    same = {"threads": given.threads, "budget": given.budget}
    quick = growth(model, counts, full=False, **same)
    full = growth(model, [given.full] if given.full else [], full=True, **same)
    tables = {
        f"{len(QUICK_METHODS)} methods, {len(QUICK_METRICS)} metrics": table(quick),
        f"{len(METHODS)} methods, all {len(applying())} metrics, permutation control": table(full),
    }
    for title, (head, body) in tables.items():
        show(title, head, body)
    record = {"machine": machine(given.threads), "budget": given.budget, "quick": quick, "full": full}
    print(write_json(given.out / "growth.json", record))
    page = "\n\n".join(f"### {title}\n\n{markdown(*own)}" for title, own in tables.items())
    print(write_text(given.out / "growth.md", page + "\n"))


if __name__ == "__main__":
    main()
