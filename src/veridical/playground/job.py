"""A request at work: between the event loop that answers browsers and the threads that run models.

Threads tell what they find (`tell`, `end`) and ask whether it is still wanted (`check`); the loop reads along
(`lines`, `result`) and withdraws what nobody waits for.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from veridical.playground.limits import SECONDS
from veridical.playground.problem import LateError, WithdrawnError


@dataclass(frozen=True)
class Who:
    """Who asks: the address that a request comes from, and the session that it names."""

    peer: str = ""
    session: str = ""


class Job:
    """One request's work. It is made on the event loop."""

    def __init__(self, seconds: float = SECONDS, who: Who | None = None):
        self.who = who or Who()
        self._loop = asyncio.get_running_loop()
        self._told: asyncio.Queue[tuple[bool, Any]] = asyncio.Queue()
        self._withdrawn = threading.Event()
        self._seconds = seconds
        self.began = time.monotonic()
        self.passes = 0.0
        self.over = False

    # -- asked by the threads ---------------------------------------------------------------------------------

    @property
    def wanted(self) -> bool:
        return not self._withdrawn.is_set()

    def check(self) -> None:
        """Raise if nobody waits any more, or the time is over."""
        if not self.wanted:
            raise WithdrawnError
        if time.monotonic() - self.began > self._seconds:
            raise LateError(
                f"The {self._seconds:g} seconds that a request may take are over; ask for fewer or cheaper methods, or "
                "shorten the text."
            )

    def tell(self, line: Any) -> None:
        """One more result."""
        self._put((False, line))

    def end(self, outcome: Any = None) -> None:
        """The last result, or the error that ended it."""
        self.over = True
        self._put((True, outcome))

    def _put(self, item: tuple[bool, Any]) -> None:
        try:
            self._loop.call_soon_threadsafe(self._told.put_nowait, item)
        except RuntimeError:  # the loop has ended, and with it everybody who waited
            self.withdraw()

    # -- asked on the loop ------------------------------------------------------------------------------------

    def withdraw(self) -> None:
        self._withdrawn.set()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def counts(self) -> bool:
        """Whether it takes a place: what is over does not, nor what should have been long ago."""
        return not self.over and self.seconds <= self._seconds

    async def lines(self) -> AsyncIterator[Any]:
        """Results as they come; whoever stops reading withdraws it."""
        try:
            while True:
                last, value = await self._told.get()
                if last:
                    if isinstance(value, BaseException):
                        raise value
                    return
                yield value
        finally:
            self.withdraw()

    async def result(self) -> Any:
        """The last result."""
        try:
            while True:
                last, value = await self._told.get()
                if last and isinstance(value, BaseException):
                    raise value
                if last:
                    return value
        finally:
            self.withdraw()
