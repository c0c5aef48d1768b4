"""Names to functions: a decorator fills a registry, a folder scan finds the files, options are the signature.

One new thing is one new file. Its keyword-only arguments are its options; the command line, configuration,
hash and report read name, type and default from there.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from veridical.core import plugins
from veridical.core.errors import InputError, unknown


class Entry(Protocol):
    """What a registry holds: anything with a name and a function."""

    @property
    def name(self) -> str: ...
    @property
    def run(self) -> Callable[..., Any]: ...


T = TypeVar("T", bound=Entry)


@dataclass(frozen=True)
class Choice(Generic[T]):
    """An entry with its options resolved: what `integrated_gradients:steps=20` means."""

    entry: T
    options: Mapping[str, Any] = field(default_factory=dict)  # every option, defaults included

    @property
    def label(self) -> str:
        """The shortest spec that gives this choice back: options equal to their default are left out."""
        defaults = options_of(self.entry.run)
        given = [f"{k}={_write(v)}" for k, v in self.options.items() if v != defaults[k].default]
        return ":".join([self.entry.name, *given])


class Registry(Generic[T]):
    """The entries of one kind, found by importing every module of one package on first use, and users' own modules."""

    def __init__(self, kind: str, package: str):
        self.kind, self.package = kind, package
        self._entries: dict[str, T] = {}
        self._scanned = False

    def add(self, entry: T) -> None:
        plugins.check(self.kind, self._entries.get(entry.name), entry)
        self._entries[entry.name] = entry

    def _scan(self) -> None:
        if not self._scanned:
            self._scanned = True
            try:
                for module in pkgutil.iter_modules(importlib.import_module(self.package).__path__):
                    importlib.import_module(f"{self.package}.{module.name}")
            except InputError:  # a user's part has a name of ours: whoever asks next is told so again
                self._scanned = False
                raise
        plugins.load()

    def __iter__(self) -> Iterator[T]:
        self._scan()
        return iter(sorted(self._entries.values(), key=lambda entry: entry.name))

    def __contains__(self, name: str) -> bool:
        self._scan()
        return name in self._entries

    def __getitem__(self, name: str) -> T:
        self._scan()
        if name not in self._entries:
            raise unknown(self.kind, name, self._entries)
        return self._entries[name]

    def choose(self, spec: str | Choice[T], **options: Any) -> Choice[T]:
        """`name:option=value:option=value` (or a name and keyword options), every value checked."""
        if isinstance(spec, Choice):
            return spec
        name, _, rest = spec.strip().partition(":")
        entry = self[name]
        given: dict[str, Any] = {}
        for part in filter(None, rest.split(":")):
            key, equals, value = part.partition("=")
            if not equals:
                raise InputError(f"{part!r} in {spec!r} is not option=value; write {name}:option=value.")
            given[key] = value
        return Choice(entry, resolve(entry.run, {**given, **options}, f"{self.kind} {name!r}"))

    def choose_all(self, specs: str | Choice[T] | typing.Iterable[str | Choice[T]]) -> list[Choice[T]]:
        """Several specs, comma-separated or as a list."""
        if isinstance(specs, (str, Choice)):
            specs = [specs]
        chosen: list[Choice[T]] = []
        for spec in specs:
            parts = spec.split(",") if isinstance(spec, str) else [spec]
            chosen += [self.choose(part) for part in parts if not isinstance(part, str) or part.strip()]
        return chosen


def options_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The keyword-only parameters of a function: its options."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p for p in parameters if p.kind is p.KEYWORD_ONLY}


def resolve(function: Callable[..., Any], given: Mapping[str, Any], who: str) -> dict[str, Any]:
    """All options of a function: those given (strings are read by the annotation), defaults for the rest."""
    known, hints = options_of(function), typing.get_type_hints(function)
    for key in given:
        if key not in known:
            if not known:
                raise InputError(f"{who} takes no options, but {key!r} was given; leave it out.")
            raise unknown(f"option of {who}", key, known)
    resolved = {}
    for key, parameter in known.items():
        if key in given:
            resolved[key] = read(given[key], hints[key], f"option {key!r} of {who}")
        elif parameter.default is parameter.empty:
            raise InputError(f"{who} needs option {key!r}; write it as {key}=value.")
        else:
            resolved[key] = parameter.default
    return resolved


def read(value: Any, annotation: Any, who: str) -> Any:
    """`value` as the annotated type: int, float, bool, str, Literal, tuple[x, ...] and unions of them."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        if type(None) in inner and (value is None or value in ("none", "None")):
            return None
        problems = []
        for kind in (k for k in inner if k is not type(None)):
            try:
                return read(value, kind, who)
            except InputError as problem:
                problems.append(problem)
        raise problems[-1]
    if origin is typing.Literal:
        for allowed in inner:
            if value == allowed or str(value) == str(allowed):
                return allowed
        raise InputError(f"{who} is {value!r}; allowed: {', '.join(map(str, inner))}.")
    if origin is tuple:
        parts = value.split("+") if isinstance(value, str) else value
        if not isinstance(parts, (list, tuple)):
            parts = [parts]
        return tuple(read(part, inner[0], who) for part in parts)
    if annotation is bool:
        words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        if isinstance(value, bool):
            return value
        if str(value).lower() in words:
            return words[str(value).lower()]
        raise InputError(f"{who} is {value!r}; allowed: true, false.")
    if annotation in (int, float):
        # 1e3 is a whole number to a person; True and 2.5 are not.
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = None
        if number is None or isinstance(value, bool) or number != number:
            raise InputError(f"{who} is {value!r}; it must be a number.")
        if annotation is float:
            return number
        if not number.is_integer():
            raise InputError(f"{who} is {value!r}; it must be a whole number.")
        return int(number)
    if annotation is str:
        return str(value)
    raise TypeError(f"{who} has an annotation no option can have: {annotation}")


def _write(value: Any) -> str:
    if isinstance(value, tuple):
        return "+".join(map(_write, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
