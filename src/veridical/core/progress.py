"""How long work shows that it moves: a bar in a terminal or notebook, a line now and then elsewhere, or nothing."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from html import escape
from types import TracebackType
from typing import Any

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
LITTLE = 8  # steps of work of which nothing is shown unless somebody asks
OFTEN = 0.2  # seconds between two pictures of a notebook's bar

_entered = 0  # reports under way


def in_notebook() -> bool:
    """Whether what is displayed goes to a notebook: IPython runs with a kernel, not in a terminal."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def for_work(progress: bool | None, steps: int) -> bool | None:
    """Whether so much work is to be shown: little of it only if somebody asks."""
    return False if progress is None and steps <= LITTLE else progress


class Report:
    """Steps of some work. `progress=True` shows them, in lines on standard error where there is neither terminal nor
    notebook; None shows them only in these, and not inside another report; `False` stays silent.

    `unit` is what is counted, `moving` tells of movement between two steps, and with `late` nothing is shown but a line
    now and then of what lasts: of little work, which is mostly over at once.
    """

    def __init__(
        self,
        title: str,
        total: int,
        *,
        done: int = 0,
        progress: bool | None = None,
        unit: str = "",
        moving: Callable[[], str] | None = None,
        late: bool = False,
    ):
        notebook = in_notebook()
        usual = Console(stderr=True).is_terminal or notebook
        quiet = not (usual and not _entered) if progress is None else not progress
        # In a notebook standard error is red, and rich would ask for widgets.
        stream = {"file": sys.stdout, "force_terminal": False} if notebook else {"stderr": True}
        self.console = Console(quiet=quiet, highlight=False, force_jupyter=False, **stream)  # type: ignore[arg-type]
        self.title, self.total, self.done, self.unit = title, total, done, unit
        self._moving, self._late, self._before = moving, late, done
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[text]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self.console,
            disable=late or not self.console.is_terminal or self.console.quiet,
        )
        self._task = self._bar.add_task(title, total=total, completed=done, text="")
        self._picture = Picture(title, total, unit) if notebook and not quiet and not late else None
        self._begun = self._last = time.monotonic()
        self._text = ""
        self._over = threading.Event()
        self._beating: threading.Thread | None = None

    def __enter__(self) -> Report:
        global _entered
        _entered += 1
        self._bar.start()
        self._begun = self._last = time.monotonic()
        if self._picture is not None:
            self._picture.draw(self.done)
        elif (self._late or not self.console.is_terminal) and not self.console.quiet:
            self._beating = threading.Thread(target=self._beat, daemon=True)
            self._beating.start()
        return self

    def _beat(self) -> None:
        """Until the work is over, a line whenever there was none for a while: in a log silence looks like death."""
        while not self._over.wait(QUIET / 10):
            if time.monotonic() - self._last >= QUIET * 0.9:  # so that the next look is not too late
                moved = self._moving() if self._moving is not None else ""
                self.say("  ".join(filter(None, (self._line(), self._text, moved, self._times()))))

    def _line(self) -> str:
        return f"{self.title}: {self.done} of {self.total}{f' {self.unit}' if self.unit else ''}"

    def _times(self) -> str:
        """How long it has lasted, and how long it will if what is left goes as what was done."""
        minutes = (time.monotonic() - self._begun) / 60
        done = self.done - self._before
        if self.done >= self.total:  # what follows the last step is not counted in steps
            return f"after {minutes:.1f} min, at its last part"
        left = f", about {(self.total - self.done) * minutes / done:.1f} min left" if done else ""
        return f"after {minutes:.1f} min{left}"

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        global _entered
        _entered -= 1
        self._over.set()
        if self._beating is not None:  # it may hold a model, whose memory is not to be given back as Python ends
            self._beating.join()
        self._moving = None
        self._bar.stop()
        if self._picture is not None:
            self._picture.draw(self.done, self._text, last=True)

    def advance(self, text: str = "", steps: int = 1) -> None:
        """Some steps further; outside a terminal every tenth of the way gets a line."""
        self.done += steps
        self._text = text
        self._bar.update(self._task, completed=self.done, text=text)
        tenth = self.done * 10 // self.total > (self.done - steps) * 10 // self.total
        if self._picture is not None:
            self._picture.draw(self.done, text)
        elif tenth and not self.console.is_terminal and not self._late:
            self.say(f"{self._line()}  {text}")

    def say(self, line: str) -> None:
        """A line that stays."""
        self._last = time.monotonic()
        self.console.print(line, soft_wrap=True, markup=False)


class Picture:
    """A bar in a notebook's output, redrawn in its place."""

    def __init__(self, title: str, total: int, unit: str = ""):
        self.title, self.total, self.unit = title, total, unit
        self._handle: Any = None
        self._begun = time.monotonic()
        self._drawn = -OFTEN

    def draw(self, done: int, text: str = "", *, last: bool = False) -> None:
        now = time.monotonic()
        if not last and now - self._drawn < OFTEN:
            return
        self._drawn = now
        from IPython.display import HTML, display  # type: ignore[import-not-found]  who has a notebook has it

        shown = HTML(self.html(done, text, now - self._begun, last=last))
        if self._handle is None:
            self._handle = display(shown, display_id=True)
        else:
            self._handle.update(shown)

    def html(self, done: int, text: str, seconds: float, *, last: bool = False) -> str:
        spent = f"{seconds // 60:.0f}:{seconds % 60:02.0f}"
        left = (self.total - done) * seconds / done if done else None
        rest = "" if last or left is None else f", about {left // 60:.0f}:{left % 60:02.0f} left"
        bar = "" if last else f'<progress value="{done}" max="{self.total}" style="margin:0 .8em"></progress> '
        said = f" {escape(text)}" if text else ""
        unit = f" {escape(self.unit)}" if self.unit else ""
        return (
            '<div style="font:13px system-ui,sans-serif;opacity:.75;font-variant-numeric:tabular-nums">'
            f"{escape(self.title)}{'' if bar else ':'} {bar}{done:,} of {self.total:,}{unit}{said}, {spent}{rest}</div>"
        )
