"""The command line: a verb is the function of its name in the module of its name, built when it is asked for.

Verbs import what is heavy when they run, so that `veridical --help` answers at once.
"""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
from functools import lru_cache
from typing import Annotated, Any

import typer

from veridical.cli.speech import Debug, PlainGroup, With
from veridical.cli.verb import Verb, to_markdown

VERBS = (
    *("demo", "train", "prompt", "explain", "list", "data list", "data show", "data fetch", "evaluate", "audit"),
    *("compare", "shortcuts", "card", "report", "roar", "fresh", "guidance", "robustness", "attack", "pos", "validate"),
    *("run", "status", "serve", "doctor"),
)


@lru_cache
def verb(name: str) -> Verb:
    """The verb of this name; `data show` is the function `show` of the module `data`."""
    module, _, inner = name.partition(" ")
    function = inner or module
    home = importlib.import_module(f"veridical.cli.{module}")
    return Verb(name, getattr(home, "list_" if function == "list" else function))


class Verbs(PlainGroup):
    """The verbs that begin with `prefix`."""

    prefix = ""

    def list_commands(self, ctx: Any) -> list[str]:
        own = [name.removeprefix(self.prefix) for name in VERBS if name.startswith(self.prefix)]
        return list(dict.fromkeys(name.partition(" ")[0] for name in own))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.list_commands(ctx):
            return None
        if self.prefix + cmd_name in VERBS:
            return verb(self.prefix + cmd_name).command()
        return typer.main.get_command(data_app)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        self.commands = dict.fromkeys(self.list_commands(ctx))  # type: ignore[assignment]  for "did you mean"
        return super().resolve_command(ctx, args)


class DataVerbs(Verbs):
    prefix = "data "


def _app(group: type[Verbs], *, completes: bool = False) -> typer.Typer:
    return typer.Typer(cls=group, add_completion=completes, pretty_exceptions_enable=False, rich_markup_mode=None)


app, data_app = _app(Verbs, completes=True), _app(DataVerbs)


@app.callback(invoke_without_command=True)
def veridical(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    with_: With = None,
    debug: Debug = False,
) -> None:
    """Which explanation of your text classifier may you believe?

    Start with `veridical demo`. Every verb has its own --help with an example.
    """
    if with_:
        from veridical.core.plugins import use

        use(*with_)
    if version:
        from veridical import __version__

        typer.echo(f"veridical {__version__}")
    elif ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


@data_app.callback(invoke_without_command=True)
def data(ctx: typer.Context) -> None:
    """Look at data and fetch it.

    A dataset is a registered name (`hutto/movies`, `planted:size=500`), `hub:owner/name`, a file (.jsonl, .csv, .tsv,
    .parquet), or a folder with train, dev and test files.
    """
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def main() -> None:
    if sys.getfilesystemencoding() == "ascii":  # PYTHONUTF8=0 LC_ALL=C: no name and no text beyond ASCII would pass
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what a terminal cannot show is spelt out instead of raised
            stream.reconfigure(errors="backslashreplace")
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where Ctrl-C is to be ignored
        signal.signal(signal.SIGINT, _interrupt)
    app(prog_name="veridical")


def _interrupt(*_: Any) -> None:
    """Ctrl-C ends the work in good order; once more, and this process is gone at once, which harms no file."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    raise KeyboardInterrupt


if __name__ == "__main__":  # docs/options.md
    typer.echo(to_markdown([verb(name) for name in VERBS]), nl=False)
