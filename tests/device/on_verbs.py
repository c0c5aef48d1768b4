"""Verbs with --device, and the library with device=: the results are those of the CPU, and so are their records."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
from on_device import DEVICE, EXAMPLES, both
from typer.testing import CliRunner

import pretend
import veridical
from guided import guided
from toy import small_model, toy
from veridical.attribution import methods
from veridical.cli.app import app
from veridical.core import store
from veridical.model import memory
from veridical.model.load import load
from veridical.probes.options import ValidateOptions
from veridical.probes.validation.making import make, read_facts
from veridical.probes.validation.validate import setting_of
from veridical.probes.validation.world import worlds
from veridical.retraining.roar.experiment import asked, make_bench

TEXT = "The plot was boring, but the acting is really very good."


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_model(tmp_path_factory.mktemp("model") / "bert", num_labels=2)


def typed(*words: str) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return result.stdout


def test_explain(model):
    words = ("explain", model, "--text", TEXT, "--method", "attention,gradient,occlusion", "--json", "--device")
    here, there = (json.loads(typed(*words, name)) for name in ("cpu", "pretend"))
    assert [row["scores"] for row in there] == [pytest.approx(row["scores"], abs=1e-5) for row in here]


def test_auto_takes_the_accelerator_and_cpu_the_cpu(model, monkeypatch):
    assert load(model).device == load(model, device="auto").device == load(model, device="pretend:0").device == DEVICE
    assert load(model, device="cpu").device.type == "cpu"
    monkeypatch.setenv("VERIDICAL_DEVICE", "cpu")
    assert load(model).device.type == "cpu"
    assert load(model, device="auto").device == DEVICE


@pytest.mark.parametrize("name", ["pretend:1", "cuda", "mps"])
def test_a_device_that_is_not_here_is_refused(model, name):
    result = CliRunner().invoke(app, ["explain", model, "--text", TEXT, "--device", name])
    assert result.exit_code == 2
    assert "there are cpu, pretend, pretend:0, auto" in result.stderr


def test_a_classifier_is_moved_when_a_device_is_said(model):
    clf = load(model, device="cpu")
    here = veridical.explain(clf, [TEXT], "gradient")[0].scores
    there = veridical.explain(clf, [TEXT], "gradient", device="pretend")[0].scores
    assert clf.device == DEVICE
    assert there == pytest.approx(here, abs=1e-5)


def test_an_audit_has_the_same_record(tmp_path):
    data = veridical.Dataset("some", ("LABEL_0", "LABEL_1", "LABEL_2"), {"test": tuple(EXAMPLES)})
    made = [
        veridical.audit(clf, data, out=tmp_path / name, quick=True, limit=4, progress=False).summary
        for name, clf in zip(("cpu", "pretend"), both("bert"), strict=True)
    ]
    assert {facts.name for facts in made[1].methods} == {facts.name for facts in made[0].methods}  # none breaks down
    assert made[1].left_out == made[0].left_out
    specs = [store.read_json(tmp_path / name / "spec.json") for name in ("cpu", "pretend")]
    assert specs[0] == specs[1]
    begun = tmp_path / "cpu"  # what one device began, another goes on with
    veridical.audit(both("bert")[1], data, out=begun, quick=True, limit=4, progress=False)


def test_roar_trains_where_it_is_told(tmp_path, monkeypatch):
    experiment = asked(tmp_path / "roar", toy(8, 8, 8), "bilstm:hidden=8", config=None, limit=None, rounding="floor")
    assert make_bench(experiment, 0).clf.device == DEVICE
    monkeypatch.setenv("VERIDICAL_DEVICE", "cpu")
    assert make_bench(experiment, 0).clf.device.type == "cpu"


def test_robustness_attack_and_fresh(model, tmp_path):
    data = guided(12, 8, 8, every=0)
    reports = [
        veridical.robustness([model, model], [e.text for e in data.splits["test"]], "attention", device=name)
        for name in ("cpu", "pretend")
    ]
    assert [t.mean for t in reports[1].overlaps] == pytest.approx([t.mean for t in reports[0].overlaps], abs=1e-6)
    attacks = [
        veridical.attack(load(model), data.splits["test"], device=n, entities="lists") for n in ("cpu", "pretend")
    ]
    assert attacks[0].summary == pytest.approx(attacks[1].summary)
    for name in ("cpu", "pretend"):
        how = {"config": {"epochs": 1, "batch": 8}, "seeds": 1, "progress": False, "out": tmp_path / name}
        veridical.fresh(data, model, device=name, **how)
    assert store.read_json(tmp_path / "cpu" / "spec.json") == store.read_json(tmp_path / "pretend" / "spec.json")


def test_guidance_and_search(model, tmp_path):
    data, how = guided(24, 12, 8), {"config": {"epochs": 1, "batch": 8}, "progress": False}
    found = []
    for name in ("cpu", "pretend"):
        out = tmp_path / name
        for run, objective in (("base", "cross_entropy"), ("att", "explanation:weight=2:method=attention")):
            veridical.train(data, model, objective=objective, device=name, out=out / run, **how)
        witness = {"witnesses": ("input_x_gradient", "deeplift"), "progress": False}
        veridical.guidance(out / "base", {"att": out / "att"}, data, out=out / "guidance", device=name, **witness)
        made = veridical.search(data, model, over="saloss.weight=0.1,1", out=out / "search", device=name, **how)
        found.append(sorted(path.name for path in made.folder.iterdir()))
    assert found[0] == found[1]
    specs = [store.read_json(tmp_path / name / "base" / "spec.json") for name in ("cpu", "pretend")]
    assert specs[0] == specs[1]


def test_a_world_of_validation(tmp_path):
    """In this process: workers have no pretend device."""
    options = ValidateOptions(
        out=tmp_path, models=("bilstm:hidden=8",), texts=6, dear_texts=3, size=60, learnt=0.0, epochs=1
    )
    setting_of(options).write(tmp_path)
    world = next(iter(worlds((0,), ("bilstm:hidden=8",), ("single",), (1,), (0.0,))))
    make(out=str(tmp_path), **asdict(world))
    facts = read_facts(tmp_path, world)
    assert facts is not None
    assert facts.texts == 6
    assert set(facts.methods) == {method.name for method in methods if "layers" not in method.needs} - {
        "random",
        "best",
    }
    assert len(facts.left_out) == 1
    assert "There is no wiring for models of type" in facts.left_out[0]  # and none breaks down there


def test_what_does_not_fit_is_exit_1_and_a_sentence(model):
    memory._rooms.clear()
    largest = max(p.numel() * 4 for p in load(model, device="cpu").model.parameters())
    words = ["explain", model, "--text", " ".join([TEXT] * 4), "--method", "gradient", "--device", "pretend"]
    for room, sentence in (
        (largest, "A text of 54 tokens does not fit into the memory of pretend:0, even alone; shorten it"),
        (largest - 1, "do not fit into the memory of pretend; take a smaller model"),
    ):
        with pretend.memory(room):
            result = CliRunner().invoke(app, words)
        assert result.exit_code == 1
        assert sentence in result.stderr
    assert CliRunner().invoke(app, words).exit_code == 0
