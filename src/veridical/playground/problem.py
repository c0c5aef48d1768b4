"""What goes wrong with a request, as the API says it: a status, a code for programs and a sentence for people."""

from __future__ import annotations

import traceback
from typing import Any

from veridical.core.errors import ExhaustedError, InputError, is_exhaustion
from veridical.core.readable import one_line

STATUS = (400, 401, 403, 404, 405, 409, 413, 422, 429, 500, 503)


class ProblemError(Exception):
    """A request that is not answered, and why."""

    def __init__(self, status: int, code: str, message: str):
        super().__init__(message)
        self.status, self.code, self.message = status, code, message

    def plain(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message}


class WithdrawnError(Exception):
    """Nobody waits for this any more. Raised between two passes of a model."""


class LateError(Exception):
    """A request's time is over. Raised between two passes of a model."""


def problem_of(problem: BaseException) -> ProblemError:
    """Any error as one sentence; of what nobody foresaw the traceback goes to the terminal."""
    if isinstance(problem, ProblemError):
        return problem
    if isinstance(problem, WithdrawnError):
        return ProblemError(
            409, "cancelled", "The request was withdrawn: a newer one of the same session took its place."
        )
    if isinstance(problem, LateError):
        return ProblemError(503, "too_slow", str(problem))
    if isinstance(problem, InputError):
        return ProblemError(422, "input", one_line(str(problem)))
    if isinstance(problem, ExhaustedError) or is_exhaustion(problem):
        return ProblemError(
            503, "memory", "The memory was not enough for this text; shorten it, or ask for less at once."
        )
    traceback.print_exception(problem)
    said = (str(problem).strip().splitlines() or ["no reason given"])[0].rstrip(".")
    return ProblemError(
        500, "broken", f"This broke on the way ({type(problem).__name__}: {said}); the terminal shows where."
    )
