from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from typer.testing import CliRunner

import veridical
from toy import small_model, toy
from veridical.cli.app import VERBS, app, verb
from veridical.core.device import computing, device_of, environment, insist_on_device, said_batch_tokens, said_device
from veridical.core.errors import InputError

RUN_MODELS = {
    "prompt",
    *(
        "demo",
        "train",
        "explain",
        "evaluate",
        "audit",
        "shortcuts",
        "roar",
        "fresh",
        "guidance",
        "robustness",
        "attack",
        "pos",
        "validate",
        "run",
        "serve",
    ),
}
WRONG = (
    "gpu",
    "CUDA",
    "cuda:x",
    "cuda:-1",
    "cuda:",
    "",
    "cuda:01",
    "cpu:0",
    "meta",
    "cuda:99999",
    "tpu",
    "cuda 1",
    "\udce4",
)


@pytest.fixture(autouse=True)
def _bare(monkeypatch):
    monkeypatch.delenv("VERIDICAL_DEVICE", raising=False)
    monkeypatch.delenv("VERIDICAL_BATCH_TOKENS", raising=False)


@pytest.fixture
def _a_cuda(monkeypatch):
    """torch says that there are two GPUs."""
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)


@pytest.fixture
def _only_a_cpu(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)


@pytest.mark.parametrize("name", [*WRONG, "cuda", "cuda:1", "mps"])
@pytest.mark.usefixtures("_only_a_cpu")
def test_a_device_that_is_unknown_or_absent_is_refused(name):
    with pytest.raises(InputError, match=r"device .*(allowed: cpu, cuda, cuda:1|there are cpu, auto)"):
        insist_on_device(name)


@pytest.mark.usefixtures("_a_cuda")
def test_what_is_there_is_taken():
    assert device_of() == device_of("auto") == torch.device("cuda")
    assert device_of("cuda:1") == device_of(torch.device("cuda", 1)) == torch.device("cuda", 1)
    assert device_of("cpu") == torch.device("cpu")
    for name in ("cuda:2", "mps"):
        with pytest.raises(InputError, match="there are cpu, cuda, cuda:0, cuda:1, auto"):
            device_of(name)


@pytest.mark.usefixtures("_only_a_cpu")
def test_auto_is_the_cpu_where_there_is_nothing_else():
    assert device_of("auto") == torch.device("cpu")


def test_what_is_said_holds_inside_and_is_forgotten(monkeypatch):
    assert said_device() is None
    assert said_batch_tokens() is None
    monkeypatch.setenv("VERIDICAL_BATCH_TOKENS", "7")
    with computing("cpu", 64):
        assert environment() == {"VERIDICAL_DEVICE": "cpu", "VERIDICAL_BATCH_TOKENS": "64"}
        with computing(None, 32):  # what is not said stays
            assert (said_device(), said_batch_tokens()) == (torch.device("cpu"), 32)
        assert said_batch_tokens() == 64
    assert environment() == {"VERIDICAL_BATCH_TOKENS": "7"}


@pytest.mark.parametrize("text", ["0", "-3", "many", "1.5", "9" * 30])
def test_a_number_of_tokens_in_the_environment_is_checked(text, monkeypatch):
    monkeypatch.setenv("VERIDICAL_BATCH_TOKENS", text)
    with pytest.raises(InputError, match=r"VERIDICAL_BATCH_TOKENS is .*1 or more"):
        said_batch_tokens()


def test_every_verb_that_runs_models_has_both_options():
    for name in VERBS:
        spelled = {option.spelling for option in verb(name).typed}
        assert ({"--device", "--batch-tokens"} <= spelled) == (name in RUN_MODELS), name


@pytest.mark.parametrize(
    "call",
    [
        lambda model, data, out: veridical.load(model, device="gpu"),
        lambda model, data, out: veridical.explain(model, ["a text"], device="gpu"),
        lambda model, data, out: veridical.evaluate(model, ["a text"], device="gpu"),
        lambda model, data, out: veridical.audit(model, data, out=out, device="gpu"),
        lambda model, data, out: veridical.shortcuts(out, model=model, device="gpu"),
        lambda model, data, out: veridical.train(data, model, out=out, device="gpu"),
        lambda model, data, out: veridical.search(data, model, over="saloss.weight=1", out=out, device="gpu"),
        lambda model, data, out: veridical.roar(data, model, out=out, device="gpu"),
        lambda model, data, out: veridical.fresh(data, model, out=out, device="gpu"),
        lambda model, data, out: veridical.guidance(out, {"x": out}, data, out=out / "g", device="gpu"),
        lambda model, data, out: veridical.robustness([model], ["a text"], device="gpu"),
        lambda model, data, out: veridical.attack(model, ["a text"], device="gpu"),
        lambda model, data, out: veridical.pos({"x": model}, data, device="gpu"),
        lambda model, data, out: veridical.validate(out=out, models=model, device="gpu"),
        lambda model, data, out: veridical.serve(model, device="gpu"),
        lambda model, data, out: veridical.attribute(None, torch.ones(1, 1), device="gpu"),
    ],
)
def test_every_function_that_runs_models_takes_a_device(call, tmp_path):
    """Refused before the model, which is not there, is looked for."""
    with pytest.raises(InputError, match="The device is 'gpu'; allowed: cpu, cuda, cuda:1"):
        call(str(tmp_path / "no-model"), toy(4, 4, 4), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert environment() == {}


@pytest.mark.parametrize("name", sorted(RUN_MODELS))
def test_every_verb_refuses_a_device_at_once(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = {
        "explain": ["no-model", "--text", "x"],
        "evaluate": ["no-model", "--data", "planted"],
        "audit": ["no-model", "--data", "planted", "--out", "out"],
        "shortcuts": ["no-audit"],
        "roar": ["--data", "planted", "--out", "out"],
        "fresh": ["--data", "planted", "--out", "out"],
        "guidance": ["--base", "x", "--guided", "y=z", "--data", "planted", "--out", "out"],
        "robustness": ["no-model", "--data", "planted"],
        "attack": ["no-model", "--data", "planted"],
        "pos": ["x=no-model", "--data", "planted"],
        "validate": ["--model", "no-model", "--out", "out"],
        "run": ["no-recipe.toml"],
        "serve": ["no-model"],
        "prompt": ["no-model", "--prompt", "{text} is", "--labels", "a= bad", "--labels", "b= good", "--out", "out"],
    }.get(name, [])
    result = CliRunner().invoke(app, [name, *words, "--device", "gpu"])
    assert (result.exit_code, result.stderr) == (
        2,
        "The device is 'gpu'; allowed: cpu, cuda, cuda:1 (the second), mps, auto.\n",
    )
    result = CliRunner().invoke(app, [name, *words, "--batch-tokens", "0"])
    assert result.exit_code == 2
    assert "--batch-tokens is 0" in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_misspelt_device_costs_no_torch():
    code = (
        "import sys; from veridical.cli.app import app\n"
        "try: app(['explain', 'no-model', '--text', 'x', '--device', 'gpu'])\n"
        "except SystemExit as end: print(end.code, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ)
    assert done.stdout == "2 False\n"


def test_a_model_given_as_an_object_stays_where_it_is_and_is_moved_when_told(tmp_path):
    clf = veridical.load(small_model(tmp_path / "model"), device="cpu")
    moved: list[object] = []
    clf.model.to = lambda device: moved.append(device)  # type: ignore[method-assign]
    veridical.explain(clf, ["not good"], "attention")
    assert not moved
    veridical.explain(clf, ["not good"], "attention", device="cpu")
    assert moved == [torch.device("cpu")]
