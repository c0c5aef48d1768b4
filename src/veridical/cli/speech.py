"""How the command line speaks: a sentence for a mistake, a line for a warning, no noise of other libraries."""

from __future__ import annotations

import json
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from veridical.core.errors import BreakdownError, Caution, ExhaustedError, GridError, InputError, is_exhaustion
from veridical.core.options import Help
from veridical.core.readable import UnreadableError, one_line, typed_text
from veridical.core.wording import typed

BROKEN, MISTAKE, INTERRUPTED = 1, 2, 130

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
    """The verbs. Whatever a user got wrong ends as exit code 2 and one sentence on standard error; what broke on the
    way as exit code 1 and one sentence, with --debug after the traceback."""

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
            say(one_line(sentence_of(problem)))
            code = MISTAKE
        except typer.Abort:  # Ctrl-C before a verb began
            code = INTERRUPTED
        except OSError as problem:  # of help, which is shown before any verb is asked
            say(one_line(_breakage(problem)))
            code = BROKEN
        sys.exit(_flushed(code if isinstance(code, int) else 0))

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        try:
            words = [typed_text(word) for word in args]
        except UnreadableError as problem:
            raise typer.BadParameter(str(problem)) from problem
        if ctx.resilient_parsing and words[-1:] == ["--with"]:  # a shell asks what could come next
            words.pop()
        common, own = common_and_own(words)
        return super().parse_args(ctx, [*common, *own])  # type: ignore[arg-type]

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        for name, value in ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        try:
            _insist_on_working_directory()
            with typed(), _warnings_as_lines():
                return super().invoke(ctx)  # type: ignore[arg-type]
        except InputError as mistake:
            say(one_line(str(mistake)))
            raise typer.Exit(BROKEN if isinstance(mistake, BreakdownError) else MISTAKE) from mistake
        except (GridError, ExhaustedError) as unfinished:
            say(str(unfinished))
            raise typer.Exit(1) from unfinished
        except KeyboardInterrupt as stop:
            say("\nInterrupted: run the same command again to go on from what is saved.")
            raise typer.Exit(INTERRUPTED) from stop
        except (typer.Exit, typer.Abort, typer.TyperException):
            raise
        except BrokenPipeError as closed:  # who read along has gone, as `head` does
            raise typer.Exit(BROKEN) from closed
        except Exception as problem:
            if ctx.find_root().params.get("debug"):
                traceback.print_exc()
            say(one_line(_breakage(problem)))
            raise typer.Exit(BROKEN) from problem


With = Annotated[
    list[str] | None,
    typer.Option(
        "--with", metavar="MODULE", help="A module or .py file with parts of your own; before or after any verb."
    ),
]
Debug = Annotated[
    bool, typer.Option("--debug", help="Show where in the code it broke, if it breaks; before or after any verb.")
]
Style = Annotated[
    Literal["text", "csv", "latex"], Help("How the table is printed: text, csv or latex.", "HOW", "--format")
]
TextOrCsv = Annotated[Literal["text", "csv"], Help("How the table is printed: text or csv.", "HOW", "--format")]


def common_and_own(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """Every `--with MODULE` and `--debug`, which go before the verb, so that all verbs have them; and the others."""
    common: list[str] = []
    own: list[str] = []
    words = iter(args)
    for word in words:
        if word == "--":
            return common, [*own, word, *words]
        if word == "--with":
            module = next(words, None)
            if module is None:
                raise typer.BadParameter("--with needs a module or a .py file after it")
            common += [word, module]
        else:
            (common if word == "--debug" or word.startswith("--with=") else own).append(word)
    return common, own


def _insist_on_working_directory() -> None:
    try:
        os.getcwd()
    except OSError as problem:
        raise InputError(
            f"The folder that you are in is gone or cannot be entered ({problem.strerror}); cd into another one."
        ) from problem


def _breakage(problem: Exception) -> str:
    """One sentence on what broke."""
    if is_exhaustion(problem):
        return "The memory was not enough; take fewer or shorter texts, or a smaller model, and run the same again."
    lines = str(problem).strip().splitlines() or ["no reason given"]
    what = f"{type(problem).__name__}: {lines[0].rstrip('.')}"
    if isinstance(problem, OSError) and problem.strerror:
        what = f"{problem.strerror}: {problem.filename}" if problem.filename else problem.strerror
    return f"This broke on the way ({what}); the same command with --debug shows where."


def _flushed(code: int) -> int:
    """The exit code, when all that was said has gone out."""
    try:
        if sys.stdout is not None:  # as it is where it was closed before we began
            sys.stdout.flush()
    except BrokenPipeError:
        _forget_output()
    except OSError as problem:  # what it is redirected to is full
        _forget_output()
        say(f"The output could not be written ({problem.strerror}); make room and run the same again.")
        return code or BROKEN
    return code


def _forget_output() -> None:
    """What could not be written is not tried again at the end of the process."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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


def sentence_of(problem: typer.TyperException) -> str:
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
