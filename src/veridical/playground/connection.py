"""Connections that say nothing: uvicorn waits for a request's head for ever, and then has no room for anybody.

A connection has some seconds for the head of each request. Where there are too many, the one that has been silent
longest goes.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from veridical.playground.limits import CONNECTIONS, HEAD


class Connection(H11Protocol):
    """uvicorn's, with a time for the head."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.silent: asyncio.TimerHandle | None = None  # runs while a request's head is waited for

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_head()
        if len(self.connections) > CONNECTIONS:
            waiting = [each for each in self.connections if isinstance(each, Connection) and each.silent is not None]
            min(waiting, key=_until, default=self).transport.close()

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._head_is_there()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing():
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_there()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        self._head_is_there()
        self.silent = self.loop.call_later(HEAD, self.transport.close)

    def _head_is_there(self) -> None:
        if self.silent is not None:
            self.silent.cancel()
            self.silent = None


def _until(connection: Connection) -> float:
    return connection.silent.when() if connection.silent is not None else float("inf")
