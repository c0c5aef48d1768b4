"""What the grid adds to Recursive ROAR: its wall time over its bare passes, two workers against one, and ten kills.

Bare are the passes behind the results and nothing else: every epoch's forward and backward passes and updates on
batches that were padded beforehand, the forward passes that score a split, and the explanations. They are timed in this
process, before and after the grid runs with one worker; loading, encoding, masking, checkpoints, logs, stored orders,
summaries and pages are on the grid's side. What a kill cost is read from what the killed workers left.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.results import machine, markdown, show, write_json, write_text
from benchmarks.timing import clock
from veridical.attribution import methods
from veridical.core import store
from veridical.explanations.explain import attributions
from veridical.model.ask import batches_of
from veridical.retraining.roar.experiment import SPLITS, Bench, read_bench
from veridical.retraining.roar.point import SAVE_STEPS
from veridical.retraining.roar.roar import PAPER
from veridical.training.journal import CHECKPOINT, LOG
from veridical.training.rate import make_optimizer, order

OVERHEAD = 1.3
SAME = ("summary.json", "curves.parquet", "tables/areas.csv", "tables/points.csv")


def command(given: argparse.Namespace, out: Path, workers: int) -> list[str]:
    settings = [f"train.epochs={given.epochs}", "train.patience=none", "train.select=accuracy"]
    return [
        *(
            sys.executable,
            "-m",
            "veridical",
            "roar",
            "--data",
            f"babi/1:size={given.size}",
            "--model",
            "bilstm:hidden=128",
        ),
        *("--method", ",".join(PAPER), "--seeds", str(given.seeds), "--step", str(given.step), "--no-leakage"),
        *(word for one in settings for word in ("--set", one)),
        *("--workers", str(workers), "--out", str(out)),
    ]


def run(given: argparse.Namespace, out: Path, workers: int) -> float:
    """Wall seconds of the whole command, from its start to its end."""
    began = time.perf_counter()
    subprocess.run(command(given, out, workers), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


# -- bare passes --------------------------------------------------------------------------------------------


def bare_epoch(own: Bench) -> Callable[[], None]:
    clf, config = own.clf, own.experiment.config
    lengths = [len(e.ids) for e in own.encoded["train"]]
    batches = []
    for rows in order(lengths, config.batch, seed=own.seed, epoch=1):
        batches.append((_inputs(own, "train", rows), own.gold["train"][rows]))
    optimizer = make_optimizer(clf.model, config)

    def epoch() -> None:
        clf.model.train()
        for inputs, gold in batches:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(clf.model(**inputs).logits, gold).backward()
            torch.nn.utils.clip_grad_norm_(clf.model.parameters(), config.clip or float("inf"))
            optimizer.step()

    return epoch


def bare_look(own: Bench, split: str) -> Callable[[], None]:
    lengths = [len(e.ids) for e in own.encoded[split]]
    passes = [_inputs(own, split, rows) for rows in batches_of(lengths, own.experiment.config.budget)]

    def look() -> None:
        own.clf.model.eval()
        with torch.inference_mode():
            for inputs in passes:
                own.clf.model(**inputs)

    return look


def _inputs(own: Bench, split: str, rows: list[int]) -> dict[str, torch.Tensor]:
    batch = own.clf.collate([own.encoded[split][i] for i in rows])
    return {"input_ids": batch.ids, "attention_mask": batch.mask.long(), "token_type_ids": batch.types}


def bare_seconds(folder: Path) -> dict[str, float]:
    """Of an epoch, of scoring dev, of scoring test, and of every measure's explanation of all texts."""
    own = read_bench(folder, 0)
    own.clf.model.load_state_dict(own.first)
    texts = [e for split in SPLITS for e in own.encoded[split]]

    def explain(measure: str) -> Callable[[], Any]:
        own.clf.model.eval()
        return lambda: attributions(own.clf, texts, methods.choose(measure), "gold")

    works = {"epoch": bare_epoch(own), "dev": bare_look(own, "dev"), "test": bare_look(own, "test")}
    bare_look(own, "dev")()  # warm
    return {name: clock(work)[0] for name, work in works.items()} | {m: clock(explain(m))[0] for m in PAPER}


def bare_total(folder: Path, seconds: dict[str, float]) -> float:
    """Of all that the grid in the folder has run."""
    points = [store.read_json(path) for path in folder.glob("seed*/**/point.json")]
    rows = {row["measure"]: row["explanations"] for row in store.read_json(folder / "time.json")["rows"]}
    training = sum(p["epochs"] * (seconds["epoch"] + seconds["dev"]) + seconds["dev"] + seconds["test"] for p in points)
    return training + sum(rows[measure] * seconds[measure] for measure in PAPER)


# -- kills --------------------------------------------------------------------------------------------------


def killed_run(given: argparse.Namespace, out: Path, lasts: float, kills: int) -> dict[str, Any]:
    """The same grid by two workers, all processes killed at random moments; the steps of training lost each time."""
    chance, lost, met = random.Random(3), [], 0
    while True:
        process = subprocess.Popen(
            command(given, out, 2), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            if process.wait(chance.uniform(0.3, 1.5) * lasts / kills if met < kills else None) == 0:
                return {"kills": met, "lost_steps": lost}
            raise subprocess.CalledProcessError(process.returncode, process.args)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            met += 1
            lost += [_unsaved(work) for work in out.glob("seed*/**/*.work-*")]


def _unsaved(work: Path) -> int:
    """Steps in a killed training's log that its checkpoint does not have."""
    if not (work / LOG).exists():
        return 0
    steps = [row["step"] for row in store.read_jsonl(work / LOG) if "loss" in row]
    held = torch.load(work / CHECKPOINT, weights_only=True)["state"]["step"] if (work / CHECKPOINT).exists() else 0
    return max(0, max(steps, default=0) - held)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=500, help="examples of generated bAbI-1")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--step", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        one, two, killed = (Path(place) / name for name in ("one", "two", "killed"))
        subprocess.run([*command(given, one, 1), "--dry-run"], check=True, stdout=subprocess.DEVNULL)
        before = bare_seconds(one)
        alone = run(given, one, 1)
        after = bare_seconds(one)
        bare = sum(bare_total(one, seconds) for seconds in (before, after)) / 2
        both = run(given, two, 2)
        kills = killed_run(given, killed, both, given.kills)
        alike = {name: len({(out / name).read_bytes() for out in (one, two, killed)}) == 1 for name in SAME}
        points = len(list(one.glob("seed*/**/point.json")))
    head = ["", "at most", "found"]
    rows = [
        ["one worker over bare passes, wall time", f"{OVERHEAD}", f"{alone / bare:.2f}"],
        ["one worker over two, wall time", "", f"{alone / both:.2f}"],
        [f"kills of the run by two workers, each of all its processes ({given.kills})", "", f"{kills['kills']}"],
        ["steps of training lost by a killed worker", f"{SAVE_STEPS}", f"{max(kills['lost_steps'], default=0)}"],
        ["tables of all three runs", "equal", "equal" if all(alike.values()) else "NOT equal"],
    ]
    what = (
        f"bAbI-1 at {given.size} examples, {len(PAPER)} measures + random, seeds {given.seeds}, steps of {given.step}%"
    )
    show(f"{what}: {points} trainings of {given.epochs} epochs, {alone:.0f} s with one worker", head, rows)
    settings = {name: getattr(given, name) for name in ("size", "seeds", "step", "epochs")}
    record = {
        "machine": machine(1),
        **settings,
        "trainings": points,
        "bare": {"before": before, "after": after, "seconds": bare},
        "one_worker": alone,
        "two_workers": both,
        **kills,
        "alike": alike,
    }
    print(write_json(given.out / "roar.json", record))
    print(write_text(given.out / "roar.md", markdown(head, rows) + "\n"))


if __name__ == "__main__":
    main()
