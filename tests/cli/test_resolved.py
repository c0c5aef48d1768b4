"""`config.toml` beside results: what `--config` reads from it is what was asked for, whichever verb."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from toy import small_model
from veridical.cli.app import VERBS, app, verb
from veridical.cli.resolved import HOW, to_toml
from veridical.cli.verb import _tables
from veridical.core import store
from veridical.core.options import Option


def test_every_verb_takes_a_file():
    for name in VERBS:
        assert "--config" in {option.spelling for option in verb(name).typed}, name


@pytest.mark.parametrize("name", [name for name in VERBS if any(o.name == "out" for o in verb(name).options)])
def test_what_is_written_is_read_as_the_same(name: str, tmp_path: Path):
    own = verb(name)
    for example in own.examples:
        words = shlex.split(example)[1 + len(name.split()) :]
        arguments = own.parse(words)
        text = to_toml(name, own.values(arguments), _tables(arguments))
        (tmp_path / "config.toml").write_text(text, encoding="utf-8")
        out = ["--out", str(value)] if (value := dict_of(own, arguments)["out"]) is not None else []
        again = own.parse(["--config", str(tmp_path / "config.toml"), *out])
        assert dict_of(own, again) == dict_of(own, arguments)


def dict_of(own: Any, arguments: Any) -> dict[str, Any]:
    """Every option but those that say how; settings of a training as they come out."""
    tables = _tables(arguments)
    said = {option.name: tables.get(option.name, _several(option, value)) for option, value in own.values(arguments)}
    return {key: value for key, value in said.items() if key not in HOW or key == "out"}


def _several(option: Option, value: Any) -> Any:
    """One name is as good as a list of one."""
    return (value,) if option.item is str and isinstance(value, str) else value


@pytest.mark.parametrize("name", ["compare", "list", "data show", "report", "status", "serve", "doctor"])
def test_arguments_may_stand_in_the_file(name: str, tmp_path: Path):
    argument = next((option for option in verb(name).typed if option.help.argument), None)
    value = "methods" if name == "list" else "planted"
    (tmp_path / "it.toml").write_text("" if argument is None else f'{argument.name} = "{value}"', encoding="utf-8")
    arguments = verb(name).parse(["--config", str(tmp_path / "it.toml")])
    if argument is not None:
        held = {option.name: given for option, given in verb(name).values(arguments)}
        assert held[argument.name] in (value, (value,))


def test_a_verb_leaves_its_configuration_beside_its_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    model = small_model(tmp_path / "model")
    settings = ["--set", "train.epochs=1", "--set", "train.clip=none", "--set", "train.threads=1"]
    words = ["train", "--data", "planted:size=40", "--model", model, *settings, "--device", "cpu", "--out", "run"]
    assert CliRunner().invoke(app, words).exit_code == 0
    held = tomllib.loads(Path("run/config.toml").read_text(encoding="utf-8"))
    assert (held["data"], held["model"], held["seeds"], held["objective"]) == (
        "planted:size=40",
        model,
        [0],
        "cross_entropy",
    )
    assert (held["train"]["epochs"], held["train"]["clip"], held["train"]["batch"]) == (1, "none", 32)
    assert not {"out", "device"} & set(held)
    again = CliRunner().invoke(app, ["train", "--config", "run/config.toml", "--out", "again"])
    assert again.exit_code == 0, again.output
    assert store.read_json("again/spec.json") == store.read_json("run/spec.json")
    assert Path("again/config.toml").read_text() == Path("run/config.toml").read_text()
