"""A finished benchmark with made-up scores: what the summary and the page are tested on without training anything."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from inprocess import MODEL, TINY

from toy import toy
from veridical.core import store
from veridical.retraining.roar.cells import RANDOM, curve_place, leak_place, place
from veridical.retraining.roar.experiment import SPLITS, asked, begin, read_bench
from veridical.retraining.roar.mask import Steps
from veridical.retraining.roar.points import Request
from veridical.retraining.roar.summary import write_facts

GOOD, EVEN, LEAKY = "attention", "gradient:over=vocabulary", "input_x_gradient:aggregate=abs"
# How fast a curve falls from 0.95 to 0.5; the last one rises before it does.
FALL = {RANDOM: 1.0, GOOD: 4.0, EVEN: 1.0, LEAKY: 0.35}


def write_point(folder: Path, score: float) -> None:
    scores = {"macro_f1": score, "accuracy": score, "auroc": score, "loss": 1 - score, "calibration_error": 0.1}
    point = {
        "scores": {"dev": scores, "test": scores},
        "epochs": 7,
        "best_epoch": 5,
        "dev": [score] * 7,
        "seconds": 61.5,
    }
    store.write_json(folder / "point.json", point)


def made_up(folder: Path, *, seeds: int = 5, kinds: tuple[bool, ...] = (True, False), until: int = 100) -> Request:
    """A folder whose points are done, up to `until` per cent, and what is to be asked of it."""
    experiment = asked(folder, toy(24, 8, 8), MODEL, config=TINY, limit=None, rounding="floor")
    begin(experiment)
    write_facts(read_bench(experiment.folder, 0))
    request = Request((GOOD, EVEN, LEAKY), tuple(range(seeds)), Steps(10), kinds, "macro_f1")
    for seed in request.seeds:
        home = folder / f"seed{seed}"
        rng = np.random.default_rng(seed)
        write_point(home / "whole", 0.95)
        write_point(home / "masked", 0.5)
        for measure, recursive in [(RANDOM, False), *((m, k) for k in kinds for m in request.measures)]:
            here = home / curve_place(measure, request.steps, recursive)
            fall = FALL[measure] if recursive or measure == RANDOM else 1.0
            for amount in request.steps.amounts:
                if amount.value <= until:
                    share = amount.value / 100
                    write_point(here / amount.name, 0.5 + 0.45 * (1 - share ** (1 / fall)) + float(rng.normal(0, 0.01)))
            if measure == LEAKY:
                for amount in request.steps.amounts:
                    write_point(leak_place(here, amount), 0.8)
        for measure in request.measures:
            for split in SPLITS:
                texts = len(experiment.data.splits[split])
                columns = {"order": [[1, 2]] * texts, "seconds": [0.5] * texts}
                if split == "test":
                    columns |= {"by_tokens": [[k / 10 for k in range(1, 11)]] * texts}
                    columns |= {"by_share": [[(k / 10) ** 0.5 for k in range(1, 10)]] * texts}
                store.write_parquet(home / place(measure) / "order" / split / "part-0000.parquet", columns)
    return request
