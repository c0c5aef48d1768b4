"""What `validate` finds, as summary.json holds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from veridical.probes.validation.world import Setting


@dataclass(frozen=True)
class Rate:
    """So many of so many, with a 95% interval."""

    count: int
    of: int
    share: float | None  # None of none
    low: float | None
    high: float | None


@dataclass(frozen=True)
class PanelErrors:
    """How often one panel's verdict was wrong."""

    panel: str
    by: str  # operator
    metrics: tuple[str, ...]
    worlds: int  # judged
    silent: int  # in which it believed no method
    wrong: Rate  # E1: of the others, those whose believed method is not truly good
    wrong_by_need: Rate  # the same, where only the planted words count that the model needs
    banned: Rate  # E2: truly good methods told not to be used, of all truly good ones; interval over worlds
    banned_worlds: Rate  # worlds with such a method
    behind: Rate  # truly good methods told to be behind, which may be true
    caught: Rate  # methods that are not truly good, told to be behind or not to be used
    texts: float | None  # looked at, mean over worlds

    @property
    def label(self) -> str:
        return f"{self.panel}, {self.by}" if self.by else self.panel


@dataclass(frozen=True)
class WorldRow:
    """One world, and what the reported panel says in it."""

    key: str
    model: str
    fresh: bool  # chose nothing
    skipped: str  # why it is not counted
    epochs: int
    dev: float
    test: float
    carried: int  # texts whose decision the planted words carry
    by_shortcut: int  # of these, carried by the shortcut too
    best: float | None  # truth of the truest method
    good: tuple[str, ...]
    believed: str
    truth: float | None  # of the believed method
    right: bool | None  # None where nothing was believed, or nobody knows
    right_by_need: bool | None  # by the planted words that the model needs


@dataclass(frozen=True)
class MethodRow:
    """One method over all counted worlds that have it, by the reported panel."""

    method: str
    worlds: int
    truth: float  # mean
    good: int  # worlds in which it is truly good
    believed: int
    behind: int
    banned: int


@dataclass(frozen=True)
class Slice:
    """The fresh worlds of one kind, by the reported panel."""

    what: str  # rule, copies, shortcut, model
    value: str
    silent: int
    wrong: Rate
    wrong_by_need: Rate


@dataclass(frozen=True)
class VerdictRow:
    """What one panel says in one counted world: a line of tables/verdicts.csv, from which all rates can be counted."""

    world: str
    model: str
    fresh: bool
    panel: str
    believed: str
    right: bool | None
    right_by_need: bool | None
    good: int  # truly good methods
    banned: int  # of these, told not to be used
    behind: int  # of these, told to be behind
    poor: int  # methods that are not truly good
    caught: int  # of these, told to be behind or not to be used
    texts: int  # looked at


@dataclass(frozen=True)
class ValidationSummary:
    """All of it."""

    SCHEMA: ClassVar[int] = 1

    title: str
    answer: str
    seeds: tuple[int, ...]
    fresh_seeds: tuple[int, ...]
    setting: Setting
    near: float
    looks: tuple[int, ...]
    alpha: float
    margin: float
    asked: int  # worlds
    made: int
    chosen: str  # label of the panel that errs least on the first seeds; "" while there is none
    reported: str  # label of the panel that the worlds and methods below are told by
    first: tuple[PanelErrors, ...]  # on the worlds that choose
    fresh: tuple[PanelErrors, ...]  # on those that chose nothing
    slices: tuple[Slice, ...]
    worlds: tuple[WorldRow, ...]
    methods: tuple[MethodRow, ...]

    def errors(self, label: str, *, fresh: bool) -> PanelErrors | None:
        """Those of one panel; none where no such world was judged."""
        return next((row for row in (self.fresh if fresh else self.first) if row.label == label and row.worlds), None)
