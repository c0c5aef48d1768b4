"""What the documents promise: the examples of CONTRIBUTING.md run, and links and names are right."""

from __future__ import annotations

import inspect
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import veridical
from veridical.attribution import methods
from veridical.audits.compare_table import Table
from veridical.cli.explain import METHODS
from veridical.metric import metrics
from veridical.probes.attack import Attack
from veridical.probes.pos import PartsOfSpeech
from veridical.probes.robustness import Robustness
from veridical.training.search import Search

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(ROOT.glob("docs/*.md"))
# In a process of its own: what the examples register must not stay registered.
RUN = """
import re, sys
sys.path.insert(0, "tests")
import torch
torch.set_num_threads(1)
for block in re.findall(r"```python\\n(.*?)```", open("CONTRIBUTING.md", encoding="utf-8").read(), re.DOTALL):
    exec(compile(block, "CONTRIBUTING.md", "exec"), {"__name__": "example"})

import veridical
from tiny import tiny
from veridical.data import load_data

clf = veridical.load(*tiny("bert"))
found = veridical.explain(clf, ["The plot was boring.", "good"], ["gradient_max:power=2", "alone", "lateness"])
for explanations in found.values():
    for one in explanations:
        assert one.scores.any() and not one.scores[[0, -1]].any()
scored = veridical.evaluate(clf, ["The plot was boring.", "good"], "attention", "top_drop")
assert all(-1 <= cell.score.value <= 1 for cell in scored.cells)
data = load_data("countdown:size=16")
assert {e.label for e in data.splits["train"]} == {0, 1}
run = veridical.train(data, "bilstm", objective="confidence_penalty:weight=0.1", out=sys.argv[1], progress=False,
                      config=veridical.TrainConfig(epochs=1))
assert "test" in run.scores
"""


def test_the_examples_for_contributors_run(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path / "run")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert link.startswith("http") or (page.parent / link).exists(), link


def test_the_tables_of_methods_and_metrics_are_those_of_the_registries():
    """If it fails, run `python docs/tables.py`."""
    pages = runpy.run_path(str(ROOT / "docs/tables.py"))["pages"]()
    for entries, name in ((methods, "methods"), (metrics, "metrics")):
        text = pages[ROOT / "docs" / f"{name}.md"]
        assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
        assert {entry.name for entry in entries} == set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    for page, text in pages.items():
        assert page.read_text(encoding="utf-8") == text, "run `python docs/tables.py`"


@pytest.mark.families
def test_the_tables_of_the_page_on_decoders_are_those_of_tiny_models():
    """If it fails, run `python docs/families.py`."""
    for page, text in runpy.run_path(str(ROOT / "docs/families.py"))["pages"]().items():
        assert page.read_text(encoding="utf-8") == text, "run `python docs/families.py`"


def test_the_page_on_the_command_line_names_the_default_methods():
    assert f"`{','.join(METHODS)}` without it" in (ROOT / "docs/cli.md").read_text(encoding="utf-8")


def test_python_in_the_documents_is_python():
    for page in PAGES:
        for block in re.findall(
            r"^ *```python\n(.*?)^ *```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
        ):
            compile(
                re.sub(r"^ {3}", "", block, flags=re.MULTILINE) if block.startswith("   ") else block, page.name, "exec"
            )


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_files_that_are_named_are_there(page):
    """CONTRIBUTING's examples name files that a reader is to write."""
    named = set(re.findall(r"`((?:[\w-]+/)+[\w-]+\.py)`", page.read_text(encoding="utf-8")))
    assert not {path for path in named if not any((place / path).exists() for place in (ROOT, ROOT / "src/veridical"))}


def test_the_columns_of_every_table_are_documented():
    page = (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8")
    kinds = {
        "explain": veridical.Explanations,
        "evaluate": veridical.Evaluation,
        "audit": veridical.Audit,
        "roar": veridical.Roar,
        "train": veridical.Run,
        "shortcuts": veridical.Shortcuts,
        "validate": veridical.Validation,
        "compare": Table,
        "guidance": veridical.Guidance,
        "robustness": Robustness,
        "attack": Attack,
        "pos": PartsOfSpeech,
        "search": Search,
    }
    for verb, kind in kinds.items():
        (row,) = re.findall(rf"^\| `{verb}` \|[^|]*\|(.*)\|$", page, re.MULTILINE)
        named = re.findall(r"`(\w+)`", row)
        assert named[: len(kind.COLUMNS)] == list(kind.COLUMNS)


def test_the_reference_has_every_public_name_once():
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    named = [name for names in re.findall(r"<!-- api: (.+?) -->", page) for name in names.split(", ")]
    assert sorted(named) == sorted(veridical.__all__)
    functions = {name for name in named if inspect.isfunction(getattr(veridical, name))}
    assert functions <= set(re.findall(r"`(\w+)`", page)), "each has its words above the reference too"


@pytest.mark.parametrize("name", [name for name in veridical.__all__ if inspect.isfunction(getattr(veridical, name))])
def test_every_argument_of_a_public_function_is_explained(name):
    function = getattr(veridical, name)
    before, returns, after = (inspect.getdoc(function) or "").partition("\nReturns:\n")
    explained = dict(re.findall(r"^    \**(\w+): (.+)", before.partition("\nArgs:\n")[2], re.MULTILINE))
    assert set(inspect.signature(function).parameters) == set(explained)
    assert returns
    lines = re.findall(r"^    (?:>>>|\.\.\.) (.*)$", after.partition("\nExample:\n")[2], re.MULTILINE)
    assert any(f"veridical.{name}(" in line for line in lines)
    compile("\n".join(lines), name, "exec")
