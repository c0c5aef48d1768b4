"""Names of models with the options behind them, `bilstm:hidden=32`, and how specs of runs spell them."""

from __future__ import annotations

from veridical.core.spec import Spec, read_place
from veridical.core.values import read

WIDTH = 128  # of the BiLSTM and of its attention: Recursive ROAR's, for everything but bAbI


def _read(spec: str) -> tuple[str, dict[str, str]]:
    typed = read_place(spec)
    return typed.name, dict(typed.options)


def recorded(spec: str) -> str:
    """A model as specs of runs have it, where an attention of the usual width goes without saying.

    Runs of before had no other: what they recorded as `bilstm:hidden=32` has an attention of 128.
    """
    name, given = _read(spec)
    if name != "bilstm" or not {"hidden", "attention"} & set(given):
        return spec
    attention = given.pop("attention", given.get("hidden", str(WIDTH)))
    if not _usual(attention):
        given["attention"] = attention
    return Spec(name, given).write()


def from_record(spec: str) -> str:
    """The model that a run recorded so."""
    name, given = _read(spec)
    return f"{spec}:attention={WIDTH}" if name == "bilstm" and "attention" not in given else spec


def same_record(one: str, other: str) -> bool:
    """Whether two records are of one model: a width of 128 may be said or not."""
    (name, given), (other_name, other_given) = _read(one), _read(other)
    for held in (given, other_given):
        if name == "bilstm" and _usual(held.get("hidden", "")):
            del held["hidden"]
    return (name, given) == (other_name, other_given)


def _usual(width: str) -> bool:
    return bool(width) and read(width, int | None, "a width of model 'bilstm'") == WIDTH
