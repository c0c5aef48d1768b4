"""A verb's options, said once: a frozen dataclass whose fields carry a type, a default, a range and a sentence.

    limit: Annotated[int, Help("At most so many texts.", "N"), at_least(1)] = 200

The library function is written for the record and called with keywords (`takes`). The command line, its config files
and the documentation read the same fields (cli/verb.py), so a module with such records imports nothing heavy.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import operator
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass
from difflib import get_close_matches
from numbers import Real
from pathlib import Path
from typing import Annotated, Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar, Union, overload

from veridical.core.device import computing
from veridical.core.docstring import with_options
from veridical.core.errors import InputError, unknown
from veridical.core.kinds import bare, choices, insist_on_kind, members_of, typed, without_notes
from veridical.core.place import A_RUN, is_place, settled, written
from veridical.core.ranges import Range, at_least, between, ranges
from veridical.core.readable import shown
from veridical.core.records import Given
from veridical.core.spec import listed
from veridical.core.values import read, write

A = TypeVar("A")
B = TypeVar("B")
O_co = TypeVar("O_co", covariant=True)
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Help:
    """What is said of an option, and how the command line spells it where name and type do not tell."""

    sentence: str
    metavar: str = ""  # of its value, a noun in capitals
    option: str = ""  # in place of `--name`
    default: str = ""  # in words, where the value would not tell
    argument: bool = False  # it has a place in the command instead of a name
    commas: bool = True  # of several values: `a,b` is two; without it only the option given again
    empty: bool = False  # of several values: there may be none, as others come on top
    reads: Callable[[Sequence[str]], Any] | None = None  # the value from all that was typed
    none: bool = False  # the word `none` is no text but takes back what a config file says
    table: str = ""  # settings, typed as `--set TABLE.KEY=VALUE`
    keys: tuple[str, ...] = ()  # of the table
    hidden: bool = False  # from the command line: in Python only


Hidden = functools.partial(Help, hidden=True)


@dataclass(frozen=True)
class Checked:
    """A note on an option: who refuses a wrong value before any model or data is loaded. Imported when it is asked,
    because the rooms that know what there is stand above this one."""

    module: str
    function: str
    places: bool = False  # what it looks for may be a file or a folder, which somebody may be about to make

    def check(self, value: Any) -> None:
        if value is not None:
            operator.attrgetter(self.function)(importlib.import_module(self.module))(value)


@dataclass(frozen=True)
class Option:
    """A field of a record of options, or a parameter of a verb that only the command line has."""

    name: str
    annotation: Any
    help: Help
    default: Any  # MISSING: it must be given

    @property
    def spelling(self) -> str:
        """How it is called on the command line: `MODEL`, `--limit`, and `--method` for several `methods`."""
        if self.help.argument:
            return self.help.metavar
        several = self.item is not None and self.name.endswith("s")
        name = self.name.removesuffix("es" if self.name.endswith("sses") else "s") if several else self.name
        return self.help.option or f"--{name.replace('_', '-')}"

    @property
    def metavar(self) -> str:
        """What stands for its value in help."""
        if self.help.metavar or self.is_flag:
            return self.help.metavar
        by_type = {int: "N", float: "X", Path: "DIR", Literal: "NAME"}
        members = members_of(bare(self.annotation)) if self.item is None else ()
        nouns = [by_type[key] for m in members for key in (bare(m), typing.get_origin(m)) if key in by_type]
        return nouns[0] if nouns else "NAMES" if self.item is not None else "TEXT"

    @property
    def required(self) -> bool:
        return self.default is MISSING

    @property
    def kind(self) -> Any:
        """What of its type can be typed: of `str | Dataset | ...` the text."""
        return typed(self.annotation)

    @property
    def _said(self) -> Any:
        """What a value that was said may be. Where none is the default nobody has to say it, and `none` is a text."""
        kinds = [kind for kind in members_of(self.kind) if kind is not type(None)]
        is_text = self.default is None and str in kinds and not self.help.none
        return Union[tuple(kinds)] if is_text else self.kind  # noqa: UP007  as below

    @property
    def item(self) -> Any:
        """Of an option that takes several values, the type of each. A number of things is one value."""
        members = members_of(self.kind)
        several = [typing.get_args(member)[0] for member in members if typing.get_origin(member) is tuple]
        return str if self.help.reads else several[0] if several and int not in members else None

    @property
    def is_flag(self) -> bool:
        return self.kind is bool

    @property
    def words(self) -> tuple[Any, ...]:
        """The words that are allowed, where nothing else is."""
        return choices(self.item or self.kind)

    @property
    def notes(self) -> list[Checked]:
        """Who knows which values there are."""
        return _notes(self.annotation)

    @property
    def usual(self) -> str:
        """Its default in words."""
        if self.help.default or self.required or self.default is None or self.default is False:
            return self.help.default
        if self.is_flag:
            return "yes"
        return ", ".join(map(str, self.default)) if isinstance(self.default, tuple) else write(self.default)

    def read(self, given: Any, who: str) -> Any:
        """Its value from what was typed, or from a file, checked; `who` is the subject of the error's sentence."""
        if self.help.table:
            if not isinstance(given, Mapping):
                raise InputError(
                    f"{who} is {shown(given)}; it is a table: write [{self.help.table}] with keys under it."
                )
            return given
        if isinstance(given, Mapping):
            raise InputError(f"{who} is a table; it takes a value: write {who} = value.")
        value = self._several(given, who) if self.item is not None else read(given, self._said, who)
        self.check(value, who)
        return self.placed(value)

    def placed(self, value: Any) -> Any:
        """Of an option that names a path, or several: with `~` as the home that it stands for."""
        return settled(value) if is_place(self.annotation) else value

    def _several(self, given: Any, who: str) -> Any:
        several = [given] if isinstance(given, str) or not isinstance(given, Sequence) else given
        texts = [read(each, str, who) for each in several]
        if self.help.reads is not None:
            return self.help.reads(texts)
        if self.item is not str:  # numbers may also be joined as in a spec: 0+1+2
            texts = [text.replace("+", ",") for text in texts]
        if self.help.commas and not (texts := listed(texts)):
            typed = ", ".join(map(repr, several)) or "empty"
            noun = self.spelling.strip("-").replace("-", " ")
            raise InputError(f"{who} is {typed}, so no {noun} is named; name one, or leave it out.")
        return tuple(read(text, self.item, who) for text in texts)

    def check(self, value: Any, who: str) -> None:
        """Refuse what its range or its choices do not allow, and nothing at all where something is the default."""
        if self._names_nothing(value):
            raise InputError(f"{who} is {shown(value)}, so none is named; name at least one, or leave it out.")
        items = value if isinstance(value, (list, tuple)) and self.item is not None else (value,)
        for item in items:
            if self.words and isinstance(item, (str, int)) and item not in self.words:
                raise InputError(f"{who} is {shown(item)}; allowed: {', '.join(map(str, self.words))}.")
        insist_on_kind(value, self.annotation, who)
        for item in items:
            if isinstance(item, Real) and not isinstance(item, bool):
                for allowed in ranges(self.annotation):
                    allowed.check(item, who)

    def _names_nothing(self, value: Any) -> bool:
        if self.item is None or self.required or self.default == () or self.help.empty or self.help.reads:
            return False
        if isinstance(value, str) and self.help.commas:
            return not listed(value)
        return isinstance(value, (list, tuple)) and all(isinstance(part, str) and not part.strip() for part in value)

    def check_place(self, value: Any) -> None:
        """Of an option that says where to write: refuse a place that must not or cannot be written to."""
        for note in written(self.annotation):
            note.check(value)

    def check_names(self, value: Any, *, places: bool = True) -> None:
        """Refuse names of which there is none; without `places` only those that can be no file or folder."""
        for note in self.notes:
            if places or not note.places:
                note.check(value)


def check_all(values: Sequence[tuple[Option, Any]]) -> None:
    """Where will be written first, because that costs nothing to look at; then what is named."""
    for option, value in values:
        option.check_place(value)
    for option, value in values:
        if value is not option.default:  # what is ours needs no look, for which seconds would go into imports
            option.check_names(value)


def options_in(kind: Any) -> list[Option]:
    """The options that a record's fields, or a function's parameters, stand for."""
    hints = typing.get_type_hints(kind, include_extras=True)
    if dataclasses.is_dataclass(kind):
        defaults = {field.name: field.default for field in dataclasses.fields(kind)}
    else:
        empty = inspect.Parameter.empty
        parameters = inspect.signature(kind).parameters.values()
        defaults = {p.name: MISSING if p.default is empty else p.default for p in parameters}
    return [Option(name, hints[name], _help(hints[name]), default) for name, default in defaults.items()]


def values_in(options: Sequence[Option], table: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """The values of a table, as a file holds them: keys are the options' names in Python or on the command line."""
    typed = [option for option in options if not option.help.hidden]
    # An argument, spelled MODEL on the command line, has its name in Python in a file.
    known = {
        option.help.table
        or (option.name if option.help.argument else option.spelling.strip("-").replace("-", "_")): option
        for option in typed
    }
    by_key = {option.name: option for option in typed if not option.help.table} | known
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in by_key:
            raise _strange(key, known)
        if by_key[key].name in values:
            raise InputError(f"{key}{where} is there twice, under two names; keep one of them.")
        values[by_key[key].name] = by_key[key].read(value, f"{key}{where}")
    return values


def _strange(key: str, known: Mapping[str, Option]) -> InputError:
    """The error for a key that no option has; one of a table's is sent there."""
    tables = [name for name, option in known.items() if option.help.table and key in option.help.keys]
    if not tables:
        return unknown("setting", key, known)
    return InputError(f"There is no setting {key!r} outside of a table; write it under [{'] or ['.join(tables)}].")


def shared(kind: type, record: Any) -> dict[str, Any]:
    """The fields of a record that another kind of record has too."""
    names = {field.name for field in dataclasses.fields(kind)}
    return {name: value for name, value in vars(record).items() if name in names}


# -- functions that take a record ---------------------------------------------------------------------------


class Taker(Protocol[P, O_co]):
    """What `takes` returns: a decorator for a function of a record, with or without two parameters before it."""

    @overload
    def __call__(self, function: Callable[[O_co], R]) -> Callable[P, R]: ...
    @overload
    def __call__(self, function: Callable[[A, B, O_co], R]) -> Callable[Concatenate[A, B, P], R]: ...


def takes(kind: Callable[P, O_co]) -> Taker[P, O_co]:
    """Let a function whose last parameter is a record be called with the record's fields instead.

    They are checked before the function begins, and shown in its signature and documentation.
    """
    options = options_in(kind)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        *before, _ = inspect.signature(function).parameters.values()
        plain = {option.name: option.annotation for option in options}
        shown_fields = inspect.signature(kind).parameters.values()
        fields = [p.replace(annotation=without_notes(plain[p.name])) for p in shown_fields]
        signature = inspect.signature(function).replace(parameters=[*before, *fields])

        @functools.wraps(function)
        def called(*arguments: Any, **given: Any) -> Any:
            try:
                bound = signature.bind(*arguments, **given).arguments
            except TypeError as problem:
                raise TypeError(f"{function.__name__}() {problem}{_nearest(given, signature)}") from None
            leading = [bound.pop(parameter.name) for parameter in before]
            for option in options:
                if option.name in bound:
                    option.check(bound[option.name], option.name)
                    bound[option.name] = option.placed(bound[option.name])
            record = kind(**bound)  # type: ignore[call-arg]
            with computing(getattr(record, "device", None), getattr(record, "budget", None)):
                check_all([(option, getattr(record, option.name)) for option in options])
                return function(*leading, record)

        called.__signature__ = signature  # type: ignore[attr-defined]
        returned = {key: kept for key, kept in function.__annotations__.items() if key == "return"}
        called.__annotations__ = {p.name: p.annotation for p in (*before, *fields)} | returned
        called.__doc__ = with_options(inspect.getdoc(function) or "", options)
        return called

    return decorate  # type: ignore[return-value]


def _nearest(given: Mapping[str, Any], signature: inspect.Signature) -> str:
    strange = next((key for key in given if key not in signature.parameters), "")
    near = get_close_matches(strange, signature.parameters, n=1)
    return f". Did you mean {near[0]!r}?" if near else ""


# -- types --------------------------------------------------------------------------------------------------


def _help(annotation: Any) -> Help:
    notes = [note for note in getattr(annotation, "__metadata__", ()) if isinstance(note, Help)]
    return notes[-1] if notes else Help("", hidden=True)


def _notes(annotation: Any) -> list[Checked]:
    """Also inside a union: `Data | None`."""
    inside = [note for part in typing.get_args(annotation) for note in _notes(part)]
    return inside + [note for note in getattr(annotation, "__metadata__", ()) if isinstance(note, Checked)]


# -- what several verbs have --------------------------------------------------------------------------------

Place = str | Path
Names = str | Sequence[str]
Count = Annotated[int, at_least(1)]
Tick = Callable[[int], None]
share = Range("above 0 and at most 1", lambda value: 0 < value <= 1)
TOKEN_BUDGET = 2048  # padded tokens in a batch; on a CPU 512 to 2,048 were fastest
USUAL_TOKENS = f"{TOKEN_BUDGET} on a CPU; found by itself elsewhere"
DATA = "A dataset's name, hub:owner/name, a file or a folder"
METHODS = "Some of `veridical list methods`: name:option=value, with commas or repeated."
METRICS = "Some of `veridical list metrics`: name:option=value, with commas or repeated."

A_METHOD = Checked("veridical.attribution", "methods.choose_all")
A_METRIC = Checked("veridical.metric", "metrics.choose_all")
A_DATASET = Checked("veridical.data", "insist_on_name", places=True)
DATASETS = Checked("veridical.data", "insist_on_names", places=True)

Model = Annotated[Any, Help("A run folder, a model's folder or a hub id.", "MODEL", argument=True)]
Models = Annotated[
    Sequence[Any], Help("Run folders, models' folders or hub ids.", "MODEL...", argument=True, commas=False)
]
Data = Annotated[Given | Path, Help(f"{DATA} (see `veridical data list`).", "DATA"), A_DATASET]
Ood = Annotated[Sequence[Given | Path], Help("Data from other domains, with commas or repeated.", "DATA"), DATASETS]
Split = Annotated[str, Help("Split of the data: train, dev, test, or what else it has.", "SPLIT")]
Texts = Annotated[Count, Help("At most so many texts, a seeded sample.")]
Examples = Annotated[Count | None, Help("At most so many examples of every split, a sample.")]
Methods = Annotated[Names, Help(METHODS), A_METHOD]
Metrics = Annotated[Names, Help(METRICS), A_METRIC]
Target = Annotated[str | int, Help("Explained class: predicted, gold, a name or an index.", "CLASS")]
SEEDS = between(0, 2**32 - 1)
Seed = Annotated[int, Help("Seed of the sample and of everything random."), SEEDS]
Out = Annotated[Place, Help("Folder for report.html and everything behind it."), A_RUN]
Json = Annotated[bool, Help("Print data for a program instead of text.", option="--json")]
Progress = Annotated[bool | None, Hidden("Whether progress is shown; None: in a terminal or notebook only.")]
Device = Annotated[
    str | None, Help("Where models run: cpu, cuda, cuda:1, mps, or auto, which takes what there is.", default="auto")
]
Budget = Annotated[
    Count | None,
    Help(
        "Padded tokens that a model is given at once.",
        option="--batch-tokens",
        default=USUAL_TOKENS,
    ),
]
Ticks = Annotated[Tick | None, Hidden("Called with how many texts are done now.")]
