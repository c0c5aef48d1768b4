"""Records as JSON files: `write` and `read` are inverse to each other, and a file says which schema it has.

A record is a frozen dataclass of plain values, tuples, mappings and other records. Its schema is the number that its
class carries as `SCHEMA`; a file without one is of schema 1. Who changes the fields of a record raises the number and
says in `older` how a mapping of the schema before becomes one of today; what has no such way is refused in a sentence.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import msgspec

from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.readable import shown

KEY = "schema"

Older = Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]]  # schema -> a mapping of it as one of the next


class Stored(Protocol):
    """A record that knows the number of its schema."""

    SCHEMA: ClassVar[int]


T = TypeVar("T", bound=Stored)


class OnceMapping:
    """For a record that was a mapping of plain values before 0.2: asked like one, it still answers, for a release."""

    def __getitem__(self, name: str) -> Any:
        if name not in self.keys():
            raise KeyError(name)
        warnings.warn(
            f"{type(self).__name__} is a record now: write summary.{name}; summary[{name!r}] goes with version 0.3.",
            FutureWarning,
            stacklevel=2,
        )
        return store.plain(getattr(self, name))

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def keys(self) -> list[str]:
        return [field.name for field in dataclasses.fields(self)]  # type: ignore[arg-type]


def write(path: str | Path, record: Stored) -> None:
    """The record with its schema's number first. NaN has no place in it: what does not exist is None."""
    store.write_json(path, {KEY: record.SCHEMA, **store.plain(record)})


def read(path: str | Path, kind: type[T], *, older: Older | None = None) -> T:
    """The record in a file, whichever schema it was written with."""
    return from_plain(store.read_json(path), kind, where=str(path), older=older)


def read_fields(path: str | Path, *needed: str) -> dict[str, Any]:
    """A mapping in a file of ours that is no record, with these of its fields: `model.hash` is one inside another."""
    value = store.read_json(path)
    if not isinstance(value, dict):
        raise InputError(
            f"{path} is not what Veridical wrote (but {shown(value)}); run the command that wrote it again."
        )
    for name in needed:
        inner: Any = value
        for key in name.split("."):
            if not isinstance(inner, dict) or key not in inner:
                raise InputError(
                    f"{path} has no {name!r}: it was changed, or is of another kind of work than is needed here; name "
                    "another folder, or run the command that wrote it again."
                )
            inner = inner[key]
    return value


def from_plain(value: Any, kind: type[T], *, where: str, older: Older | None = None) -> T:
    """A record from its plain form (`store.plain`), checked field by field; `where` names it in errors."""
    if not isinstance(value, dict):
        raise InputError(f"{where} holds no {kind.__name__}, but {type(value).__name__}; name another file.")
    fields = dict(value)
    schema = fields.pop(KEY, 1)
    if not isinstance(schema, int) or schema > kind.SCHEMA:
        raise InputError(
            f"{where} has schema {schema!r}, and this version of Veridical knows {kind.SCHEMA}; update it."
        )
    while schema < kind.SCHEMA:
        if schema not in (older or {}):
            raise InputError(
                f"{where} has schema {schema}, which this version of Veridical no longer reads; run the command that "
                "wrote it again, which reuses what was computed."
            )
        try:
            fields = (older or {})[schema](fields)
        except (AttributeError, KeyError, TypeError) as problem:  # a field that such a file has is not there
            raise InputError(
                f"{where} is not what Veridical wrote ({problem}); run the command that wrote it again."
            ) from problem
        schema += 1
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as problem:
        raise InputError(
            f"{where} is not what Veridical wrote ({problem}); run the command that wrote it again."
        ) from problem
