"""Recipes: every table and figure is there, run or marked unrun with the reason, and every command can be typed."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from veridical.attribution import methods
from veridical.cli.app import verb
from veridical.data import datasets
from veridical.metric import metrics
from veridical.training.term import objective

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))
HOLDS = {
    "soft-faithfulness": {"table 2", "table 3", "table 4", "table 6", "figure 2", "figure 3"},
    "saloss": {*(f"table {i}" for i in range(1, 9)), "figure 1"},
    "regex": {*(f"table {i}" for i in range(1, 11)), "figure 3", "figure 4"},
    "explanation-regularisation": {*(f"table {i}" for i in range(1, 10)), *(f"figure {i}" for i in range(1, 15))},
    "recursive-roar": {*(f"table {i}" for i in range(1, 8)), *(f"figure {i}" for i in range(1, 10))},
}


def read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def commands(recipe: dict[str, Any]) -> list[list[str]]:
    """What a user types, in words. A line may point to another's command instead ("the audits of table 3")."""
    typed = [item[key] for item in recipe["item"] for key in ("train", "command") if key in item]
    return [shlex.split(command) for command in typed if command.startswith("veridical ")]


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_table_and_figure_has_its_line(path):
    recipe = read(path)
    assert path.stem in HOLDS, "say in HOLDS which tables and figures its paper has"
    assert {item["what"] for item in recipe["item"]} == HOLDS[path.stem]
    for item in recipe["item"]:
        assert re.match(r"run: .+|partly run: .+|unrun: .+", item["status"]), item["what"]
        assert item["holds"]
        assert item["find"]


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_command_can_be_typed(path):
    """The parser takes it, and every dataset, method, metric and setting in it exists; nothing is run."""
    recipe = read(path)
    typed = commands(recipe)
    assert typed
    for _, name, *words in typed:
        arguments = verb(name).parse(words)  # builds the records, and so checks every option and setting
        given = {**arguments, **vars(arguments.get("options", SimpleNamespace()))}
        if given.get("data"):
            assert given["data"].partition(":")[0] in datasets
        methods.choose_all(given.get("methods") or [])
        metrics.choose_all(given.get("metrics") or [])
        objectives = given.get("objective", ())
        for spec in [objectives] if isinstance(objectives, str) else objectives:
            objective(spec)


def test_soft_faithfulness_has_a_line_per_task_with_the_papers_settings():
    recipe = read(next(path for path in RECIPES if path.stem == "soft-faithfulness"))
    settings = recipe["settings"]
    tasks = [item for item in recipe["item"] if item["what"] == "table 3"]
    seen = set()
    for item in tasks:
        train, audit = (shlex.split(item[key]) for key in ("train", "command"))
        data = train[train.index("--data") + 1]
        seen.add(data)
        assert train[train.index("--model") + 1] == settings["models"][data]
        assert f"train.batch={settings['batch'][data]}" in train
        config = verb("train").parse(train[2:])["options"].settings()
        assert {name: getattr(config, name) for name in settings["train"]} == settings["train"]
        assert train[train.index("--seed") + 1].split(",") == [str(seed) for seed in settings["seeds"]]
        # What is audited is what was trained.
        assert audit[2] == f"{train[train.index('--out') + 1]}/seed0"
        assert audit[audit.index("--data") + 1] == data
        for option, name in (("--method", "methods"), ("--metric", "metrics"), ("--control", "controls")):
            assert audit[audit.index(option) + 1].split(",") == settings[name]
    assert seen == set(settings["models"]) == {"sst2", "ag_news", "evidence_inference", "multirc"}
    assert len(tasks) == 4
