"""Recipes: a paper's tables and figures as lines with the commands that make them, and those commands as cells.

    [[item]]
    what = "table 3"          with `task`, if a table has a line per task, the line's name: "table 3, SST"
    train = "veridical train ..."       optional, runs before `command`
    command = "veridical audit ..."     or a pointer to another line: "the audits of table 3"
    seeds = [0, 1, 2]                   optional: `command` runs once for each, its {seed} standing for the number
    status = "unrun: needs the hub"     run, partly run or unrun, and what there is to say about it

A recipe's commands run inside one folder, so a relative path in them is a place there. A command that reads a path
under the --out of another one runs after it.
"""

from __future__ import annotations

import io
import os
import re
import shlex
from collections.abc import Iterable, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from veridical.core import store, stored
from veridical.core.errors import InputError, unknown
from veridical.core.readable import parse_toml, shown
from veridical.core.spec import listed
from veridical.grid.job import PLAN
from veridical.grid.pool import Job

VERIDICAL = "veridical"
SEED = "{seed}"  # in a command of a line with `seeds`


@dataclass(frozen=True)
class Command:
    """What a user would type."""

    key: str  # its cell's
    words: tuple[str, ...]  # without the first, `veridical`
    after: tuple[str, ...] = ()  # keys of the commands that make what it reads

    @property
    def out(self) -> str | None:
        return _option(self.words, "--out")

    def __str__(self) -> str:
        return shlex.join([VERIDICAL, *self.words])


@dataclass(frozen=True)
class Line:
    """A table or a figure, or one task's part of it."""

    name: str
    status: str
    commands: tuple[Command, ...]
    pointer: str = ""  # in place of a command of its own
    lines: tuple[str, ...] = ()  # names of the lines that the pointer means

    @property
    def unrun(self) -> bool:
        return self.status.startswith("unrun")


# -- reading ------------------------------------------------------------------------------------------------


def read(path: str | Path) -> list[Line]:
    """The lines of a recipe's file, in its order."""
    try:
        items = parse_toml(Path(path).read_bytes().decode("utf-8-sig"))["item"]
        lines = [_line(item) for item in items]
    except (OSError, ValueError) as problem:
        raise InputError(f"{path} cannot be read as a recipe ({problem}); give a TOML file like recipes/*.toml.") from (
            problem
        )
    except (KeyError, AttributeError) as problem:
        raise InputError(f"{path} is no recipe: an [[item]] with `what` and `status` is missing ({problem}).") from (
            problem
        )
    except TypeError as problem:
        raise InputError(f"{path} cannot run: {problem}; see recipes/*.toml for lines that can.") from problem
    return _wait_for_inputs(_resolve(_distinct(lines)))


def _line(item: dict[str, Any]) -> Line:
    for key in ("what", "task", "status", "train", "command"):
        if not isinstance(item.get(key, ""), str):
            raise TypeError(f"`{key}` is {shown(item[key])}, and no text")
    name = f"{item['what']}, {item['task']}" if "task" in item else item["what"]
    place = "/".join(map(store.slug, name.split(", ", 1)))
    typed = {kind: item[kind] for kind in ("train", "command") if item.get(kind, "").startswith(f"{VERIDICAL} ")}
    train = [_command(f"{place}/train", typed["train"])] if "train" in typed else []
    after = tuple(command.key for command in train)
    looks = [replace(command, after=after) for command in _seeded(f"{place}/command", typed.get("command"), item)]
    if not all(command.words for command in (*train, *looks)):
        raise TypeError(f"a command of {name!r} names no verb")
    pointer = "" if "command" in typed else item.get("command", "")
    return Line(name, item["status"], (*train, *looks), pointer)


def _command(key: str, text: str) -> Command:
    return Command(key, tuple(shlex.split(text)[1:]))


def _seeded(key: str, text: str | None, item: dict[str, Any]) -> list[Command]:
    """The command of a line, or one per seed where the line has `seeds`."""
    seeds = item.get("seeds")
    if seeds is None and text is not None and SEED in text:
        raise TypeError(f"a command has {SEED}, and its line no `seeds`")
    if seeds is None:
        return [] if text is None else [_command(key, text)]
    if not isinstance(seeds, list) or not seeds or not all(type(seed) is int for seed in seeds):
        raise TypeError(f"`seeds` is {shown(seeds)}, and no list of whole numbers")
    if text is None or SEED not in text:
        raise TypeError(f"a line has `seeds`, and its command no {SEED}")
    return [_command(f"{key}-seed{seed}", text.replace(SEED, str(seed))) for seed in seeds]


def _distinct(lines: Iterable[Line]) -> list[Line]:
    """The same words are the same command, whatever line they stand in; other words under a taken key get another."""
    by_words: dict[tuple[str, ...], Command] = {}
    taken: set[str] = set()
    found = []
    for line in lines:
        renamed: dict[str, str] = {}
        for command in line.commands:
            if command.words not in by_words:
                key, count = command.key, 1
                while key in taken:
                    count += 1
                    key = f"{command.key}-{count}"
                taken.add(key)
                after = tuple(renamed[old] for old in command.after)
                by_words[command.words] = replace(command, key=key, after=after)
            renamed[command.key] = by_words[command.words].key
        found.append(replace(line, commands=tuple(by_words[command.words] for command in line.commands)))
    return found


def _resolve(lines: Sequence[Line]) -> list[Line]:
    """Pointers as names of lines: "the audit of table 3, SST" is that line, "the audits of table 3" all of its."""

    def meant(pointer: str) -> tuple[str, ...]:
        able = [line for line in lines if line.commands]
        whole = [line.name for line in able if _names(pointer, line.name)]
        return tuple(whole or [line.name for line in able if _names(pointer, line.name.split(", ", 1)[0])])

    return [replace(line, lines=meant(line.pointer)) if line.pointer else line for line in lines]


def _names(text: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _wait_for_inputs(lines: Sequence[Line]) -> list[Line]:
    """Every command after those whose --out holds a path that it reads."""
    makers = [command for line in lines for command in line.commands if command.out]

    def reads(command: Command, made: str) -> bool:
        own = [word for place, word in enumerate(command.words) if command.words[max(0, place - 1)] != "--out"]
        paths = [part for word in own for part in (word, word.partition("=")[2])]
        return any(path == made or path.startswith(f"{made.rstrip('/')}/") for path in paths)

    def waiting(command: Command) -> Command:
        inputs = [maker.key for maker in makers if maker.key != command.key and reads(command, str(maker.out))]
        return replace(command, after=tuple(dict.fromkeys([*command.after, *inputs])))

    return [replace(line, commands=tuple(map(waiting, line.commands))) for line in lines]


def _option(words: Sequence[str], name: str) -> str | None:
    return words[words.index(name) + 1] if name in words[:-1] else None


# -- choosing -----------------------------------------------------------------------------------------------


def choose(lines: Sequence[Line], only: Sequence[str] = (), *, unrun: bool = False) -> list[Command]:
    """The commands of the lines named (by name, or `table 3` for all of its), or of all that are not marked unrun;
    with whatever makes what they read."""
    by_key = {command.key: command for line in lines for command in line.commands}
    wanted = {key for line in _chosen(lines, only, unrun) for key in (command.key for command in line.commands)}
    ask = list(wanted)
    while ask:
        more = set(by_key[ask.pop()].after) - wanted
        wanted |= more
        ask.extend(more)
    return [command for key, command in by_key.items() if key in wanted]


def _chosen(lines: Sequence[Line], only: Sequence[str], unrun: bool) -> list[Line]:
    by_name = {line.name: line for line in lines}
    if only:
        tables = {line.name.split(", ", 1)[0] for line in lines}
        for name in only:
            if name not in by_name and name not in tables:
                raise unknown("line", name, [*by_name])
        found = [line for line in lines if line.name in only or line.name.split(", ", 1)[0] in only]
    else:
        found = [line for line in lines if unrun or not line.unrun]
    meant = [by_name[name] for line in found for name in line.lines if only or unrun or not by_name[name].unrun]
    return [*found, *meant]


# -- running ------------------------------------------------------------------------------------------------


def insist_on_folder(folder: Path) -> None:
    """Refuse a folder in which others keep what a run of a recipe would write over."""
    plan = folder / PLAN
    if plan.exists():
        stored.read_fields(plan, "cells")
        return
    for name in ("cells", "logs"):
        if os.path.lexists(folder / name):
            raise InputError(
                f"{folder} holds {name!r}, where a run keeps its own, and no {PLAN} of a run; choose another --out, or "
                "move it away."
            )


def cells(commands: Iterable[Command], out: str | Path) -> list[Job]:
    """A cell per command, waiting for those of them that it must; a training of several seeds has one more per seed, to
    run side by side."""
    found: list[Job] = []
    out, commands = str(Path(out).absolute()), list(commands)
    here = {command.key for command in commands}
    for command in commands:
        command = replace(command, after=tuple(key for key in command.after if key in here))
        seeds = [_cell(one, out) for one in _per_seed(command)]
        whole = _cell(replace(command, after=(*command.after, *(cell.key for cell in seeds))), out)
        # After its seeds a training finds everything done: it only prints.
        found += [*seeds, replace(whole, weight=0.01) if seeds else whole]
    return found


def _cell(command: Command, out: str) -> Job:
    arguments = {"words": list(command.words), "folder": out, "log": f"logs/{command.key}.txt"}
    return Job(command.key, "veridical.recipe:type_logged", arguments, command.after)


def _per_seed(command: Command) -> list[Command]:
    """A training of several seeds as trainings of one, to the folders that it would give them. A search chooses by all
    seeds together, and a bound may be searched, so these stay whole."""
    seeds = listed(_option(command.words, "--seed"))
    together = {"--search", "--bound", "--config"} & {word.partition("=")[0] for word in command.words}
    if command.words[0] != "train" or command.out is None or len(seeds) < 2 or together:
        return []
    found = []
    for seed in seeds:
        words = list(command.words)
        words[words.index("--seed") + 1] = seed
        words[words.index("--out") + 1] = f"{command.out}/seed{seed}"
        found.append(Command(f"{command.key}-seed{seed}", tuple(words), command.after))
    return found


def type_logged(words: Sequence[str], folder: str, log: str) -> None:
    """Do what a command does, in `folder`; what it says goes to the file `log` there."""
    shown, told = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(shown), redirect_stderr(told):
            code = type_in(words, folder)
    finally:
        typed = shlex.join([VERIDICAL, *words])
        store.write_text(Path(folder) / log, f"$ {typed}\n{shown.getvalue()}{told.getvalue()}")
    if code:
        last = (told.getvalue().strip().splitlines() or [f"see {log}"])[-1]
        raise RuntimeError(f"`{typed}` ended with exit code {code}: {last}")


def type_in(words: Sequence[str], folder: str | Path) -> int:
    """Do what a command does, in `folder`; its exit code."""
    from veridical.cli.app import app
    from veridical.cli.speech import INTERRUPTED

    Path(folder).mkdir(parents=True, exist_ok=True)
    try:
        with chdir(folder):
            app(args=["--debug", *words], prog_name=VERIDICAL)  # a log says where it broke
    except SystemExit as end:
        if end.code == INTERRUPTED:
            raise KeyboardInterrupt from end
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0
