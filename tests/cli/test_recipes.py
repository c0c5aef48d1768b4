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
from veridical.training.config import TrainConfig
from veridical.training.term import objective

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))
HOLDS = {
    "soft-faithfulness": {"table 2", "table 3", "table 4", "table 6", "figure 2", "figure 3", "appendix C"},
    "saloss": {*(f"table {i}" for i in range(1, 9)), "figure 1"},
    "regex": {*(f"table {i}" for i in range(1, 11)), "figure 3", "figure 4"},
    "explanation-regularisation": {*(f"table {i}" for i in range(1, 10)), *(f"figure {i}" for i in range(1, 15))},
    "recursive-roar": {*(f"table {i}" for i in range(1, 8)), *(f"figure {i}" for i in range(1, 10))},
    "validation": {"E1 and E2"},
    "measurable": {
        *("accuracy", "curves", "retrained curves", "audit"),
        *("conjunction", "movie sentences", "SST", "encoder"),
    },
}


def read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def commands(recipe: dict[str, Any]) -> list[list[str]]:
    """What a user types, in words. A line may point to another's command instead ("the audits of table 3")."""
    typed = [item[key] for item in recipe["item"] for key in ("train", "command") if key in item]
    return [shlex.split(command) for command in typed if command.startswith("veridical ")]


def configured(model: str, words: list[str]) -> TrainConfig:
    """The settings of a training whose command has these words."""
    given = [part for word in words if word.startswith("train.") for part in ("--set", word)]
    return verb("train").parse(["--model", model, *given])["options"].settings()


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
        given = train[train.index("--data") + 1]
        data = given.partition(":")[0]
        seen.add(data)
        assert train[train.index("--model") + 1] == settings["models"][data]
        assert f"train.batch={settings['batch'][data]}" in train
        config = verb("train").parse(train[2:])["options"].settings()
        assert {name: getattr(config, name) for name in settings["train"]} == settings["train"]
        assert train[train.index("--seed") + 1].split(",") == [str(seed) for seed in settings["seeds"]]
        # What is audited is what was trained.
        assert audit[2] == f"{train[train.index('--out') + 1]}/seed{{seed}}"
        assert item["seeds"] == settings["seeds"]
        assert audit[audit.index("--data") + 1] == given
        for option, name in (("--method", "methods"), ("--metric", "metrics"), ("--control", "controls")):
            assert audit[audit.index(option) + 1].split(",") == settings[name]
    assert seen == set(settings["models"]) == {"sst2", "ag_news", "evidence_inference", "multirc"}
    assert len(tasks) == 4


def test_recursive_roar_trains_every_bilstm_with_its_papers_settings():
    recipe = read(next(path for path in RECIPES if path.stem == "recursive-roar"))
    papers = recipe["settings"]["bilstm"]
    seen = set()
    for _, _, *words in commands(recipe):
        data, model = (words[words.index(option) + 1].partition(":") for option in ("--data", "--model"))
        if model[0] != "bilstm" or words[words.index("--out") + 1].endswith(
            "-small"
        ):  # lines that say they are smaller
            continue
        kind = {"babi": "babi", "snli": "snli"}.get(data[0].partition("/")[0], "single")
        seen.add(kind)
        config = configured("bilstm", words)
        assert (config.epochs, config.batch) == (papers["epochs"][kind], papers["batch"][kind])
        assert config.patience is None
        width = dict(option.split("=") for option in model[2].split(":")).get("hidden", "128")
        assert int(width) == papers["width"][kind]
        assert words[words.index("--method") + 1].split(",") == recipe["settings"]["methods"]
    assert seen == {"babi", "snli", "single"}
    assert papers["width"]["babi"] == 32


def test_explanation_regularisation_selects_every_condition_by_one_rule():
    recipe = read(next(path for path in RECIPES if path.stem == "explanation-regularisation"))
    trainings = [words for words in commands(recipe) if words[1] == "train"]
    kept = {}
    for words in trainings:
        kept[words[words.index("--out") + 1]] = (config := configured("minilm", words)).select
        assert "train.select" in " ".join(words), "a default differs between conditions"
        if "minilm" not in words:  # the stand-in has its own rates
            assert config.betas == tuple(recipe["settings"]["train"]["betas"])
    assert {"runs/er/base", "runs/er/att", "runs/er/c-att", "runs/er/c-rollout"} <= set(kept)
    assert kept.pop("runs/er/e-att") == "objective"  # the explanation loss alone, to find bounds: no condition
    assert set(kept.values()) == {recipe["settings"]["train"]["select"]} == {"loss"}


def test_saloss_has_the_papers_grid_and_methods_on_the_embedded_encoder():
    recipe = read(next(path for path in RECIPES if path.stem == "saloss"))
    settings = recipe["settings"]
    here = [item for item in recipe["item"] if "embedded encoder" in item.get("task", "")]
    searched = shlex.split(next(item for item in here if item["what"] == "table 1")["command"])
    assert [float(w) for w in searched[searched.index("--search") + 1].partition("=")[2].split(",")] == settings[
        "weights"
    ]
    assert searched[searched.index("--select") + 1] == "decision_flip"
    assert searched[searched.index("--seed") + 1] == "0,1,2"
    audits = [shlex.split(item["command"]) for item in here if item["what"] == "table 2"]
    assert len(audits) == 4  # with and without SaLoss, and again with the seeds paired
    for words in audits:
        assert [name.partition(":")[0] for name in words[words.index("--method") + 1].split(",")] == settings["methods"]
        assert words[1] == "evaluate"  # an audit may stop early
    assert "integrated_gradients" in settings["methods"]


@pytest.mark.parametrize("paper", ["saloss", "regex", "soft-faithfulness", "explanation-regularisation"])
def test_audits_behind_a_papers_table_score_every_method_on_all_texts(paper):
    audits = [words for words in commands(read(RECIPES[0].with_name(f"{paper}.toml"))) if words[1] == "audit"]
    assert audits
    for words in audits:  # one that may stop early lets methods go, and their means would be of fewer texts
        assert "--fixed" in words
        assert "--limit" not in words
