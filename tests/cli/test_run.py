"""`veridical run`: recipes as cells, what is chosen, in which order, and what a run leaves behind."""

import json
import warnings
from pathlib import Path
from typing import Annotated

import pytest
from typer.testing import CliRunner

from veridical.cli import run as cli_run
from veridical.cli.app import app
from veridical.cli.recipe import Command, cells, choose, read, type_in
from veridical.cli.replaced import with_data
from veridical.cli.verb import Verb
from veridical.core import store
from veridical.core.errors import Caution, InputError
from veridical.core.options import Help
from veridical.data import load_data
from veridical.grid.pool import _check
from veridical.retraining.roar.points import default_score

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))

SMALL = "--data planted:size=24 --model bilstm --set train.epochs=1"
RECIPE = f"""
paper = "a test"
[[item]]
what = "table 1"
task = "A"
train = "veridical train {SMALL} --seed 0,1 --out models/a"
command = "veridical explain models/a/seed1 --text 'so fine' --method gradient --out a.jsonl"
status = "run: here"
[[item]]
what = "table 1"
task = "B"
command = "veridical explain missing --text fine --method gradient --out b.jsonl"
status = "partly run: there is no such model"
[[item]]
what = "table 2"
command = "the explanations of table 1, A"
status = "run: with table 1"
[[item]]
what = "table 3"
command = "veridical explain x=models/a/seed0 --text fine --html c.html"
status = "unrun: too dear"
[[item]]
what = "table 4"
command = "`veridical list`, and look at it"
status = "unrun: to be typed"
[[item]]
what = "figure 1"
command = "the explanations of table 1"
status = "unrun: too dear as well"
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "paper.toml"
    path.write_text(RECIPE)
    return path


def invoke(*words: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["run", *map(str, words)])
    assert result.exit_code == code, result.output
    return result.output


# -- reading and choosing -----------------------------------------------------------------------------------


def test_lines_commands_pointers_and_what_waits_for_what(recipe):
    a, b, two, three, four, figure = read(recipe)
    assert [line.name for line in (a, b, two, three)] == ["table 1, A", "table 1, B", "table 2", "table 3"]
    train, explain = a.commands
    assert (train.key, explain.key) == ("table-1/A/train", "table-1/A/command")
    assert explain.words[2:4] == ("--text", "so fine")
    assert explain.after == (train.key,)
    assert three.commands[0].after == (train.key,)  # it reads a path that the training makes
    assert b.commands[0].after == ()
    assert (two.lines, figure.lines, four.lines) == (("table 1, A",), ("table 1, A", "table 1, B"), ())


def test_only_some_lines_bring_what_they_need(recipe):
    lines = read(recipe)

    def keys(*only: str, unrun: bool = False) -> list[str]:
        return [command.key for command in choose(lines, only, unrun=unrun)]

    a, b, c = ["table-1/A/train", "table-1/A/command"], ["table-1/B/command"], ["table-3/command"]
    assert keys() == [*a, *b]  # what is marked unrun is left out,
    assert keys(unrun=True) == [*a, *b, *c]
    assert keys("table 3") == [a[0], *c]  # unless it is asked for,
    assert keys("table 2") == a  # or pointed to
    assert keys("table 1") == keys("figure 1") == [*a, *b]
    assert keys("table 4") == []
    with pytest.raises(InputError, match=r"There is no line 'tabel 3'\. Did you mean 'table 3'\?"):
        keys("tabel 3")


def test_a_line_with_seeds_looks_at_each(tmp_path):
    path = tmp_path / "r.toml"
    head = (
        f'[[item]]\nwhat = "table 1"\nstatus = "run: yes"\ntrain = "veridical train {SMALL} --seed 0,4 --out models"\n'
    )
    look = 'command = "veridical explain models/seed{seed} --text fine --method gradient --out e{seed}.jsonl"\n'
    path.write_text(f"{head}{look}seeds = [0, 4]\n")
    (line,) = read(path)
    train, *looks = line.commands
    assert [look.key for look in looks] == ["table-1/command-seed0", "table-1/command-seed4"]
    assert [look.words[1] for look in looks] == ["models/seed0", "models/seed4"]
    assert [look.out for look in looks] == ["e0.jsonl", "e4.jsonl"]
    assert all(look.after == (train.key,) for look in looks)
    assert [command.key for command in choose([line], ["table 1"])] == [command.key for command in line.commands]


@pytest.mark.parametrize(
    ("rest", "sentence"),
    [
        ('command = "veridical list methods{seed}"', r"a command has \{seed\}, and its line no `seeds`"),
        ('command = "veridical list methods"\nseeds = [0]', r"a line has `seeds`, and its command no \{seed\}"),
        ('command = "the lists of table 2"\nseeds = [0]', r"a line has `seeds`, and its command no \{seed\}"),
        ('command = "veridical list {seed}"\nseeds = []', "`seeds` is .*, and no list of whole numbers"),
        ('command = "veridical list {seed}"\nseeds = 3', "`seeds` is 3, and no list of whole numbers"),
        ('command = "veridical list {seed}"\nseeds = [true]', "`seeds` is .*, and no list of whole numbers"),
    ],
)
def test_seeds_that_fit_no_command_are_refused(tmp_path, rest, sentence):
    path = tmp_path / "r.toml"
    path.write_text(f'[[item]]\nwhat = "table 1"\nstatus = "run: yes"\n{rest}\n')
    with pytest.raises(InputError, match=sentence):
        read(path)


def test_the_same_words_are_one_cell_and_no_two_share_a_key(tmp_path):
    item = '[[item]]\nwhat = "table 1"\ncommand = "veridical list {}"\nstatus = "run: yes"\n'
    path = tmp_path / "r.toml"
    path.write_text(item.format("methods") + item.format("metrics") + item.format("methods"))
    found = [command.key for line in read(path) for command in line.commands]
    assert found == ["table-1/command", "table-1/command-2", "table-1/command"]
    assert len(choose(read(path))) == 2


def test_a_training_of_several_seeds_runs_side_by_side(recipe, tmp_path):
    found = {cell.key: cell for cell in cells(choose(read(recipe), ["table 3"]), tmp_path)}
    train = "table-1/A/train"
    assert set(found) == {f"{train}-seed0", f"{train}-seed1", train, "table-3/command"}
    words = found[f"{train}-seed1"].arguments["words"]
    assert " ".join(words) == f"train {SMALL} --seed 1 --out models/a/seed1"
    assert found[train].after == (f"{train}-seed0", f"{train}-seed1")
    assert found["table-3/command"].after == (train,)
    for more in ("--search x.weight=1,2", "--bound x=1", "--config job.toml"):
        whole = Command("k", tuple(f"train --seed 0,1 --out o {more}".split()))
        assert len(cells([whole], tmp_path)) == 1


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_line_of_our_recipes_can_be_chosen(path, tmp_path):
    lines = read(path)
    for line in lines:
        _check(cells(choose(lines, [line.name]), tmp_path))
    everything = choose(lines, unrun=True)
    _check(cells(everything, tmp_path))
    assert {c.key for c in everything} == {c.key for line in lines for c in line.commands}


def test_what_is_no_recipe_is_refused(tmp_path):
    path = tmp_path / "r.toml"
    for text, words in [("[[item]", "cannot be read"), ("a = 1", "is no recipe"), ("[[item]]\nx = 1", "is no recipe")]:
        path.write_text(text)
        with pytest.raises(InputError, match=words):
            read(path)
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "none.toml")


# -- running ------------------------------------------------------------------------------------------------


def test_a_dry_run_shows_the_plan_and_runs_nothing(recipe, tmp_path):
    shown = invoke(recipe, "--dry-run", "--out", tmp_path / "out")
    assert "table 1, A  4 cells, 0 done" in shown
    assert "$ veridical explain models/a/seed1 --text 'so fine'" in shown
    assert "table 2     runs with table 1, A" in shown
    assert "table 3     unrun: too dear" in shown
    assert "table 4     to be typed: `veridical list`, and look at it" in shown
    assert "5 cells, 0 done." in shown
    assert not (tmp_path / "out").exists()
    assert "figure 1    in part with table 1, A" in invoke(recipe, "--dry-run", "--only", "table 1, A")
    rows = json.loads(invoke(recipe, "--dry-run", "--only", "table 3", "--out", tmp_path / "out", "--json"))
    assert [row["state"] for row in rows][:4] == ["runs", "not asked for", "not asked for", "runs"]


def test_a_recipe_gives_what_its_commands_give(recipe, tmp_path, monkeypatch):
    for name in ("OMP", "MKL", "OPENBLAS"):
        monkeypatch.setenv(f"{name}_NUM_THREADS", "1")
    out = tmp_path / "out"
    shown = invoke(recipe, "--out", out, "--workers", "1", code=1)  # one line names a model that is not there
    assert "1 cell failed (table-1/B/command)" in shown
    problem = (out / "cells" / "table-1" / "B" / "command.error.txt").read_text()
    assert "`veridical explain missing --text fine" in problem
    assert "exit code 2" in problem
    log = (out / "logs" / "table-1" / "A" / "train.txt").read_text()
    assert log.startswith("$ veridical train")
    assert "models/a/seed1" in log

    by_hand = tmp_path / "by-hand"
    for command in choose(read(recipe), ["table 1, A"]):
        assert type_in(command.words, by_hand) == 0
    for seed in (0, 1):
        name = f"models/a/seed{seed}/model/model.safetensors"
        assert (out / name).read_bytes() == (by_hand / name).read_bytes()

    assert "4 cells, 4 done" in invoke(recipe, "--out", out, "--only", "table 1, A")
    done = CliRunner().invoke(app, ["run", str(recipe), "--out", str(out), "--only", "table 1, A"])
    assert done.stdout.strip() == str(out)


def test_grids_get_the_same_engine_and_run_between_what_they_need_and_what_needs_them(tmp_path, monkeypatch):
    """A verb that takes --shard is a grid itself: it is not put into a worker."""
    order: list[tuple[str, ...]] = []
    Text = Annotated[str, Help("Any.", "TEXT")]

    def roar(data: Text = "", out: Text = "", shard: Text = "", engine: Text = "", workers: Text = "") -> None:
        order.append(("roar", data, out, shard, engine, workers))
        if data == "bad":
            raise InputError("No such data; take others.")
        if data == "stop":
            raise KeyboardInterrupt

    def plain(path: Annotated[str, Help("Any.", "PATH", argument=True)], out: Text = "") -> None:
        pass

    verbs = {"run": Verb("run", cli_run.run), "roar": Verb("roar", roar), "plain": Verb("plain", plain)}
    monkeypatch.setattr("veridical.cli.app.VERBS", tuple(verbs))
    monkeypatch.setattr("veridical.cli.app.verb", verbs.__getitem__)
    monkeypatch.setattr(
        "veridical.grid.pool.run", lambda cells, out, **how: order.append(("cells", *(cell.key for cell in cells)))
    )
    path = tmp_path / "r.toml"
    item = '[[item]]\nwhat = "{}"\ncommand = "veridical {}"\nstatus = "run: yes"\n'
    rows = [("a", "plain made/b"), ("b", "roar --data d --out made/b"), ("c", "plain x"), ("d", "roar --data bad")]
    path.write_text("".join(item.format(*row) for row in rows))
    shown = invoke(path, "--out", tmp_path / "out", "--shard", "1/2", "--workers", "3", code=1)
    assert order == [
        ("cells", "c/command"),
        ("roar", "d", "made/b", "1/2", "local", "3"),
        ("roar", "bad", "", "1/2", "local", "3"),
    ]
    assert "1 of 2 grids failed: veridical roar --data bad" in shown
    assert "No such data; take others." in shown
    assert "1 command waits for grids that are not done" in shown  # another task may not be through yet

    order.clear()
    invoke(path, "--out", tmp_path / "out", code=1)
    assert order[0] == ("cells", "c/command")
    assert order[-1] == ("cells", "a/command")  # it does not wait for the grid that failed

    order.clear()
    rows = [("a", "plain x --out made/a"), ("b", "roar --data made/a --out made/b"), ("c", "plain made/b")]
    path.write_text("".join(item.format(*row) for row in rows))
    (tmp_path / "out/made/b").mkdir(parents=True)
    store.write_json(tmp_path / "out/made/b/grid.json", {"workers": 1, "cells": []})  # as if every part were done
    invoke(path, "--out", tmp_path / "out", "--shard", "2/2")
    # Its second part has no cell of a's; but the grid reads a, so that it waits for it or computes it.
    assert order[0] == ("cells", "a/command")
    assert ([one[0] for one in order[-2:]], order[-1]) == (["roar", "cells"], ("cells", "c/command"))

    order.clear()
    path.write_text(item.format("a", "roar --data stop") + item.format("b", "roar --data d"))
    invoke(path, "--out", tmp_path / "out", code=130)
    assert [data for _, data, *_ in order] == ["stop"]  # Ctrl-C stops everything


def test_mistakes_have_their_sentence(recipe, tmp_path):
    assert "number the tasks of an array job from 1" in invoke(recipe, "--shard", "0/4", code=2)
    assert "There is no line 'table 9'" in invoke(recipe, "--only", "table 9", code=2)
    assert "--engine ray" in invoke(recipe, "--address", "auto", "--out", tmp_path / "out", code=2)
    assert not list((tmp_path).rglob("*.running-*"))


def test_a_command_that_fails_keeps_its_log(tmp_path):
    from veridical.cli.recipe import type_logged

    with pytest.raises(RuntimeError, match=r"exit code 2: .*nowhere"):
        type_logged(["status", "nowhere"], str(tmp_path), "logs/x.txt")
    assert "nowhere" in (tmp_path / "logs" / "x.txt").read_text()
    type_logged(["--version"], str(tmp_path), "logs/y.txt")
    assert (tmp_path / "logs" / "y.txt").read_text().startswith("$ veridical --version\nveridical ")
    assert store.TEMPORARY not in "".join(path.name for path in tmp_path.rglob("*"))


# -- files in a dataset's place -------------------------------------------------------------------------------

READS = """
[[item]]
what = "table 1"
train = "veridical train --data sst2 --model bilstm --set train.epochs=1 --out models/a"
command = "veridical audit models/a --data sst2 --ood imdb,hutto/movies --out audit"
status = "unrun: needs the hub"
[[item]]
what = "table 2"
command = "veridical roar --data babi/1:path=en-10k --model bilstm --seeds 5 --out roar"
status = "unrun: needs the files"
"""


@pytest.fixture
def hubless(tmp_path: Path) -> tuple[Path, Path]:
    """A recipe whose data is on the hub, and a folder of a few sentences."""
    path, folder = tmp_path / "paper.toml", tmp_path / "a folder"
    path.write_text(READS)
    rows = [{"text": f"a {word} film number {n}", "label": n % 2} for n, word in enumerate(["bad", "good"] * 12)]
    for split in ("train", "dev", "test"):
        store.write_jsonl(folder / f"{split}.jsonl", rows)
    return path, folder


def test_files_are_read_wherever_the_dataset_is_named(hubless):
    path, folder = hubless
    (line, other) = with_data(read(path), [f"imdb={folder}:labels=no+yes", f"babi/1={folder}"])
    train, audit = line.commands
    assert train.words[train.words.index("--data") + 1] == "sst2"
    assert audit.words[audit.words.index("--ood") + 1] == f"{folder}:name=imdb:labels=no+yes,hutto/movies"
    assert other.commands[0].words[2] == f"{folder}:name=babi/1"
    assert audit.after == (train.key,)
    data = load_data(other.commands[0].words[2])
    assert (data.name, default_score(data.name)) == ("babi/1", "accuracy")  # the paper's score goes with the name
    assert [line.commands for line in with_data(read(path), [])] == [line.commands for line in read(path)]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("sst2", "write NAME=FOLDER"),
        ("=x", "write NAME=FOLDER"),
        ("sst2=nowhere", "there is no file or folder 'nowhere'"),
        ("ag_news={folder}", "the recipe reads no dataset 'ag_news'; it reads: babi/1, hutto/movies, imdb, sst2"),
        ("sst2={folder}:colour=red", "The dataset 'files' has no option 'colour'"),
        ("sst2={folder},2", "a comma in a path"),
    ],
)
def test_files_that_cannot_take_a_datasets_place_are_refused(hubless, given, sentence):
    path, folder = hubless
    folder.with_name(f"{folder.name},2").mkdir()
    with pytest.raises(InputError, match=sentence):
        with_data(read(path), [given.format(folder=folder)])


def test_files_of_other_classes_are_refused_before_anything_runs(hubless):
    path, folder = hubless
    rows = [{"text": f"a film of grade {n % 5}, number {n}", "label": n % 5} for n in range(30)]
    store.write_jsonl(folder / "train.jsonl", rows)
    with pytest.raises(InputError, match=r"5 classes \(0, 1, 2, 3, 4\), but sst2 has 2 \(negative, positive\)"):
        with_data(read(path), [f"sst2={folder}"])
    with_data(read(path), [f"babi/1={folder}"])  # whose classes are not known beforehand


def test_what_files_do_not_apply_of_a_dataset_is_said(hubless):
    path, folder = hubless
    path.write_text(READS.replace("--data sst2", "--data sst2:longer=5"))
    with pytest.warns(Caution, match="'sst2:longer=5'; the files in its place are read as they are, without longer=5"):
        with_data(read(path), [f"sst2={folder}"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with_data(read(path), [f"babi/1={folder}"])  # a path is where files are, and these are elsewhere


def test_a_recipe_of_the_hub_runs_on_files(hubless, tmp_path):
    path, folder = hubless
    out = tmp_path / "out"
    words = (path, "--only", "table 1", "--data", f"sst2={folder}", "--data", f"imdb={folder}", "--out", out)
    shown = invoke(*words, "--dry-run")
    assert f"--data '{folder}:name=sst2'" in shown
    alone = tmp_path / "alone.toml"
    alone.write_text(READS.replace('command = "veridical audit', 'find = "veridical audit'))
    invoke(alone, "--only", "table 1", "--data", f"sst2={folder}", "--workers", 1, "--out", out)
    assert json.loads((out / "models/a/spec.json").read_text())["data"]["name"] == "sst2"
