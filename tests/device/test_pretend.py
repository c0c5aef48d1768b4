"""The suites of this folder, each in a process of its own: registering a device changes the process for good."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import pretend

HERE = Path(__file__).parent
SUITES = sorted(path.name for path in HERE.glob("on_*.py") if path.name != "on_device.py")


def run(suite: str, *how: str) -> None:
    if reason := pretend.why_not():
        pytest.skip(reason)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / suite), *how]
    done = subprocess.run(words, capture_output=True, text=True, cwd=HERE.parent.parent)
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"


def test_there_are_suites():
    assert SUITES == ["on_methods.py", "on_metrics.py", "on_training.py", "on_verbs.py"]


def test_every_method_on_a_transformer_and_on_the_bilstm():
    run("on_methods.py", "-m", "not families", "-k", "scores_are_those or what_the_device_is")


@pytest.mark.device
@pytest.mark.parametrize("suite", SUITES)
def test_suite(suite: str):
    run(suite)
