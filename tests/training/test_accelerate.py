"""Two processes under `accelerate launch` follow the loss curve of one."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from launching import on_two_processes
from toy import small_model, toy
from veridical.core import store
from veridical.training.config import TrainConfig
from veridical.training.train import train

CONFIG = TrainConfig(epochs=2, batch=8, lr=1e-3, head_lr=1e-3, threads=1)


def main(model: str, folder: str) -> None:
    # 41 texts: the last batch has one row for two processes.
    train(toy(train=41, dev=15, test=7), model, config=CONFIG, out=folder, progress=False)


def test_two_processes_follow_the_curve_of_one(tmp_path: Path):
    model = small_model(tmp_path / "model", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    main(model, str(tmp_path / "one"))
    on_two_processes(__file__, model, str(tmp_path / "two"))

    one, two = (store.read_jsonl(tmp_path / name / "train.jsonl") for name in ("one", "two"))
    assert store.read_json(tmp_path / "one" / "stamp.json")["processes"] == 1
    assert store.read_json(tmp_path / "two" / "stamp.json")["processes"] == 2
    steps = [(a, b) for a, b in zip(one, two, strict=True) if "loss" in a]
    assert len(steps) == 12
    for key in ("loss", "norm"):
        np.testing.assert_allclose([b[key] for _, b in steps], [a[key] for a, _ in steps], atol=1e-5)
    assert [b["encoder_lr"] for _, b in steps] == [a["encoder_lr"] for a, _ in steps]
    dev = [(a["dev"], b["dev"]) for a, b in zip(one, two, strict=True) if "dev" in a]
    for a, b in dev:
        np.testing.assert_allclose(list(b.values()), list(a.values()), atol=1e-5)
    stored = [store.read_parquet(tmp_path / name / "predictions.parquet").to_pydict() for name in ("one", "two")]
    assert stored[0]["id"] == stored[1]["id"]
    np.testing.assert_allclose(stored[1]["probabilities"], stored[0]["probabilities"], atol=1e-5)


if __name__ == "__main__":
    main(*sys.argv[1:])
