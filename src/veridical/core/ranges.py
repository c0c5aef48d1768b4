"""What values an option may have, said in its annotation: `steps: Annotated[int, at_least(1)] = 50`.

`values.read` applies them, a record of settings calls `insist(self)`, and help shows the same words.
"""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from veridical.core.errors import InputError
from veridical.core.readable import shown


@dataclass(frozen=True)
class Range:
    """Which values are allowed, and the words for them, as in "it must be at least 1"."""

    phrase: str
    holds: Callable[[Any], bool]

    def check(self, value: Any, who: str) -> None:
        """Of a tuple every value, and that there is one; nothing of None: `int | None` says whether that may be."""
        if value == ():
            raise InputError(f"{who} is empty; give at least one number, each {self.phrase}.")
        for item in value if isinstance(value, tuple) else (value,):
            if item is not None and not self.holds(item):
                finite = ", and finite" if item == math.inf else ""
                raise InputError(f"{who} is {_written(item)}; it must be {self.phrase}{finite}.")


def at_least(low: float) -> Range:
    return Range(f"at least {_plain(low)}", lambda value: low <= value < math.inf)


def above(low: float) -> Range:
    return Range(f"above {_plain(low)}", lambda value: low < value < math.inf)


def between(low: float, high: float, *, without: Literal["low", "high"] | None = None) -> Range:
    """Both ends are allowed, but for the one named."""
    if without == "low":
        return Range(f"above {_plain(low)} and at most {_plain(high)}", lambda value: low < value <= high)
    if without == "high":
        return Range(f"at least {_plain(low)} and below {_plain(high)}", lambda value: low <= value < high)
    return Range(f"from {_plain(low)} to {_plain(high)}", lambda value: low <= value <= high)


def _written(number: Any) -> str:
    try:
        return f"{number:g}"
    except (OverflowError, TypeError, ValueError):  # too large for a float, or no number
        return shown(number)


def _plain(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:g}"


Seed = Annotated[int, between(0, 2**32 - 1)]


def ranges(annotation: Any) -> list[Range]:
    """The ranges in an annotation, also inside a union: `Annotated[int, at_least(1)] | None`."""
    inside = [allowed for part in typing.get_args(annotation) for allowed in ranges(part)]
    return inside + [item for item in getattr(annotation, "__metadata__", ()) if isinstance(item, Range)]


def insist(record: Any) -> None:
    """Check every field of a dataclass whose annotation has a range."""
    hints = typing.get_type_hints(type(record), include_extras=True)
    for name in (item.name for item in dataclasses.fields(record)):
        for allowed in ranges(hints[name]):
            allowed.check(getattr(record, name), name)
