"""A verb of the command line from the function that does it.

    def audit(options: AuditOptions, as_json: Json = False) -> None:
        \"\"\"Find out which explanation of a model to believe. ... Example: veridical audit ...\"\"\"

A parameter that is a record stands for its fields, one with a `Help` for an option that only the command line has.
What is typed is read and checked here, before the verb imports anything heavy.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperCommand

from veridical.cli.completion import completion
from veridical.cli.resolved import write_resolved
from veridical.cli.seeds import OTHER, other_spelling, read_seeds
from veridical.core.device import computing
from veridical.core.errors import InputError
from veridical.core.options import Help, Option, check_all, options_in, values_in

WIDTH = 72  # of an example; help is shown with 80 columns at most
GLUE = "\0"
Function = Callable[..., None]


@dataclasses.dataclass(frozen=True)
class Verb:
    """A verb's name, as it is typed after `veridical`, and the function that does it."""

    name: str
    function: Function

    @property
    def document(self) -> str:
        return inspect.getdoc(self.function) or ""

    @property
    def examples(self) -> list[str]:
        """The commands in its documentation."""
        commands = (paragraph.partition(": veridical ") for paragraph in _paragraphs(self.document))
        return [f"veridical {words}" for _, colon, words in commands if colon]

    @cached_property
    def parts(self) -> dict[str, Any]:
        """The function's parameters: a record's type, or an option."""
        hints = typing.get_type_hints(self.function, include_extras=True)
        return {
            option.name: hints[option.name] if dataclasses.is_dataclass(hints[option.name]) else option
            for option in options_in(self.function)
        }

    @cached_property
    def options(self) -> list[Option]:
        """Everything that can be said to it."""
        held = [[part] if isinstance(part, Option) else options_in(part) for part in self.parts.values()]
        return [option for options in held for option in options]

    @property
    def typed(self) -> list[Option]:
        """What stands in its help: arguments, options, and those that every larger verb has."""
        shown = [option for option in self.options if not option.help.hidden and not option.help.table]
        shown += other_spelling(self.options)
        tables = [option.help.table for option in self.options if option.help.table]
        keys = tuple(f"{option.help.table}.{key}=" for option in self.options for key in option.help.keys)
        if tables:
            other = f", or {tables[1]}.epochs=5 for the second training only" if tables[1:] else ""
            note = Help(
                f"A setting of the training: {tables[0]}.lr=3e-5{other}. May be repeated.",
                "KEY=VALUE",
                "--set",
                commas=False,
                keys=keys,
            )
            shown.append(_extra("settings", note, Sequence[str]))
        also = f" and the table{'s' if tables[1:] else ''} [{'], ['.join(tables)}]" if tables else ""
        note = Help(f"A TOML file with these options{also}; what is typed here wins.", "FILE", "--config")
        shown.append(_extra("config_file", note, str))
        return sorted(shown, key=lambda option: option.name == "as_json")  # last, as the smallest matter

    def parse(self, words: Sequence[str]) -> dict[str, Any]:
        """What the words after the verb mean: the arguments of its function."""
        return self.arguments(self.command().make_context(self.name, list(words)).params)

    def arguments(self, typed: Mapping[str, Any], progress: bool | None = None) -> dict[str, Any]:
        """The arguments of its function, from what was typed; `progress` is shown unless a program reads along."""
        values = self._values({name: value for name, value in typed.items() if value not in (None, [], ())})
        values["progress"] = False if values.get("as_json") else progress
        unsaid = {part.name for part in self.parts.values() if isinstance(part, Option)} - set(values)
        return {name: _filled(part, values) for name, part in self.parts.items() if name not in unsaid}

    def values(self, arguments: Mapping[str, Any]) -> list[tuple[Option, Any]]:
        """Every option with its value among the arguments of its function."""
        values: list[tuple[Option, Any]] = []
        for name, part in self.parts.items():
            if isinstance(part, Option):
                values.append((part, arguments.get(name, part.default)))
            else:
                values += [(option, getattr(arguments[name], option.name)) for option in options_in(part)]
        return values

    def _values(self, typed: Mapping[str, Any]) -> dict[str, Any]:
        """What was typed, on top of the settings and of the config file, as values of the options."""
        file, overrides = typed.get("config_file"), typed.get("settings", ())
        table = _table(file, overrides) if file or overrides else {}
        values = values_in(self.options, table, f" in {file}" if file else "")
        for option in self.options:
            if option.name == "seeds" and ("seeds" in typed or OTHER in typed):
                values["seeds"] = read_seeds(option, typed)
            elif option.name in typed:
                values[option.name] = option.read(typed[option.name], option.spelling)
            elif option.required and option.name not in values:
                verb = f"veridical {self.name}"
                what = option.spelling if option.help.argument else f"{option.spelling} {option.metavar}"
                raise InputError(f"{verb} needs {what}; see `{verb} --help`.")
        return values

    def command(self) -> TyperCommand:
        """What parses it and shows its help."""

        def callback(**typed: Any) -> None:
            arguments = self.arguments(typed, progress=True)  # also in a log
            with computing(*_where(arguments)):
                said = self.values(arguments)
                check_all(said)  # what can be seen to be wrong is refused before anything is loaded or computed
                self.function(**arguments)
                write_resolved(self.name, said, _tables(arguments))

        parameters = [_parameter(option) for option in sorted(self.typed, key=lambda o: not o.help.argument)]
        callback.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        first = next(_paragraphs(self.document), "")
        app.command(self.name, cls=PlainCommand, help="\n\n".join(_shown(self.document)), short_help=first)(callback)
        command = typing.cast(PlainCommand, typer.main.get_command(app))
        command.needed = frozenset(o.name for o in self.typed if o.help.argument and o.required)
        return command


def _tables(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a training with all that was not said, where a record knows them."""
    record = next((value for value in arguments.values() if hasattr(value, "settings")), None)
    found = () if record is None else record.settings()
    return dict(zip(("config", "rationale_config"), found if isinstance(found, tuple) else [found], strict=False))


def _table(file: Any, overrides: Sequence[str]) -> dict[str, Any]:
    from veridical.core.settings import merge, read_toml

    return merge(read_toml(file) if file else {}, overrides)


def _where(arguments: Mapping[str, Any]) -> tuple[Any, Any]:
    """The device and the tokens at once that were asked for, of a verb that runs models."""
    fields = [vars(value) for value in arguments.values() if dataclasses.is_dataclass(value)]
    device, budget = (
        next((held[name] for held in (arguments, *fields) if held.get(name) is not None), None)
        for name in ("device", "budget")
    )
    return device, budget


class PlainCommand(TyperCommand):
    """Typer's, with arguments as they are typed: no braces, no types. Those that are needed may stand in a file."""

    needed: frozenset[str | None] = frozenset()

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["[OPTIONS]", *(name if must else f"[{name}]" for name, _, must in self._arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        options = [param.get_help_record(ctx) for param in self.get_params(ctx) if param.param_type_name == "option"]
        for heading, rows in (("Arguments", [row[:2] for row in self._arguments]), ("Options", options)):
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)

    @property
    def _arguments(self) -> list[tuple[str, str, bool]]:
        arguments: list[Any] = [param for param in self.params if param.param_type_name == "argument"]
        return [(argument.metavar, argument.help, argument.name in self.needed) for argument in arguments]


def _extra(name: str, note: Help, kind: Any) -> Option:
    return Option(name, Annotated[kind, note], note, None)


def _filled(part: Any, values: Mapping[str, Any]) -> Any:
    """A record with the values of its fields, or an option's value."""
    if isinstance(part, Option):
        return values[part.name]
    return part(**{field.name: values[field.name] for field in dataclasses.fields(part) if field.name in values})


def _parameter(option: Option) -> inspect.Parameter:
    """An option as Typer takes it: text, unread."""
    kind = bool if option.is_flag else list[str] if option.item is not None else str
    if option.help.argument:
        about: Any = typer.Argument(
            metavar=option.metavar, help=sentence(option), show_default=False, autocompletion=completion(option)
        )
    else:
        name = f"{option.spelling}/--no-{option.spelling[2:]}" if option.default is True else option.spelling
        about = typer.Option(
            name,
            metavar=option.metavar,
            help=sentence(option),
            show_default=False,
            autocompletion=completion(option),
        )
    return inspect.Parameter(  # what is missing, a config file may have
        option.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, about]
    )


def sentence(option: Option) -> str:
    """What help says of an option: its sentence, its default, or that it must be given."""
    default = f"default: {option.usual}" if option.usual else ""
    note = "required" if option.required and not option.help.argument else default
    return f"{option.help.sentence}  [{note}]" if note else option.help.sentence


# -- documentation ------------------------------------------------------------------------------------------


def _paragraphs(document: str) -> Iterator[str]:
    return (" ".join(paragraph.split()) for paragraph in document.split("\n\n"))


def _shown(document: str) -> Iterator[str]:
    """The paragraphs as help shows them: a command on lines of its own that can be copied."""
    for paragraph in _paragraphs(document):
        about, colon, words = paragraph.partition(": veridical ")
        if not colon:
            yield paragraph
            continue
        pieces = re.findall(r"--\S+ (?!--)(?:\"[^\"]*\"|\S+)|\S+", f"veridical {words}")  # an option with its value
        text = " ".join(piece.replace(" ", GLUE) for piece in pieces)
        lines = textwrap.wrap(text, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
        yield f"\b\n{about}:\n  " + " \\\n  ".join(lines).replace(GLUE, " ")


def to_markdown(verbs: Sequence[Verb]) -> str:
    """The options of all verbs as a page of the documentation."""
    page = ["# Options of the command line", "", "Written by `python -m veridical.cli.app`; a test compares."]
    for verb in verbs:
        page += ["", f"## veridical {verb.name}", "", next(_paragraphs(verb.document)), "", "| option | |", "|---|---|"]
        for option in verb.typed:
            name = option.spelling if option.help.argument else f"{option.spelling} {option.metavar}".strip()
            page.append(f"| `{name}` | {sentence(option)} |".replace("  [", " ["))
    return "\n".join(page) + "\n"
