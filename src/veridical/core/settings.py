"""TOML files and `--set a.b=value` to frozen dataclasses. Unknown keys are errors; types are checked."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from veridical.core.errors import InputError, unknown
from veridical.core.place import at_home
from veridical.core.readable import parse_toml, shown, shown_path
from veridical.core.spec import pair
from veridical.core.values import read

T = TypeVar("T")


def read_toml(path: str | Path) -> dict[str, Any]:
    try:
        return parse_toml(Path(at_home(path)).read_bytes().decode("utf-8-sig"))
    except OSError as problem:
        reason = f"({problem.strerror}); give the path of a TOML file"
        raise InputError(f"{shown_path(path)} cannot be read {reason}.") from problem
    except ValueError as problem:  # no TOML, no UTF-8, or a name with a null byte
        raise InputError(f"{shown_path(path)} is not valid TOML: {problem}.") from problem


def merge(table: Mapping[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    """A table with `a.b=value` overrides put in; values stay text until a type reads them."""
    merged: dict[str, Any] = {k: dict(v) if isinstance(v, Mapping) else v for k, v in table.items()}
    for override in overrides:
        key, value = pair(override, "--set", "key=value", "--set train.lr=3e-5")
        *path, last = key.split(".")
        here = merged
        for step in path:
            inner = here.get(step, {})
            if not isinstance(inner, Mapping):
                raise InputError(f"--set {override!r}: {step!r} is a value, not a table; leave out what follows it.")
            here[step] = here = dict(inner)
        here[last] = value
    return merged


def build(kind: type[T], table: Mapping[str, Any], *, base: T | None = None, where: str = "") -> T:
    """A frozen dataclass from a table: nested tables for nested dataclasses, what is left out from `base`."""
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    hints = typing.get_type_hints(kind)
    given: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{where}.{key}" if where else key
        if key not in fields:
            raise unknown("setting", name, [f"{where}.{known}" if where else known for known in fields])
        if dataclasses.is_dataclass(hints[key]):
            if not isinstance(value, Mapping):
                raise InputError(f"{name} is {shown(value)}; it is a table: write [{name}] with keys under it.")
            inner = getattr(base, key) if base is not None else None
            given[key] = build(hints[key], value, base=inner, where=name)  # type: ignore[type-var]
        elif isinstance(value, Mapping):
            raise InputError(f"{name} is a table; it takes one value: write {name} = value.")
        else:
            given[key] = read(value, hints[key], name)
    return dataclasses.replace(base, **given) if base is not None else kind(**given)  # type: ignore[type-var]
