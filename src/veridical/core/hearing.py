"""Our own warnings as sentences, for each thread by itself.

Python has one place for warnings in a process. Whoever listens first takes it over and whoever leaves last gives it
back; between, each thread that listens hears its own.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from veridical.core.errors import Caution

_lock = threading.Lock()
_notes: dict[int, list[list[str]]] = {}  # by thread; who listens last hears
_held = ExitStack()


@contextmanager
def heard() -> Iterator[list[str]]:
    """The warnings of this thread while it lasts; those of others go where they went."""
    notes: list[str] = []
    with _lock:
        if not _notes:
            _listen()
        _notes.setdefault(threading.get_ident(), []).append(notes)
    try:
        yield notes
    finally:
        with _lock:
            mine = _notes[threading.get_ident()]
            mine.pop()
            if not mine:
                del _notes[threading.get_ident()]
            if not _notes:
                _held.close()


def _listen() -> None:
    _held.enter_context(warnings.catch_warnings())
    before = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        mine = _notes.get(threading.get_ident())
        if not mine:
            before(message, category, *where, **more)
        elif issubclass(category, Caution):
            mine[-1].append(str(message))

    warnings.simplefilter("always", Caution)
    warnings.showwarning = show
