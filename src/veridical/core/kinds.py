"""Whether a value is what an annotation says, and the words for it: what is given in Python is checked, too.

Annotations are those of options: plain types, Literal, Sequence, Mapping, Callable, records, unions of them, Annotated.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union

from veridical.core.errors import InputError
from veridical.core.ranges import ranges
from veridical.core.readable import insist_on_characters, shown

P = ParamSpec("P")
R = TypeVar("R")

WORDS: dict[Any, str] = {
    str: "a text",
    Path: "a path",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    type(None): "None",
    Sequence: "a list",
    tuple: "a list",
    Mapping: "a dict",
    Iterable: "a list",
    Callable: "a function",
}


def insist_on_kind(value: Any, annotation: Any, who: str) -> None:
    if not fits(value, annotation):
        raise InputError(f"{who} is {shown(value)}; it must be {words_for(annotation)}.")
    if isinstance(value, str):
        insist_on_characters(value, who)


def as_annotated(function: Callable[P, R]) -> Callable[P, R]:
    """The function, for which arguments that are not what its annotations say are refused in a sentence."""
    signature = inspect.signature(function)
    plain = [p.name for p in signature.parameters.values() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]

    @functools.wraps(function)
    def called(*arguments: P.args, **given: P.kwargs) -> R:
        bound = signature.bind(*arguments, **given).arguments
        hints = typing.get_type_hints(function, include_extras=True)
        for name in (name for name in plain if name in bound and name in hints):
            insist_on_kind(bound[name], hints[name], name)
            for allowed in ranges(hints[name]):
                allowed.check(bound[name], name)
        return function(*arguments, **given)

    return called


def without_notes(annotation: Any) -> Any:
    """A type as readers want it: without the ranges and the help that `Annotated` carries, also deep inside."""
    if isinstance(annotation, str) or annotation is inspect.Parameter.empty:
        return annotation

    def holder() -> None: ...

    holder.__annotations__ = {"it": annotation}
    return typing.get_type_hints(holder)["it"]


def fits(value: Any, annotation: Any) -> bool:
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return fits(value, inner[0])
    if origin in (Union, types.UnionType):
        return any(fits(value, kind) for kind in inner)
    if origin is Literal:
        return any(type(value) is type(word) and value == word for word in inner)
    if origin in (Sequence, tuple):
        listed = isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))
        return listed and all(fits(item, inner[0]) for item in value)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(fits(item, inner[1]) for item in value.values())
    if origin is Iterable:
        return isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray))
    if origin is Callable:
        return callable(value)
    return _is(value, annotation)


def _is(value: Any, kind: Any) -> bool:
    if kind is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if kind is float:
        return isinstance(value, Real) and not isinstance(value, bool)
    return kind is Any or not isinstance(kind, type) or isinstance(value, kind)


def words_for(annotation: Any) -> str:
    """`a text, a path or None`"""
    words = list(dict.fromkeys(_words(annotation)))
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _words(annotation: Any) -> list[str]:
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _words(inner[0])
    if origin in (Union, types.UnionType):
        return [word for kind in inner for word in _words(kind)]
    if origin is Literal:
        return [str(word) for word in inner]
    if origin is Sequence and inner[0] is not Any:
        return [f"a list, each {words_for(inner[0])}"]
    kind = origin or annotation
    return [WORDS.get(kind, f"a {getattr(kind, '__name__', kind)}")]


# -- parts of an annotation ----------------------------------------------------------------------------------


def bare(annotation: Any) -> Any:
    """Without its notes, the outermost only."""
    return typing.get_args(annotation)[0] if typing.get_origin(annotation) is Annotated else annotation


def members_of(annotation: Any) -> tuple[Any, ...]:
    """Of a union its types; of all else itself."""
    is_union = typing.get_origin(annotation) in (Union, types.UnionType)
    return typing.get_args(annotation) if is_union else (annotation,)


def typed(annotation: Any) -> Any:
    """What a command line can read of it: plain types, words, unions and lists of them; None of all else."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return typed(inner[0])
    if annotation is Any:
        return str
    if origin in (Union, types.UnionType):
        members = tuple(member for member in map(typed, inner) if member is not None)
        return Union[members] if members else None  # noqa: UP007  members are not known here
    if origin in (tuple, Sequence):
        return tuple[typed(inner[0]), ...]
    return annotation if origin is Literal or annotation in (str, int, float, bool, type(None)) else None


def choices(kind: Any) -> tuple[Any, ...]:
    """The words that are allowed, where a type is nothing but words."""
    members = [member for member in members_of(kind) if member is not type(None)]
    if any(typing.get_origin(member) is not Literal for member in members):
        return ()
    return tuple(word for member in members for word in typing.get_args(member))
