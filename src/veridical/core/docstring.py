"""What `help(veridical.audit)` says of a function whose options are a record: its own words and, for every option,
those that the command line has for it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from veridical.core.options import Option

WIDTH = 110
# What can be repeated on the command line is a list in Python.
IN_PYTHON = {"with commas or repeated": "with commas or as a list", "May be repeated.": "Several are a list."}


def with_options(doc: str, options: Sequence[Option]) -> str:
    """A docstring with a line for every option under `Args:`, which stands before `Returns:` and may be missing."""
    before, returns, after = doc.partition("\nReturns:")
    before = before.rstrip()
    head = before if "\nArgs:\n" in before else f"{before}\n\nArgs:"
    return "\n".join([head, *map(_line, options), returns and f"{returns}{after}"]).rstrip()


def _line(option: Option) -> str:
    sentence = option.help.sentence
    for typed, said in IN_PYTHON.items():
        sentence = sentence.replace(typed, said)
    usual = f" Default: {option.help.default}." if option.help.default else ""
    return textwrap.fill(
        f"{option.name}: {sentence}{usual}",
        WIDTH,
        initial_indent=" " * 4,
        subsequent_indent=" " * 8,
        break_long_words=False,
        break_on_hyphens=False,
    )
