"""Parts of users' own: found by path, by name and by entry point; every mistake is a sentence."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from veridical.core import plugins, store
from veridical.core.errors import InputError
from veridical.core.registry import Registry


@dataclass(frozen=True)
class Thing:
    name: str
    run: Callable[..., Any]


things: Registry[Thing] = Registry("thing", "unset")  # each test has one of its own

PART = """
from {tests} import things, Thing
def run(): "A part."
things.add(Thing({name!r}, run))
"""


def part(name: str) -> str:
    return PART.format(tests=__name__, name=name)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A registry with one built-in thing, nothing of ours loaded, and no trace of it afterwards."""
    before = dict(sys.modules)
    monkeypatch.setattr(plugins, "_loaded", set())
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv(plugins.WITH, "")
    store.write_text(tmp_path / "house" / "veridical_toys" / "__init__.py", "")
    store.write_text(tmp_path / "house" / "veridical_toys" / "built_in.py", part("built_in"))
    monkeypatch.syspath_prepend(tmp_path / "house")
    monkeypatch.setattr(sys.modules[__name__], "things", Registry("thing", "veridical_toys"))
    yield
    for name in set(sys.modules) - set(before):
        del sys.modules[name]


def names() -> list[str]:
    return [thing.name for thing in things]


def test_a_file_is_found_wherever_one_stands_afterwards(tmp_path, monkeypatch):
    store.write_text(tmp_path / "far" / "mine.py", "import neighbour\n" + part("mine"))
    store.write_text(tmp_path / "far" / "neighbour.py", "")
    monkeypatch.chdir(tmp_path / "far")
    plugins.use("mine.py")
    monkeypatch.chdir("/")
    assert os.environ[plugins.WITH] == str(tmp_path / "far" / "mine.py")
    assert plugins.environment() == {plugins.WITH: str(tmp_path / "far" / "mine.py")}
    assert names() == ["built_in", "mine"]
    import mine  # type: ignore[import-not-found]

    assert mine.run is things["mine"].run


def test_the_environment_is_what_a_worker_reads(tmp_path, monkeypatch):
    for name in ("mine", "yours"):
        store.write_text(tmp_path / "far" / f"{name}.py", part(name))
    monkeypatch.syspath_prepend(tmp_path / "far")
    monkeypatch.setenv(plugins.WITH, f"{tmp_path / 'far' / 'mine.py'},yours")
    assert "mine" in things
    assert names() == ["built_in", "mine", "yours"]
    assert set(plugins.fingerprints()) == {"mine", "yours"}
    assert store.stamp()["with"] == plugins.fingerprints()


def test_results_without_such_parts_are_stamped_as_before():
    assert names() == ["built_in"]
    assert "with" not in store.stamp()


def test_several_are_named_with_commas_or_one_by_one(tmp_path):
    files = [tmp_path / "far" / f"{name}.py" for name in ("a", "b", "c")]
    for file in files:
        store.write_text(file, part(file.stem))
    plugins.use(f"{files[0]}, {files[1]}", str(files[2]))
    plugins.use(str(files[0]))
    assert names() == ["a", "b", "built_in", "c"]
    assert os.environ[plugins.WITH] == ",".join(map(str, files))


def test_an_installed_package_names_its_module(tmp_path, monkeypatch):
    store.write_text(tmp_path / "site" / "theirs.py", part("theirs"))
    info = tmp_path / "site" / "their_parts-1.0.dist-info"
    store.write_text(info / "METADATA", "Metadata-Version: 2.1\nName: their-parts\nVersion: 1.0\n")
    store.write_text(info / "entry_points.txt", "[veridical]\nparts = theirs\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert names() == ["built_in", "theirs"]
    store.write_text(info / "entry_points.txt", "[veridical]\nparts = thiers\n")
    plugins._loaded.clear()
    for _ in range(2):  # it does not go away by asking again
        with pytest.raises(InputError, match=r"no module 'thiers' \(the package their-parts brings it\)"):
            names()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = 1\ny = 1 / 0\n", r"cannot be imported: line 2 of .*mine\.py fails \(ZeroDivisionError"),
        ("x = 1\n\nx = = 2\n", r"cannot be imported: line 3 of .*mine\.py is not Python"),
        ("import not_there_at_all\n", r"line 1 of .*mine\.py fails \(ModuleNotFoundError: .*not_there_at_all"),
    ],
)
def test_a_module_that_fails_is_told_with_its_line(tmp_path, text, sentence):
    store.write_text(tmp_path / "far" / "mine.py", text)
    with pytest.raises(InputError, match=sentence):
        plugins.use(str(tmp_path / "far" / "mine.py"))
    assert not os.environ[plugins.WITH]
    store.write_text(tmp_path / "far" / "mine.py", part("mine") + "# mended, so longer than it was before\n")
    plugins.use(str(tmp_path / "far" / "mine.py"))
    assert "mine" in things


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("no_such_module", r"There is no module 'no_such_module' that can be imported from here; install it"),
        ("json.no_such_part", r"There is no module 'json\.no_such_part'"),
        ("far/no_such_file.py", r"There is no file '/.*/far/no_such_file\.py' with parts; give a \.py file"),
        ("far/notes.txt", r"There is no file '.*notes\.txt' with parts"),
        ("here", r"There is no module 'here' .*; here is a file of that name, so write here\.py"),
        ("far/json.py", r"json\.py has the name of another module \(.*json.__init__\.py\); rename the file"),
        ("far/my-part.py", r"'my-part' is no name that Python allows; rename the file"),
    ],
)
def test_what_cannot_be_imported_is_a_sentence(tmp_path, monkeypatch, name, sentence):
    for file in ("far/json.py", "far/my-part.py", "far/notes.txt", "here.py"):
        store.write_text(tmp_path / file, "")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=sentence):
        plugins.use(name)


@pytest.mark.parametrize("asked_before", [True, False])
def test_the_name_of_a_built_in_thing_is_taken(tmp_path, monkeypatch, asked_before):
    """Whichever of the two is imported first, and as often as one asks."""
    monkeypatch.setattr(plugins, "OURS", "veridical_toys")
    store.write_text(tmp_path / "far" / "mine.py", part("built_in"))
    if asked_before:
        assert names() == ["built_in"]

    def look() -> None:
        plugins.use(str(tmp_path / "far" / "mine.py"))
        names()

    for _ in range(2):
        with pytest.raises(InputError, match="mine has a thing 'built_in', but that is the name of a built-in one"):
            look()


def test_two_modules_with_one_name(tmp_path):
    for name in ("mine", "yours"):
        store.write_text(tmp_path / "far" / f"{name}.py", part("same"))
    with pytest.raises(InputError, match="Two things are called 'same', one in mine and one in yours; rename one"):
        plugins.use(str(tmp_path / "far" / "mine.py"), str(tmp_path / "far" / "yours.py"))


def test_one_file_under_two_names(tmp_path, monkeypatch):
    store.write_text(tmp_path / "far" / "package" / "mine.py", part("mine"))
    store.write_text(tmp_path / "far" / "package" / "__init__.py", "")
    monkeypatch.syspath_prepend(tmp_path / "far")
    plugins.use("package.mine")
    plugins.use(str(tmp_path / "far" / "package" / "mine.py"))  # the same module: it is there
    monkeypatch.syspath_prepend(tmp_path / "far" / "package")
    with pytest.raises(InputError, match=r"of .*/mine\.py was imported under two names, package\.mine and mine"):
        import mine  # noqa: F401  # type: ignore[import-not-found]


def test_a_part_defined_again_takes_the_place_of_itself():
    """As when a cell of a notebook is run twice."""

    def define() -> Thing:
        def run() -> None:
            """A part."""

        return Thing("mine", run)

    things.add(define())
    again = define()
    things.add(again)
    assert things["mine"] is again
