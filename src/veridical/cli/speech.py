"""How the command line speaks: a sentence for a mistake, a line for a warning, no noise of other libraries."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from veridical.core.errors import Caution, GridError, InputError
from veridical.core.options import Help

MISTAKE, INTERRUPTED = 2, 130

# Read by the libraries when they are imported, which happens after this.
ENVIRONMENT = {
    # Threads that wait for each other spin; where another program holds a core they spin in vain. On two busy cores
    # this made an explanation fifty times faster.
    "GOMP_SPINCOUNT": "1000",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
}


class PlainGroup(TyperGroup):
    """The verbs. Whatever a user got wrong ends as exit code 2 and one sentence on standard error."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except typer.TyperException as problem:
            say(_sentence(problem))
            code = MISTAKE
        except typer.Abort:
            code = INTERRUPTED
        sys.exit(code if isinstance(code, int) else 0)

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        return super().parse_args(ctx, _with_first(args))  # type: ignore[arg-type]

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        for name, value in ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        try:
            with _warnings_as_lines():
                return super().invoke(ctx)  # type: ignore[arg-type]
        except InputError as mistake:
            say(str(mistake))
            raise typer.Exit(MISTAKE) from mistake
        except GridError as unfinished:
            say(str(unfinished))
            raise typer.Exit(1) from unfinished
        except KeyboardInterrupt as stop:
            say("\nInterrupted: run the same command again to go on from what is saved.")
            raise typer.Exit(INTERRUPTED) from stop


With = Annotated[
    list[str] | None,
    typer.Option(
        "--with", metavar="MODULE", help="A module or .py file with parts of your own; before or after any verb."
    ),
]
Style = Annotated[
    Literal["text", "csv", "latex"], Help("How the table is printed: text, csv or latex.", "HOW", "--format")
]
TextOrCsv = Annotated[Literal["text", "csv"], Help("How the table is printed: text or csv.", "HOW", "--format")]


def _with_first(args: Sequence[str]) -> list[str]:
    """The same words with every `--with MODULE` before the verb, so that all verbs have it."""
    modules: list[str] = []
    others: list[str] = []
    words = iter(args)
    for word in words:
        if word == "--":
            return [*modules, *others, word, *words]
        if word == "--with":
            module = next(words, None)
            if module is None:
                raise typer.BadParameter("--with needs a module or a .py file after it")
            modules += [word, module]
        else:
            (modules if word.startswith("--with=") else others).append(word)
    return [*modules, *others]


def say(line: str) -> None:
    """A line for the person at the terminal, apart from what a program may read."""
    print(line, file=sys.stderr)


def tell(text: str) -> None:
    """Prose, broken into lines between words."""
    from rich.console import Console

    Console(highlight=False).print(text, markup=False)


def print_json(value: Any) -> None:
    """A result for a program."""
    from veridical.core.store import plain

    print(json.dumps(plain(value), indent=2, ensure_ascii=False))


def _sentence(problem: typer.TyperException) -> str:
    """The parser's complaint and the way out."""
    sentence = problem.format_message().strip().rstrip(".")
    ctx, option = getattr(problem, "ctx", None), getattr(problem, "option_name", None)
    if option is not None and hasattr(problem, "possibilities"):  # an option that does not exist
        near = get_close_matches(option, getattr(problem, "possibilities", None) or (), n=1)
        sentence = problem.message.rstrip(".") + (f". Did you mean {near[0]}?" if near else "")
    return f"{sentence}{'' if sentence.endswith('?') else '.'} See `{ctx.command_path if ctx else 'veridical'} --help`."


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Our own warnings are meant for the user: one line each, once. Those of other libraries are not."""
    told: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *where: Any) -> None:
        if issubclass(category, Caution) and str(message) not in told:
            told.add(str(message))
            say(f"Note: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        yield
