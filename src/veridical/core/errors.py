"""The one error a user's mistake raises; the command line turns it into exit code 2 and its sentence."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Something the user gave cannot be used: the message names the value, what is allowed and the way out."""


class Caution(UserWarning):
    """Something the user should know about a result that is given all the same."""


def unknown(kind: str, value: str, allowed: Iterable[str]) -> InputError:
    """The error for a name that does not exist, with the nearest one that does."""
    names = sorted(allowed)
    near = difflib.get_close_matches(value, names, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return InputError(f"There is no {kind} {value!r}.{hint} Known: {', '.join(names)}.")


class GridError(RuntimeError):
    """Some cells failed, each with its reason in cells/<key>.error.txt; all that did not need them is done."""
