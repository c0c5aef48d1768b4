"""How a sentence names an option: as whoever reads it writes it, `overlap=N` in Python, `--overlap N` in a command.

A message has one source, and its options are said by `option`. That a command was typed is known from the environment,
by which worker processes learn of it too. What is stored must not depend on it: there settings have their plain names.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

TYPED = "VERIDICAL_TYPED"


@contextmanager
def typed() -> Iterator[None]:
    """Inside, sentences are for somebody who typed a command."""
    before = os.environ.get(TYPED)
    os.environ[TYPED] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(TYPED, None)
        else:
            os.environ[TYPED] = before


def option(said: str, typed: str = "") -> str:
    """An option with its value, written as in Python; `typed` is how it is typed, where that does not follow."""
    if not os.environ.get(TYPED):
        return said
    name, _, value = said.partition("=")
    words = [f"--{name.replace('_', '-')}", *([value.strip("'\"")] if value not in ("", "True") else [])]
    return typed or " ".join(words)


def other_work(held: Iterable[str], differing: Iterable[str]) -> str:
    """What a folder holds in words, by the keys of its spec and those that differ: `an audit of another model, of other
    data, with other settings`."""
    kind = "an audit" if any(key.startswith("corpora.") for key in held) else "a run"
    tops = {key.partition(".")[0] for key in differing}
    words = {"of another model": tops & {"model"}, "of other data": tops & {"data", "corpora"}}
    words["with other settings"] = tops - {"model", "data", "corpora"}
    return f"{kind} {', '.join(name for name, keys in words.items() if keys)}"
