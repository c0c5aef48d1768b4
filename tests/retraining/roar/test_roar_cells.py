"""Points, chains and what they leave behind, on a few short texts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from inprocess import MODEL, TINY, run_here, small

from toy import small_model, toy
from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.records import Attribution, Encoded
from veridical.grid import liveness
from veridical.retraining.roar import cells
from veridical.retraining.roar import experiment as experiment_module
from veridical.retraining.roar import point as point_module
from veridical.retraining.roar.cells import curve_place, held_by_top, place
from veridical.retraining.roar.experiment import SPLITS, asked, begin, read_bench
from veridical.retraining.roar.mask import Amount, Steps, gone
from veridical.retraining.roar.point import alone, read_point, train_point

RESULTS = ("summary.json", "curves.parquet", "tables/areas.csv", "tables/points.csv", "tables/sparsity.csv")


@pytest.fixture(autouse=True)
def _here(monkeypatch):
    monkeypatch.setattr("veridical.grid.pool.run", run_here)


def results(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in RESULTS}


def orders(folder: Path, split: str = "train") -> list[list[int]]:
    return store.read_parts(folder / split)["order"].to_pylist()


# -- a point's folder ---------------------------------------------------------------------------------


def test_a_point_appears_whole(tmp_path):
    point = tmp_path / "p10"
    with alone(point) as work:
        assert work is not None
        (work / "a").write_text("1")
        assert not point.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["p10"]
    with alone(point) as work:
        assert work is None


def test_what_a_killed_worker_left_is_taken_over(tmp_path):
    point = tmp_path / "p10"
    script = f"""
    import os, signal
    from pathlib import Path
    from veridical.retraining.roar.point import alone
    with alone(Path({str(point)!r})) as work:
        (work / "half").write_text("done")
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not point.exists()
    with alone(point) as work:
        assert work is not None
        assert (work / "half").read_text() == "done"
    assert [path.name for path in tmp_path.iterdir()] == ["p10"]


def test_of_two_at_once_the_second_waits_and_finds_the_point_done(tmp_path):
    point, seen = tmp_path / "p10", []

    def come_second() -> None:
        with alone(point) as work:
            seen.append((work, point.exists()))

    second = threading.Thread(target=come_second)
    with alone(point) as work:
        assert work is not None
        second.start()
        second.join(timeout=1.5)  # longer than it waits between two looks
        assert not seen
    second.join()
    assert seen == [(None, True)]
    assert [path.name for path in tmp_path.iterdir()] == ["p10"]


def test_one_taken_for_dead_that_lives_on_never_writes_into_anothers_folder(tmp_path):
    point = tmp_path / "p10"
    with alone(point) as silent:
        assert silent is not None
        (silent / "half").write_text("done")
        os.utime(liveness.sign(point, 1), (0, 0))
        with alone(point) as work:
            assert work is not None
            assert (work / "half").read_text() == "done", "what it had stored is gone on with"
            store.write_text(silent / "late", "too late")  # as a checkpoint is
            assert [path.name for path in work.iterdir()] == ["half"]
            (work / "end").write_text("1")
    assert sorted(path.name for path in point.iterdir()) == ["end", "half"]
    assert [path.name for path in tmp_path.iterdir()] == ["p10"]


def test_one_taken_for_dead_does_not_end_the_point_of_another(tmp_path):
    """It comes to its end first: the point is the other's all the same, for its own folder has lost what was in it."""
    point = tmp_path / "p10"
    silent = alone(point)
    work = silent.__enter__()
    assert work is not None
    os.utime(liveness.sign(point, 1), (0, 0))
    with alone(point) as other:
        assert other is not None
        store.write_text(work / "late", "too late")
        silent.__exit__(None, None, None)
        assert not point.exists()
        assert liveness.is_alive(point), "its signs are not its to remove"
    assert [path.name for path in tmp_path.iterdir()] == ["p10"]
    assert not list(point.iterdir())


def test_what_an_old_version_left_of_a_point_is_gone_on_with(tmp_path):
    point = tmp_path / "p10"
    for name, text in (("p10.work-7b16a4d0/lock", ""), ("p10.work-7b16a4d0/half", "done"), ("p20/lock", "")):
        store.write_text(tmp_path / name, text)
    with alone(point) as work:
        assert work is not None
        assert [path.name for path in work.iterdir()] == ["half"]
    with alone(tmp_path / "p20") as work:
        assert work is None
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")) == ["p10", "p10/half", "p20"]


def test_a_failed_point_is_not_there_and_is_gone_on_with(tmp_path):
    point = tmp_path / "p10"

    def fail() -> None:
        with alone(point) as work:
            assert work is not None
            (work / "half").write_text("1")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not point.exists()
    with alone(point) as work:
        assert work is not None
        assert (work / "half").exists()


# -- chains -------------------------------------------------------------------------------------------


def test_each_step_explains_the_texts_it_was_trained_on_with_its_own_model(tmp_path, monkeypatch):
    """Scores are made up from what the method is shown: masked texts by a newly trained model, gold class."""
    seen: list[tuple[bytes, list[tuple[int, ...]], str]] = []
    real = cells.attributions

    def watched(clf, encoded, choice, which, **how):
        weights = b"".join(tensor.numpy().tobytes() for tensor in clf.model.state_dict().values())
        seen.append((weights, [e.ids for e in encoded], which))
        return real(clf, encoded, choice, which, **how)

    monkeypatch.setattr(cells, "attributions", watched)
    small(tmp_path, step=25, leakage=False)
    own = read_bench(tmp_path, 0)
    home = own.place / place("attention")
    assert {which for _, _, which in seen} == {"gold"}
    # Nothing masked, then a quarter, then half; three splits each.
    shown = [seen[k : k + 3] for k in (0, 3, 6)]
    assert len(seen) == 9
    assert len({turn[0][0] for turn in shown}) == 3, "each time by another model"
    for turn, percent in zip(shown, (0, 25, 50), strict=True):
        for (_, ids, _), split in zip(turn, SPLITS, strict=True):
            for text, whole in zip(ids, own.encoded[split], strict=True):
                free = sum(whole.free)
                assert sum(a != b for a, b in zip(text, whole.ids, strict=True)) <= percent * free // 100
                assert text.count(own.mask) == percent * free // 100
    first, second = orders(home / "order"), orders(home / "by-p25" / "p25" / "order")
    for a, b, text in zip(first, second, own.encoded["train"], strict=True):
        masked = Amount(25).of(sum(text.free))
        assert a[:masked] == b[:masked], "what is masked stays masked"
        assert sorted(a) == sorted(b) == np.flatnonzero(text.free).tolist()


def test_plain_roar_keeps_to_the_first_explanation_and_shares_its_first_point(tmp_path):
    found = small(tmp_path, plain=True, leakage=False)
    curves = {(c.measure, c.recursive): c.values["0"] for c in found.summary.curves}
    recursive, plain = curves[("attention", True)], curves[("attention", False)]
    assert plain[0] == recursive[0] == curves[("random", False)][0]
    assert plain[1] == recursive[1], "the first step is the same masks, weights and order of texts"
    assert plain[-1] == recursive[-1] == curves[("random", False)][-1]
    assert not list((tmp_path / "seed0").glob("*/plain/*/order"))


def test_weights_are_kept_only_where_somebody_needs_them(tmp_path):
    small(tmp_path, step=25, plain=True)
    kept = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.safetensors"))
    assert kept == ["seed0/whole/best.safetensors"]
    assert not list(tmp_path.rglob("checkpoint.pt"))
    assert not list(tmp_path.rglob("*.work-*"))


@pytest.mark.parametrize("pair", [False, True])
def test_train_dev_and_test_are_masked_and_the_context_never_is(tmp_path, monkeypatch, pair):
    trained: list[dict] = []
    real = cells.train_point

    def watched(own, folder, encoded, **how):
        trained.append(encoded)
        real(own, folder, encoded, **how)

    monkeypatch.setattr(cells, "train_point", watched)
    experiment = asked(tmp_path, toy(24, 8, 8, pair=pair), MODEL, config=TINY, limit=None, rounding="floor")
    begin(experiment)
    cells.shared(out=str(experiment.folder), seed=0, everything=True)
    own = read_bench(tmp_path, 0)
    (encoded,) = trained
    assert list(encoded) == list(SPLITS)
    for split in SPLITS:
        for text, whole in zip(encoded[split], own.encoded[split], strict=True):
            for id, before, free in zip(text.ids, whole.ids, whole.free, strict=True):
                assert id == (own.mask if free else before)
            assert any(types == 1 for types in whole.types) is pair


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_any_encoder_and_any_method(tmp_path, family):
    model = small_model(tmp_path / "model", family)
    asked = "occlusion,integrated_gradients:steps=2:rule=right:aggregate=abs,random"
    found = small(tmp_path / "out", model=model, methods=asked, leakage=False)
    assert [list(area.values) for area in found.summary.areas] == [["0"], ["0"]], "random is no measure"
    assert found.summary.trainings.done == found.summary.trainings.of == 8


def test_one_token_at_a_time(tmp_path):
    found = small(tmp_path, tokens=2, leakage=False)
    own = read_bench(tmp_path, 0)
    curve = next(c for c in found.summary.curves if c.measure == "attention")
    assert curve.masked == (0, 1, 2)
    place_of = own.place / curve_place("attention", Steps(1, "token", 2), True)
    after = orders(place_of / "t1" / "order")
    before = orders(own.place / place("attention") / "order")
    assert [own[0] for own in after] == [own[0] for own in before]
    assert found.summary.areas[0].what == "mean gap"
    longer = small(tmp_path, tokens=3, leakage=False)
    assert next(c for c in longer.summary.curves if c.measure == "attention").masked == (0, 1, 2, 3)
    assert longer.summary.trainings.done == longer.summary.trainings.of == 8


def test_orders_that_no_model_decides_are_run_once_for_both_kinds(tmp_path):
    data = toy(24, 8, 8)
    splits = {split: tuple(replace(e, rationale=((0, 1),)) for e in some) for split, some in data.splits.items()}
    found = small(tmp_path, data=replace(data, splits=splits), methods="oracle", plain=True)
    assert found.summary.trainings.of == 2 + 2 + 2
    rows = {area.recursive: area.values for area in found.summary.areas}
    assert rows[True] == rows[False]


# -- leakage ------------------------------------------------------------------------------------------


def test_a_measure_that_tells_the_class_by_where_it_masks_is_found_out(tmp_path, monkeypatch):
    """Masks at the front for one class and at the end for the other: the words left are worthless, the places not."""
    real = cells.attributions

    def telling(clf, encoded, choice, which, **how):
        found = real(clf, encoded, choice, which, **how)
        places = [np.arange(len(a.scores), dtype=np.float32) * (1 if a.example.label else -1) for a in found]
        return [
            Attribution(a.encoded, a.target, s, a.probabilities, a.method) for a, s in zip(found, places, strict=True)
        ]

    monkeypatch.setattr(cells, "attributions", telling)
    config = {**TINY, "epochs": 8, "lr": 2e-2, "head_lr": 2e-2}
    found = small(tmp_path, data=toy(96, 24, 48), step=50, config=config)
    (leak,) = found.summary.leakage
    assert leak.masked == 50
    assert leak.above_random > 0
    assert leak.positions_alone > 0.9
    assert leak.everything_masked < 0.75


def test_the_check_masks_what_the_point_masked(tmp_path, monkeypatch):
    trained: dict[str, dict] = {}
    real = cells.train_point

    def watched(own, folder, encoded, **how):
        trained[folder.name] = encoded
        real(own, folder, encoded, **how)

    monkeypatch.setattr(cells, "train_point", watched)
    monkeypatch.setattr(cells, "worst_point", lambda *asked: Amount(80))
    small(tmp_path, score="micro_f1")
    own = read_bench(tmp_path, 0)
    for split in SPLITS:
        for point, check in zip(trained["p80"][split], trained["p80-positions"][split], strict=True):
            assert [id == own.mask for id in point.ids] == [id == own.mask for id in check.ids]
            left = {id for id, free in zip(check.ids, check.free, strict=True) if free} - {own.mask}
            assert left <= {own.filler}


def test_nothing_is_checked_where_no_curve_lies_above_random(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "worst_point", lambda *asked: None)
    small(tmp_path)
    assert not list(tmp_path.rglob("*-positions"))


# -- sparsity -----------------------------------------------------------------------------------------


def test_the_share_that_top_tokens_hold():
    own = toy(4, 4, 4).splits["train"][0]
    text = Encoded(own, (9,) * 6, (0,) * 6, ((0, 0),) * 6, (-1,) * 6, (False, True, True, True, True, False))
    scores = np.array([50, -4, 3, 2, 1, 50], dtype=np.float32)  # special tokens never count
    by_tokens, by_share = held_by_top(Attribution(text, 0, scores, np.array([1.0]), "made up"))
    assert by_tokens[:5] == pytest.approx([0.4, 0.7, 0.9, 1, 1])
    assert by_share == pytest.approx([0.4, 0.4, 0.7, 0.7, 0.7, 0.9, 0.9, 1, 1])
    nothing, none = held_by_top(Attribution(text, 0, np.zeros(6, dtype=np.float32), np.array([1.0]), "made up"))
    assert set(nothing) == set(none) == {None}


# -- resuming -----------------------------------------------------------------------------------------


class Stop(BaseException):
    pass


def test_stopped_at_every_file_it_writes_it_ends_with_the_same_tables(tmp_path, monkeypatch):
    expected = results(small(tmp_path / "calm").folder)
    real, left, stops = store.replacing, [0], 0

    def replacing(path, **how):
        if left[0] == 0:
            raise Stop
        left[0] -= 1
        return real(path, **how)

    monkeypatch.setattr(store, "replacing", replacing)
    while True:
        left[0] = 9 + stops % 5  # so many files, then a stop: it has to get somewhere each time
        try:
            small(tmp_path / "stopped")
            break
        except Stop:
            stops += 1
            assert stops < 100
    left[0] = 10**6
    small(tmp_path / "stopped")
    assert stops > 5
    assert results(tmp_path / "stopped") == expected


def test_a_cell_that_is_done_is_found_done(tmp_path, monkeypatch):
    small(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "seed0").rglob("*") if path.is_file()}
    store.remove(tmp_path / "cells")
    monkeypatch.setattr(point_module, "fit", lambda *a, **k: pytest.fail("trained again"))
    small(tmp_path)
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "seed0").rglob("*") if path.is_file()}


def test_points_start_from_the_same_weights_and_are_equal_however_they_come_about(tmp_path):
    """A point trained after others is the one trained alone: nothing is left of what came before."""
    experiment = asked(tmp_path, toy(24, 8, 8), MODEL, config=TINY, limit=None, rounding="floor")
    begin(experiment)
    own = read_bench(experiment.folder, 0)
    train_point(own, tmp_path / "a", own.encoded)
    train_point(own, tmp_path / "b", {s: own.encoded[s][::-1] for s in SPLITS})  # something else in between
    train_point(own, tmp_path / "c", own.encoded)
    a, c = read_point(tmp_path / "a"), read_point(tmp_path / "c")
    assert a is not None
    assert c is not None
    assert a.scores == c.scores


def test_a_cell_says_what_is_wrong_with_the_model(tmp_path, monkeypatch):
    experiment = asked(tmp_path, toy(24, 8, 8), MODEL, config=TINY, limit=None, rounding="floor")
    begin(experiment)
    real = experiment_module.create

    def without_mask(*asked, **how):
        clf = real(*asked, **how)
        clf.tokenizer.mask_token = None
        return clf

    monkeypatch.setattr(experiment_module, "create", without_mask)
    with pytest.raises(InputError, match="no mask token"):
        read_bench(experiment.folder, 0)


def test_amounts_of_a_text_that_is_too_short_mask_nothing_at_first():
    short = [np.array([1, 2, 3])]
    assert [len(gone(short, amount, "floor")[0]) for amount in Steps(10).amounts] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
