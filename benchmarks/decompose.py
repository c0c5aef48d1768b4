"""The decompositions as multiples of one plain forward pass, from 32 to 1,024 tokens, and the memory they hold.

Random BERTs of base size and of the embedded encoder's, one text, every method and length in a fresh process. The unit
is the model itself with eager attention and no gradients. Multiply-adds are counted by torch, not derived; what the
definition of DecompX needs at least is derived below. The authors' figures were measured with their released code in
the same way, in processor time on two threads.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertConfig, BertForSequenceClassification

from benchmarks.memory import peak
from benchmarks.results import machine, markdown, show, spread, write_json, write_text
from benchmarks.subject import arguments
from benchmarks.timing import clock
from veridical.explanations.attribute import attribute
from veridical.model.classifier import Classifier

LENGTHS = (32, 64, 128, 256, 512, 1024)
SIZES = {"base": (12, 768, 12), "small": (6, 384, 12)}  # layers, width, heads; small is the embedded encoder's
LINEAR = ("frozen_gradient", *(f"decompx_classifier:bias={b}" for b in ("none", "token", "equal", "cls", "late")))
ABSDOT, ALTI = "decompx_classifier", "alti"
AUTHORS = {  # forward passes and peak gigabytes of the released code, base size
    ABSDOT: {32: (21, 0.94), 64: (55, 1.39), 128: (156, 2.75), 256: (391, 8.68)},
    ALTI: {32: (20, 1.09), 64: (48, 2.12), 128: (180, 4.61), 256: (360, 15.70)},
}
CLASSES = 2


def subject(size: str, length: int) -> tuple[Classifier, torch.Tensor]:
    layers, width, heads = SIZES[size]
    torch.manual_seed(0)
    config = BertConfig(
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        max_position_embeddings=max(512, length),
        num_labels=CLASSES,
        attn_implementation="eager",
    )
    clf = Classifier(BertForSequenceClassification(config).eval())
    return clf, torch.randint(1000, 30000, (1, length))


def child(size: str, method: str, length: int, repeats: int, threads: int) -> dict[str, Any]:
    """Wall and processor time over the unit's, right before and after; the peak before and during."""
    torch.set_num_threads(threads)
    clf, ids = subject(size, length)

    def plain() -> None:
        with torch.inference_mode():
            clf.model(ids)

    def unit() -> tuple[float, float]:
        taken = [clock(plain) for _ in range(5 if length < 512 else 3)]
        return statistics.median(t[0] for t in taken), statistics.median(t[1] for t in taken)

    def run() -> None:
        attribute(clf, ids, method=method)

    attribute(clf, ids[:, :16], method=method)  # wiring's check, and what is loaded once
    plain()
    held = peak()
    with FlopCounterMode(display=False) as once:
        plain()
    wall, processor, before = [], [], unit()
    for _ in range(repeats):
        own, after = clock(run), unit()
        wall.append(2 * own[0] / (before[0] + after[0]))
        processor.append(2 * own[1] / (before[1] + after[1]))
        before = after
    reached = peak()
    found = {"wall": wall, "processor": processor, "before": held, "peak": reached, "unit_seconds": before[0]}
    if method != ABSDOT or length <= 256:  # counting slows it down and repeats it: once more only where that is short
        with FlopCounterMode(display=False) as counted:
            run()
        found["adds"] = counted.get_total_flops() / 2
    return {**found, "plain_adds": once.get_total_flops() / 2}


def needed(size: str, length: int) -> float:
    """Multiply-adds that DecompX with a rule inside the layers needs besides the forward pass, at least.

    A vector per target and source: two feed-forward products (8 D^2) in all layers but the last, or where the text is
    long one product with a matrix per target that costs 4 D^3 to make; attention mixes sources (N D) and maps values
    and outputs (2 D^2) in the layers between; the first layer's sources have one vector each, the last has one target.
    """
    layers, D, heads = SIZES[size]
    pairs = length * length
    forward = min(8 * D * D * pairs, 4 * D**3 * length + D * D * pairs)
    first, last = length * D * D + pairs * heads * D, pairs * D + length * 10 * D * D
    return (layers - 1) * forward + (layers - 2) * (2 * D * D + length * D) * pairs + first + last


def lengths_of(size: str, method: str, longest: int) -> list[int]:
    limit = min(longest, 512 if (size, method) == ("base", ABSDOT) else 1024)  # its vectors alone would take 3.2 GB
    some = (128, 512) if method in LINEAR[1:-1] else LENGTHS  # these differ in how one sum is shared out, no more
    return [length for length in some if length <= limit]


def measure(size: str, methods: Sequence[str], longest: int, threads: int) -> list[dict[str, Any]]:
    rows = []
    for method in methods:
        for length in lengths_of(size, method, longest):
            slow = method == ABSDOT
            repeats = 1 if slow and length > 128 else 3 if length < 1024 else 2
            command = [sys.executable, "-m", "benchmarks.decompose", "--child", method, "--size", size]
            command += ["--length", str(length), "--repeats", str(repeats), "--threads", str(threads)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            row = {"size": size, "method": method, "tokens": length, **json.loads(done.stdout.splitlines()[-1])}
            if slow:
                row["needed"] = needed(size, length)
            rows.append(row)
            print(f"{size} {method} {length}: {statistics.median(row['wall']):.2f}", file=sys.stderr, flush=True)
    return rows


def bound(row: dict[str, Any]) -> float | None:
    """What was promised of a row, in forward passes, for the base size."""
    method, tokens = row["method"], row["tokens"]
    if row["size"] != "base":
        return None
    if method in LINEAR:
        return 3.0 + (CLASSES - 1 if method.endswith("late") else 0)
    if method == ALTI:
        return {128: 4.0, 512: 8.0}.get(tokens)
    return AUTHORS[ABSDOT][128][0] / 1.4 if tokens == 128 else None


def table(rows: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    head = ["model", "method", "tokens", "forward passes", "at most", "holds", "over the model, MB", "authors' code"]
    body = []
    for row in rows:
        limit, ratio = bound(row), statistics.median(row["wall"])
        theirs = AUTHORS.get(row["method"], {}).get(row["tokens"]) if row["size"] == "base" else None
        body.append(
            [
                row["size"],
                row["method"],
                f"{row['tokens']:,}",
                spread(row["wall"]),
                "" if limit is None else f"{limit:.1f}",
                "" if limit is None else "yes" if ratio <= limit else "NO",
                f"{row['peak'] - row['before']:.0f}",
                "" if theirs is None else f"{theirs[0]} passes, {theirs[1]:.1f} GB in all",
            ]
        )
    return head, body


def work_table(rows: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Multiply-adds of the rule inside the layers, over those of a forward pass."""
    head = ["model", "tokens", "needed at least", "done", "done / needed"]
    return head, [
        [
            row["size"],
            f"{row['tokens']:,}",
            f"{row['needed'] / row['plain_adds']:.1f}",
            f"{row['adds'] / row['plain_adds']:.1f}",
            f"{(row['adds'] - row['plain_adds']) / row['needed']:.2f}",
        ]
        for row in rows
        if "needed" in row and "adds" in row
    ]


COLOURS = ("#0072b2", "#d55e00", "#009e73")


def plot(rows: Sequence[dict[str, Any]]) -> str:
    """Forward passes and memory over tokens, both on logarithmic scales: base size, ours solid, the authors' dotted."""
    base = [row for row in rows if row["size"] == "base"]
    shown = [m for m in (LINEAR[0], ALTI, ABSDOT) if any(row["method"] == m for row in base)]
    panels = []
    for left, title, value, theirs, low, high in (
        (60, "forward passes", lambda r: statistics.median(r["wall"]), 0, 1, 1000),
        (430, "megabytes over the model", lambda r: r["peak"] - r["before"], None, 10, 10000),
    ):
        parts = [f'<text x="{left}" y="24" font-weight="600">{title}</text>']

        def at(tokens: float, y: float, left: float = left, low: float = low, high: float = high) -> str:
            x = left + 290 * math.log2(tokens / 32) / 5
            share = (math.log10(max(y, low)) - math.log10(low)) / (math.log10(high) - math.log10(low))
            return f"{x:.1f},{300 - 250 * share:.1f}"

        for tokens in LENGTHS:
            x = at(tokens, low).split(",")[0]
            parts.append(f'<text x="{x}" y="320" text-anchor="middle">{tokens}</text>')
        for power in range(round(math.log10(low)), round(math.log10(high)) + 1):
            y = at(32, 10**power).split(",")[1]
            parts.append(f'<path d="M{left} {y}h290" stroke="#8884"/>')
            parts.append(f'<text x="{left - 8}" y="{y}" dy="4" text-anchor="end">{10**power:,}</text>')
        for method, colour in zip(shown, COLOURS, strict=False):
            own = [at(row["tokens"], value(row)) for row in base if row["method"] == method]
            parts.append(f'<polyline points="{" ".join(own)}" fill="none" stroke="{colour}" stroke-width="2"/>')
            if theirs is not None and method in AUTHORS:
                dots = [at(tokens, figures[theirs]) for tokens, figures in AUTHORS[method].items()]
                parts.append(
                    f'<polyline points="{" ".join(dots)}" fill="none" stroke="{colour}" stroke-dasharray="2 5"/>'
                )
        panels.append("".join(parts))
    legend = "".join(
        f'<path d="M{60 + 230 * i} 352h24" stroke="{colour}" stroke-width="2"/>'
        f'<text x="{92 + 230 * i}" y="356">{method}</text>'
        for i, (method, colour) in enumerate(zip(shown, COLOURS, strict=False))
    )
    note = '<text x="60" y="376">Tokens against cost, base size. Dotted: the authors\' code.</text>'
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 392" font-family="system-ui, sans-serif" '
        f'font-size="12" fill="#666">{"".join(panels)}{legend}{note}</svg>\n'
    )


def main() -> None:
    parser: argparse.ArgumentParser = arguments(__doc__ or "", repeats=3)
    parser.add_argument("--methods", default=",".join((*LINEAR, ALTI, ABSDOT)), help="(default: %(default)s)")
    parser.add_argument("--sizes", default="base,small", help="(default: %(default)s)")
    parser.add_argument("--longest", type=int, default=1024, help="tokens (default: %(default)s)")
    parser.add_argument("--child", metavar="METHOD", help=argparse.SUPPRESS)
    parser.add_argument("--size", help=argparse.SUPPRESS)
    parser.add_argument("--length", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(child(given.size, given.child, given.length, given.repeats, given.threads)))
        return
    rows = [
        row
        for size in given.sizes.split(",")
        for row in measure(size, given.methods.split(","), given.longest, given.threads)
    ]
    tables = {"Time and memory": table(rows), "Multiply-adds of decompx, in forward passes": work_table(rows)}
    for title, (head, body) in tables.items():
        show(title, head, body)
    print(write_json(given.out / "decompose.json", {"machine": machine(given.threads), "rows": rows}))
    page = "\n\n".join(f"### {title}\n\n{markdown(*own)}" for title, own in tables.items())
    print(write_text(given.out / "decompose.md", page + "\n"))
    print(write_text(given.out / "decompose.svg", plot(rows)))


if __name__ == "__main__":
    main()
