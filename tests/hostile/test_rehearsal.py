"""Commands of a recipe that could not be typed are told of before any command of it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostile.refusals import refusal
from veridical.cli import recipe as recipes
from veridical.cli.rehearsal import insist_on_commands

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))
ITEM = '[[item]]\nwhat = "{}"\nstatus = "run"\ncommand = "veridical {}"\n'
WRONG = {
    "a verb": ("trian --data planted", "There is no verb 'trian'. Did you mean 'train'?"),
    "a verb of data": ("data shwo planted", "There is no verb 'data shwo'. Did you mean 'data show'?"),
    "a verb behind options": ("--with x.py trian --data planted", "There is no verb 'trian'"),
    "an option": ("train --dta planted --out x", "No such option: --dta. Did you mean --data?"),
    "an option without a value": ("train --data planted --out", "requires an argument"),
    "something missing": ("audit runs/x --out a", "veridical audit needs --data DATA"),
    "a model missing": ("explain --text good", "veridical explain needs MODEL"),
    "a value": ("audit runs/x --data runs/y --limit 0 --out a", "--limit is 0; it must be at least 1"),
    "a setting": ("train --data planted --set train.lr=-1 --out x", "lr is -1; it must be at least 0"),
    "an unknown setting": ("train --data planted --set train.epoch=1 --out x", "train.epoch"),
    "a method": ("explain runs/x --text good --method attentoin", "There is no attribution method 'attentoin'"),
    "a metric": ("evaluate runs/x --data d --metric sparsty", "There is no metric 'sparsty'"),
    "an option of a method": ("roar --data d --method lime:samples=0 --out x", "is 0; it must be from 1"),
    "a term": ("train --data planted --objective salos:weight=1 --out x", "There is no term 'salos'"),
    "with": ("list --with", "--with needs a module"),
}


@pytest.mark.parametrize("how", [["--dry-run"], []], ids=["dry run", "run"])
@pytest.mark.parametrize("case", WRONG)
def test_it_is_told_before_anything_runs(
    case: str, how: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, sentence = WRONG[case]
    monkeypatch.chdir(tmp_path)
    Path("r.toml").write_text(ITEM.format("table 1", "list methods") + ITEM.format("table 2", words))
    said = refusal(["run", "r.toml", *how])
    assert said.startswith("`veridical ")
    assert sentence in said
    assert [path.name for path in tmp_path.iterdir()] == ["r.toml"]


def test_what_is_not_chosen_is_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "r.toml"
    place.write_text(ITEM.format("table 1", "list methods") + ITEM.format("table 2", "trian"))
    lines = recipes.read(place)
    insist_on_commands(recipes.choose(lines, ["table 1"]))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_ours_could_be_typed(path: Path) -> None:
    insist_on_commands(recipes.choose(recipes.read(path), unrun=True))


def test_what_others_are_to_make_is_not_looked_for(tmp_path: Path) -> None:
    place = tmp_path / "r.toml"
    words = (
        "train --data made.jsonl --config made.toml --with made.py",
        "audit made --data made.csv --out a",
        "list --help",
    )
    place.write_text("".join(ITEM.format(f"table {number}", word) for number, word in enumerate(words)))
    insist_on_commands(recipes.choose(recipes.read(place)))
