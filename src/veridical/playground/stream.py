"""Answers that come a line at a time, as JSON lines; a reader who goes withdraws the work."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.responses import Response

from veridical.playground.job import Job
from veridical.playground.problem import WithdrawnError, problem_of

NDJSON = "application/x-ndjson"


class Lines(Response):
    """What a job tells, each line as soon as it is there, and at last how it ended."""

    media_type = NDJSON

    def __init__(self, job: Job, status_code: int = 200):
        super().__init__(status_code=status_code, media_type=NDJSON)
        self.job = job
        del self.headers["content-length"]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        leaving = asyncio.create_task(self._leave(receive))
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            try:
                async for line in self.job.lines():
                    await send({"type": "http.response.body", "body": encoded(line), "more_body": True})
                last: dict[str, Any] = {"done": True, "passes": self.job.passes, "seconds": round(self.job.seconds, 3)}
            except WithdrawnError:
                last = {"cancelled": True}
            except Exception as problem:
                last = {"error": problem_of(problem).plain()}
            await send({"type": "http.response.body", "body": encoded(last)})
        finally:
            self.job.withdraw()
            leaving.cancel()

    async def _leave(self, receive: Any) -> None:
        """Wait for the reader to go: the server says so here, long before a line could not be sent."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self.job.withdraw()


def encoded(line: Any) -> bytes:
    return json.dumps(line, ensure_ascii=False, allow_nan=False).encode() + b"\n"
