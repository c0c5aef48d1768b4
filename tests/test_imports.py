"""Imports point one way only, through one list of rooms; every public name and old address leads somewhere."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import veridical
from veridical.core.moved import MOVED

ROOT = Path(veridical.__file__).parent
# A room may use those before it; rooms on one line do not use each other.
ROOMS = """
    core
    page
    model
    data
    attribution metric
    explanations
    grid
    audits
    training
    retraining probes
    playground
    cli
    __main__
"""
LEVEL = {room: level for level, line in enumerate(ROOMS.split("\n")) for room in line.split()}
MODULES = [path for path in sorted(ROOT.rglob("*.py")) if path != ROOT / "__init__.py"]


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """The rooms whose modules a file imports, at the top or inside a function; what only types need does not count."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for node in ast.walk(block)
    }
    names: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.module == "veridical":
            names |= {alias.name for alias in node.names} - {"__version__"}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("veridical."):
            names.add(str(node.module).split(".")[1])
        elif isinstance(node, ast.Import):
            names |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("veridical.")}
    return names


def test_the_root_holds_three_files_and_the_rooms():
    held = {path.name for path in ROOT.iterdir() if path.name != "__pycache__"}
    assert held - set(LEVEL) == {"__init__.py", "__main__.py", "py.typed"}
    assert not set(veridical.__all__) & set(LEVEL), "a room has a public verb's name"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_imports_point_downwards(path):
    room = room_of(path)
    assert room in LEVEL, f"{room} has no level: say where it belongs"
    wrong = {other for other in imported(path) if other != room and LEVEL[other] >= LEVEL[room]}
    assert not wrong


def test_the_lazy_table_and_the_block_for_type_checkers_agree():
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
    typed = {
        alias.asname: str(node.module).removeprefix("veridical.")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == veridical._HOME


@pytest.mark.parametrize("name", veridical.__all__)
def test_every_public_name_is_there(name):
    assert getattr(veridical, name).__name__ == name


def test_only_the_store_and_the_assets_write_files():
    """`open(..., "w")`, `write_text` and friends appear in core/store.py and core/assets.py only."""
    verbs = {"write_text", "write_bytes", "write_table", "savez"}
    wrong = []
    for path in MODULES:
        if path.relative_to(ROOT).as_posix() in ("core/store.py", "core/assets.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                if getattr(getattr(node.func, "value", None), "id", "") == "store":
                    continue
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                modes = [a.value for a in node.args[1:2] if isinstance(a, ast.Constant)]
                if name in verbs or (name == "open" and any(set("wax+") & set(str(m)) for m in modes)):
                    wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} {name}")
    assert not wrong


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_old_addresses_work_with_a_warning(old, new):
    code = (
        f"import importlib, {old}; assert importlib.import_module({old!r}).__doc__ is None; from {old} import __name__"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert f"{old} is now {new}" in ended.stderr
    public = next(name for name in vars(importlib.import_module(new)) if not name.startswith("_"))
    with pytest.warns(FutureWarning) if old not in sys.modules else pytest.MonkeyPatch.context():
        alias = importlib.import_module(old)
    assert getattr(alias, public) is getattr(importlib.import_module(new), public)


def test_an_old_address_does_not_take_a_verbs_place():
    code = (
        "import veridical; from veridical.search import search; assert veridical.search is not None; veridical.search()"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "TypeError: search() missing" in ended.stderr
    for line in ("from veridical.grid import run, Cell", "from veridical.model.decompose import readouts"):
        ended = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
        assert "the old address goes" in ended.stderr
