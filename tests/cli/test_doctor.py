"""`veridical doctor` tells what is there and what is missing, whatever the state of the machine."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from veridical.cli import doctor
from veridical.cli.app import app
from veridical.core import assets


def found(*words: str) -> Any:
    result = CliRunner().invoke(app, ["doctor", *words])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout) if words else result.stdout


def test_a_whole_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("VERIDICAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("VERIDICAL_DEVICE", "cpu")
    held = found("--json")
    versions = {package["name"]: package["version"] for package in held["packages"]}
    assert versions["torch"] == metadata.version("torch")
    assert {"transformers", "typer", "safetensors"} <= set(versions)
    assert all(package["fits"] for package in held["packages"])
    assert {"pos", "ray", "dev"} <= {extra["name"] for extra in held["extras"]}
    assert all(extra["installed"] or extra["get"].startswith("pip install '") for extra in held["extras"])
    assert held["devices"]["chosen"] == "cpu"
    assert held["environment"]["VERIDICAL_CACHE"] == str(tmp_path / "cache")
    assert {asset["state"] for asset in held["assets"]} == {"not fetched"}
    (cache,) = [place for place in held["places"] if "VERIDICAL_CACHE" in place["purpose"]]
    assert (cache["writable"], cache["size"]) == (True, 0)
    assert not (tmp_path / "cache").exists()  # it only looks
    text = found()
    assert f"torch         {metadata.version('torch')}" in text
    assert "veridical data fetch minilm" in text


def test_what_is_missing_or_broken_is_told_with_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    real = metadata.version

    def version(name: str) -> str:
        if name in ("captum", "ray"):
            raise metadata.PackageNotFoundError(name)
        return "0.0.1" if name == "typer" else real(name)

    monkeypatch.setattr(doctor.metadata, "version", version)
    monkeypatch.setenv("VERIDICAL_CACHE", str(tmp_path))
    monkeypatch.setenv("VERIDICAL_DEVICE", "gpu")
    asset = assets.ASSETS["vader"]
    (tmp_path / "assets" / asset.folder).mkdir(parents=True)
    (tmp_path / "assets" / asset.folder / "LICENSE.txt").write_text("not it")
    monkeypatch.setattr(doctor, "LITTLE", 1e30)
    held = found("--json")
    told = "\n".join(held["problems"])
    assert "captum is not installed; Veridical needs captum>=" in told
    assert "typer is 0.0.1; Veridical needs typer>=" in told
    assert "run `pip install 'captum>=" in told
    assert "No device could be asked for (The device is 'gpu'; allowed: cpu" in told
    assert held["devices"] is None
    assert "The asset vader is damaged: " in told
    assert "run `veridical data fetch vader`." in told
    assert "are free in" in told
    (ray,) = [extra for extra in held["extras"] if extra["name"] == "ray"]
    assert ray["get"].startswith("pip install 'ray>=")
    assert "missing" in found()


def test_a_cache_that_cannot_be_is_a_problem_and_no_breakdown(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("VERIDICAL_CACHE", "~nobody-here/x")
    held = found("--json")
    assert any("there is no such home" in problem for problem in held["problems"])
    assert held["assets"] == []
