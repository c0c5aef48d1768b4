"""Times as multiples of a unit of work that runs right before and after each of them.

A busy or throttled machine slows everything it runs at the time: neighbours in time suffer alike, so their ratio
says more than seconds do. Nothing here is judged by absolute time.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

UNIT_PASSES = 3  # the unit is short: the median of three is taken each time


@dataclass(frozen=True, slots=True)
class Contender:
    """Some work under a name."""

    name: str
    run: Callable[[], object]
    warm: Callable[[], object] | None = None  # less of the same work, to warm up with; None: the work itself


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a contender took, once per repeat."""

    name: str
    seconds: tuple[float, ...]
    ratios: tuple[float, ...]  # to the mean of the units before and after
    cores: float  # processor seconds per second: under the number of threads, somebody else was running too

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def spread(self) -> tuple[float, float]:
        return min(self.ratios), max(self.ratios)


def measure(
    unit: Contender,
    contenders: Sequence[Contender],
    *,
    repeats: int,
    tick: Callable[[str], None] = lambda name: None,
) -> tuple[Timing, dict[str, Timing]]:
    """Every contender once per repeat, in turn, from another start each time; the unit's timing and theirs by name.

    Everything is warmed up before the first measurement, so that no contender pays for what is only done once.
    """
    for work in (unit, *contenders):
        (work.warm or work.run)()
        tick(f"warm-up: {work.name}")
    taken: dict[str, list[tuple[float, float, float]]] = {contender.name: [] for contender in contenders}
    units: list[tuple[float, float]] = []
    for repeat in range(repeats):
        shift = repeat % max(1, len(contenders))
        before = _unit(unit)
        units.append(before)
        for contender in (*contenders[shift:], *contenders[:shift]):
            seconds, processor = clock(contender.run)
            after = _unit(unit)
            units.append(after)
            taken[contender.name].append((seconds, processor, 2 * seconds / (before[0] + after[0])))
            before = after
            tick(f"repeat {repeat + 1}: {contender.name}")
    typical = statistics.median(seconds for seconds, _ in units)
    own = [(seconds, processor, seconds / typical) for seconds, processor in units]
    return _timing(unit.name, own), {name: _timing(name, rows) for name, rows in taken.items()}


def clock(run: Callable[[], object]) -> tuple[float, float]:
    """Wall seconds and processor seconds (of all threads) of one call."""
    gc.collect()
    began, worked = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - began, time.process_time() - worked


def _unit(unit: Contender) -> tuple[float, float]:
    return sorted(clock(unit.run) for _ in range(UNIT_PASSES))[UNIT_PASSES // 2]


def _timing(name: str, rows: Sequence[tuple[float, float, float]]) -> Timing:
    return Timing(
        name=name,
        seconds=tuple(seconds for seconds, _, _ in rows),
        ratios=tuple(ratio for _, _, ratio in rows),
        cores=sum(processor for _, processor, _ in rows) / sum(seconds for seconds, _, _ in rows),
    )
