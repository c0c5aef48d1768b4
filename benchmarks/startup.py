"""How soon the command line answers: `veridical --help` against importing torch and transformers."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.results import write_json

BOUND = 0.5


def startup(repeats: int = 5) -> dict[str, object]:
    """Median seconds of both, run in turn in fresh processes after one warm-up each, and their ratio."""
    commands = {
        "veridical --help": [str(Path(sys.executable).with_name("veridical")), "--help"],
        "import torch, transformers": [sys.executable, "-c", "import torch, transformers"],
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for repeat in range(repeats + 1):
        for name, command in commands.items():
            began = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            if repeat:
                taken[name].append(time.perf_counter() - began)
    seconds = {name: statistics.median(values) for name, values in taken.items()}
    ratios = [a / b for a, b in zip(*taken.values(), strict=True)]
    ratio = statistics.median(ratios)
    return {"seconds": seconds, "ratio": ratio, "ratios": ratios, "bound": BOUND, "holds": ratio <= BOUND}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="(default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="(default: %(default)s)")
    given = parser.parse_args()
    found = startup(given.repeats)
    print(json.dumps(found, indent=2))
    print(write_json(given.out / "startup.json", found))


if __name__ == "__main__":
    main()
