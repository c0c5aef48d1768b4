"""What a verdict costs.

*Counted*: passes of an audit of every method on texts of about 130 tokens, until its verdict, against the same panel on
200 texts, and against what an audit asked before it learnt to stop. Counts depend on the model and the texts alone.
*Timed*: the same verdict by a loop over 200 texts that batches what it asks of a text, and by interpreto's curves; and
one worker against two. Ratios within one run; the loops' time is that of a few texts, times 200.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

import veridical
from benchmarks import peer_curves
from benchmarks.audit import BATCH, explain
from benchmarks.peer_interpreto import INSTALL, installed
from benchmarks.peer_loop import Loop
from benchmarks.results import machine, markdown, show, write_json, write_text
from benchmarks.subject import DATA, arguments, subject, trained
from benchmarks.timing import clock
from veridical.audits.audit import Audit
from veridical.audits.plan import scoring_passes, typical_text
from veridical.core import assets
from veridical.probes.validation.panels import HARD as PANEL
from veridical.training.config import TrainConfig

LONG = "planted:rule=conjunction:length=25"  # about 130 tokens
LONG_MODEL = "minilm:layers=2"
# What an audit asked by default before 0.2, of every explanation and of its shuffle; corr and loo_tau beside them, once
# of a text without each of its tokens.
SIX = (*PANEL, "soft_sufficiency", "soft_comprehensiveness", "monotonicity")
TEXTS = 200
Row = dict[str, Any]


def long_model(folder: str | None) -> Path:
    """A small encoder that has learnt long texts; trained at the first call."""
    if folder is not None:
        return Path(folder)
    home = assets.cache_root() / "benchmarks" / "minilm2-long"
    how = TrainConfig(epochs=5, lr=3e-4, schedule="constant", warmup=0.0, select="accuracy", enough=0.95)
    return veridical.train(LONG, LONG_MODEL, config=how, out=home).folder


def counted(folder: str | None, data: str, methods: Sequence[str] | None, out: Path) -> Row:
    """The audit of every method, as it is by default. What it asks is on file, so the same call goes on."""
    model = long_model(folder)
    done = veridical.audit(str(model), data, methods=methods, out=out)
    (spending, *_), look = done.summary.spending, done.summary.looks[-1]
    clf = veridical.load(model)
    text = typical_text(clf.encode(veridical.load_data(data).splits["test"]))
    costs = [method.passes or 0.0 for method in done.summary.methods if not method.name.startswith("random")]
    six = scoring_passes(clf, text, SIX, ("permutation",))
    return {
        "methods": len(costs),
        "tokens": len(text.ids),
        "texts": look.texts,
        "ended": look.ended,
        "verdict": done.verdict,
        "spent": spending.spent,
        "fixed": spending.fixed * TEXTS / look.texts,
        "before": TEXTS * (1 + sum(text.free) + sum(costs) + len(costs) * six),
    }


def timed(folder: str | None, texts: int, budget: int, repeats: int) -> list[Row]:
    """An audit of six methods until its verdict against loops over 200 texts, by the same metrics."""
    held = subject(folder, texts, budget)
    loop = Loop(held, together=True)
    names = list(loop.methods)
    rows: list[Row] = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as out:
            audits: list[Audit] = []
            ours, _ = clock(lambda out=out, audits=audits: audits.append(_audit(trained(folder), out, names)))
        given = explain(held, names)

        def by_loop(given: Sequence[Any] = given) -> None:
            for run in loop.methods.values():
                run()
            for attribution in given:
                for metric in PANEL:
                    loop.metrics[metric](attribution)

        looped, _ = clock(by_loop)
        row: Row = {
            "verdict": audits[0].verdict,
            "texts": audits[0].summary.looks[-1].texts,
            "ours": ours,
            "loop": looped / texts * TEXTS / ours,
            "interpreto": None,
        }
        if installed():
            explaining, _ = clock(lambda: explain(held, names))
            curves, _ = clock(peer_curves.Curves(held, given, BATCH))
            row["interpreto"] = (explaining + curves) / texts * TEXTS / ours
        rows.append(row)
    return rows


def _audit(model: Path, out: str, methods: Sequence[str], **how: Any) -> Audit:
    return veridical.audit(str(model), DATA, methods=methods, metrics=PANEL, out=Path(out) / "audit", **how)


def workers(folder: str | None, methods: Sequence[str], texts: int) -> float:
    """How many times longer one worker takes than two; either loads the model itself, which counts."""
    taken = []
    for count in (1, 2):
        with tempfile.TemporaryDirectory() as out:
            how = {"fixed": texts, "workers": count}
            taken.append(clock(lambda out=out, how=how: _audit(trained(folder), out, methods, **how))[0])
    return taken[0] / taken[1]


def main() -> None:
    parser: argparse.ArgumentParser = arguments(__doc__ or "", texts=8, repeats=2)
    parser.add_argument("--long", metavar="FOLDER", help="a classifier of long texts to count on")
    parser.add_argument("--data", default=LONG, help="its texts (default: %(default)s)")
    parser.add_argument("--method", default=None, help="methods to count (default: all)")
    parser.add_argument("--part", default="counted,timed,workers", help="(default: %(default)s)")
    parser.add_argument("--audit", type=Path, default=None, help="where the counted audit lies (default: a new folder)")
    parser.add_argument("--spread", type=int, default=96, help="texts for the workers (default: %(default)s)")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    parts, record, body = given.part.split(","), {"machine": machine(given.threads)}, []
    if "counted" in parts:
        methods = given.method.split(",") if given.method else None
        audited = counted(given.long, given.data, methods, given.audit or Path(tempfile.mkdtemp()) / "audit")
        record["counted"] = audited
        what = f"{audited['methods']} methods, {audited['tokens']} tokens"
        body += [
            [f"{what}: passes until the verdict ({audited['texts']} texts)", "100,000", f"{audited['spent']:,.0f}"],
            ["the same over fixed 200", "1/3", f"1/{audited['fixed'] / audited['spent']:.1f}"],
            ["the same over eight metrics on 200 texts", "", f"1/{audited['before'] / audited['spent']:.1f}"],
        ]
    if "timed" in parts:
        rows = timed(given.model, given.texts, given.budget, given.repeats)
        record["timed"] = rows
        for who, bound in (("loop", 10), ("interpreto", 5)):
            values = [row[who] for row in rows if row[who] is not None]
            ratios = f"{min(values):.1f} to {max(values):.1f}" if values else INSTALL
            body.append([f"{who} over ours, to the verdict", f"at least {bound}", ratios])
    if "workers" in parts:
        record["workers"] = workers(given.model, ("attention", "input_x_gradient", "occlusion"), given.spread)
        body.append(["two workers over one", "at least 1.7", f"{record['workers']:.2f}"])
    head = ["what", "asked for", "found"]
    show("What a verdict costs", head, body)
    print(write_json(given.out / "verdict.json", record))
    print(write_text(given.out / "verdict.md", markdown(head, body) + "\n"))


if __name__ == "__main__":
    main()
