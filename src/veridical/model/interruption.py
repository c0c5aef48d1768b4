"""A question before every pass through a model: whether to go on.

Who may have to stop work that is under way, because nobody wants it any more or its time is over, runs it inside
`between_passes(check)`. `check` is called before every pass and raises to end the work there: what the work changed for
its time (hooks, modes) is put back as after any other error. Each thread has a question of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_check: ContextVar[Callable[[], None] | None] = ContextVar("asked before every pass", default=None)


@contextmanager
def between_passes(check: Callable[[], None]) -> Iterator[None]:
    """Inside, `check` is called before every pass, forward or back."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


def go_on() -> None:
    """Called before a pass; raises what `check` raises."""
    check = _check.get()
    if check is not None:
        check()
