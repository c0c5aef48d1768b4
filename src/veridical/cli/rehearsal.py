"""Whether the commands of a recipe could be typed: all of them are looked at before the first one runs.

Data, models and config files may be what an earlier command is to make, so they are not looked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from veridical.cli import app
from veridical.cli.speech import common_and_own, sentence_of
from veridical.core.errors import InputError, unknown

if TYPE_CHECKING:
    from veridical.cli.recipe import Command


def insist_on_commands(commands: Iterable[Command]) -> None:
    """Refuse a command with a verb, an option or a value that there is not."""
    for command in commands:
        try:
            _insist(command)
        except typer.Exit:  # of --help
            continue
        except (InputError, typer.TyperException) as problem:
            said = str(problem) if isinstance(problem, InputError) else sentence_of(problem)
            raise InputError(f"`{command}` cannot run: {said}") from problem


def _insist(command: Command) -> None:
    common, own = common_and_own(command.words)
    name = next((name for length in (2, 1) if (name := " ".join(own[:length])) in app.VERBS), None)
    if name is None:
        raise unknown("verb", " ".join(own[: 2 if own[:1] == ["data"] else 1]), app.VERBS)
    found, words = app.verb(name), own[len(name.split()) :]
    typed = found.command().make_context(name, words).params
    if typed.get("config_file"):  # which may be made by another command, and has what is not typed
        return
    arguments = found.arguments(typed)
    if not any(word.startswith("--with") for word in common):  # which may bring parts of its own
        for option, value in found.values(arguments):
            if value is not option.default:
                option.check_names(value, places=False)
