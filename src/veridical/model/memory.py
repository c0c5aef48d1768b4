"""How many tokens go into one pass of a model, and what is done when they do not fit into its device's memory.

On a CPU a fixed number is fastest. An accelerator is the faster the more it gets: the number is doubled as long as
passes fit, halved when one does not, and then kept, for every model and kind of work, as long as the process lives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch

from veridical.core import errors
from veridical.core.device import said_batch_tokens
from veridical.core.errors import ExhaustedError
from veridical.core.options import TOKEN_BUDGET
from veridical.core.wording import option
from veridical.model.classifier import Classifier

START = 8192  # tokens of the first pass on an accelerator
MOST = 2**18  # more, times the width of a layer, is more than the 32 bits that some kernels count with


@dataclass
class Room:
    """The tokens that fit into a pass, as far as is known."""

    tokens: int
    settled: bool  # it is not doubled any more

    def shrink(self, rows: int, longest: int) -> None:
        """Half of what did not fit."""
        self.tokens = max(1, (self.tokens if rows == 1 else min(self.tokens, rows * longest)) // 2)
        self.settled = True

    def grow(self) -> None:
        if not self.settled:
            self.tokens = min(2 * self.tokens, MOST)
            self.settled = self.tokens == MOST


_rooms: WeakKeyDictionary[torch.nn.Module, dict[tuple[str, str, int | None], Room]] = WeakKeyDictionary()
_under_way: ContextVar[int] = ContextVar("tokens of the pass under way", default=TOKEN_BUDGET)


def room_for(clf: Classifier, work: str, budget: int | None = None) -> Room:
    """What is known of the room that a kind of work has; `budget` is where it begins, if somebody said so."""
    held = _rooms.setdefault(clf.model, {})
    tokens = budget or said_batch_tokens()
    key = (str(clf.device), work, tokens)
    if key not in held:
        usual = TOKEN_BUDGET if clf.device.type == "cpu" else START
        held[key] = Room(tokens or usual, settled=tokens is not None or clf.device.type == "cpu")
    return held[key]


def run_all(
    clf: Classifier,
    lengths: Sequence[int],
    run: Callable[[list[int]], None],
    *,
    work: str,
    budget: int | None = None,
) -> None:
    """`run` for all rows in batches of similar length, longest first, rows x longest within the room (or one row).

    A batch that does not fit is run again as smaller ones: `run` keeps nothing of what it did not finish.
    """
    for _ in passes(clf, lengths, run, work=work, budget=budget):
        pass


def passes(
    clf: Classifier,
    lengths: Sequence[int],
    run: Callable[[list[int]], None],
    *,
    work: str,
    budget: int | None = None,
    in_order: bool = False,
) -> Iterator[list[int]]:
    """The same a batch at a time, each after it was run; `in_order`: next the one with the first row that waits.

    Whatever the order, the batches are the same as long as the room is: all but the last are full.
    """
    waiting = by_length(lengths)
    room = room_for(clf, work, budget)
    while waiting:
        start = _start(waiting, lengths, room.tokens) if in_order else 0
        longest = lengths[waiting[start]]
        batch = waiting[start : start + max(1, room.tokens // max(1, longest))]
        if attempt(lambda batch=batch: run(batch), room, clf):
            del waiting[start : start + len(batch)]
            if waiting:
                room.grow()
            yield batch
        elif len(batch) == 1 and room.tokens <= longest:
            raise too_long(longest, clf)
        else:
            room.shrink(len(batch), longest)


def _start(waiting: Sequence[int], lengths: Sequence[int], tokens: int) -> int:
    """Where among the rows by length the batch begins that holds the first of them."""
    place, start = waiting.index(min(waiting)), 0
    while (following := start + max(1, tokens // max(1, lengths[waiting[start]]))) <= place:
        start = following
    return start


def attempt(run: Callable[[], None], room: Room, clf: Classifier) -> bool:
    """Whether a pass fitted into memory."""
    token = _under_way.set(min(room.tokens, TOKEN_BUDGET) if clf.device.type == "cpu" else room.tokens)
    try:
        run()
        return True
    except (RuntimeError, MemoryError) as problem:
        if not is_exhaustion(problem):
            raise
    finally:
        _under_way.reset(token)
    _release(clf.device)  # after the error is gone, and with it the tensors of its frames
    return False


def _release(device: torch.device) -> None:
    """Give back what a device's allocator holds for later, where it has one."""
    empty = getattr(torch.get_device_module(device), "empty_cache", None)
    if empty is not None:
        empty()


def move(clf: Classifier, device: torch.device) -> None:
    """A classifier's model to a device; one that does not fit there is whole where it was."""
    home = clf.device
    try:
        clf.model.to(device)
    except (RuntimeError, MemoryError) as problem:
        if not is_exhaustion(problem):
            raise
        clf.model.to(home)  # torch moves weight by weight, and stops where it cannot go on
        _release(device)
        raise ExhaustedError(
            f"The weights of {clf.name} do not fit into the memory of {device}; take a smaller model, or choose "
            f"another device ({_elsewhere()})."
        ) from problem


def tokens_under_way() -> int:
    """How many tokens a method may give the model at once within the pass that it was called for."""
    return _under_way.get()


def by_length(lengths: Sequence[int]) -> list[int]:
    """Indices, longest first, ties in their order."""
    return sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))


def is_exhaustion(problem: BaseException) -> bool:
    """Whether an error says that memory is used up."""
    return isinstance(problem, torch.OutOfMemoryError) or errors.is_exhaustion(problem)


@contextmanager
def whole_model(clf: Classifier, what: str) -> Iterator[None]:
    """Work on all weights at once, which smaller passes do not make smaller: where memory is short, `what` took it."""
    try:
        yield
    except (RuntimeError, MemoryError) as problem:
        if not is_exhaustion(problem):
            raise
        _release(clf.device)
        raise ExhaustedError(
            f"{what} of {clf.name} does not fit into the memory of {clf.device} beside its weights; take a smaller "
            f"model (or fewer layers of it), or choose another device ({_elsewhere()})."
        ) from problem


def _elsewhere() -> str:
    return option('device="cpu"')


def too_long(tokens: int, clf: Classifier) -> ExhaustedError:
    return ExhaustedError(
        f"A text of {tokens} tokens does not fit into the memory of {clf.device}, even alone; shorten it (a model "
        f"trained with a smaller max_length does so by itself), or choose another device ({_elsewhere()})."
    )
