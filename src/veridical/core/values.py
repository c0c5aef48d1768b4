"""The values of options by their types: text read by an annotation, and written so that it reads back."""

from __future__ import annotations

import os
import types
import typing
from typing import Annotated, Any, Literal

from veridical.core.errors import InputError
from veridical.core.ranges import Range
from veridical.core.readable import insist_on_characters, shown

PLAIN = (str, int, float, bool)
WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def read(value: Any, annotation: Any, who: str) -> Any:
    """`value` as the annotated type: int, float, bool, str, Literal, tuple[x, ...], unions of them, and any of these
    as Annotated with a range. `who` is the subject of the error's sentence."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        answer = read(value, inner[0], who)
        for allowed in (item for item in inner[1:] if isinstance(item, Range)):
            allowed.check(answer, who)
        return answer
    if origin in (typing.Union, types.UnionType):
        return _first_that_fits(value, inner, who)
    if origin is Literal:
        for allowed in inner:
            if isinstance(value, PLAIN) and (value == allowed or value == str(allowed)):
                return allowed
        raise InputError(f"{who} is {shown(value)}; allowed: {', '.join(map(str, inner))}.")
    if origin is tuple:
        parts = value.split("+") if isinstance(value, str) else value
        return tuple(read(part, inner[0], who) for part in (parts if isinstance(parts, (list, tuple)) else [parts]))
    if annotation is bool:
        word = _text(value, who).lower()
        if word not in WORDS:
            raise InputError(f"{who} is {shown(value)}; allowed: true, false.")
        return WORDS[word]
    if annotation in (int, float):
        return _number(value, annotation, who)
    if annotation is str:
        return _text(value, who)
    raise TypeError(f"{who} has an annotation no option can have: {annotation}")


def _first_that_fits(value: Any, kinds: tuple[Any, ...], who: str) -> Any:
    if type(None) in kinds and (value is None or (isinstance(value, str) and value in ("none", "None"))):
        return None
    *others, last = (kind for kind in kinds if kind is not type(None))
    for kind in others:
        try:
            return read(value, kind, who)
        except InputError:
            continue  # the last kind's error is the one that is told
    return read(value, last, who)


def _number(value: Any, kind: type[int] | type[float], who: str) -> int | float:
    # 1e3 is a whole number to a person; True and 2.5 are not.
    try:
        number = None if isinstance(value, (bytes, bytearray)) else float(value)
    except (TypeError, ValueError, OverflowError):  # an int of 400 digits is too large for a float
        number = None
    if number is None or isinstance(value, bool) or number != number:
        raise InputError(f"{who} is {shown(value)}; it must be a number.")
    if kind is int and not number.is_integer():
        raise InputError(f"{who} is {shown(value)}; it must be a whole number.")
    return int(number) if kind is int else number


def _text(value: Any, who: str) -> str:
    try:
        text = str(value) if isinstance(value, (*PLAIN, os.PathLike)) else None
    except ValueError:  # an int of more digits than Python writes
        text = None
    if text is None:
        raise InputError(f"{who} is {shown(value)}; it must be a text.")
    insist_on_characters(text, who)
    return text


def write(value: Any) -> str:
    """`read` gives it back, for values that hold no `+`."""
    if isinstance(value, tuple):
        return "+".join(map(write, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
