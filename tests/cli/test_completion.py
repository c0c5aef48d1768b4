"""Shell completion: the names there are, with commas, and without importing what takes seconds."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from veridical.attribution import methods
from veridical.cli.app import VERBS, app
from veridical.core.assets import ASSETS
from veridical.data import datasets
from veridical.metric import metrics
from veridical.training.term import terms

LIGHT = """
import sys
from veridical.cli.app import main
try:
    main()
finally:
    heavy = {"torch", "transformers", "datasets", "pyarrow", "scipy"} & set(sys.modules)
    print("imported:", sorted(heavy), file=sys.stderr)
"""


def asked(line: str) -> dict[str, str]:
    """What bash would ask for the last word of a line."""
    words = line.split(" ")
    return {
        "_VERIDICAL_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }


def offered(line: str) -> set[str]:
    result = CliRunner().invoke(app, [], prog_name="veridical", env=asked(line))
    assert result.exit_code == 0, result.output
    return set(result.stdout.split())


def test_every_name_is_offered():
    """Names are read from source: all that is registered has to be seen there."""
    ours = offered("veridical explain m --method ")
    assert ours == {entry.name for entry in methods if entry.run.__module__.startswith("veridical.")}
    assert offered("veridical evaluate m --metric ") == {entry.name for entry in metrics}
    assert offered("veridical audit m --data ") == {source.name for source in datasets}
    assert offered("veridical audit m --ood ") == {source.name for source in datasets}
    assert offered("veridical train --objective ") == {term.name for term in terms}
    assert offered("veridical data fetch ") == {source.name for source in datasets} | set(ASSETS)


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("veridical au", {"audit"}),
        ("veridical data s", {"show"}),
        ("veridical explain m --method attention,gradient_", {"attention,gradient_rollout"}),
        ("veridical train --model ", {"minilm", "mpnet", "smollm2", "bilstm"}),
        ("veridical train --report-to t", {"tensorboard"}),
        ("veridical audit m --by m", {"mask"}),
        ("veridical audit m --device c", {"cpu", "cuda"}),
        ("veridical list me", {"methods", "metrics"}),
        ("veridical audit m --target ", {"predicted", "gold"}),
        ("veridical explain m --contrast s", {"second"}),
        ("veridical explain m --method attention,lime:sam", {"attention,lime:samples="}),
        ("veridical explain m --method lime:samples=3:le", {"lime:samples=3:level="}),
        ("veridical train --set train.l", {"train.lr=", "train.lora="}),
        ("veridical fresh --set rationale.lr", {"rationale.lr="}),
        ("veridical audit m --thor", {"--thorough"}),
        ("veridical --with my_parts.py explain m --method alt", {"alti"}),
        ("veridical --with ", set()),  # a file: the shell's own matter
        ("veridical explain ", set()),
        ("veridical train --limit ", set()),
    ],
)
def test_what_fits_is_offered(line: str, names: set[str]):
    assert offered(line) == names


def test_all_verbs_are_offered():
    assert offered("veridical ") == {name.partition(" ")[0] for name in VERBS}


@pytest.mark.parametrize("line", ["veridical ", "veridical audit m --method lime:s", "veridical train --data p"])
def test_nothing_heavy_is_imported(line: str):
    environment = {**os.environ, **asked(line)}
    ended = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, env=environment)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout
    assert "imported: []" in ended.stderr


def test_the_script_for_a_shell_can_be_shown(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("typer.completion._get_shell_name", lambda: "bash")
    result = CliRunner().invoke(app, ["--show-completion"], prog_name="veridical")
    assert result.exit_code == 0, result.output
    assert "_VERIDICAL_COMPLETE=complete_bash" in result.stdout
