"""A run that is stopped at any write and started again ends as an undisturbed one, to the last bit.

Real kills at random moments are in tests/test_kills.py.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from guided import guided
from toy import small_model, toy
from veridical.core import store
from veridical.core.errors import InputError
from veridical.training.config import TrainConfig
from veridical.training.train import Run, train

CONFIG = TrainConfig(epochs=3, batch=8, lr=2e-3, head_lr=2e-3, select="loss", patience=2)


# Plain cross-entropy; a term that differentiates a gradient, under a bound, so that there is a multiplier too; and all
# the other terms at once, with their priors, noise, guides and masks.
KINDS: dict[str, dict[str, Any]] = {
    "plain": {"data": toy()},
    "bounded": {
        "data": guided(),
        "objective": "explanation:method=input_x_gradient",
        "bound": "explanation=0.2+9",
    },
    "terms": {
        "data": toy(),
        "objective": "saloss:weight=0.1,virtual_adversarial:weight=0.5,input_gradient:weight=0.01,"
        "explanation_guided:weight=0.01",
    },
}
# `make test` kills a plain training; the others are left to `make test-all`.
MANY_KILLS = [pytest.param(kind, marks=() if kind == "plain" else pytest.mark.kill) for kind in KINDS]


def run(model: str, folder: Path, kind: str = "plain") -> Run:
    return train(**KINDS[kind], model=model, config=CONFIG, seed=7, out=folder, save_steps=3, progress=False)


def result(folder: Path) -> dict[str, Any]:
    """Everything a finished run holds, without its clocks."""
    scores = store.read_json(folder / "scores.json")
    stamp = store.read_json(folder / "stamp.json")
    return {
        "files": sorted(str(path.relative_to(folder)) for path in folder.rglob("*")),
        "weights": (folder / "model" / "model.safetensors").read_bytes(),
        "predictions": (folder / "predictions.parquet").read_bytes(),
        "log": [{k: v for k, v in row.items() if k != "seconds"} for row in store.read_jsonl(folder / "train.jsonl")],
        "scores": {k: v for k, v in scores.items() if k != "seconds"},
        "stamp": {k: v for k, v in stamp.items() if k != "time"},
        "spec": (folder / "spec.json").read_bytes(),
    }


class Killed(BaseException):
    """Stands for SIGKILL where the test must live on."""


@pytest.mark.parametrize("kind", MANY_KILLS)
def test_killed_before_any_write_takes_effect(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Every rename in turn is the one that no longer happens; nothing is tidied up, as after kill -9."""
    model = small_model(tmp_path / "model")
    run(model, tmp_path / "whole", kind)
    expected = result(tmp_path / "whole")
    rename, calls = os.replace, [0]

    def dies(fatal: int) -> Any:
        def replace_or_die(source: Any, target: Any) -> None:
            calls[0] += 1
            if calls[0] == fatal:
                raise Killed
            rename(source, target)

        return replace_or_die

    fatal, leftovers = 1, 0
    while True:
        folder = tmp_path / f"killed-{fatal}"
        with monkeypatch.context() as patch:
            calls[0] = 0
            patch.setattr(store.os, "replace", dies(fatal))
            patch.setattr(store, "remove", lambda path: None)
            try:
                run(model, folder, kind)
                break  # it never came to a rename of that number
            except Killed:
                leftovers += any(path.name.startswith(store.TEMPORARY) for path in folder.rglob("*"))
        run(model, folder, kind)
        assert result(folder) == expected, f"killed at write {fatal}"
        fatal += 1
    assert fatal > 12
    assert leftovers == fatal - 1


def test_a_failed_run_is_resumed_to_the_same_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    model = small_model(tmp_path / "model")
    monkeypatch.setitem(KINDS, "failing", {**KINDS["bounded"], "bound": "explanation=1e-9"})
    whole = run(model, tmp_path / "whole", "failing")
    assert whole.failed
    write = store.write_json

    def dies(path: Any, value: Any) -> None:
        if Path(path).name == "scores.json":
            raise Killed
        write(path, value)

    with monkeypatch.context() as patch:
        patch.setattr(store, "write_json", dies)
        with pytest.raises(Killed):
            run(model, tmp_path / "killed", "failing")
    killed = run(model, tmp_path / "killed", "failing")
    assert (killed.failed, killed.epochs) == (whole.failed, whole.epochs)


def test_a_run_goes_on_with_the_threads_it_was_begun_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import torch

    model, seen = small_model(tmp_path / "model"), []
    module = sys.modules[train.__module__]
    fit = module.fit  # type: ignore[attr-defined]

    def stop(*args: Any, **kwargs: Any) -> Any:
        seen.append(torch.get_num_threads())
        if len(seen) == 1:
            raise Killed
        return fit(*args, **kwargs)

    monkeypatch.setattr(module, "fit", stop)
    own = torch.get_num_threads()
    with pytest.raises(Killed):
        run(model, tmp_path / "run")
    torch.set_num_threads(own + 1)
    try:
        run(model, tmp_path / "run")
    finally:
        torch.set_num_threads(own)
    assert seen == [own, own]


def test_a_log_changed_by_hand_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    model = small_model(tmp_path / "model")
    module = sys.modules[train.__module__]
    with monkeypatch.context() as patch:

        def killed(*_: Any) -> None:
            raise Killed

        patch.setattr(module, "_finish", killed)
        with pytest.raises(Killed):
            run(model, tmp_path / "run")
    log = tmp_path / "run" / "train.jsonl"
    log.write_text("".join(line + "\n" for line in log.read_text().splitlines()[:3]))
    with pytest.raises(InputError, match=r"train\.jsonl holds 3 whole lines, but \d+ were written"):
        run(model, tmp_path / "run")
    with pytest.raises(InputError, match=r"train\.epochs is 3 there and 5 now"):
        train(toy(), model, config=replace(CONFIG, epochs=5), seed=7, out=tmp_path / "run", progress=False)
