"""Passes that fit into memory, on a CPU that raises what accelerators raise."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from tiny import TEXTS, tiny
from veridical.attribution.copies import in_copies
from veridical.cli.app import app
from veridical.core.device import computing
from veridical.core.errors import ExhaustedError
from veridical.core.options import TOKEN_BUDGET
from veridical.core.records import Example
from veridical.explanations.explain import explain
from veridical.model import memory
from veridical.model.ask import batches_of, predict
from veridical.model.classifier import Classifier

ERRORS = {
    "cuda": torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    "mps": RuntimeError("MPS backend out of memory (MPS allocated: 17.9 GB, other allocations: 1 GB, max: 18.1 GB)."),
    "mps, one buffer": RuntimeError("Invalid buffer size: 24.00 GB"),
    "xpu": RuntimeError("XPU out of memory, please use `empty_cache` to release all unoccupied cached memory."),
    "cublas": RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    "xla": RuntimeError("RESOURCE_EXHAUSTED: Attempting to reserve 5.12G at the bottom of memory."),
    "cpu": RuntimeError("[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: you tried"),
    "numpy": MemoryError("Unable to allocate 12.0 GiB for an array"),
}


@functools.cache
def classifier() -> Classifier:
    return Classifier(*tiny("bert"))


@pytest.fixture
def clf() -> Classifier:
    memory._rooms.clear()
    return classifier()


def rows_within(most: int, error: Exception, done: list[int], tried: list[int]) -> Callable[[list[int]], None]:
    def run(rows: list[int]) -> None:
        tried.append(len(rows))
        if len(rows) > most:
            raise error
        done.extend(rows)

    return run


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_out_of_memory_halves_the_batch_whoever_says_it(clf, error):
    done: list[int] = []
    tried: list[int] = []
    memory.run_all(clf, [4] * 10, rows_within(3, error, done, tried), work="some")
    assert done == list(range(10))
    assert tried == [10, 5, 2, 2, 2, 2, 2]
    memory.run_all(clf, [4] * 10, rows_within(3, error, done, tried), work="some")
    assert tried[7:] == [2] * 5  # it is remembered
    memory.run_all(clf, [4] * 10, rows_within(99, error, done, tried), work="other")
    assert tried[12:] == [10]  # for this kind of work alone


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_one_text_that_does_not_fit_is_a_sentence(clf, error):
    with pytest.raises(ExhaustedError, match=r"A text of 9 tokens does not fit into the memory of cpu, .*max_length"):
        memory.run_all(clf, [4, 9], rows_within(0, error, [], []), work="some")


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_what_takes_the_whole_model_is_a_sentence(clf, error):
    sentence = r"The optimiser's memory of .* does not fit into the memory of cpu beside its weights; take a smaller"
    with pytest.raises(ExhaustedError, match=sentence), memory.whole_model(clf, "The optimiser's memory"):
        raise error
    with pytest.raises(RuntimeError, match="shapes"), memory.whole_model(clf, "The optimiser's memory"):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")


@pytest.mark.parametrize("part", ["step", "clip"])
def test_so_it_is_told_by_a_training(part, tmp_path, monkeypatch):
    def full(*_, **__):
        raise ERRORS["cuda"]

    if part == "step":
        monkeypatch.setattr(torch.optim.AdamW, "step", full)
    else:
        monkeypatch.setattr(torch.nn.utils, "get_total_norm", full)
    words = ["train", "--data", "planted:size=20", "--model", "bilstm:hidden=4", "--set", "train.epochs=1"]
    words += ["--set", "train.optimizer=adamw", "--out", str(tmp_path / "run")]
    ended = CliRunner().invoke(app, words, prog_name="veridical")
    assert ended.exit_code == 1
    assert "does not fit into the memory of cpu beside its weights" in ended.stderr.splitlines()[-1]


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_whatever_else_runs_out_of_memory_says_so(error, monkeypatch):
    def full(*_, **__):
        raise error

    monkeypatch.setattr("veridical.data.load_data", full)
    ended = CliRunner().invoke(app, ["data", "show", "planted:size=20"], prog_name="veridical")
    assert ended.exit_code == 1
    assert ended.stderr.startswith("The memory was not enough; take fewer or shorter texts")


@pytest.mark.parametrize(
    "error", [RuntimeError("mat1 and mat2 shapes cannot be multiplied"), ValueError("no"), KeyError(1)]
)
def test_other_errors_are_not_taken_for_it(clf, error):
    tried: list[int] = []
    with pytest.raises(type(error)):
        memory.run_all(clf, [4] * 10, rows_within(0, error, [], tried), work="some")
    assert tried == [10]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(1, 60), max_size=30), st.integers(1, 300))
def test_batches_are_those_of_batches_of(lengths, budget):
    memory._rooms.clear()
    batches: list[list[int]] = []
    memory.run_all(classifier(), lengths, batches.append, work="some", budget=budget)
    assert batches == batches_of(lengths, budget)


def test_on_a_cpu_the_usual_number_stays_and_on_an_accelerator_it_grows(clf, monkeypatch):
    sizes: list[int] = []
    memory.run_all(clf, [64] * 100, lambda rows: sizes.append(len(rows)), work="some")
    assert sizes == [32, 32, 32, 4]  # 2,048 tokens
    monkeypatch.setattr(Classifier, "device", torch.device("cuda"))
    sizes.clear()
    memory.run_all(clf, [64] * 2000, lambda rows: sizes.append(len(rows)), work="some")
    assert sizes == [128, 256, 512, 1024, 80]  # 8,192 tokens, doubled
    sizes.clear()
    memory.run_all(clf, [64] * 2000, lambda rows: sizes.append(len(rows)), work="some")
    assert sizes == [2000]
    room = memory.room_for(clf, "some")
    for _ in range(20):
        room.grow()
    assert room.tokens == memory.MOST
    with computing(batch_tokens=128):  # who says a number gets it
        sizes.clear()
        memory.run_all(clf, [64] * 4, lambda rows: sizes.append(len(rows)), work="some")
    assert sizes == [2, 2]


def test_an_accelerator_that_says_no_keeps_what_fitted(clf, monkeypatch):
    monkeypatch.setattr(Classifier, "device", torch.device("cuda"))
    monkeypatch.setattr(memory, "_release", lambda device: None)
    tried: list[int] = []
    memory.run_all(clf, [64] * 2000, rows_within(300, ERRORS["cuda"], [], tried), work="some")
    assert tried == [128, 256, 512, 256, 256, 256, 256, 256, 256, 80]


def test_copies_of_a_text_shrink_with_the_pass(clf):
    batch = clf.collate(clf.encode([Example("t", TEXTS[4])]))
    length = batch.ids.shape[1]
    seen: list[list[int]] = []

    def run(rows: list[int]) -> None:
        parts = [len(which) for _, _, which in in_copies(batch, 200)]
        seen.append(parts)
        if max(parts) > 10:
            raise ERRORS["cuda"]

    memory.run_all(clf, [length], run, work="some")
    assert sum(seen[0]) == sum(seen[-1]) == 200
    assert max(seen[0]) == TOKEN_BUDGET // length
    assert max(seen[-1]) <= 10
    with pytest.raises(ExhaustedError):
        memory.run_all(clf, [length], lambda rows: (_ for _ in ()).throw(ERRORS["cuda"]), work="other")


@pytest.mark.parametrize("method", ["gradient", "integrated_gradients:steps=9", "occlusion", "attention"])
def test_scores_do_not_depend_on_the_tokens_at_once(clf, method):
    whole = explain(clf, list(TEXTS), method)
    for tokens in (1, 70, 10_000):
        for a, b in zip(whole, explain(clf, list(TEXTS), method, budget=tokens), strict=True):
            np.testing.assert_allclose(a.scores, b.scores, atol=2e-5 * max(1.0, float(np.abs(a.scores).max())))


def test_the_environment_says_it_too(clf, monkeypatch):
    monkeypatch.setenv("VERIDICAL_BATCH_TOKENS", "40")
    sizes: list[int] = []
    forward = clf.forward
    monkeypatch.setattr(
        clf, "forward", lambda batch, **how: (sizes.append(batch.ids.numel()), forward(batch, **how))[1]
    )
    predict(clf, clf.encode([Example(str(i), "not good") for i in range(40)]))
    assert max(sizes) <= 40
