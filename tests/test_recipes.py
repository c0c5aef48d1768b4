"""Recipes: every table and figure is there, run or marked unrun with the reason, and every name in them exists."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from veridical.attribution import methods
from veridical.data import datasets
from veridical.metric import metrics

RECIPES = sorted((Path(__file__).parent.parent / "recipes").glob("*.toml"))
HOLDS = {"soft-faithfulness": {"table 2", "table 3", "table 4", "table 6", "figure 2", "figure 3"}}


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_table_and_figure_has_its_line(path):
    recipe = tomllib.loads(path.read_text(encoding="utf-8"))
    assert {item["what"] for item in recipe["item"]} == HOLDS[path.stem]
    for item in recipe["item"]:
        assert re.match(r"run: .+|partly run: .+|unrun: .+", item["status"]), item["what"]
        assert item["holds"]
        assert item["find"]


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_name_in_a_recipe_exists(path):
    recipe = tomllib.loads(path.read_text(encoding="utf-8"))
    for spec in recipe["settings"]["methods"]:
        methods.choose(spec)
    for spec in recipe["settings"]["metrics"]:
        metrics.choose(spec)
    for name in recipe["settings"]["models"]:
        assert name in datasets
    for item in recipe["item"]:
        words = shlex.split(item["command"])
        for option, registry in (("--method", methods), ("--metric", metrics)):
            if option in words:
                registry.choose_all(words[words.index(option) + 1])
