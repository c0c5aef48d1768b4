"""Imports point one way only: a module may use those of its own level or below."""

from __future__ import annotations

import ast
from pathlib import Path

import veridical

ROOT = Path(veridical.__file__).parent
LEVELS = [
    {"errors", "records", "registry", "seed"},
    {"text", "erase", "config", "store", "assets", "progress"},
    {"model"},
    {"prior", "attribution", "metric", "term", "data"},
    {
        "explanation",
        "exchange",
        "alignment",
        "windows",
        "schedule",
        "scores",
        "display",
        "loop",
        "train",
        "explain",
        "evaluate",
        "attribute",
        "cell",
        "status",
        "task",
        "constrained",
        "rationale",
        "checklist",
        "collator",
    },
    {"grid", "bounds", "statistics", "diagnosticity", "ranking", "summary", "compare", "report"},
    {"audit", "roar", "fresh", "fresh_table", "demo", "search", "pos", "robustness", "attack", "trainer", "guidance"},
    {"recipe", "__main__"},
]
LEVEL = {name: level for level, names in enumerate(LEVELS) for name in names}
# The command line stands above everything: cli.py and a cli_*.py per group of verbs.
LEVEL |= {path.stem: len(LEVELS) - 1 for path in ROOT.glob("cli*.py")}


def part(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Top-level parts of veridical that a module imports at the top or inside a function, types excepted."""
    found = set()
    tree = ast.parse(path.read_text())
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.ImportFrom) and node.module == "veridical":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("veridical."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("veridical.")}
    return found


def test_imports_point_downwards():
    wrong = []
    for path in ROOT.rglob("*.py"):
        own = part(path)
        if own == "__init__":
            continue
        assert own in LEVEL, f"{own} has no level: say where it belongs"
        wrong += [
            f"{path.relative_to(ROOT)} imports {name}"
            for name in imported(path)
            if name in LEVEL and LEVEL[name] > LEVEL[own]
        ]
    assert not wrong


def test_metrics_never_use_attributions():
    wrong = [path for path in (ROOT / "metric").rglob("*.py") if "attribution" in imported(path)]
    assert not wrong


def test_only_the_store_and_the_assets_write_files():
    """`open(..., "w")`, `write_text` and friends appear in store.py and assets.py only."""
    verbs = {"write_text", "write_bytes", "write_table", "savez"}
    wrong = []
    for path in ROOT.rglob("*.py"):
        if part(path) in ("store", "assets"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                if getattr(getattr(node.func, "value", None), "id", "") == "store":
                    continue
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                modes = [a.value for a in node.args[1:2] if isinstance(a, ast.Constant)]
                if name in verbs or (name == "open" and any(set("wax+") & set(str(m)) for m in modes)):
                    wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} {name}")
    assert not wrong
