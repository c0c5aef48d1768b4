"""The error that a user's mistake raises (exit code 2 and its sentence), and those of what broke on the way (1)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Something the user gave cannot be used: the message names the value, what is allowed and the way out."""


class BreakdownError(InputError):
    """What was given could be used until something broke on the way: a full disk, a file that was deleted."""


class Caution(UserWarning):
    """Something the user should know about a result that is given all the same."""


# What others call settings of ours that resemble theirs by no letter.
SYNONYMS = {
    **{"learning_rate": "lr", "batch_size": "batch", "num_epochs": "epochs", "num_train_epochs": "epochs"},
    **{"max_grad_norm": "clip", "early_stopping": "patience", "adam_betas": "betas", "metric": "select"},
}


def unknown(kind: str, value: str, allowed: Iterable[str]) -> InputError:
    """The error for a name that does not exist, with the nearest one that does."""
    names = sorted(allowed)
    return InputError(f"There is no {kind} {_short(value)}.{_hint(value, names)} Known: {', '.join(names)}.")


def lacking(owner: str, kind: str, value: str, allowed: Iterable[str]) -> InputError:
    """The same for what something has none of: `owner` begins the sentence, as in `This comparison`."""
    names = sorted(allowed)
    return InputError(f"{owner} has no {kind} {_short(value)}.{_hint(value, names)} It has: {', '.join(names)}.")


def _short(value: str) -> str:
    return repr(value if len(value) <= 80 else f"{value[:77]}...")


def _hint(value: str, names: list[str]) -> str:
    """The nearest name. What stands before a dot, `train.`, is a table's and tells no two names apart."""
    table, dot, key = value.rpartition(".")
    inside = {name.removeprefix(table + dot): name for name in names if name.startswith(table + dot)}
    if not inside:
        key, inside = value, {name: name for name in names}
    if SYNONYMS.get(key) in inside:
        return f" Did you mean {inside[SYNONYMS[key]]!r}?"
    near = difflib.get_close_matches(key, inside, n=1, cutoff=0.5)
    return f" Did you mean {inside[near[0]]!r}?" if near else ""


# How backends that raise a plain RuntimeError say it: Apple's, Intel's, AMD's, NVIDIA's libraries, XLA, the CPU.
MEMORY = (
    *("out of memory", "can't allocate memory", "cannot allocate memory", "failed to allocate", "alloc_failed"),
    *("resource_exhausted", "not enough memory", "insufficient memory", "invalid buffer size"),
)


def is_exhaustion(problem: BaseException) -> bool:
    """Whether an error says that memory is used up."""
    if isinstance(problem, MemoryError):
        return True
    text = str(problem).lower()
    return isinstance(problem, RuntimeError) and any(words in text for words in MEMORY)


class ExhaustedError(RuntimeError):
    """One text alone is too much for a device's memory; the command line says so and ends with exit code 1."""


class GridError(RuntimeError):
    """Some cells failed, each with its reason in cells/<key>.error.txt; all that did not need them is done."""
