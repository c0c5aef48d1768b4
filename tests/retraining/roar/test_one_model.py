"""Curves without retraining: one model's own scores on masked texts, in the files and on the page of a benchmark."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from inprocess import MODEL, TINY, run_here

from goldens import MEASURABLE
from toy import toy
from veridical.core import store
from veridical.core.errors import Caution, InputError
from veridical.model.ask import predict
from veridical.model.load import load
from veridical.model.mask import masked
from veridical.retraining.options import RoarOptions, one_model_folders
from veridical.retraining.roar import one_model
from veridical.retraining.roar.curve import area, over_seeds
from veridical.retraining.roar.mask import Amount, Steps, order, random_order
from veridical.retraining.roar.one_model import seeds_asked
from veridical.retraining.roar.points import Request
from veridical.retraining.roar.record import read_summary
from veridical.retraining.roar.roar import reckon, roar
from veridical.retraining.roar.timing import Timing
from veridical.training.train import train, train_seeds

RACU = [name for name in MEASURABLE if name.startswith("racu_") and name != "racu_over_seeds"]


# -- worked cases -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RACU)
def test_areas(name: str) -> None:
    given, expect = MEASURABLE[name]["input"], MEASURABLE[name]["expect"]
    found = area(given["ratios"], given["measure"], given["random"])
    assert found.between == pytest.approx(expect["acu"], abs=1e-9)
    assert found.largest == pytest.approx(expect["largest"], abs=1e-9)
    for value, wanted in ((found.faithfulness, expect["racu"]), (found.clipped, expect["racu_clipped"])):
        assert value == (None if wanted is None else pytest.approx(wanted, abs=1e-9))


def test_areas_are_averaged_over_seeds_not_divided_by_their_mean() -> None:
    case = MEASURABLE["racu_over_seeds"]
    mean = over_seeds([seed["acu"] / seed["largest"] for seed in case["input"]["seeds"]]).mean
    assert mean == pytest.approx(case["expect"]["mean_racu"])
    assert mean != pytest.approx(case["expect"]["not_this_ratio_of_means"])


def test_how_many_tokens_go_at_a_ratio() -> None:
    case = MEASURABLE["masked_at_ratio"]
    for tokens, counts in zip(case["input"]["tokens"], case["expect"]["masked"], strict=True):
        assert [Amount(share).of(tokens) for share in case["input"]["per_cent"]] == counts


def test_what_is_masked_stays_masked_and_the_next_are_by_new_scores() -> None:
    case = MEASURABLE["recursive_masking"]
    given, expect = case["input"], case["expect"]
    free = [True] * len(given["scores_on_whole"])
    first = order(np.array(given["scores_on_whole"]), free)
    assert first[:2].tolist() == given["masked_at_20"]
    assert first[:3].tolist() == expect["without_recomputing"]
    again = order(np.array(given["scores_recomputed"]), free, first[:2])
    assert again[:3].tolist() == expect["masked_at_30"]


def test_how_many_trainings_are_saved() -> None:
    case = MEASURABLE["trainings"]
    given, expect = case["input"], case["expect"]
    timing = Timing(1.0, 1.0, {}, 1, False, 1)
    for count, retrained, kept in zip(given["measures"], expect["recursive_roar"], expect["masked_model"], strict=True):
        steps = Steps(given["step_per_cent"])
        names = tuple(f"gradient:norm=l{k}" for k in range(count))
        request = Request(names, tuple(range(given["seeds"])), steps, (True,), "accuracy", leakage=False)
        for model, trainings in ((None, retrained), (one_model.OneModel(1.0, False), 0)):
            experiment: Any = SimpleNamespace(one_model=model, folder=Path())
            assert reckon(experiment, request, timing, []).trainings == trainings
        assert kept == given["seeds"]  # the one training of every seed is the model's own


# -- curves -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    train_seeds(toy(), MODEL, seeds=(0, 3), config=TINY, mask=1.0, out=folder / "masked")
    train(toy(), MODEL, seed=1, config=TINY, out=folder / "plain")
    return folder


def curves(out: Path, model: Path, monkeypatch: pytest.MonkeyPatch, **more: Any) -> Any:
    monkeypatch.setattr("veridical.grid.pool.run", run_here)
    how: dict[str, Any] = {"methods": ["gradient", "occlusion:by=mask"], "step": 40, "progress": False, **more}
    return roar(toy(), str(model), retrain=False, out=out, **how)


def test_every_point_is_the_models_own_score(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = curves(tmp_path, runs / "masked", monkeypatch, plain=True)
    summary = found.summary
    assert summary.settings.seeds == (0, 3)
    assert read_summary(tmp_path) == summary
    assert {area.measure for area in summary.areas} == {"gradient", "occlusion:by=mask"}
    assert summary.settings.one_model is not None
    assert summary.settings.one_model.ratio == 1.0
    clf = load(str(runs / "masked" / "seed3"))
    texts = clf.encode(toy().splits["test"])
    gone = [
        masked(e, o[: Amount(40).of(len(o))], clf.tokenizer.mask_token_id) for e in texts for o in [random_order(e, 3)]
    ]
    right = predict(clf, gone).logits.argmax(1) == [e.example.label for e in texts]
    random = next(curve for curve in summary.curves if curve.measure == "random")
    rows = store.read_parquet(tmp_path / "curves.parquet").to_pylist()
    mine = [r for r in rows if (r["measure"], r["seed"], r["masked"]) == ("random", 3, 40)]
    assert mine[0]["accuracy"] == pytest.approx(right.mean())
    assert random.masked == (0, 40, 80, 100)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "Nothing was retrained" in page
    assert 'id="roar-leakage"' not in page
    assert found.cost.trainings == 0
    again = curves(tmp_path, runs / "masked", monkeypatch, plain=True)
    assert again.summary == summary


def test_a_model_without_masks_is_refused_unless_forced(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="not trained on masked texts"):
        curves(tmp_path / "a", runs / "plain", monkeypatch)
    assert not (tmp_path / "a").exists()
    found = curves(tmp_path / "b", runs / "plain", monkeypatch, force=True)
    assert found.summary.settings.one_model.forced
    assert found.summary.settings.seeds == (1,)
    assert "was not trained on masked texts" in found.page.read_text("utf-8")


def test_other_weights_are_not_mixed_in(runs: Path, tmp_path: Path) -> None:
    bench = SimpleNamespace(place=tmp_path, clf=load(str(runs / "plain")))
    one_model.note_model(bench)  # type: ignore[arg-type]
    one_model.note_model(bench)  # type: ignore[arg-type]
    bench.clf = load(str(runs / "masked" / "seed0"))
    with pytest.raises(InputError, match="another model"):
        one_model.note_model(bench)  # type: ignore[arg-type]


def test_a_model_in_anothers_place_is_refused_also_where_all_is_done(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(runs / "masked" / "seed0", tmp_path / "run")
    curves(tmp_path / "out", tmp_path / "run", monkeypatch)
    shutil.rmtree(tmp_path / "run" / "model")
    shutil.copytree(runs / "masked" / "seed3" / "model", tmp_path / "run" / "model")
    with pytest.raises(InputError, match="holds the curves of another model"):
        curves(tmp_path / "out", tmp_path / "run", monkeypatch)


def test_only_the_seeds_that_are_asked_for_have_to_know_masks(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(runs / "masked" / "seed0", tmp_path / "mixed" / "seed0")
    shutil.copytree(runs / "plain", tmp_path / "mixed" / "seed1")
    with pytest.raises(InputError, match="seed1 was not trained on masked texts"):
        curves(tmp_path / "a", tmp_path / "mixed", monkeypatch)
    found = curves(tmp_path / "b", tmp_path / "mixed", monkeypatch, seeds=[0])
    assert found.summary.settings.seeds == (0,)
    assert not found.summary.settings.one_model.forced


def test_texts_of_other_classes_are_refused(runs: Path, tmp_path: Path) -> None:
    said = r"not all texts of babi/1.* have one among those of"
    with pytest.warns(Caution, match="gold labels are left out"), pytest.raises(InputError, match=said):
        roar("babi/1:size=60", str(runs / "masked"), retrain=False, out=tmp_path / "x", methods="attention")
    assert not (tmp_path / "x").exists()


def test_seeds_that_are_not_finished_are_told(runs: Path, tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    half = tmp_path / "half"
    shutil.copytree(runs / "masked", half)
    (half / "seed1").mkdir()
    assert seeds_asked(str(half), [3]) == (3,)
    assert not recwarn.list
    with pytest.warns(Caution, match="half: seed1 is not trained to the end"):
        assert seeds_asked(str(half), None) == (0, 3)


def test_mistakes_are_told_first(runs: Path) -> None:
    assert list(one_model_folders(str(runs / "masked"))) == [0, 3]
    assert one_model_folders(str(runs / "plain")) == {1: str(runs / "plain")}
    with pytest.raises(InputError, match="name its run"):
        RoarOptions(data="planted", out="x", retrain=False)
    with pytest.raises(InputError, match="name its run"):
        RoarOptions(data="planted", model="mpnet", out="x", retrain=False)
    with pytest.raises(InputError, match="is of curves without retraining"):
        RoarOptions(data="planted", model="minilm", out="x", force=True)
    with pytest.raises(InputError, match="count for nothing"):
        RoarOptions(data="planted", model=str(runs / "plain"), out="x", retrain=False, config={"epochs": 2})
    with pytest.raises(InputError, match="no model of seed 7"):
        one_model.seeds_asked(str(runs / "masked"), (7,))
