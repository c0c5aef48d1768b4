"""Text from outside, read so that nothing in it breaks the reader: JSON, TOML, file names, halves of characters.

Python's readers raise errors of several kinds: on what is nested too deeply for its stack, on numbers with more digits
than it converts, on names that no file can have. Here each of them is one sentence.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

from veridical.core.errors import InputError

LONGEST = 80  # characters of a value that an error shows
_DEEP = "it is nested too deeply"
_DIGITS = "a number in it has too many digits"
_SURROGATE = re.compile("[\ud800-\udfff]")


class UnreadableError(ValueError):
    """Why a text cannot be read, as a clause without a full stop."""


def parse_json(text: str | bytes, **hooks: Any) -> Any:
    """`json.loads`, whatever is wrong with the text told as `UnreadableError`."""
    try:
        return json.loads(text, **hooks)
    except json.JSONDecodeError as problem:
        raise UnreadableError(f"{problem.msg}, line {problem.lineno}, column {problem.colno}") from problem
    except RecursionError as problem:
        raise UnreadableError(_DEEP) from problem
    except UnicodeDecodeError as problem:
        raise UnreadableError("it is not UTF-8") from problem
    except InputError:
        raise
    except ValueError as problem:  # what is left: int() has a limit
        raise UnreadableError(_DIGITS) from problem


def parse_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise UnreadableError(str(problem)) from problem
    except RecursionError as problem:
        raise UnreadableError(_DEEP) from problem
    except ValueError as problem:
        raise UnreadableError(_DIGITS) from problem


def read_utf8(path: str | Path) -> str:
    """A whole text file; the error is a sentence with the remedy."""
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = problem.object.count(b"\n", 0, problem.start) + 1
        raise InputError(
            f"{path}, line {line}: byte 0x{problem.object[problem.start]:02x} is not UTF-8; save the file as UTF-8."
        ) from problem
    except (OSError, ValueError) as problem:  # ValueError: a name with a null byte
        reason = getattr(problem, "strerror", None) or problem
        raise InputError(f"{shown_path(path)} cannot be read ({reason}); check the path.") from problem


def insist_on_characters(text: str, who: str) -> None:
    """Refuse half a character (a lone surrogate): no tokenizer, file or terminal takes it."""
    match = _SURROGATE.search(text)
    if match:
        raise InputError(
            f"{who} holds half a character, U+{ord(match[0]):04X} at place {match.start() + 1}, which is no text; "
            "remove it, or read the text from its source as UTF-8."
        )


def typed_text(word: str) -> str:
    """A word of the command line, if its bytes are UTF-8."""
    if not _SURROGATE.search(word):
        return word
    try:
        return os.fsencode(word).decode("utf-8")
    except (UnicodeDecodeError, UnicodeEncodeError) as problem:
        raise UnreadableError(
            f"{shown(word)} is not UTF-8; type it in a UTF-8 terminal, or give a UTF-8 file"
        ) from problem


def shown(value: Any) -> str:
    """A value as an error shows it: on one line, cut where it is long."""
    try:
        text = " ".join(repr(value).split("\n"))
    except (ValueError, RecursionError):  # an int of more digits than Python writes, a list inside itself
        text = f"a {type(value).__name__} too large to show"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def one_line(text: str) -> str:
    """A sentence for a terminal: what would break the line, or do something to the terminal, is spelt out."""
    return "".join(c if c.isprintable() else "\\n" if c == "\n" else repr(c)[1:-1] for c in text.strip())


def shown_path(path: str | Path) -> str:
    text = str(path)
    return text if len(text) <= 3 * LONGEST else f"{text[: 3 * LONGEST - 3]}..."
