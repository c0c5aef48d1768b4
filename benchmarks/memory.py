"""Peak memory for ever more texts, each count in a fresh process: the token budget bounds it, the texts do not."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.results import show, write_json
from benchmarks.subject import arguments, subject, trained

METHODS = ("input_x_gradient", "occlusion")
COUNTS = (48, 480, 4800)
TEXTS = 48  # as many different ones; the rest are repetitions


def peak() -> float:
    """The most memory this process has held, in megabytes."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count what the parent held before this process began
        (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) / 1024
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / 1024**2 if sys.platform == "darwin" else size / 1024


def child(model: str, method: str, count: int, threads: int, budget: int) -> dict[str, float]:
    """Explain `count` texts here; the peak before and after."""
    import torch

    from veridical.attribution import methods
    from veridical.explanations.explain import attributions

    torch.set_num_threads(threads)
    held = subject(model, TEXTS, budget)
    encoded = [held.encoded[i % TEXTS] for i in range(count)]
    attributions(held.clf, encoded[:1], methods.choose(method), budget=budget)  # loads what is loaded once
    before = peak()
    kept = attributions(held.clf, encoded, methods.choose(method), budget=budget)
    return {"before": before, "peak": peak(), "scores": sum(a.scores.nbytes for a in kept) / 1024**2}


def memory(
    model: str, counts: Sequence[int] = COUNTS, *, threads: int = 2, budget: int
) -> list[dict[str, float | str]]:
    rows: list[dict[str, float | str]] = []
    for method in METHODS:
        for count in counts:
            command = [sys.executable, "-m", "benchmarks.memory", "--child", method, "--model", model]
            command += ["--texts", str(count), "--threads", str(threads), "--budget", str(budget)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            rows.append({"method": method, "texts": count, **json.loads(done.stdout.splitlines()[-1])})
    return rows


def table(rows: Sequence[dict[str, float | str]]) -> tuple[list[str], list[list[str]]]:
    head = ["method", "texts", "before, MB", "peak, MB", "growth, MB", "of it scores, MB"]
    body = [
        [
            str(r["method"]),
            f"{r['texts']:,}",
            *(f"{v:.0f}" for v in (r["before"], r["peak"], float(r["peak"]) - float(r["before"]))),
            f"{r['scores']:.1f}",
        ]
        for r in rows
    ]
    return head, body


def main() -> None:
    parser: argparse.ArgumentParser = arguments(__doc__ or "")
    parser.add_argument("--counts", default=",".join(map(str, COUNTS)), help="(default: %(default)s)")
    parser.add_argument("--child", metavar="METHOD", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(child(given.model, given.child, given.texts, given.threads, given.budget)))
        return
    counts = [int(count) for count in given.counts.split(",")]
    rows = memory(str(trained(given.model)), counts, threads=given.threads, budget=given.budget)
    show("Peak memory", *table(rows))
    print(write_json(given.out / "memory.json", {"budget": given.budget, "rows": rows}))


if __name__ == "__main__":
    main()
