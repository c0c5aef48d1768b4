"""`make bench`: all benchmarks, one after the other."""

from __future__ import annotations

import subprocess
import sys

PARTS = (
    "startup",
    "memory",
    "budgets",
    "explain",
    "overhead",
    "audit",
    "sequential",
    "verdict",
    "growth",
    "sanity",
    "decompose",
    "decoders",
    "integrated",
    "objectives",
    "regex_guides",
    "roar",
    "training",
)

if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] not in PARTS:
        sys.exit(f"{sys.argv[1]!r} is not a benchmark; allowed: {', '.join(PARTS)}, or nothing for all of them.")
    chosen, options = ([sys.argv[1]], sys.argv[2:]) if len(sys.argv) > 1 else (PARTS, [])
    for part in chosen:  # each in a process of its own: memory held by one is not another's
        if code := subprocess.run([sys.executable, "-m", f"benchmarks.{part}", *options]).returncode:
            sys.exit(code)
