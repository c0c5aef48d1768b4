"""Names to functions: a decorator fills a registry, a folder scan finds the files, options are the signature.

One new thing is one new file. Its keyword-only arguments are its options; the command line, configuration,
hash and report read name, type and default from there.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import pkgutil
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from veridical.core import plugins
from veridical.core.errors import InputError, lacking, unknown
from veridical.core.readable import insist_on_characters, shown
from veridical.core.spec import Spec, listed
from veridical.core.values import read, write


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
    def spec(self) -> Spec:
        """The shortest that gives this choice back: options equal to their default are left out."""
        defaults = options_of(self.entry.run)
        given = {key: write(value) for key, value in self.options.items() if value != defaults[key].default}
        return Spec(self.entry.name, given)

    @property
    def label(self) -> str:
        return self.spec.write()


class Registry(Generic[T]):
    """The entries of one kind, which `decorator` registers. A name is looked for in the module of the package whose
    source registers it, then in all of them and in users' own modules."""

    def __init__(self, kind: str, package: str, decorator: str = ""):
        self.kind, self.package, self.decorator = kind, package, decorator
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

    @cached_property
    def _declared(self) -> tuple[dict[str, str], bool]:
        return declared(self.package, self.decorator)

    def _look_for(self, name: str) -> None:
        """A thing is found without running the files of others, and so is that there is none."""
        if name in self._entries:
            return
        modules, complete = self._declared
        if not self._scanned and name in modules:
            importlib.import_module(modules[name])
        plugins.load()  # which may have a name of ours: that is said
        if name not in self._entries and not complete:
            self._scan()

    def __iter__(self) -> Iterator[T]:
        self._scan()
        return iter(sorted(self._entries.values(), key=lambda entry: entry.name))

    def __contains__(self, name: str) -> bool:
        self._look_for(name)
        return name in self._entries

    def __getitem__(self, name: str) -> T:
        self._look_for(name)
        if name not in self._entries:
            raise unknown(self.kind, name, {*self._entries, *self._declared[0]})
        return self._entries[name]

    def choose(self, spec: str | Spec | Choice[T], **options: Any) -> Choice[T]:
        """`name:option=value:option=value` (or a name and keyword options), every value checked."""
        if isinstance(spec, Choice):
            return spec
        if isinstance(spec, str):
            insist_on_characters(spec, f"The {self.kind}")
            spec = Spec.read(spec)
        if not isinstance(spec, Spec):
            raise InputError(f"The {self.kind} is {shown(spec)}; name it with a text, like name:option=value.")
        name, trailing = spec.head
        self._insist_on_options(name, {**spec.options, **options})
        entry = self[name]
        if trailing:
            raise InputError(f"{trailing!r} in {spec.write()!r} is not option=value; write {name}:option=value.")
        return Choice(entry, resolve(entry.run, {**spec.options, **options}, f"{self.kind} {name!r}"))

    def _insist_on_options(self, name: str, given: Mapping[str, Any]) -> None:
        """Refuse options that the source of what is not imported yet does not have: to import it takes seconds."""
        if given and name not in self._entries and name in self._declared[0]:
            known = declared_options(self._declared[0][name], self.decorator, name)
            if known is not None:
                _insist_on_known(given, known, f"{self.kind} {name!r}")

    def choose_all(self, specs: str | Choice[T] | Iterable[str | Choice[T]]) -> list[Choice[T]]:
        """Several specs, comma-separated or as a list."""
        given = [specs] if isinstance(specs, (str, Choice)) or not isinstance(specs, Iterable) else specs
        parts = (part for spec in given for part in (listed(spec) if isinstance(spec, str) else [spec]))
        return [self.choose(part) for part in parts]


def declared(package: str, decorator: str) -> tuple[dict[str, str], bool]:
    """The names that stand in a package's files, with their modules, and whether these are all of them; read without
    running them or the package, because what they import takes seconds."""
    modules: dict[str, str] = {}
    complete = bool(decorator)
    found = importlib.util.find_spec(package) if complete else None
    for folder in (found.submodule_search_locations or ()) if found is not None else ():
        for path in Path(folder).glob("[!_]*.py"):
            for call in ast.walk(ast.parse(path.read_bytes())):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == decorator:
                    name = call.args[0] if call.args else None
                    if isinstance(name, ast.Constant) and isinstance(name.value, str):
                        modules[name.value] = f"{package}.{path.stem}"
                    else:  # made of something: only running the file tells
                        complete = False
    return modules, complete


def declared_options(module: str, decorator: str, name: str) -> list[str] | None:
    """The options of what a module registers under a name, read without running it; None where it does not show."""
    package, _, stem = module.rpartition(".")
    found = importlib.util.find_spec(package)  # of the module itself it would import the package
    folders = (found.submodule_search_locations or ()) if found is not None else ()
    source = next((path for folder in folders if (path := Path(folder) / f"{stem}.py").is_file()), None)
    if source is None:
        return None
    functions = (node for node in ast.walk(ast.parse(source.read_bytes())) if isinstance(node, ast.FunctionDef))
    for function in functions:
        calls = (call for call in function.decorator_list if isinstance(call, ast.Call))
        for call in calls:
            named = [word.value for word in call.args[:1] if isinstance(word, ast.Constant)]
            if isinstance(call.func, ast.Name) and call.func.id == decorator and named == [name]:
                return [argument.arg for argument in function.args.kwonlyargs]
    return None


def options_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The keyword-only parameters of a function: its options."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p for p in parameters if p.kind is p.KEYWORD_ONLY}


def resolve(function: Callable[..., Any], given: Mapping[str, Any], who: str) -> dict[str, Any]:
    """All options of a function: those given (strings are read by the annotation), defaults for the rest."""
    known, hints = options_of(function), typing.get_type_hints(function, include_extras=True)
    _insist_on_known(given, known, who)
    resolved = {}
    for key, parameter in known.items():
        if key in given:
            resolved[key] = read(given[key], hints[key], f"option {key!r} of {who}")
        elif parameter.default is parameter.empty:
            raise InputError(f"The {who} needs option {key!r}; write it as {key}=value.")
        else:
            resolved[key] = parameter.default
    return resolved


def _insist_on_known(given: Mapping[str, Any], known: Collection[str], who: str) -> None:
    for key in given:
        if key not in known:
            if not known:
                raise InputError(f"The {who} takes no options, but {key!r} was given; leave it out.")
            raise lacking(f"The {who}", "option", key, known)
