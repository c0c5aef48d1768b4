"""A request that does not fit its record, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from veridical.core.readable import one_line, shown
from veridical.playground.problem import ProblemError

LARGE = ("string_too_long", "too_long")


def sentence_of(errors: Sequence[Mapping[str, Any]]) -> ProblemError:
    """The first thing that is wrong: where, what was given, what is allowed."""
    error = errors[0]
    kind, where = str(error["type"]), _place(error["loc"])
    bounds = error.get("ctx", {})
    if kind == "string_too_long":
        given, most = len(error["input"]), bounds["max_length"]
        return ProblemError(
            413, "too_long", f"{where} has {given:,} characters; at most {most:,} are allowed: shorten it."
        )
    if kind == "too_long":
        most = bounds["max_length"]
        return ProblemError(413, "too_long", f"{where} has more than {most:,} entries; ask for less at once.")
    if kind == "extra_forbidden":
        return ProblemError(422, "unknown", f"There is no field {where}; leave it out.")
    if kind == "missing":
        return ProblemError(422, "missing", f"{where} is missing; give it.")
    if kind == "json_invalid" or not _names(error["loc"]):
        return ProblemError(
            422,
            "json",
            'The body of the request is no JSON object; send one, such as {"text": "..."}, as application/json.',
        )
    message = one_line(str(error["msg"]))
    return ProblemError(422, "invalid", f"{where} is {shown(error.get('input'))}: {message[:1].lower()}{message[1:]}.")


def _names(location: Sequence[Any]) -> list[Any]:
    return [part for part in location if part not in ("body", "query")]


def _place(location: Sequence[Any]) -> str:
    """`body.erased.3` as people say it: erased, entry 4."""
    names = _names(location)
    if not names:
        return "The request"
    said = one_line(str(names[0]))[:80]
    for part in names[1:]:
        said += f", entry {part + 1}" if isinstance(part, int) else f", {one_line(str(part))[:80]}"
    return said
