"""How long work shows that it moves: a bar in a terminal, a line now and then elsewhere, or nothing."""

from __future__ import annotations

import threading
import time
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

QUIET = 30.0  # seconds without a line, outside a terminal, after which one is said


class Report:
    """Steps of some work, shown on standard error. `progress=None` shows them, `False` stays silent."""

    def __init__(self, title: str, total: int, *, done: int = 0, progress: bool | None = None):
        self.console = Console(stderr=True, quiet=progress is False, highlight=False)
        self.title, self.total, self.done = title, total, done
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[text]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self.console,
            disable=not self.console.is_terminal or self.console.quiet,
        )
        self._task = self._bar.add_task(title, total=total, completed=done, text="")
        self._begun = self._last = time.monotonic()
        self._text = ""
        self._over = threading.Event()

    def __enter__(self) -> Report:
        self._bar.start()
        self._begun = self._last = time.monotonic()
        if not self.console.is_terminal and not self.console.quiet:
            threading.Thread(target=self._beat, daemon=True).start()
        return self

    def _beat(self) -> None:
        """Until the work is over, a line whenever there was none for a while: in a log silence looks like death."""
        while not self._over.wait(QUIET / 10):
            if time.monotonic() - self._last >= QUIET:
                minutes = (time.monotonic() - self._begun) / 60
                self.say(f"{self.title}: {self.done} of {self.total}  {self._text}  after {minutes:.1f} min")

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._bar.stop()

    def advance(self, text: str = "", steps: int = 1) -> None:
        """Some steps further; outside a terminal every tenth of the way gets a line."""
        self.done += steps
        self._text = text
        self._bar.update(self._task, completed=self.done, text=text)
        tenth = self.done * 10 // self.total > (self.done - steps) * 10 // self.total
        if tenth and not self.console.is_terminal:
            self.say(f"{self.title}: {self.done} of {self.total}  {text}")

    def say(self, line: str) -> None:
        """A line that stays."""
        self._last = time.monotonic()
        self.console.print(line, soft_wrap=True, markup=False)
