"""Places that are somebody else's, given to every verb that writes: refused in a sentence, and every byte stays.

Most cases name a model that does not exist: that the sentence is about the place shows that it is checked before
anything is loaded, and so before anything is computed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tiny import tiny
from veridical.cli.app import app
from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.place import check_apart
from veridical.explanations.exchange import write_explanations
from veridical.grid import liveness
from veridical.model.load import load
from veridical.retraining.roar.point import alone

TINY = "planted:size=40"
NO_MODEL = "no-such-model"
RECIPE = '[[item]]\nwhat = "table 1"\ncommand = "veridical list methods"\nstatus = "run: yes"\n'

# What is typed before the place; `{}` is a model.
FILES = {
    "explain --html": ("explain", "{}", "--text", "a good film", "--method", "random", "--html"),
    "explain --out": ("explain", "{}", "--text", "a good film", "--method", "random", "--out"),
    "attack --out": ("attack", "{}", "--data", TINY, "--out"),
}
RUNS = {
    "evaluate": ("evaluate", "{}", "--data", TINY, "--out"),
    "audit": ("audit", "{}", "--data", TINY, "--quick", "--out"),
    "guidance": ("guidance", "--base", "{}", "--guided", "a={}", "--data", TINY, "--out"),
    "fresh": ("fresh", "--data", "no-such-data", "--model", "bilstm", "--out"),
    "roar": ("roar", "--data", "no-such-data", "--model", "bilstm", "--method", "attention", "--out"),
}
FOLDERS = {
    **RUNS,
    "pos": ("pos", "a={}", "b={}", "--data", TINY, "--out"),
    "train": ("train", "--data", "no-such-data", "--model", "bilstm", "--out"),
    "train, search": ("train", "--data", "no-such-data", "--search", "saloss.weight=0.1,1", "--out"),
    "run": ("run", "no-such-recipe.toml", "--out"),
    "demo": ("demo", "--data", "no-such-data", "--model", "bilstm", "--out"),
}


def typed(words: tuple[str, ...], place: Path, model: str = NO_MODEL) -> list[str]:
    return [*(word.replace("{}", model) for word in words), str(place)]


def refusal(words: list[str]) -> str:
    """The one sentence with which a command ends."""
    result = CliRunner().invoke(app, words, prog_name="veridical")
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.output
    (sentence,) = result.stderr.strip().splitlines()
    return sentence


def everything(folder: Path) -> dict[str, str | bytes]:
    """All that lies in a folder: links with where they lead, files with their bytes."""
    held: dict[str, str | bytes] = {}
    for parent, folders, files in os.walk(folder):
        for path in (Path(parent) / name for name in (*folders, *files)):
            whole = f"link to {os.readlink(path)}" if path.is_symlink() else "folder" if path.is_dir() else None
            held[str(path.relative_to(folder))] = path.read_bytes() if whole is None else whole
    return held


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("model")
    network, tokenizer = tiny("bert")
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(autouse=True)
def _no_bars():
    """The command line silences other libraries before it imports them; here they have long been imported."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    yield
    logging.enable_progress_bar()


# -- places -------------------------------------------------------------------------------------------------


def thesis(at: Path) -> Path:
    (at / "chapters").mkdir(parents=True)
    (at / "chapters" / "one.tex").write_text("Ten years of work.")
    (at / "notes.txt").write_text("Do not lose.")
    return at


def empty_folder(at: Path) -> Path:
    at.mkdir()
    return at


def file(at: Path) -> Path:
    at.write_text("Do not lose.")
    return at


def link_to_thesis(at: Path) -> Path:
    at.symlink_to(thesis(at.with_name("far")))
    return at


def link_to_file(at: Path) -> Path:
    at.symlink_to(file(at.with_name("far.txt")))
    return at


def link_to_nothing(at: Path) -> Path:
    at.symlink_to(at.with_name("none"))
    return at


def pipe(at: Path) -> Path:
    os.mkfifo(at)  # as /dev/null is: no file, and no folder
    return at


def under_file(at: Path) -> Path:
    return file(at.with_name("thesis.txt")) / at.name


def under_link_to_nothing(at: Path) -> Path:
    return link_to_nothing(at.with_name("gone")) / at.name


def with_long_name(at: Path) -> Path:
    return at.with_name("x" * 300 + at.suffix)


Make = Callable[[Path], Path]
NO_FILE: dict[Make, str] = {
    thesis: "is a folder, and a file cannot take its place",
    empty_folder: "is a folder, and a file cannot take its place",
    link_to_thesis: "is a link to a folder, and a file cannot take its place",
    link_to_nothing: "is a link that leads nowhere, and a file cannot take its place",
    pipe: "is a device, and a file cannot take its place",
    under_file: "thesis.txt is a file",
    under_link_to_nothing: "gone is a link that leads nowhere",
    with_long_name: "cannot be written (File name too long)",
}
NO_FOLDER: dict[Make, str] = {
    file: "is a file, and a folder cannot take its place",
    link_to_file: "is a link to a file, and a folder cannot take its place",
    link_to_nothing: "is a link that leads nowhere, and a folder cannot take its place",
    pipe: "is a device, and a folder cannot take its place",
    under_file: "thesis.txt is a file",
    under_link_to_nothing: "gone is a link that leads nowhere",
    with_long_name: "cannot be written (File name too long)",
}
NO_RUN: dict[Make, str] = {
    thesis: "is not a run folder but holds 'chapters'",
    link_to_thesis: "is not a run folder but holds 'chapters'",
}
CASES = [
    pytest.param(words, make, sentence, id=f"{name}, {make.__name__}")
    for verbs, places in ((FILES, NO_FILE), (FOLDERS, NO_FOLDER), (RUNS, NO_RUN))
    for name, words in verbs.items()
    for make, sentence in places.items()
]


@pytest.mark.parametrize(("words", "make", "sentence"), CASES)
def test_a_place_of_others_is_refused_at_once(tmp_path: Path, words: tuple[str, ...], make: Make, sentence: str):
    place = make(tmp_path / "mine.jsonl")
    before = everything_but_pipes(tmp_path)
    said = refusal(typed(words, place))
    assert sentence in said
    assert str(tmp_path) in said
    assert everything_but_pipes(tmp_path) == before


def everything_but_pipes(folder: Path) -> dict[str, str | bytes]:
    pipes = [path for path in folder.iterdir() if stat.S_ISFIFO(path.lstat().st_mode)]
    if not pipes:
        return everything(folder)
    return {path.name: "pipe" for path in folder.iterdir() if path in pipes}  # reading one would wait for a writer


@pytest.mark.parametrize("make", [thesis, link_to_thesis])
@pytest.mark.parametrize("words", FILES.values(), ids=FILES)
def test_a_folder_survives_a_command_that_could_do_all_its_work(
    tmp_path: Path, model: str, words: tuple[str, ...], make: Make
):
    place = make(tmp_path / "thesis.jsonl")
    before = everything(tmp_path)
    assert "cannot take its place" in refusal(typed(words, place, model))
    assert everything(tmp_path) == before


@pytest.mark.parametrize("make", [thesis, link_to_thesis])
def test_a_folder_with_content_becomes_no_run(tmp_path: Path, make: Make):
    place = make(tmp_path / "thesis")
    before = everything(tmp_path)
    words = ["train", "--data", TINY, "--model", "bilstm", "--set", "train.epochs=1", "--out", str(place)]
    assert "thesis is not a run folder but holds" in refusal(words)
    assert everything(tmp_path) == before


def test_a_file_in_the_place_of_the_usual_folder_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    recipe = tmp_path / "small.toml"
    recipe.write_text(RECIPE)
    monkeypatch.chdir(tmp_path)
    file(Path("runs"))
    assert refusal(["run", str(recipe)]) == "runs/small cannot be written, as runs is a file; choose another place."


@pytest.mark.parametrize("words", [*FILES.values(), *FOLDERS.values()], ids=[*FILES, *FOLDERS])
def test_a_read_only_folder_is_told_of_at_once(tmp_path: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch):
    parent = thesis(tmp_path / "shelf")
    parent.chmod(0o555)
    if os.geteuid() == 0:  # who may do all: asked as anybody else would be answered
        monkeypatch.setattr(os, "access", lambda path, mode: bool(os.stat(path).st_mode & 0o222))
    try:
        assert "shelf is read-only" in refusal(typed(words, parent / "new.jsonl"))
    finally:
        parent.chmod(0o755)


def test_a_link_to_a_file_gives_way_and_the_file_stays(tmp_path: Path, model: str):
    place = link_to_file(tmp_path / "page.html")
    words = typed(FILES["explain --html"], place, model)
    assert CliRunner().invoke(app, words, prog_name="veridical").exit_code == 0
    assert (tmp_path / "far.txt").read_text() == "Do not lose."
    assert not place.is_symlink()
    assert "<html" in place.read_text()


# -- what is read -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("explain", NO_MODEL, "--file", "mine.jsonl", "--out", "./mine.jsonl"),
        ("explain", NO_MODEL, "--file", "mine.jsonl", "--html", "link.jsonl"),
        ("explain", NO_MODEL, "--data", "mine.jsonl", "--out", "mine.jsonl"),
        ("attack", NO_MODEL, "--data", "mine.jsonl", "--out", "mine.jsonl"),
    ],
    ids=" ".join,
)
def test_what_is_read_is_not_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]):
    monkeypatch.chdir(tmp_path)
    Path("mine.jsonl").write_text('{"text": "a", "label": "b"}\n')
    Path("link.jsonl").symlink_to("mine.jsonl")
    before = everything(tmp_path)
    assert "would be written over the very file that is read" in refusal(list(words))
    assert everything(tmp_path) == before


def test_what_is_not_read_may_be_written(tmp_path: Path):
    other = file(tmp_path / "other")
    check_apart(None, "--out", other)
    check_apart(tmp_path / "new", "--out", other, None, "planted")
    with pytest.raises(InputError, match="the very file"):
        check_apart(other, "--out", None, tmp_path / "." / "other")


# -- beside what is ours ------------------------------------------------------------------------------------

STRANGE = (
    ".tmp-notes",
    ".tmp-abcd1234-mine/thesis.txt",
    ".deep/.tmp-veridical-notes",
    ".tmp-veridical-/a",
    ".git/HEAD",
)


def put_strange(folder: Path) -> dict[str, str | bytes]:
    """Hidden things, which do not keep a folder from becoming a run's, and a link to a folder with a leftover."""
    for name in STRANGE:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("Do not lose.")
    far = folder.with_name("far")
    (far / f"{store.TEMPORARY}0123abcd-x").mkdir(parents=True)
    (folder / ".far").symlink_to(far)
    return everything(folder.parent)


@pytest.mark.whole
def test_what_lies_in_a_run_folder_survives_training_and_resuming(tmp_path: Path):
    out = tmp_path / "run"
    before = put_strange(out)
    words = ("train", "--data", TINY, "--model", "bilstm", "--set", "train.epochs=1", "--out", str(out))
    assert CliRunner().invoke(app, words, prog_name="veridical").exit_code == 0
    (out / "scores.json").unlink()  # as if killed just before the end: the model is written again
    (out / f"{store.TEMPORARY}0123abcd-model").mkdir()
    assert CliRunner().invoke(app, words, prog_name="veridical").exit_code == 0
    after = everything(tmp_path)
    assert {name: after.get(name) for name in before} == before
    assert not (out / f"{store.TEMPORARY}0123abcd-model").exists()
    (out / "scores.json").unlink()
    (out / "model" / "thesis.txt").write_text("Do not lose.")
    assert "model holds 'thesis.txt', which Veridical did not put there" in refused_late(words)
    assert (out / "model" / "thesis.txt").read_text() == "Do not lose."
    (out / "model" / "thesis.txt").rename(tmp_path / "thesis.txt")
    assert CliRunner().invoke(app, words, prog_name="veridical").exit_code == 0


def refused_late(words: tuple[str, ...]) -> str:
    result = CliRunner().invoke(app, words, prog_name="veridical")
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    return result.stderr.strip().splitlines()[-1]  # after the progress of the work


@pytest.mark.whole
@pytest.mark.parametrize("verb", ["audit", "evaluate"])
def test_what_lies_in_an_audit_survives(tmp_path: Path, model: str, verb: str):
    out = tmp_path / "audit"
    less = ["--method", "random,attention", "--metric", "sparsity", "--limit", "2"]
    words = [verb, model, "--data", "planted:size=40", *less, "--out", str(out)]
    assert CliRunner().invoke(app, words, prog_name="veridical").exit_code == 0
    put_strange(out)
    before = everything(tmp_path)
    (out / f"{store.TEMPORARY}0123abcd-report.html").write_text("half")
    assert CliRunner().invoke(app, words, prog_name="veridical").exit_code == 0
    after = everything(tmp_path)
    assert set(after) == set(before)
    assert all(after[name] == held for name, held in before.items() if name.startswith("far") or "/." in name)


def test_a_folder_of_others_beside_a_point_of_roar_stays(tmp_path: Path):
    point = tmp_path / "p10"
    for name in ("p10.work-notes/thesis.txt", "p10.work-0123abcd/half", "p10.running-1-notes/thesis.txt"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("Do not lose.")
    with alone(point) as work:
        assert work is not None
        assert (work / "half").exists()  # of a dead worker: gone on with
    liveness.forget(point)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p10", "p10.running-1-notes", "p10.work-notes"]
    assert (tmp_path / "p10.work-notes" / "thesis.txt").read_text() == "Do not lose."
    assert (tmp_path / "p10.running-1-notes" / "thesis.txt").read_text() == "Do not lose."


def test_parts_of_another_model_survive(tmp_path: Path, model: str):
    for name in ("model-00001-of-00002.safetensors", "pytorch_model-00001-of-00003.bin"):
        place = tmp_path / name.partition("-")[0]
        place.mkdir()
        (place / name).write_text("Do not lose.")
        with pytest.raises(InputError, match=f"holds '{name}', a part of another model, which saving this one would"):
            load(model).save(place)
        assert [path.name for path in place.iterdir()] == [name]


@pytest.mark.parametrize("name", ["grid.json", "logs/table-1/command.txt", "cells/mine.txt"])
def test_what_a_run_of_a_recipe_would_write_over_survives(tmp_path: Path, name: str):
    recipe, out = tmp_path / "small.toml", tmp_path / "out"
    recipe.write_text(RECIPE)
    (out / name).parent.mkdir(parents=True)
    (out / name).write_text('{"mine": "Do not lose."}')
    before = everything(tmp_path)
    assert str(out) in refusal(["run", str(recipe), "--out", str(out)])
    assert everything(tmp_path) == before


def test_explanations_are_not_written_under_a_file(tmp_path: Path):
    with pytest.raises(InputError, match=r"thesis.txt is a file; choose another place"):
        write_explanations(under_file(tmp_path / "x.jsonl"), [])


def test_a_model_is_not_saved_in_the_place_of_a_file(tmp_path: Path, model: str):
    place = file(tmp_path / "thesis.txt")
    with pytest.raises(InputError, match="is a file, and a folder cannot take its place"):
        load(model).save(place)
    assert place.read_text() == "Do not lose."
