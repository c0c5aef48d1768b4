"""How long work shows that it moves: a bar in a terminal, a line now and then elsewhere, or nothing."""

from __future__ import annotations

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

    def __enter__(self) -> Report:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def advance(self, text: str = "", steps: int = 1) -> None:
        """Some steps further; outside a terminal every tenth of the way gets a line."""
        self.done += steps
        self._bar.update(self._task, completed=self.done, text=text)
        tenth = self.done * 10 // self.total > (self.done - steps) * 10 // self.total
        if tenth and not self.console.is_terminal:
            self.say(f"{self.title}: {self.done} of {self.total}  {text}")

    def say(self, line: str) -> None:
        """A line that stays."""
        self.console.print(line, soft_wrap=True, markup=False)
